#include "rushlight/engine/types/view.h"

namespace rushlight::engine {

int64_t bounded_product(std::initializer_list<int64_t> sizes) {
  int64_t product = 1;
  bool is_empty = false;
  for (const int64_t size : sizes) {
    if (size < 0 || size > kMaxViewNumel) return -1;
    is_empty = is_empty || size == 0;
    if (size == 0) continue;
    if (__builtin_mul_overflow(product, size, &product) || product > kMaxViewNumel) return -1;
  }
  return is_empty ? 0 : product;
}

bool measure(View& view) {
  int64_t product = 1;  // of the sizes that are not 0
  int64_t last = 0;     // position of the last element
  bool is_empty = false;
  for (size_t d = 0; d < view.rank; ++d) {
    const int64_t size = view.sizes[d];
    if (size < 0 || view.strides[d] < 0 || view.strides[d] > kMaxViewNumel) return false;
    is_empty = is_empty || size == 0;
    if (size == 0) continue;
    product = bounded_product({product, size});
    int64_t reach = 0;
    if (product < 0 || __builtin_mul_overflow(size - 1, view.strides[d], &reach)) return false;
    if (reach > kMaxViewNumel - last) return false;
    last += reach;
  }
  view.numel = is_empty ? 0 : product;
  view.extent = 0;
  if (is_empty) return true;
  const uint64_t bytes = (static_cast<uint64_t>(last) + 1) * element_size(view.dtype);
  return !__builtin_add_overflow(bytes, view.offset, &view.extent);
}

bool merge_dims(const View& view, size_t first, size_t last, int64_t* size, int64_t* stride) {
  *size = 1;
  *stride = 0;
  for (size_t d = last; d-- > first;) {
    if (view.sizes[d] == 1) continue;
    if (*size == 1) {
      *stride = view.strides[d];
    } else if (view.strides[d] != *stride * *size) {
      return false;
    }
    *size *= view.sizes[d];
  }
  return true;
}

bool as_rows(const View& view, Rows* rows) {
  if (view.rank == 0) return false;
  const size_t last = view.rank - size_t{1};
  rows->width = view.sizes[last];
  if (view.numel == 0) {
    rows->count = 1;
    for (size_t d = 0; d < last; ++d) rows->count *= view.sizes[d];
    rows->stride = rows->width;
    return true;
  }
  if (rows->width > 1 && view.strides[last] != 1) return false;
  if (!merge_dims(view, 0, last, &rows->count, &rows->stride)) return false;
  if (rows->count <= 1) rows->stride = rows->width;
  return true;
}

bool is_dense(const View& view) {
  int64_t size = 0;
  int64_t stride = 0;
  if (view.numel == 0) return true;
  return merge_dims(view, 0, view.rank, &size, &stride) && (size <= 1 || stride == 1);
}

bool has_repeats(const View& view) {
  if (view.numel == 0) return false;
  // The dimension with the shortest stride first; each stride must exceed what the dimensions
  // before reach.
  bool taken[kMaxViewRank] = {};
  int64_t reach = 0;
  for (size_t n = 0; n < view.rank; ++n) {
    size_t next = kMaxViewRank;
    for (size_t d = 0; d < view.rank; ++d) {
      if (taken[d]) continue;
      if (next == kMaxViewRank || view.strides[d] < view.strides[next]) next = d;
    }
    taken[next] = true;
    if (view.sizes[next] == 1) continue;
    if (view.strides[next] <= reach) return true;
    reach += (view.sizes[next] - 1) * view.strides[next];
  }
  return false;
}

bool same_sizes(const View& a, const View& b) {
  if (a.rank != b.rank) return false;
  for (size_t d = 0; d < a.rank; ++d) {
    if (a.sizes[d] != b.sizes[d]) return false;
  }
  return true;
}

ShapeText text_of(const int64_t* sizes, size_t rank) {
  int32_t shown[kMaxViewRank];
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = sizes[d] > INT32_MAX ? INT32_MAX : sizes[d];
    shown[d] = static_cast<int32_t>(size < INT32_MIN ? INT32_MIN : size);
  }
  return ShapeText({shown, rank});
}

}  // namespace rushlight::engine
