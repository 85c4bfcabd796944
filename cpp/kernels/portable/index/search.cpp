// Positions in sorted sequences (searchsorted, bucketize), and counts for each bin (histc).
#include <algorithm>
#include <cmath>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/element.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/index/indexing.h"
#include "rushlight/kernels/portable/movement/creation.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/reduce.h"

namespace rushlight::kernels {
namespace {

// One element: a double, or an int64 if neither operand is floating.
union Value {
  double d;
  int64_t i;
};

Value load(const Tensor& tensor, int64_t offset, bool floating) {
  Value value;
  if (floating) {
    value.d = double_at(tensor, offset);
  } else {
    value.i = int64_at(tensor, offset);
  }
  return value;
}

// A row of boundaries. It is in ascending order, or becomes so when read in the order of `sorter`.
struct Boundaries {
  const Tensor* sequence;
  int64_t offset;
  int64_t stride;
  int64_t n;
  const int64_t* sorter;
  int64_t sorter_stride;
  bool floating;

  Value at(int64_t i) const {
    const int64_t k = sorter != nullptr ? sorter[i * sorter_stride] : i;
    return load(*sequence, offset + k * stride, floating);
  }
  // True if the value belongs behind boundary i. NaN belongs behind all boundaries, since it is
  // last in a sorted row.
  bool behind(int64_t i, Value value, bool right) const {
    const Value boundary = at(i);
    if (!floating) return right ? boundary.i <= value.i : boundary.i < value.i;
    return right ? !(boundary.d > value.d) : !(boundary.d >= value.d);
  }
  int64_t place(Value value, bool right) const {
    int64_t low = 0;
    int64_t high = n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (behind(middle, value, right)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

// The usual case: a value and a contiguous row of the same type.
using PlaceFn = int64_t (*)(const Boundaries& boundaries, const Tensor& values, int64_t at,
                            bool right);
template <typename T>
int64_t place_alike(const Boundaries& boundaries, const Tensor& values, int64_t at, bool right) {
  const auto value = number(values.as<T>()[at]);
  const T* row = boundaries.sequence->as<T>() + boundaries.offset;
  int64_t low = 0;
  for (int64_t left = boundaries.n; left > 0;) {
    const int64_t half = left / 2;
    const auto boundary = number(row[low + half]);
    const bool behind = right ? !(boundary > value) : !(boundary >= value);
    low = behind ? low + half + 1 : low;
    left = behind ? left - half - 1 : half;
  }
  return low;
}

PlaceFn place_alike_fn(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return place_alike<float>;
    case DType::Float64:
      return place_alike<double>;
    case DType::Float16:
      return place_alike<plain::Half>;
    case DType::BFloat16:
      return place_alike<plain::BFloat>;
    case DType::Int64:
      return place_alike<int64_t>;
    case DType::Int32:
      return place_alike<int32_t>;
    case DType::Int16:
      return place_alike<int16_t>;
    case DType::Int8:
      return place_alike<int8_t>;
    case DType::UInt8:
      return place_alike<uint8_t>;
    default:
      return nullptr;
  }
}

void write_place(Tensor& out, int64_t offset, int64_t place) {
  if (out.dtype == DType::Int64) {
    out.as<int64_t>()[offset] = place;
  } else {
    out.as<int32_t>()[offset] = static_cast<int32_t>(place);
  }
}

Status check_places(KernelContext& ctx, bool int32, const Tensor& out) {
  return check_dtype(ctx, "out", out, int32 ? DType::Int32 : DType::Int64);
}

Status check_sorter(KernelContext& ctx, const Tensor* sorter, const Tensor& sequence) {
  if (sorter == nullptr) return {};
  RL_TRY(check_dtype(ctx, "sorter", *sorter, DType::Int64));
  const Span<const int32_t> a = sorter->shape();
  const Span<const int32_t> b = sequence.shape();
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) {
    return ctx.fail(Code::InvalidArgument, "sorter has shape %s, but sorted_sequence has %s",
                    ShapeText(a).text(), ShapeText(b).text());
  }
  const int64_t n = sequence.rank == 0 ? 1 : sequence.sizes[sequence.rank - 1];
  for (int64_t i = 0; i < sorter->numel; ++i) {
    const int64_t index = sorter->as<int64_t>()[i];
    if (index < 0 || index >= n) {
      return ctx.fail(Code::InvalidArgument,
                      "sorter holds the index %lld, which must be from 0 to %lld",
                      static_cast<long long>(index), static_cast<long long>(n - 1));
    }
  }
  return {};
}

// Searches every element of `values` in its row of `sequence`. A sequence of one dimension is a row
// for all of them.
Status search(KernelContext& ctx, const Tensor& sequence, const Tensor& values,
              const Tensor* sorter, bool right, Tensor& out) {
  RL_TRY(check_real(ctx, "the sequence", sequence));
  RL_TRY(check_real(ctx, "the values", values));
  RL_TRY(check_sorter(ctx, sorter, sequence));
  bool rows_fit = sequence.rank == 1 || (sequence.rank > 1 && sequence.rank == values.rank);
  for (size_t d = 0; rows_fit && sequence.rank > 1 && d + 1 < sequence.rank; ++d) {
    rows_fit = sequence.sizes[d] == values.sizes[d];
  }
  if (!rows_fit) {
    return ctx.fail(Code::InvalidArgument,
                    "the sequence has shape %s: it must have one dimension, or those of the "
                    "values, %s, but for the last",
                    ShapeText(sequence.shape()).text(), ShapeText(values.shape()).text());
  }
  RL_TRY(ctx.resize_like(out, values));
  if (out.numel == 0) return {};
  const size_t last = sequence.rank - 1U;
  const bool floating = is_floating(sequence.dtype) || is_floating(values.dtype);
  const bool alike =
      sequence.dtype == values.dtype && sequence.strides[last] == 1 && sorter == nullptr;
  const PlaceFn place_alike = alike ? place_alike_fn(values.dtype) : nullptr;
  Nest nest;       // over the values: offsets of values and of out
  Nest sequences;  // in parallel: offsets of the sequence and of the sorter
  for (size_t d = values.rank; d-- > 0;) {
    const bool row = sequence.rank > 1 && d < last;
    nest.add(values.sizes[d], values.strides[d], out.strides[d]);
    sequences.add(values.sizes[d], row ? sequence.strides[d] : 0,
                  row && sorter != nullptr ? sorter->strides[d] : 0);
  }
  nest.rewind();
  sequences.rewind();
  do {
    const int64_t* order =
        sorter != nullptr ? sorter->as<int64_t>() + sequences.second_offset() : nullptr;
    const Boundaries boundaries = {&sequence,
                                   sequences.offset(),
                                   sequence.strides[last],
                                   sequence.sizes[last],
                                   order,
                                   order != nullptr ? sorter->strides[last] : 0,
                                   floating};
    const int64_t place = place_alike != nullptr
                              ? place_alike(boundaries, values, nest.offset(), right)
                              : boundaries.place(load(values, nest.offset(), floating), right);
    write_place(out, nest.second_offset(), place);
    sequences.next();
  } while (nest.next());
  return {};
}

// A scalar as a tensor without dimensions.
struct ScalarTensor {
  explicit ScalarTensor(const EValue& value) {
    const bool floating = value.tag == Tag::Double;
    tensor.dtype = floating ? DType::Float64 : DType::Int64;
    tensor.numel = 1;
    tensor.data = &item;
    if (floating) {
      item.d = value.to_double();
    } else {
      item.i = value.to_int();
    }
  }
  Value item;
  Tensor tensor;
};

// `side` says the same as `right`, and must not contradict it.
Status side_of(KernelContext& ctx, const EValue& right, const EValue& side, bool* is_right) {
  *is_right = right.to_bool();
  if (side.is_none()) return {};
  const StringView text = side.string();
  const bool known = text == StringView("left") || text == StringView("right");
  if (!known || (*is_right && text == StringView("left"))) {
    return ctx.fail(Code::InvalidArgument,
                    "side is '%.*s', but must be 'left' or 'right', and not 'left' beside "
                    "right=True",
                    text.len(), text.data());
  }
  *is_right = text == StringView("right");
  return {};
}

// searchsorted(sorted_sequence, self, *, out_int32, right, side, sorter, out)
Status searchsorted(KernelContext& ctx, EValue* const* args, const Tensor& values) {
  Tensor& out = args[6]->tensor();
  bool right = false;
  RL_TRY(check_places(ctx, args[2]->to_bool(), out));
  RL_TRY(side_of(ctx, *args[3], *args[4], &right));
  const Tensor* sorter = args[5]->is_none() ? nullptr : &args[5]->tensor();
  return search(ctx, args[0]->tensor(), values, sorter, right, out);
}

// bucketize(self, boundaries, *, out_int32, right, out)
Status bucketize(KernelContext& ctx, EValue* const* args, const Tensor& values) {
  Tensor& out = args[4]->tensor();
  RL_TRY(check_places(ctx, args[2]->to_bool(), out));
  RL_TRY(check_rank(ctx, "boundaries", args[1]->tensor(), 1));
  return search(ctx, args[1]->tensor(), values, nullptr, args[3]->to_bool(), out);
}

}  // namespace

Status searchsorted_tensor_out(KernelContext& ctx, EValue* const* args) {
  return searchsorted(ctx, args, args[1]->tensor());
}

Status searchsorted_scalar_out(KernelContext& ctx, EValue* const* args) {
  RL_TRY(check_rank(ctx, "sorted_sequence", args[0]->tensor(), 1));
  return searchsorted(ctx, args, ScalarTensor(*args[1]).tensor);
}

Status bucketize_tensor_out(KernelContext& ctx, EValue* const* args) {
  return bucketize(ctx, args, args[0]->tensor());
}

Status bucketize_scalar_out(KernelContext& ctx, EValue* const* args) {
  return bucketize(ctx, args, ScalarTensor(*args[0]).tensor);
}

namespace {

// Calls body(value) for every element, as a double.
template <typename Body>
void each_value(const Tensor& in, Body body) {
  double values[kChunk];
  const int64_t size = static_cast<int64_t>(element_size(in.dtype));
  for (int64_t done = 0; done < in.numel; done += static_cast<int64_t>(kChunk)) {
    const int64_t n = std::min(in.numel - done, static_cast<int64_t>(kChunk));
    convert(in.as<uint8_t>() + done * size, in.dtype, values, DType::Float64,
            static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) body(values[i]);
  }
}

// The range that is divided into bins: min to max, or the range of the elements if these are equal.
// An empty range is widened by 1 on both sides.
Status bin_range(KernelContext& ctx, const Tensor& in, double* low, double* high) {
  if (*low > *high) {
    return ctx.fail(Code::InvalidArgument, "min is %g and max is %g: min must not be above max",
                    *low, *high);
  }
  if (*low == *high && in.numel > 0) {
    *low = std::numeric_limits<double>::infinity();
    *high = -*low;
    bool nan = false;
    each_value(in, [&](double value) {
      nan = nan || value != value;
      *low = std::min(*low, value);
      *high = std::max(*high, value);
    });
    if (nan) *low = std::numeric_limits<double>::quiet_NaN();
  }
  if (!std::isfinite(*low) || !std::isfinite(*high)) {
    return ctx.fail(Code::InvalidArgument,
                    "the range from %g to %g, to be divided into bins, is "
                    "not finite",
                    *low, *high);
  }
  if (*low == *high) {
    *low -= 1.0;
    *high += 1.0;
  }
  return {};
}

}  // namespace

// histc(self, bins, min, max, *, out): the number of elements in each of some equal bins.
Status histc_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[4]->tensor();
  const int64_t bins = args[1]->to_int();
  double low = args[2]->to_double();
  double high = args[3]->to_double();
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_dtype(ctx, "out", out, in.dtype));
  RL_TRY(bin_range(ctx, in, &low, &high));
  Shape shape;
  if (bins <= 0 || !shape.push(bins)) {
    return ctx.fail(Code::InvalidArgument, "bins is %lld, but must be from 1 to 2147483647",
                    static_cast<long long>(bins));
  }
  RL_TRY(ctx.resize(out, shape.span()));
  EValue zero;
  zero.set_int(0);
  RL_TRY(fill(ctx, out, zero));
  const FoldFn add = fold_elements(Fold::Add, out.dtype);
  uint8_t one[sizeof(double)];
  const int64_t number = 1;
  convert(&number, DType::Int64, one, out.dtype, 1);
  const bool single = in.dtype == DType::Float32;
  const float low_single = static_cast<float>(low);
  const float range_single = static_cast<float>(high) - low_single;
  each_value(in, [&](double value) {
    if (!(value >= low && value <= high)) return;
    // Computed in the type of the elements, as in eager, because that decides about elements at an
    // edge.
    const double place = single ? static_cast<double>((static_cast<float>(value) - low_single) *
                                                      static_cast<float>(bins) / range_single)
                                : (value - low) * static_cast<double>(bins) / (high - low);
    const int64_t bin = std::min(static_cast<int64_t>(place), bins - 1);
    add(one, 0, out.as<uint8_t>(), &bin, 1);
  });
  return {};
}

}  // namespace rushlight::kernels
