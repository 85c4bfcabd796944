// Selects one element of a row by its rank (median, nanmedian, kthvalue), or the most frequent one
// (mode).
//
// With scratch memory for a key and an index per element, these are moved. Which of several equal
// elements is returned is not specified, but programs are compared with eager, so eager's
// algorithms are used, and the index is the same as eager's. Without scratch memory, the element is
// found by its key, one byte at a time from the highest: elements whose keys start with the known
// bytes are counted by their next byte.
#include <algorithm>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/reduction/reduce.h"
#include "rushlight/kernels/portable/sorting/order.h"

namespace rushlight::kernels {
namespace {

struct Row {
  const Tensor* in;
  int64_t offset;
  int64_t stride;
  int64_t n;

  template <typename Body>
  void each_key(Body body) const {
    RowKeys(*in, offset, stride, n).each(body);
  }
};

// The position of the element of rank k (from 0) if the row were sorted in a stable order.
int64_t position_of_rank(const Row& row, int64_t k) {
  const int bits = has_wide_keys(row.in->dtype) ? 64 : 32;
  uint64_t prefix = 0;
  uint64_t known = 0;  // mask of the known bits of prefix
  for (int shift = bits - 8; shift >= 0; shift -= 8) {
    int64_t counts[256] = {};
    row.each_key([&](int64_t, uint64_t key) {
      if ((key & known) == prefix) ++counts[key >> shift & 0xff];
    });
    uint64_t digit = 0;
    while (k >= counts[digit]) k -= counts[digit++];
    prefix |= digit << shift;
    known |= uint64_t{0xff} << shift;
  }
  int64_t position = 0;
  row.each_key([&](int64_t i, uint64_t key) {
    if (key == prefix && k-- == 0) position = i;
  });
  return position;
}

int64_t first_with_key(const Row& row, uint64_t wanted) {
  int64_t position = 0;
  bool seen = false;
  row.each_key([&](int64_t i, uint64_t key) {
    if (!seen && key == wanted) {
      position = i;
      seen = true;
    }
  });
  return position;
}

int64_t count_of_key(const Row& row, uint64_t wanted) {
  int64_t count = 0;
  row.each_key([&](int64_t, uint64_t key) { count += key == wanted; });
  return count;
}

// Moves the element of rank k to position k. This is C. A. R. Hoare's quickselect with the median
// of three as pivot, with the same order of operations as in W. Press and others, "Numerical
// Recipes", section 8.5.
template <typename Item>
void quick_select(Item* items, int64_t n, int64_t k) {
  const auto above = [&](int64_t a, int64_t b) { return less_key(items[b], items[a]); };
  int64_t low = 0;
  int64_t high = n - 1;
  while (high > low + 1) {
    std::swap(items[low + (high - low) / 2], items[low + 1]);
    if (above(low + 1, high)) std::swap(items[low + 1], items[high]);
    if (above(low, high)) std::swap(items[low], items[high]);
    if (above(low + 1, low)) std::swap(items[low + 1], items[low]);
    int64_t i = low + 1;
    int64_t j = high;
    for (;;) {
      do ++i;
      while (above(low, i));
      do --j;
      while (above(j, low));
      if (j < i) break;
      std::swap(items[i], items[j]);
    }
    std::swap(items[low], items[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
  if (high == low + 1 && above(low, high)) std::swap(items[low], items[high]);
}

// The index of the k-th element.
template <typename Item>
int64_t pick_kth(Item* items, int64_t n, int64_t k) {
  quick_select(items, n, k);
  return items[k].index();
}

// The index of the element of rank k in a stable order.
template <typename Item>
int64_t pick_rank(Item* items, int64_t n, int64_t k) {
  std::nth_element(items, items + k, items + n,
                   [](const Item& a, const Item& b) { return a.before(b); });
  return items[k].index();
}

// The index of one of the most frequent elements. If several are equally frequent, the least one is
// chosen.
template <typename Item>
int64_t pick_mode(Item* items, int64_t n) {
  std::sort(items, items + n, less_key<Item>);
  int64_t last = 0;
  int64_t best_count = 0;
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    while (end < n && items[end].key() == items[i].key()) ++end;
    if (end - i > best_count) {
      best_count = end - i;
      last = end - 1;
    }
    i = end;
  }
  return items[last].index();
}

// The items of one row in scratch memory, and the functions that select one of them.
class Items {
 public:
  Items(KernelContext& ctx, const Tensor& in, int64_t row_length) {
    wide_ = has_wide_keys(in.dtype);
    const size_t size = wide_ ? sizeof(WideItem) : sizeof(NarrowItem);
    data_ = ctx.scratch(static_cast<size_t>(row_length) * size);
  }
  bool there() const { return data_ != nullptr; }
  int64_t kth(const Row& row, int64_t k) {
    return wide_ ? pick_kth(load<WideItem>(row), row.n, k)
                 : pick_kth(load<NarrowItem>(row), row.n, k);
  }
  int64_t rank(const Row& row, int64_t k) {
    return wide_ ? pick_rank(load<WideItem>(row), row.n, k)
                 : pick_rank(load<NarrowItem>(row), row.n, k);
  }
  int64_t mode(const Row& row) {
    return wide_ ? pick_mode(load<WideItem>(row), row.n) : pick_mode(load<NarrowItem>(row), row.n);
  }

 private:
  template <typename Item>
  Item* load(const Row& row) {
    Item* items = static_cast<Item*>(data_);
    row.each_key([&](int64_t i, uint64_t key) { items[i] = Item(key, i); });
    return items;
  }

  void* data_;
  bool wide_;
};

// The position of the k-th element.
int64_t kth(const Row& row, int64_t k, Items& items) {
  return items.there() ? items.kth(row, k) : position_of_rank(row, k);
}

// The position of the lower of the two middle elements. If there is a NaN, and NaNs are not
// ignored, the position of a NaN.
int64_t median(const Row& row, bool ignore_nan, Items& items) {
  int64_t n = row.n;
  if (is_floating(row.in->dtype)) {
    const uint64_t nan = has_wide_keys(row.in->dtype) ? UINT64_MAX : UINT32_MAX;
    const int64_t nans = count_of_key(row, nan);
    if (nans > 0 && !ignore_nan) return first_with_key(row, nan);
    if (nans < n) n -= nans;
  }
  const int64_t k = (n - 1) / 2;
  return items.there() ? items.rank(row, k) : position_of_rank(row, k);
}

// The position of one of the most frequent elements. If several are equally frequent, the least one
// is chosen. Unlike in eager, NaNs are equal to each other, and greater than all numbers.
int64_t mode(const Row& row, Items& items) {
  if (items.there()) return items.mode(row);
  uint64_t best = 0;
  int64_t best_count = 0;
  row.each_key([&](int64_t, uint64_t key) {
    const int64_t count = count_of_key(row, key);
    if (count < best_count || (count == best_count && key >= best)) return;
    best = key;
    best_count = count;
  });
  return first_with_key(row, best);
}

void copy_item(const Tensor& in, int64_t from, Tensor& out, int64_t to) {
  const int64_t size = static_cast<int64_t>(element_size(in.dtype));
  std::memcpy(out.as<uint8_t>() + to * size, in.as<uint8_t>() + from * size,
              static_cast<size_t>(size));
}

// Runs `pick(row)`, which returns a position, for every row along a dimension.
template <typename Pick>
Status select_along(KernelContext& ctx, const Tensor& in, size_t dim, bool keepdim, Tensor& values,
                    Tensor& indices, Pick pick) {
  RL_TRY(check_dtype(ctx, "values", values, in.dtype));
  RL_TRY(check_dtype(ctx, "indices", indices, DType::Int64));
  const int64_t n = in.rank == 0 ? 1 : in.sizes[dim];
  bool reduced[kMaxRank] = {};
  reduced[dim] = true;
  const Shape shape = reduced_shape(in, reduced, keepdim);
  RL_TRY(ctx.resize(values, shape.span()));
  RL_TRY(ctx.resize(indices, shape.span()));
  if (values.numel == 0) return {};
  if (!same_layout(values, indices)) {
    return ctx.fail(Code::InvalidArgument, "the two outputs have different orders of dimensions");
  }
  Nest nest;
  for (size_t d = in.rank; d-- > 0;) {
    const size_t out_dim = keepdim || d < dim ? d : d - 1;
    if (d != dim) nest.add(in.sizes[d], in.strides[d], values.strides[out_dim]);
  }
  nest.rewind();
  const int64_t stride = in.rank == 0 ? 1 : in.strides[dim];
  do {
    const Row row = {&in, nest.offset(), stride, n};
    const int64_t index = pick(row);
    indices.as<int64_t>()[nest.second_offset()] = index;
    copy_item(in, row.offset + index * stride, values, nest.second_offset());
  } while (nest.next());
  return {};
}

Status check_row(KernelContext& ctx, const Tensor& in, int64_t dim_argument, size_t* dim) {
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(wrap_dim(ctx, dim_argument, in.rank, dim));
  if (in.rank == 0 || in.sizes[*dim] > 0) return {};
  return ctx.fail(Code::InvalidArgument, "self has sizes %s: dimension %zu has no elements",
                  ShapeText(in.shape()).text(), *dim);
}

// median(self, dim, keepdim, *, values, indices)
Status median_along(KernelContext& ctx, EValue* const* args, bool ignore_nan) {
  const Tensor& in = args[0]->tensor();
  size_t dim = 0;
  RL_TRY(check_row(ctx, in, args[1]->to_int(), &dim));
  Items items(ctx, in, in.rank == 0 ? 1 : in.sizes[dim]);
  return select_along(ctx, in, dim, args[2]->to_bool(), args[3]->tensor(), args[4]->tensor(),
                      [&](const Row& row) { return median(row, ignore_nan, items); });
}

// median(self, *, out): of an empty tensor NaN, or the least integer.
Status median_of_all(KernelContext& ctx, EValue* const* args, bool ignore_nan) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[1]->tensor();
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_dtype(ctx, "out", out, in.dtype));
  RL_TRY(ctx.resize(out, Shape().span()));
  if (in.numel == 0) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const int64_t least = in.dtype == DType::Int32 ? INT32_MIN : INT64_MIN;
    const bool floating = is_floating(in.dtype);
    const void* value = floating ? static_cast<const void*>(&nan) : &least;
    convert(value, floating ? DType::Float64 : DType::Int64, out.data, out.dtype, 1);
    return {};
  }
  const Row row = {&in, 0, 1, in.numel};
  Items items(ctx, in, in.numel);
  copy_item(in, median(row, ignore_nan, items), out, 0);
  return {};
}

}  // namespace

Status median_dim_values(KernelContext& ctx, EValue* const* args) {
  return median_along(ctx, args, false);
}

Status nanmedian_dim_values(KernelContext& ctx, EValue* const* args) {
  return median_along(ctx, args, true);
}

Status median_out(KernelContext& ctx, EValue* const* args) {
  return median_of_all(ctx, args, false);
}

Status nanmedian_out(KernelContext& ctx, EValue* const* args) {
  return median_of_all(ctx, args, true);
}

// kthvalue(self, k, dim, keepdim, *, values, indices)
Status kthvalue_values(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  const int64_t k = args[1]->to_int();
  size_t dim = 0;
  RL_TRY(check_row(ctx, in, args[2]->to_int(), &dim));
  const int64_t n = in.rank == 0 ? 1 : in.sizes[dim];
  if (k < 1 || k > n) {
    return ctx.fail(Code::InvalidArgument, "k is %lld, but must be from 1 to %lld, the size of dim",
                    static_cast<long long>(k), static_cast<long long>(n));
  }
  Items items(ctx, in, in.rank == 0 ? 1 : in.sizes[dim]);
  return select_along(ctx, in, dim, args[3]->to_bool(), args[4]->tensor(), args[5]->tensor(),
                      [&](const Row& row) { return kth(row, k - 1, items); });
}

// mode(self, dim, keepdim, *, values, indices)
Status mode_values(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  size_t dim = 0;
  RL_TRY(check_row(ctx, in, args[1]->to_int(), &dim));
  Items items(ctx, in, in.rank == 0 ? 1 : in.sizes[dim]);
  return select_along(ctx, in, dim, args[2]->to_bool(), args[3]->tensor(), args[4]->tensor(),
                      [&](const Row& row) { return mode(row, items); });
}

}  // namespace rushlight::kernels
