// Resizing an axis by weighted sums of neighbouring elements: which elements, and with what
// weights.
//
// An output element reads a window of input elements. Plain cubic and linear resizing read 4 or 2
// of them; with antialiasing the window grows by the factor by which the image shrinks. The windows
// are eager PyTorch's, computed in the same type (float64 for uint8 images), so that results agree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rushlight/kernels/portable/image/upsample.h"

namespace rushlight::kernels {

enum class Filter { Linear, Cubic };

struct Resampling {
  Filter filter = Filter::Linear;
  bool antialias = false;
  bool align_corners = false;
  // If true, an element beyond the border is replaced by the last one inside, which gets its
  // weight. If false, it stays in the window, outside of the axis.
  bool fold_border = false;
};

struct AxisWindow {
  int64_t first = 0;
  int64_t count = 0;
  double offset = 0;  // distance of the first element from the centre, in the filter's own scale
  double total = 1;   // sum of the filter's values
};

// The windows of one axis, computed in T. The weights of a window can be read piece by piece, since
// their number has no limit.
template <typename T>
class Windows {
 public:
  Windows(const UpsampleAxis& axis, const Resampling& how) : axis_(axis), how_(how) {
    const T width = static_cast<T>(how.filter == Filter::Cubic ? 4 : 2);
    scale_ = axis.scale<T>(how.align_corners);
    support_ = width * static_cast<T>(0.5);
    most_ = static_cast<int64_t>(width);
    if (!how.antialias) return;
    if (scale_ >= 1) {
      support_ *= scale_;
      shrink_ = 1 / scale_;
    }
    const double most = std::ceil(static_cast<double>(support_)) * 2 + 1;
    most_ = std::min(static_cast<int64_t>(std::min(most, 2147483647.0)), axis.in);
  }

  // The maximum number of elements in a window.
  int64_t most() const { return most_; }

  // The window of output element `o`.
  AxisWindow at(int64_t o) const { return how_.antialias ? antialiased(o) : plain(o); }

  // Writes n weights, starting with weight `begin`.
  void weights(const AxisWindow& window, int64_t begin, int64_t n, T* out) const {
    if (how_.fold_border && !how_.antialias) return folded(window, begin, n, out);
    for (int64_t k = 0; k < n; ++k) out[k] = weight(window, begin + k);
  }

 private:
  T filter(T x) const {
    x = std::abs(x);
    if (how_.filter == Filter::Linear) return x < 1 ? 1 - x : 0;
    const T a = static_cast<T>(how_.antialias ? -0.5 : -0.75);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
  }

  T weight(const AxisWindow& window, int64_t k) const {
    if (!how_.antialias) return filter(static_cast<T>(k) + static_cast<T>(window.offset));
    return raw(window, k) / static_cast<T>(window.total);
  }

  T raw(const AxisWindow& window, int64_t k) const {
    const T distance = static_cast<T>(k + window.first) - static_cast<T>(window.offset);
    return filter((distance + static_cast<T>(0.5)) * shrink_);
  }

  AxisWindow antialiased(int64_t o) const {
    const T half = static_cast<T>(0.5);
    const T centre = scale_ * (static_cast<T>(o) + half);
    AxisWindow window;
    window.offset = static_cast<double>(centre);
    const T start = std::max<T>(centre - support_ + half, 0);
    window.first = std::min(static_cast<int64_t>(start), axis_.in - 1);
    const T stop = std::min<T>(centre + support_ + half, static_cast<T>(axis_.in));
    const int64_t end = std::min(static_cast<int64_t>(stop), axis_.in);
    window.count = std::min(std::max<int64_t>(end - window.first, 0), most_);
    T total = 0;
    for (int64_t k = 0; k < window.count; ++k) total += raw(window, k);
    window.total = total != 0 ? static_cast<double>(total) : 1.0;
    return window;
  }

  AxisWindow plain(int64_t o) const {
    T position = axis_.position<T>(how_.align_corners, o);
    if (how_.filter == Filter::Linear && !(position > 0)) position = 0;
    const int64_t last = axis_.in - 1;
    const T floor = std::floor(position);
    const int64_t index = floor < static_cast<T>(last) ? static_cast<int64_t>(floor) : last;
    const T part = std::min<T>(std::max<T>(position - static_cast<T>(index), 0), 1);
    const int64_t before = most_ / 2 - 1;
    AxisWindow window;
    window.first = index - before;
    window.count = most_;
    window.offset = static_cast<double>(-static_cast<T>(before) - part);
    if (!how_.fold_border) return window;
    const int64_t end = std::min(window.first + most_, axis_.in);
    window.total = static_cast<double>(window.first);  // first element without a border
    window.first = std::max<int64_t>(window.first, 0);
    window.count = end - window.first;
    return window;
  }

  void folded(const AxisWindow& window, int64_t begin, int64_t n, T* out) const {
    T sums[4] = {};
    const int64_t start = static_cast<int64_t>(window.total);
    for (int64_t k = 0; k < most_; ++k) {
      const int64_t index = std::min(std::max<int64_t>(start + k, 0), axis_.in - 1);
      sums[index - window.first] += weight(window, k);
    }
    std::copy_n(sums + begin, n, out);
  }

  UpsampleAxis axis_;
  Resampling how_;
  T scale_;
  T support_;
  T shrink_ = 1;
  int64_t most_;
};

}  // namespace rushlight::kernels
