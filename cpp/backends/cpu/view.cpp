#include "rushlight/backends/cpu/view.h"

namespace rushlight::cpu {

bool measure(View& view) {
  int64_t numel = 1;
  int64_t last = 0;  // position of the last element
  for (size_t d = 0; d < view.rank; ++d) {
    int64_t reach = 0;
    if (view.sizes[d] < 0 || view.sizes[d] > kMaxViewNumel || view.steps[d] < 0) return false;
    if (__builtin_mul_overflow(numel, view.sizes[d], &numel)) return false;
    const int64_t gaps = view.sizes[d] > 0 ? view.sizes[d] - 1 : 0;
    if (__builtin_mul_overflow(gaps, view.steps[d], &reach)) return false;
    if (__builtin_add_overflow(last, reach, &last)) return false;
  }
  if (numel > kMaxViewNumel) return false;
  view.numel = numel;
  const int64_t element = static_cast<int64_t>(element_size(view.dtype));
  int64_t bytes = 0;
  if (numel > 0 && (__builtin_add_overflow(last, int64_t{1}, &last) ||
                    __builtin_mul_overflow(last, element, &bytes))) {
    return false;
  }
  return !__builtin_add_overflow(static_cast<uint64_t>(bytes), view.offset, &view.extent);
}

bool merge_dims(const View& view, size_t first, size_t last, int64_t* size, int64_t* step) {
  *size = 1;
  *step = 0;
  for (size_t d = last; d-- > first;) {
    if (view.sizes[d] == 1) continue;
    if (*size == 1) {
      *step = view.steps[d];
    } else if (view.steps[d] != *step * *size) {
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
  if (rows->width > 1 && view.steps[last] != 1) return false;
  if (!merge_dims(view, 0, last, &rows->count, &rows->step)) return false;
  if (rows->count <= 1) rows->step = rows->width;
  return true;
}

bool is_dense(const View& view) {
  int64_t size = 0;
  int64_t step = 0;
  return merge_dims(view, 0, view.rank, &size, &step) && (size <= 1 || step == 1);
}

bool has_repeats(const View& view) {
  for (size_t d = 0; d < view.rank; ++d) {
    if (view.sizes[d] > 1 && view.steps[d] == 0) return true;
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

}  // namespace rushlight::cpu
