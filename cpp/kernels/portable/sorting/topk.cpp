// The k greatest or least elements along a dimension, the best first.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/reduce.h"
#include "rushlight/kernels/portable/sorting/order.h"

namespace rushlight::kernels {
namespace {

// One row: a heap of the best k elements so far, with the worst of them at its root. It is stored
// in the row of the indices output. V is double or int64_t, the type in which elements are
// compared.
template <typename V>
class RowSelect {
 public:
  RowSelect(const Tensor& in, int64_t offset, int64_t stride, bool largest, int64_t* heap,
            int64_t heap_stride)
      : data_(in.as<uint8_t>() + offset * static_cast<int64_t>(element_size(in.dtype))),
        dtype_(in.dtype),
        byte_stride_(stride * static_cast<int64_t>(element_size(in.dtype))),
        largest_(largest),
        heap_(heap),
        heap_stride_(heap_stride) {}

  void run(int64_t n, int64_t k) {
    for (int64_t i = 0; i < k; ++i) slot(i) = i;
    for (int64_t i = k / 2; i-- > 0;) sink(i, k);
    V worst = value(slot(0));
    for (int64_t i = k; i < n; ++i) {
      // Of two equal elements, the later one is worse.
      if (!better(value(i), worst)) continue;
      slot(0) = i;
      sink(0, k);
      worst = value(slot(0));
    }
    for (int64_t end = k - 1; end > 0; --end) {
      std::swap(slot(0), slot(end));
      sink(0, end);
    }
  }

 private:
  int64_t& slot(int64_t i) { return heap_[i * heap_stride_]; }

  V value(int64_t index) const {
    const uint8_t* item = data_ + index * byte_stride_;
    V result;
    if (dtype_ == DType::Float32) {  // the usual type, read directly
      float narrow;
      std::memcpy(&narrow, item, sizeof narrow);
      return static_cast<V>(narrow);
    }
    const bool floating = std::is_same<V, double>::value;
    convert(item, dtype_, &result, floating ? DType::Float64 : DType::Int64, 1);
    return result;
  }

  // NaN is greater than every number.
  bool better(V a, V b) const {
    if (a != a || b != b) return largest_ ? a != a && b == b : a == a && b != b;
    return largest_ ? a > b : a < b;
  }

  bool worse(int64_t a, int64_t b) const {
    const V va = value(a);
    const V vb = value(b);
    if (better(vb, va)) return true;
    return !better(va, vb) && a > b;
  }

  // Moves the element at `i` down the heap until no element below it is worse.
  void sink(int64_t i, int64_t size) {
    for (;;) {
      int64_t child = 2 * i + 1;
      if (child >= size) return;
      if (child + 1 < size && worse(slot(child + 1), slot(child))) ++child;
      if (!worse(slot(child), slot(i))) return;
      std::swap(slot(i), slot(child));
      i = child;
    }
  }

  const uint8_t* data_;
  DType dtype_;
  int64_t byte_stride_;
  bool largest_;
  int64_t* heap_;
  int64_t heap_stride_;
};

// The dimension that is searched. Both outputs have the same strides.
struct Row {
  int64_t n;
  int64_t k;
  int64_t in_stride;
  int64_t out_stride;
};

// Which of several equal elements are chosen, and their order, is not specified. With scratch
// memory for a whole row, eager's algorithms are used, so that the choice is the same.
template <typename Item>
void select_moving(const Tensor& in, int64_t offset, const Row& row, bool largest, bool sorted,
                   Item* items, int64_t* indices) {
  const uint64_t flip = !largest ? 0 : has_wide_keys(in.dtype) ? UINT64_MAX : UINT32_MAX;
  RowKeys(in, offset, row.in_stride, row.n).each([&](int64_t i, uint64_t key) {
    items[i] = Item(key ^ flip, i);
  });
  if (row.k * 64 <= row.n) {
    std::partial_sort(items, items + row.k, items + row.n, less_key<Item>);
  } else {
    std::nth_element(items, items + row.k - 1, items + row.n, less_key<Item>);
    if (sorted) std::sort(items, items + row.k - 1, less_key<Item>);
  }
  for (int64_t j = 0; j < row.k; ++j) indices[j * row.out_stride] = items[j].index();
}

void select_row(const Tensor& in, int64_t offset, const Row& row, bool largest, bool sorted,
                void* items, int64_t* indices) {
  if (items != nullptr && has_wide_keys(in.dtype)) {
    return select_moving(in, offset, row, largest, sorted, static_cast<WideItem*>(items), indices);
  }
  if (items != nullptr) {
    return select_moving(in, offset, row, largest, sorted, static_cast<NarrowItem*>(items),
                         indices);
  }
  if (is_floating(in.dtype)) {
    RowSelect<double>(in, offset, row.in_stride, largest, indices, row.out_stride)
        .run(row.n, row.k);
  } else {
    RowSelect<int64_t>(in, offset, row.in_stride, largest, indices, row.out_stride)
        .run(row.n, row.k);
  }
}

void copy_selected(const Tensor& in, int64_t offset, const Row& row, const int64_t* indices,
                   Tensor& values, int64_t out_offset) {
  const int64_t size = static_cast<int64_t>(element_size(in.dtype));
  for (int64_t j = 0; j < row.k; ++j) {
    const int64_t index = indices[j * row.out_stride];
    std::memcpy(values.as<uint8_t>() + (out_offset + j * row.out_stride) * size,
                in.as<uint8_t>() + (offset + index * row.in_stride) * size,
                static_cast<size_t>(size));
  }
}

void select_all(const Tensor& in, size_t dim, const Row& row, bool largest, bool sorted,
                void* items, Tensor& values, Tensor& indices) {
  Nest nest;
  for (size_t d = in.rank; d-- > 0;) {
    if (d != dim) nest.add(in.sizes[d], in.strides[d], indices.strides[d]);
  }
  nest.rewind();
  do {
    int64_t* row_indices = indices.as<int64_t>() + nest.second_offset();
    select_row(in, nest.offset(), row, largest, sorted, items, row_indices);
    copy_selected(in, nest.offset(), row, row_indices, values, nest.second_offset());
  } while (nest.next());
}

}  // namespace

// topk(self, k, dim, largest, sorted, values, indices); without scratch memory the result is always
// sorted.
Status topk_values(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& values = args[5]->tensor();
  Tensor& indices = args[6]->tensor();
  RL_TRY(check_real(ctx, "self", in));
  RL_TRY(check_dtype(ctx, "values", values, in.dtype));
  RL_TRY(check_dtype(ctx, "indices", indices, DType::Int64));
  size_t dim = 0;
  RL_TRY(wrap_dim(ctx, args[2]->to_int(), in.rank, &dim));
  Row row = {};
  row.n = in.rank == 0 ? 1 : in.sizes[dim];
  row.k = args[1]->to_int();
  if (row.k < 0 || row.k > row.n) {
    return ctx.fail(Code::InvalidArgument, "k is %lld, but dim %zu has %lld elements",
                    static_cast<long long>(row.k), dim, static_cast<long long>(row.n));
  }
  Shape shape(in.shape());
  if (in.rank > 0) shape.sizes[dim] = static_cast<int32_t>(row.k);
  RL_TRY(ctx.resize(values, shape.span()));
  RL_TRY(ctx.resize(indices, shape.span()));
  if (values.numel == 0) return {};
  if (!same_layout(values, indices)) {
    return ctx.fail(Code::InvalidArgument, "the two outputs have different orders of dimensions");
  }
  row.in_stride = in.rank == 0 ? 1 : in.strides[dim];
  row.out_stride = in.rank == 0 ? 1 : indices.strides[dim];
  const size_t item = has_wide_keys(in.dtype) ? sizeof(WideItem) : sizeof(NarrowItem);
  void* items = ctx.scratch(static_cast<size_t>(row.n) * item);
  select_all(in, dim, row, args[3]->to_bool(), args[4]->to_bool(), items, values, indices);
  return {};
}

}  // namespace rushlight::kernels
