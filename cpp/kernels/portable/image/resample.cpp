// Cubic and antialiased resizing of images: every output row is a weighted sum of input rows that
// were resized to the output's width.
#include "rushlight/kernels/portable/image/resample.h"

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kColumns = kChunk < 256 ? static_cast<int64_t>(kChunk) : 256;
constexpr int64_t kPiece = 8;  // weights, and widened rows, that are kept at a time
constexpr int64_t kTableBytes = 1 << 14;

// For float and double images: sums have the type of the image.
template <typename T>
struct Real {
  using Weight = T;
  using Element = T;
  using Sum = T;

  void scan(const Windows<T>&, int64_t) {}
  Weight quantize(T weight) const { return weight; }
  Sum start() const { return 0; }
  Element finish(Sum sum) const { return sum; }
};

// For uint8 images: weights are 15-bit fixed-point integers. The greatest weight of the axis
// decides how many bits are fractional.
class Bytes {
 public:
  using Weight = int32_t;
  using Element = uint8_t;
  using Sum = int32_t;

  void scan(const Windows<double>& windows, int64_t outputs) {
    double weights[kPiece];
    double greatest = 0;
    for (int64_t o = 0; o < outputs; ++o) {
      const AxisWindow window = windows.at(o);
      for (int64_t k = 0; k < window.count; k += kPiece) {
        const int64_t n = std::min(kPiece, window.count - k);
        windows.weights(window, k, n, weights);
        greatest = std::max(greatest, *std::max_element(weights, weights + n));
      }
    }
    while (precision_ < 22 && 0.5 + greatest * (2 << precision_) < 1 << 15) ++precision_;
  }
  Weight quantize(double weight) const {
    return static_cast<int32_t>(weight * (1 << precision_) + (weight < 0 ? -0.5 : 0.5));
  }
  Sum start() const { return precision_ > 0 ? 1 << (precision_ - 1) : 0; }
  Element finish(Sum sum) const {
    return static_cast<uint8_t>(std::min(std::max(sum >> precision_, 0), 255));
  }

 private:
  int precision_ = 0;
};

// T is the type in which windows are computed, Rule is Real<T> or Bytes.
template <typename T, typename Rule>
class Resampler {
  using Element = typename Rule::Element;
  using Weight = typename Rule::Weight;
  using Sum = typename Rule::Sum;

 public:
  Resampler(const Upsampling& u, const Resampling& how, const Tensor& in, const Tensor& out)
      : u_(u), in_(in), out_(out), across_(u.w, how), down_(u.h, how) {
    across_rule_.scan(across_, u_.w.out);
    down_rule_.scan(down_, u_.h.out);
  }

  void run(KernelContext& ctx) {
    // Very wide windows have no table: their weights are computed where they are used.
    const int64_t fits = kTableBytes / (across_.most() * static_cast<int64_t>(sizeof(Weight)));
    tabled_ = fits >= std::min<int64_t>(16, u_.w.out);
    const int64_t columns = std::min({kColumns, u_.w.out, tabled_ ? fits : kColumns});
    for (int64_t begin = 0; begin < u_.w.out; begin += columns) {
      const int64_t n = std::min(columns, u_.w.out - begin);
      open_columns(begin, n);
      ctx.parallel(u_.n * u_.c, u_.plane_grain(), [&](int64_t first, int64_t last) {
        Worker worker(*this, begin, n);
        for (int64_t plane = first; plane < last; ++plane) worker.plane(plane);
      });
    }
  }

 private:
  void open_columns(int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      windows_[i] = across_.at(begin + i);
      if (!tabled_) continue;
      for (int64_t k = 0; k < windows_[i].count; k += kPiece) {
        const int64_t count = std::min(kPiece, windows_[i].count - k);
        quantized(across_, across_rule_, windows_[i], k, count, table_ + i * across_.most() + k);
      }
    }
  }

  static void quantized(const Windows<T>& windows, const Rule& rule, const AxisWindow& window,
                        int64_t begin, int64_t n, Weight* out) {
    T exact[kPiece];
    windows.weights(window, begin, n, exact);
    for (int64_t k = 0; k < n; ++k) out[k] = rule.quantize(exact[k]);
  }

  // The state of one thread: buffers, and the rows that were widened last.
  class Worker {
   public:
    Worker(const Resampler& shared, int64_t begin, int64_t n)
        : s_(shared),
          begin_(begin),
          n_(n),
          reader_(shared.in_, kType),
          segments_(shared.in_, kType),
          writer_(shared.out_, kType) {}

    void plane(int64_t plane) {
      const Upsampling& u = s_.u_;
      std::fill_n(cached_, kPiece, -1);
      from_ = u.in_plane(plane);
      const int64_t to = u.out_plane(plane) + begin_ * u.w.out_stride;
      for (int64_t o = 0; o < u.h.out; ++o) {
        const int64_t there = to + o * u.h.out_stride;
        auto* out = static_cast<Element*>(writer_.target(there, u.w.out_stride));
        row(s_.down_.at(o), out);
        writer_.store(there, u.w.out_stride, static_cast<size_t>(n_));
      }
    }

   private:
    static constexpr DType kType = sizeof(Element) == 1   ? DType::UInt8
                                   : sizeof(Element) == 4 ? DType::Float32
                                                          : DType::Float64;

    void row(const AxisWindow& window, Element* out) {
      Sum sums[kColumns];
      Weight weights[kPiece];
      std::fill_n(sums, n_, s_.down_rule_.start());
      for (int64_t k = 0; k < window.count; k += kPiece) {
        const int64_t count = std::min(kPiece, window.count - k);
        quantized(s_.down_, s_.down_rule_, window, k, count, weights);
        for (int64_t j = 0; j < count; ++j) {
          const Element* line = widened(clamped(window.first + k + j, s_.u_.h.in));
          const Weight weight = weights[j];
          for (int64_t i = 0; i < n_; ++i) sums[i] += line[i] * weight;
        }
      }
      for (int64_t i = 0; i < n_; ++i) out[i] = s_.down_rule_.finish(sums[i]);
    }

    const Element* widened(int64_t y) {
      Element* line = lines_[y % kPiece];
      if (cached_[y % kPiece] == y) return line;
      cached_[y % kPiece] = y;
      const int64_t offset = from_ + y * s_.u_.h.in_stride;
      read_segment(offset);
      for (int64_t i = 0; i < n_; ++i) line[i] = s_.across_rule_.finish(sum_at(offset, i));
      return line;
    }

    // Converts the piece of an input row that the columns' windows cover, if it is short enough.
    void read_segment(int64_t offset) {
      const int64_t stride = s_.u_.w.in_stride;
      const AxisWindow& last = s_.windows_[n_ - 1];
      segment_begin_ = clamped(s_.windows_[0].first, s_.u_.w.in);
      const int64_t end = clamped(last.first + last.count - 1, s_.u_.w.in) + 1;
      const size_t n = static_cast<size_t>(end - segment_begin_);
      const bool fits = s_.tabled_ && n <= segments_.limit(stride);
      segment_ = fits ? segments_.read(offset + segment_begin_ * stride, stride, n) : nullptr;
    }

    Sum sum_at(int64_t offset, int64_t i) {
      const int64_t stride = s_.u_.w.in_stride;
      const AxisWindow& window = s_.windows_[i];
      const Weight* table = s_.table_ + i * s_.across_.most();
      const bool inside = window.first >= 0 && window.first + window.count <= s_.u_.w.in;
      if (segment_ != nullptr && inside) {
        const auto* row = static_cast<const Element*>(segment_);
        return add(row + (window.first - segment_begin_), 1, table, window.count);
      }
      if (s_.tabled_ && inside && reader_.same_type()) {
        const auto* row = s_.in_.template as<const Element>() + offset;
        return add(row + window.first * stride, stride, table, window.count);
      }
      Sum sum = s_.across_rule_.start();
      Weight weights[kPiece];
      for (int64_t k = 0; k < window.count; k += kPiece) {
        const int64_t count = std::min(kPiece, window.count - k);
        quantized(s_.across_, s_.across_rule_, window, k, count, weights);
        for (int64_t j = 0; j < count; ++j) {
          const int64_t x = clamped(window.first + k + j, s_.u_.w.in);
          const void* element = reader_.read(offset + x * stride, 1, 1);
          sum += *static_cast<const Element*>(element) * weights[j];
        }
      }
      return sum;
    }

    Sum add(const Element* row, int64_t stride, const Weight* weights, int64_t count) const {
      Sum sum = s_.across_rule_.start();
      for (int64_t k = 0; k < count; ++k) sum += row[k * stride] * weights[k];
      return sum;
    }

    static int64_t clamped(int64_t index, int64_t size) {
      return std::min(std::max<int64_t>(index, 0), size - 1);
    }

    const Resampler& s_;
    int64_t begin_;
    int64_t n_;
    int64_t from_ = 0;
    RowReader reader_;
    RowReader segments_;
    RowWriter writer_;
    const void* segment_ = nullptr;
    int64_t segment_begin_ = 0;
    int64_t cached_[kPiece];
    alignas(64) Element lines_[kPiece][kColumns];
  };

  Upsampling u_;
  const Tensor& in_;
  const Tensor& out_;
  Windows<T> across_;
  Windows<T> down_;
  Rule across_rule_;
  Rule down_rule_;
  bool tabled_ = true;
  AxisWindow windows_[kColumns];
  alignas(64) Weight table_[kTableBytes / sizeof(Weight)];
};

Status resample(KernelContext& ctx, const Tensor& in, Upsampling u, Resampling how, Tensor& out) {
  if (out.numel == 0) return {};
  if (how.antialias || in.dtype == DType::UInt8) {
    if (u.h.in == u.h.out && u.w.in == u.w.out) {
      copy_all(in, out);
      return {};
    }
    u.ignore_factors_of_kept_sizes();
  }
  if (in.dtype == DType::UInt8) {
    how.fold_border = true;
    Resampler<double, Bytes>(u, how, in, out).run(ctx);
  } else if (in.dtype == DType::Float64) {
    Resampler<double, Real<double>>(u, how, in, out).run(ctx);
  } else {
    Resampler<float, Real<float>>(u, how, in, out).run(ctx);
  }
  return {};
}

// upsample_bicubic2d and the like: self, output_size, align_corners, scales_h, scales_w, out
Status resample_to(KernelContext& ctx, EValue* const* args, Filter filter, bool antialias) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[5]->tensor();
  if (!is_floating(in.dtype) && in.dtype != DType::UInt8) {
    return ctx.fail(Code::NotSupported, "input is %s, but must be floating or uint8",
                    dtype_name(in.dtype));
  }
  Upsampling u;
  RL_TRY(read_upsampling_to(ctx, in, *args[1], args + 3, 2, out, &u));
  Resampling how;
  how.filter = filter;
  how.antialias = antialias;
  how.align_corners = args[2]->to_bool();
  return resample(ctx, in, u, how, out);
}

}  // namespace

Status upsample_bilinear_uint8(KernelContext& ctx, const Tensor& in, const Upsampling& upsampling,
                               bool align_corners, Tensor& out) {
  Resampling how;
  how.align_corners = align_corners;
  return resample(ctx, in, upsampling, how, out);
}

Status upsample_bicubic2d_out(KernelContext& ctx, EValue* const* args) {
  return resample_to(ctx, args, Filter::Cubic, false);
}

Status upsample_bilinear2d_aa_out(KernelContext& ctx, EValue* const* args) {
  return resample_to(ctx, args, Filter::Linear, true);
}

Status upsample_bicubic2d_aa_out(KernelContext& ctx, EValue* const* args) {
  return resample_to(ctx, args, Filter::Cubic, true);
}

}  // namespace rushlight::kernels
