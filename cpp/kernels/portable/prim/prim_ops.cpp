// Operators on scalars, with which dynamic shapes are computed, and the few operators on tensors
// that a program's control flow needs. A scalar result is the last argument.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

bool both_int(const EValue& a, const EValue& b) {
  return a.tag != Tag::Double && b.tag != Tag::Double;
}

uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }

Status divided_by_zero(KernelContext& ctx, const EValue& a) {
  return ctx.fail(Code::InvalidArgument, "%lld is divided by zero",
                  static_cast<long long>(a.to_int()));
}

Status assertion_failed(KernelContext& ctx, const EValue& message) {
  if (message.tag != Tag::String) {
    return ctx.fail(Code::InvalidArgument, "an assertion of the model failed");
  }
  const StringView text = message.string();
  return ctx.fail(Code::InvalidArgument, "an assertion of the model failed: %.*s",
                  static_cast<int>(std::min<size_t>(text.size(), 200)), text.data());
}

// Division towards zero. The least number divided by -1 wraps around.
int64_t quotient(int64_t a, int64_t b) {
  return b == -1 ? static_cast<int64_t>(0 - bits(a)) : a / b;
}

enum class Order { Eq, Gt, Lt, Ge, Le };

template <typename T>
bool holds(T a, T b, Order order) {
  switch (order) {
    case Order::Eq:
      return a == b;
    case Order::Gt:
      return a > b;
    case Order::Lt:
      return a < b;
    case Order::Ge:
      return a >= b;
    default:
      return a <= b;
  }
}

Status compare(EValue* const* args, Order order) {
  const EValue& a = *args[0];
  const EValue& b = *args[1];
  args[2]->set_bool(both_int(a, b) ? holds(a.to_int(), b.to_int(), order)
                                   : holds(a.to_double(), b.to_double(), order));
  return {};
}

// Rounds a double with `rounding`; an int is not changed.
Status to_integer(EValue* const* args, double (*rounding)(double)) {
  EValue rounded = *args[0];
  if (rounded.tag == Tag::Double) rounded.set_double(rounding(rounded.to_double()));
  args[1]->set_int(rounded.to_int());
  return {};
}

// The sizes of a view, with a -1 replaced by the actual size.
Status view_sizes(KernelContext& ctx, const EValue& list, int64_t numel, Shape* shape) {
  size_t inferred = SIZE_MAX;
  int64_t known = 1;
  if (list.size() > kMaxRank) {
    return ctx.fail(Code::InvalidArgument, "size has %zu dimensions, at most %zu are supported",
                    list.size(), kMaxRank);
  }
  for (size_t k = 0; k < list.size(); ++k) {
    const int64_t size = list.int_at(k);
    if (size == -1 && inferred == SIZE_MAX) {
      inferred = k;
      shape->push(1);
      continue;
    }
    if (!shape->push(size) || (size > 0 && known > INT64_MAX / size)) {
      return ctx.fail(Code::InvalidArgument, "size[%zu] is %lld, which is not the size of a tensor",
                      k, static_cast<long long>(size));
    }
    known *= size;
  }
  if (inferred != SIZE_MAX && known > 0 && numel % known == 0 && numel / known <= INT32_MAX) {
    shape->sizes[inferred] = static_cast<int32_t>(numel / known);
    known = numel;
  }
  if (known == numel && (inferred == SIZE_MAX || numel > 0 || shape->sizes[inferred] == 0)) {
    return {};
  }
  return ctx.fail(Code::InvalidArgument, "%lld elements cannot be viewed with sizes %s",
                  static_cast<long long>(numel), ShapeText(shape->span()).text());
}

}  // namespace

Status prim_add(KernelContext&, EValue* const* args) {
  const EValue& a = *args[0];
  const EValue& b = *args[1];
  if (both_int(a, b)) {
    args[2]->set_int(static_cast<int64_t>(bits(a.to_int()) + bits(b.to_int())));
  } else {
    args[2]->set_double(a.to_double() + b.to_double());
  }
  return {};
}

Status prim_sub(KernelContext&, EValue* const* args) {
  const EValue& a = *args[0];
  const EValue& b = *args[1];
  if (both_int(a, b)) {
    args[2]->set_int(static_cast<int64_t>(bits(a.to_int()) - bits(b.to_int())));
  } else {
    args[2]->set_double(a.to_double() - b.to_double());
  }
  return {};
}

Status prim_mul(KernelContext&, EValue* const* args) {
  const EValue& a = *args[0];
  const EValue& b = *args[1];
  if (both_int(a, b)) {
    args[2]->set_int(static_cast<int64_t>(bits(a.to_int()) * bits(b.to_int())));
  } else {
    args[2]->set_double(a.to_double() * b.to_double());
  }
  return {};
}

// Python's //, which rounds towards minus infinity.
Status prim_floordiv(KernelContext& ctx, EValue* const* args) {
  const EValue& a = *args[0];
  const EValue& b = *args[1];
  if (!both_int(a, b)) {
    args[2]->set_double(std::floor(a.to_double() / b.to_double()));
    return {};
  }
  const int64_t x = a.to_int();
  const int64_t y = b.to_int();
  if (y == 0) return divided_by_zero(ctx, a);
  const bool inexact = y != -1 && x % y != 0;
  args[2]->set_int(quotient(x, y) - (inexact && (x < 0) != (y < 0) ? 1 : 0));
  return {};
}

// floordiv.int rounds towards zero, as the format requires.
Status prim_floordiv_int(KernelContext& ctx, EValue* const* args) {
  const int64_t divisor = args[1]->to_int();
  if (divisor == 0) return divided_by_zero(ctx, *args[0]);
  args[2]->set_int(quotient(args[0]->to_int(), divisor));
  return {};
}

Status prim_truediv(KernelContext&, EValue* const* args) {
  args[2]->set_double(args[0]->to_double() / args[1]->to_double());
  return {};
}

// C's remainder, which has the sign of the dividend.
Status prim_mod(KernelContext& ctx, EValue* const* args) {
  const int64_t divisor = args[1]->to_int();
  if (divisor == 0) return divided_by_zero(ctx, *args[0]);
  args[2]->set_int(divisor == -1 ? 0 : args[0]->to_int() % divisor);
  return {};
}

Status prim_eq(KernelContext&, EValue* const* args) { return compare(args, Order::Eq); }
Status prim_gt(KernelContext&, EValue* const* args) { return compare(args, Order::Gt); }
Status prim_lt(KernelContext&, EValue* const* args) { return compare(args, Order::Lt); }
Status prim_ge(KernelContext&, EValue* const* args) { return compare(args, Order::Ge); }
Status prim_le(KernelContext&, EValue* const* args) { return compare(args, Order::Le); }

Status prim_neg(KernelContext&, EValue* const* args) {
  const EValue& a = *args[0];
  if (a.tag == Tag::Double) {
    args[1]->set_double(-a.to_double());
  } else {
    args[1]->set_int(static_cast<int64_t>(0 - bits(a.to_int())));
  }
  return {};
}

Status prim_sym_not(KernelContext&, EValue* const* args) {
  args[1]->set_bool(!args[0]->to_bool());
  return {};
}

Status prim_sym_ite(KernelContext&, EValue* const* args) {
  *args[3] = args[0]->to_bool() ? *args[1] : *args[2];
  return {};
}

Status prim_sym_max(KernelContext&, EValue* const* args) {
  const bool first = holds(args[0]->to_int(), args[1]->to_int(), Order::Ge);
  args[2]->set_int(args[first ? 0 : 1]->to_int());
  return {};
}

Status prim_sym_min(KernelContext&, EValue* const* args) {
  const bool first = holds(args[0]->to_int(), args[1]->to_int(), Order::Le);
  args[2]->set_int(args[first ? 0 : 1]->to_int());
  return {};
}

Status prim_sym_float(KernelContext&, EValue* const* args) {
  args[1]->set_double(args[0]->to_double());
  return {};
}

Status prim_trunc(KernelContext&, EValue* const* args) { return to_integer(args, std::trunc); }
Status prim_ceil(KernelContext&, EValue* const* args) { return to_integer(args, std::ceil); }
// Ties are rounded to the even number.
Status prim_round(KernelContext&, EValue* const* args) { return to_integer(args, std::nearbyint); }

// sym_size(tensor, dim)
Status sym_size_int(KernelContext& ctx, EValue* const* args) {
  const Tensor& tensor = args[0]->tensor();
  const int64_t rank = tensor.rank;
  const int64_t dim = args[1]->to_int();
  if (dim < -rank || dim >= rank) {
    return ctx.fail(Code::InvalidArgument, "dim is %lld, but the tensor has %lld dimensions",
                    static_cast<long long>(dim), static_cast<long long>(rank));
  }
  args[2]->set_int(tensor.sizes[dim < 0 ? dim + rank : dim]);
  return {};
}

Status sym_numel(KernelContext&, EValue* const* args) {
  args[1]->set_int(args[0]->tensor().numel);
  return {};
}

// Assertions of the model. Each is an instruction of its own; if it fails, nothing after it is run.
Status assert_scalar(KernelContext& ctx, EValue* const* args) {
  return args[0]->to_bool() ? Status{} : assertion_failed(ctx, *args[1]);
}

Status assert_async(KernelContext& ctx, EValue* const* args) {
  const Tensor& tensor = args[0]->tensor();
  if (tensor.numel != 1 || !can_convert(tensor.dtype, DType::Float64)) {
    return ctx.fail(Code::InvalidArgument,
                    "an assertion takes one number or bool, but got %s of sizes %s",
                    dtype_name(tensor.dtype), ShapeText(tensor.shape()).text());
  }
  double value = 0;
  convert(tensor.data, tensor.dtype, &value, DType::Float64, 1);
  return value != 0 ? Status{} : assertion_failed(ctx, *args[1]);
}

// The first element of a tensor, as the kind of scalar that its type requires.
Status local_scalar_dense(KernelContext& ctx, EValue* const* args) {
  const Tensor& tensor = args[0]->tensor();
  const bool floating = is_floating(tensor.dtype);
  const DType wide = floating ? DType::Float64 : DType::Int64;
  if (tensor.numel < 1 || !can_convert(tensor.dtype, wide)) {
    return ctx.fail(Code::InvalidArgument,
                    "a tensor of type %s and sizes %s has no first element that is a number",
                    dtype_name(tensor.dtype), ShapeText(tensor.shape()).text());
  }
  if (floating) {
    double value = 0;
    convert(tensor.data, tensor.dtype, &value, wide, 1);
    args[1]->set_double(value);
    return {};
  }
  int64_t value = 0;
  convert(tensor.data, tensor.dtype, &value, wide, 1);
  if (tensor.dtype == DType::Bool) {
    args[1]->set_bool(value != 0);
  } else {
    args[1]->set_int(value);
  }
  return {};
}

// et_view(self, size, out): makes out a view of self's memory.
Status prim_et_view(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[2]->tensor();
  RL_TRY(check_dtype(ctx, "out", out, self.dtype));
  Shape shape;
  RL_TRY(view_sizes(ctx, *args[1], self.numel, &shape));
  // Done on a copy first: if it fails, out keeps its memory, sizes and capacity.
  int32_t sizes[kMaxRank];
  int32_t strides[kMaxRank];
  std::copy_n(out.sizes, out.rank, sizes);
  std::copy_n(out.strides, out.rank, strides);
  Tensor view = out;
  view.sizes = sizes;
  view.strides = strides;
  view.data = self.data;
  view.capacity = self.capacity;
  view.read_only = false;
  RL_TRY(ctx.resize(view, shape.span()));
  if (!same_layout(self, view) && !(self.is_contiguous() && view.is_contiguous())) {
    return ctx.fail(Code::NotSupported,
                    "self and out must both be contiguous for one to be a view of the other");
  }
  std::copy_n(sizes, out.rank, out.sizes);
  std::copy_n(strides, out.rank, out.strides);
  view.sizes = out.sizes;
  view.strides = out.strides;
  view.read_only = self.read_only;
  out = view;
  return {};
}

// et_copy_index(copy_to, copy_from, index): writes copy_from at [index] of copy_to, which grows.
// The copy at index 0 decides the other sizes.
Status prim_et_copy_index(KernelContext& ctx, EValue* const* args) {
  Tensor& to = args[0]->tensor();
  const Tensor& from = args[1]->tensor();
  const int64_t index = args[2]->to_int();
  RL_TRY(check_dtype(ctx, "copy_from", from, to.dtype));
  bool fits = to.rank == from.rank + 1 && index >= 0 && index < INT32_MAX;
  for (size_t d = 0; fits && index > 0 && d < from.rank; ++d) {
    fits = from.sizes[d] == to.sizes[d + 1];
  }
  if (!fits) {
    return ctx.fail(Code::InvalidArgument, "sizes %s do not go into %s at index %lld",
                    ShapeText(from.shape()).text(), ShapeText(to.shape()).text(),
                    static_cast<long long>(index));
  }
  Shape shape(to.shape());
  shape.sizes[0] = static_cast<int32_t>(index + 1);
  for (size_t d = 0; d < from.rank; ++d) shape.sizes[d + 1] = from.sizes[d];
  RL_TRY(ctx.resize(to, shape.span()));
  if (from.numel == 0) return {};
  if (to.dim_order[0] != 0 || !to.is_contiguous() || !from.is_contiguous()) {
    return ctx.fail(Code::NotSupported, "copy_to and copy_from must be contiguous");
  }
  const size_t bytes = from.nbytes();
  std::memmove(to.as<uint8_t>() + static_cast<size_t>(index) * bytes, from.data, bytes);
  return {};
}

}  // namespace rushlight::kernels
