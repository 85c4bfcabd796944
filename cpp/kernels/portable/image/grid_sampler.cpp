// Samples images and volumes at the positions that a grid gives.
//
// Some positions are computed at a time: first the neighbours of each position and their weights,
// then the weighted sums of one channel after the other. Coordinates are computed in the type of
// the images, as in eager PyTorch.
#include <algorithm>
#include <cmath>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/element.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/index/gather.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

enum class Mode : int64_t { Linear = 0, Nearest = 1, Cubic = 2 };
enum class Padding : int64_t { Zeros = 0, Border = 1, Reflection = 2 };

constexpr int64_t kPlaces = kChunk < 64 ? static_cast<int64_t>(kChunk) : 64;
constexpr size_t kMaxNeighbours = 16;

struct Sampling {
  Mode mode = Mode::Linear;
  Padding padding = Padding::Zeros;
  bool align_corners = false;
  size_t dims = 2;  // spatial: the last ones of the images; a grid lists them in reverse order
};

// The neighbours along one axis: at most four, with their weights.
template <typename T>
struct Neighbours {
  size_t count = 0;
  int64_t index[4];  // -1 if outside
  T weight[4];
};

// Converts a coordinate of the grid to a position in elements along one axis.
template <typename T>
class Axis {
 public:
  Axis(const Sampling& how, int64_t size) : how_(how), size_(size) {}

  void find(T coordinate, Neighbours<T>* neighbours) const {
    T place = unnormalized(coordinate);
    if (how_.mode == Mode::Cubic) return cubic(place, neighbours);
    place = padded(place);
    if (how_.mode == Mode::Nearest) {
      neighbours->count = 1;
      neighbours->index[0] = inside(std::nearbyint(place));
      neighbours->weight[0] = 1;
      return;
    }
    const T low = std::floor(place);
    neighbours->count = 2;
    neighbours->index[0] = inside(low);
    neighbours->index[1] = inside(low + 1);
    neighbours->weight[0] = (low + 1) - place;
    neighbours->weight[1] = place - low;
  }

 private:
  T unnormalized(T x) const {
    const T size = static_cast<T>(size_);
    if (how_.align_corners) return (x + 1) / 2 * (size - 1);
    return ((x + 1) * size - 1) / 2;
  }

  T clipped(T x) const {  // NaN becomes 0
    return std::min(static_cast<T>(size_ - 1), std::max(static_cast<T>(0), x));
  }

  T reflected(T x) const {
    const T twice_low = how_.align_corners ? 0 : -1;
    const T twice_high = static_cast<T>(how_.align_corners ? 2 * (size_ - 1) : 2 * size_ - 1);
    if (twice_low == twice_high) return 0;
    const T low = twice_low / 2;
    const T span = (twice_high - twice_low) / 2;
    x = std::abs(x - low);
    const T extra = std::fmod(x, span);
    const T flips = std::floor(x / span);
    return std::fmod(flips, static_cast<T>(2)) == 0 ? extra + low : span - extra + low;
  }

  T padded(T x) const {
    if (how_.padding == Padding::Zeros) return x;
    return clipped(how_.padding == Padding::Reflection ? reflected(x) : x);
  }

  int64_t inside(T x) const {  // NaN is outside
    return x >= 0 && x < static_cast<T>(size_) ? static_cast<int64_t>(x) : -1;
  }

  void cubic(T place, Neighbours<T>* neighbours) const {
    const T low = std::floor(place);
    const T t = place - low;
    const T distance[4] = {t + 1, t, 1 - t, 2 - t};
    const T a = static_cast<T>(-0.75);
    neighbours->count = 4;
    for (int k = 0; k < 4; ++k) {
      const T x = distance[k];
      neighbours->index[k] = inside(padded(low + static_cast<T>(k - 1)));
      neighbours->weight[k] = k == 1 || k == 2 ? ((a + 2) * x - (a + 3)) * x * x + 1
                                               : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }
  }

  Sampling how_;
  int64_t size_;
};

template <typename T>
T load(const Tensor& tensor, int64_t offset) {
  return static_cast<T>(double_at(tensor, offset));
}

// One thread's buffers.
template <typename T>
class Sampler {
 public:
  Sampler(const Sampling& how, const Tensor& in, const Tensor& grid, const Tensor& out)
      : how_(how), in_(in), grid_(grid), out_(out), writer_(out, kType) {}

  // Computes output rows begin..end - 1. A row is all positions along the last dimension.
  void rows(int64_t begin, int64_t end) {
    const size_t last = how_.dims + 1;
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row;
      int64_t grid_at = 0;
      int64_t out_at = 0;
      for (size_t d = last - 1; d >= 2; --d) {
        grid_at += rest % out_.sizes[d] * grid_.strides[d - 1];
        out_at += rest % out_.sizes[d] * out_.strides[d];
        rest /= out_.sizes[d];
      }
      grid_at += rest * grid_.strides[0];
      out_at += rest * out_.strides[0];
      for (int64_t w = 0; w < out_.sizes[last]; w += kPlaces) {
        const int64_t n = std::min<int64_t>(kPlaces, out_.sizes[last] - w);
        for (int64_t i = 0; i < n; ++i) {
          locate(grid_at + (w + i) * grid_.strides[last - 1], static_cast<size_t>(i));
        }
        channels(rest, out_at + w * out_.strides[last], static_cast<size_t>(n));
      }
    }
  }

 private:
  static constexpr DType kType = sizeof(T) == sizeof(double) ? DType::Float64 : DType::Float32;

  void locate(int64_t grid_at, size_t i) {
    Neighbours<T> axes[3];
    const size_t rank = how_.dims + 1;
    for (size_t k = 0; k < how_.dims; ++k) {
      const size_t dim = 2 + how_.dims - 1 - k;
      const T coordinate = load<T>(grid_, grid_at + static_cast<int64_t>(k) * grid_.strides[rank]);
      Axis<T>(how_, in_.sizes[dim]).find(coordinate, &axes[k]);
    }
    if (how_.dims == 2) {
      axes[2].count = 1;
      axes[2].index[0] = 0;
      axes[2].weight[0] = 1;
    }
    neighbours_ = 0;
    for (size_t z = 0; z < axes[2].count; ++z) {
      for (size_t y = 0; y < axes[1].count; ++y) {
        const T weight = axes[1].weight[y] * axes[2].weight[z];
        for (size_t x = 0; x < axes[0].count; ++x, ++neighbours_) {
          const int64_t index[3] = {axes[0].index[x], axes[1].index[y], axes[2].index[z]};
          offsets_[neighbours_][i] = offset_of(index);
          weights_[neighbours_][i] = axes[0].weight[x] * weight;
        }
      }
    }
  }

  int32_t offset_of(const int64_t (&index)[3]) const {
    int64_t offset = 0;
    for (size_t k = 0; k < how_.dims; ++k) {
      if (index[k] < 0) return -1;
      offset += index[k] * in_.strides[2 + how_.dims - 1 - k];
    }
    return static_cast<int32_t>(offset);
  }

  void channels(int64_t image, int64_t out_at, size_t n) {
    const size_t last = how_.dims + 1;
    const size_t type = sizeof(T) == sizeof(double) ? 1 : 0;
    for (int64_t c = 0; c < out_.sizes[1]; ++c) {
      const int64_t from = image * in_.strides[0] + c * in_.strides[1];
      const int64_t to = out_at + c * out_.strides[1];
      T* sums = static_cast<T*>(writer_.target(to, out_.strides[last]));
      std::fill_n(sums, n, static_cast<T>(0));
      for (size_t k = 0; k < neighbours_; ++k) {
        if (in_.dtype == kType) {
          gather_loops().add_weighted[type](in_.as<const T>() + from, offsets_[k], weights_[k], n,
                                            sums);
        } else {
          add_converted(from, k, n, sums);
        }
      }
      writer_.store(to, out_.strides[last], n);
    }
  }

  void add_converted(int64_t from, size_t k, size_t n, T* sums) const {
    for (size_t i = 0; i < n; ++i) {
      const int32_t offset = offsets_[k][i];
      sums[i] += (offset < 0 ? 0 : load<T>(in_, from + offset)) * weights_[k][i];
    }
  }

  Sampling how_;
  const Tensor& in_;
  const Tensor& grid_;
  const Tensor& out_;
  RowWriter writer_;
  size_t neighbours_ = 0;
  int32_t offsets_[kMaxNeighbours][kPlaces];
  alignas(64) T weights_[kMaxNeighbours][kPlaces];
};

Status check_options(KernelContext& ctx, const EValue& mode, const EValue& padding,
                     Sampling* sampling) {
  const int64_t most = sampling->dims == 2 ? 2 : 1;
  const int64_t m = mode.to_int();
  const int64_t p = padding.to_int();
  if (m < 0 || m > most) {
    return ctx.fail(Code::InvalidArgument,
                    "interpolation_mode is %lld, but must be 0 (bilinear)%s 1 (nearest)%s",
                    static_cast<long long>(m), most == 2 ? "," : " or",
                    most == 2 ? " or 2 (bicubic)" : "");
  }
  if (p < 0 || p > 2) {
    return ctx.fail(Code::InvalidArgument,
                    "padding_mode is %lld, but must be 0 (zeros), 1 (border) or 2 (reflection)",
                    static_cast<long long>(p));
  }
  sampling->mode = static_cast<Mode>(m);
  sampling->padding = static_cast<Padding>(p);
  return {};
}

Status check_shapes(KernelContext& ctx, const Tensor& in, const Tensor& grid, size_t dims) {
  RL_TRY(check_rank(ctx, "input", in, dims + 2));
  RL_TRY(check_rank(ctx, "grid", grid, dims + 2));
  if (grid.sizes[0] != in.sizes[0] || grid.sizes[dims + 1] != static_cast<int32_t>(dims)) {
    return ctx.fail(Code::InvalidArgument,
                    "grid has shape %s, but for an input of shape %s its first size must be %d and "
                    "its last %zu",
                    ShapeText(grid.shape()).text(), ShapeText(in.shape()).text(),
                    static_cast<int>(in.sizes[0]), dims);
  }
  int64_t span = 1;
  for (size_t d = 2; d < in.rank; ++d) {
    if (in.sizes[d] == 0) {
      return ctx.fail(Code::InvalidArgument,
                      "input has shape %s; only its first two sizes may be 0",
                      ShapeText(in.shape()).text());
    }
    span += static_cast<int64_t>(in.sizes[d] - 1) * in.strides[d];
  }
  if (span <= INT32_MAX) return {};
  return ctx.fail(Code::NotSupported,
                  "an image of input spans %lld elements; at most 2147483647 are supported",
                  static_cast<long long>(span));
}

template <typename T>
void sample_all(KernelContext& ctx, const Sampling& how, const Tensor& in, const Tensor& grid,
                const Tensor& out) {
  const int64_t width = out.sizes[how.dims + 1];
  const int64_t rows = out.numel / out.sizes[1] / width;
  const int64_t grain = std::max<int64_t>(1, (1 << 12) / (width * out.sizes[1]));
  ctx.parallel(rows, grain, [&](int64_t begin, int64_t end) {
    Sampler<T>(how, in, grid, out).rows(begin, end);
  });
}

// input, grid, interpolation_mode, padding_mode, align_corners, out
Status sample(KernelContext& ctx, EValue* const* args, size_t dims) {
  const Tensor& in = args[0]->tensor();
  const Tensor& grid = args[1]->tensor();
  Tensor& out = args[5]->tensor();
  if (!is_floating(in.dtype)) {
    return ctx.fail(Code::NotSupported, "input is %s, but must be floating", dtype_name(in.dtype));
  }
  RL_TRY(check_dtype(ctx, "grid", grid, in.dtype));
  RL_TRY(check_dtype(ctx, "out", out, in.dtype));
  Sampling how;
  how.dims = dims;
  how.align_corners = args[4]->to_bool();
  RL_TRY(check_options(ctx, *args[2], *args[3], &how));
  RL_TRY(check_shapes(ctx, in, grid, dims));
  Shape shape(in.shape());
  for (size_t d = 2; d < shape.rank; ++d) shape.sizes[d] = grid.sizes[d - 1];
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  if (in.dtype == DType::Float64) {
    sample_all<double>(ctx, how, in, grid, out);
  } else {
    sample_all<float>(ctx, how, in, grid, out);
  }
  return {};
}

}  // namespace

Status grid_sampler_2d_out(KernelContext& ctx, EValue* const* args) { return sample(ctx, args, 2); }

Status grid_sampler_3d_out(KernelContext& ctx, EValue* const* args) { return sample(ctx, args, 3); }

}  // namespace rushlight::kernels
