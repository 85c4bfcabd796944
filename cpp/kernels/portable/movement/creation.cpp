// Operators that create tensors from sizes and scalars.
#include "rushlight/kernels/portable/movement/creation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

template <typename T>
void repeat(Tensor& out, const void* item) {
  T value;
  std::memcpy(&value, item, sizeof value);
  std::fill(out.as<T>(), out.as<T>() + out.numel, value);
}

Status fill_with(KernelContext& ctx, Tensor& out, const void* value, DType dtype) {
  alignas(8) uint8_t item[16];
  if (!can_convert(dtype, out.dtype) || element_size(out.dtype) > 8) {
    return ctx.fail(Code::NotSupported, "out is %s, which cannot be filled with a number",
                    dtype_name(out.dtype));
  }
  convert(value, dtype, item, out.dtype, 1);
  switch (element_size(out.dtype)) {
    case 1:
      repeat<uint8_t>(out, item);
      break;
    case 2:
      repeat<uint16_t>(out, item);
      break;
    case 4:
      repeat<uint32_t>(out, item);
      break;
    default:
      repeat<uint64_t>(out, item);
      break;
  }
  return {};
}

Status fill_sized(KernelContext& ctx, const EValue& size, Tensor& out, const EValue& value) {
  Shape shape;
  RL_TRY(shape_of_list(ctx, size, &shape));
  RL_TRY(ctx.resize(out, shape.span()));
  return fill(ctx, out, value);
}

// The number of elements from start to end, or -1 if no tensor can have that number.
int64_t arange_count(double start, double end, double step) {
  const double count = std::ceil((end - start) / step);
  if (!(count >= 0) || count > INT32_MAX) return -1;
  return static_cast<int64_t>(count);
}

// The same in integers, since double is not exact beyond 2^53.
int64_t arange_count_int(int64_t start, int64_t end, int64_t step) {
  const uint64_t span = step > 0 ? static_cast<uint64_t>(end) - static_cast<uint64_t>(start)
                                 : static_cast<uint64_t>(start) - static_cast<uint64_t>(end);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = span / stride + (span % stride != 0);
  return count > INT32_MAX ? -1 : static_cast<int64_t>(count);
}

template <typename T>
void write_arange(Tensor& out, DType dtype, T start, T step) {
  T buffer[kChunk];
  const size_t total = static_cast<size_t>(out.numel);
  for (size_t done = 0; done < total;) {
    const size_t count = std::min(kChunk, total - done);
    for (size_t i = 0; i < count; ++i) buffer[i] = start + static_cast<T>(done + i) * step;
    convert(buffer, dtype, out.as<uint8_t>() + done * element_size(out.dtype), out.dtype, count);
    done += count;
  }
}

double number_for(const Tensor& out, const EValue& number) {
  return is_floating(out.dtype) ? number.to_double() : static_cast<double>(number.to_int());
}

// For integers eager truncates all three numbers, but only for int64 does it compute the number of
// elements after truncating.
Status arange(KernelContext& ctx, const EValue& start, const EValue& end, const EValue& step,
              Tensor& out) {
  RL_TRY(check_real(ctx, "out", out));
  const bool fractions =
      start.tag == Tag::Double || end.tag == Tag::Double || step.tag == Tag::Double;
  const double first = number_for(out, start);
  const double last = number_for(out, end);
  const double delta = number_for(out, step);
  if (delta == 0.0 || !((delta > 0.0 && last >= first) || (delta < 0.0 && last <= first))) {
    return ctx.fail(
        Code::InvalidArgument,
        "start is %g, end %g and step %g: step must not be 0 and must lead from start to end",
        first, last, delta);
  }
  const int64_t count = fractions && out.dtype != DType::Int64
                            ? arange_count(start.to_double(), end.to_double(), step.to_double())
                            : arange_count_int(start.to_int(), end.to_int(), step.to_int());
  Shape shape;
  if (!shape.push(count)) {
    return ctx.fail(Code::InvalidArgument,
                    "start is %g, end %g and step %g, which make too many elements", first, last,
                    delta);
  }
  RL_TRY(ctx.resize(out, shape.span()));
  if (is_floating(out.dtype)) {
    write_arange<double>(out, DType::Float64, first, delta);
  } else {
    // Unsigned, so that an overflow wraps around.
    write_arange<uint64_t>(out, DType::Int64, static_cast<uint64_t>(start.to_int()),
                           static_cast<uint64_t>(step.to_int()));
  }
  return {};
}

}  // namespace

Status fill(KernelContext& ctx, Tensor& out, const EValue& value) {
  if (value.tag == Tag::Double) return fill_with(ctx, out, &value.d, DType::Float64);
  return fill_with(ctx, out, &value.i, DType::Int64);
}

Status fill_from(KernelContext& ctx, Tensor& out, const Tensor& value) {
  return fill_with(ctx, out, value.data, value.dtype);
}

// full(size, fill_value, out)
Status full_out(KernelContext& ctx, EValue* const* args) {
  return fill_sized(ctx, *args[0], args[2]->tensor(), *args[1]);
}

// full_like(self, fill_value, memory_format, out)
Status full_like_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[3]->tensor();
  RL_TRY(ctx.resize_like(out, args[0]->tensor()));
  return fill(ctx, out, *args[1]);
}

// zeros(size, out), ones(size, out)
Status zeros_out(KernelContext& ctx, EValue* const* args) {
  EValue zero;
  zero.set_int(0);
  return fill_sized(ctx, *args[0], args[1]->tensor(), zero);
}

Status ones_out(KernelContext& ctx, EValue* const* args) {
  EValue one;
  one.set_int(1);
  return fill_sized(ctx, *args[0], args[1]->tensor(), one);
}

// empty(size, memory_format, out) and _empty_dim_order(size, dim_order, out): out's own dim order
// is used.
Status empty_out(KernelContext& ctx, EValue* const* args) {
  Shape shape;
  RL_TRY(shape_of_list(ctx, *args[0], &shape));
  return ctx.resize(args[2]->tensor(), shape.span());
}

// arange(end, out)
Status arange_out(KernelContext& ctx, EValue* const* args) {
  EValue start;
  EValue step;
  start.set_int(0);
  step.set_int(1);
  return arange(ctx, start, *args[0], step, args[1]->tensor());
}

// arange(start, end, step, out)
Status arange_start_out(KernelContext& ctx, EValue* const* args) {
  return arange(ctx, *args[0], *args[1], *args[2], args[3]->tensor());
}

// scalar_tensor(s, out)
Status scalar_tensor_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[1]->tensor();
  RL_TRY(ctx.resize(out, Shape().span()));
  return fill(ctx, out, *args[0]);
}

// fill(self, value, out)
Status fill_scalar_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[2]->tensor();
  RL_TRY(ctx.resize_like(out, args[0]->tensor()));
  return fill(ctx, out, *args[1]);
}

Status fill_tensor_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& value = args[1]->tensor();
  Tensor& out = args[2]->tensor();
  if (value.numel != 1) {
    return ctx.fail(Code::InvalidArgument, "value has %lld elements, but must have one",
                    static_cast<long long>(value.numel));
  }
  RL_TRY(ctx.resize_like(out, args[0]->tensor()));
  return fill_from(ctx, out, value);
}

}  // namespace rushlight::kernels
