// Padding with the input's own elements along the last one, two or three dimensions: mirrored at
// the border (reflection), or the border element repeated (replication).
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

enum class Border { Reflect, Replicate };

// [N, C, D, H, W]; a dimension that the tensor does not have is of size 1.
enum : size_t { kBatch, kChannel, kDepth, kHeight, kWidth, kDims };

struct PadDim {
  int64_t in = 1;
  int64_t out = 1;
  int64_t before = 0;  // a negative amount cuts elements off
  int64_t in_stride = 0;
  int64_t out_stride = 0;
};

class ImagePad {
 public:
  ImagePad(const PadDim (&dims)[kDims], Border border, const Tensor& in, const Tensor& out)
      : dims_(dims), border_(border), in_(in), out_(out), size_(element_size(in.dtype)) {
    // The output positions along the width that are plain copies of the input.
    const PadDim& w = dims_[kWidth];
    middle_ = std::max<int64_t>(w.before, 0);
    middle_end_ = std::max(std::min(w.in + w.before, w.out), middle_);
  }

  void run() {
    const PadDim& c = dims_[kChannel];
    if (c.in > 1 && c.in_stride == 1 && c.out_stride == 1) {
      over_rows([this](int64_t from, int64_t to) { pixels(from, to); });
    } else {
      over_rows([this](int64_t from, int64_t to) { channels(from, to); });
    }
  }

 private:
  int64_t source(const PadDim& dim, int64_t o) const {
    const int64_t at = o - dim.before;
    if (border_ == Border::Replicate) return std::min(std::max<int64_t>(at, 0), dim.in - 1);
    const int64_t mirrored = at < 0 ? -at : at;
    return mirrored < dim.in ? mirrored : 2 * (dim.in - 1) - mirrored;
  }

  // Calls `body` with the offsets of each row of pixels: iterates over all dimensions except C and
  // W.
  template <typename Body>
  void over_rows(Body body) const {
    const PadDim& n = dims_[kBatch];
    const PadDim& depth = dims_[kDepth];
    const PadDim& h = dims_[kHeight];
    for (int64_t i = 0; i < n.out; ++i) {
      for (int64_t j = 0; j < depth.out; ++j) {
        for (int64_t k = 0; k < h.out; ++k) {
          body(i * n.in_stride + source(depth, j) * depth.in_stride + source(h, k) * h.in_stride,
               i * n.out_stride + j * depth.out_stride + k * h.out_stride);
        }
      }
    }
  }

  void pixels(int64_t from, int64_t to) const {
    const PadDim& w = dims_[kWidth];
    const size_t bytes = static_cast<size_t>(dims_[kChannel].in) * size_;
    for (int64_t i = 0; i < w.out; ++i) {
      std::memcpy(element_at(out_, to + i * w.out_stride),
                  element_at(in_, from + source(w, i) * w.in_stride), bytes);
    }
  }

  void channels(int64_t from, int64_t to) const {
    const PadDim& c = dims_[kChannel];
    for (int64_t i = 0; i < c.in; ++i) {
      const uint8_t* row = element_at(in_, from + i * c.in_stride);
      uint8_t* out = element_at(out_, to + i * c.out_stride);
      switch (size_) {
        case 1:
          copy_row<uint8_t>(row, out);
          break;
        case 2:
          copy_row<uint16_t>(row, out);
          break;
        case 4:
          copy_row<uint32_t>(row, out);
          break;
        default:
          copy_row<uint64_t>(row, out);
          break;
      }
    }
  }

  template <typename T>
  void copy_row(const uint8_t* from, uint8_t* to) const {
    const PadDim& w = dims_[kWidth];
    const T* in = reinterpret_cast<const T*>(from);
    T* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < middle_; ++i) out[i * w.out_stride] = in[source(w, i) * w.in_stride];
    if (w.in_stride == 1 && w.out_stride == 1) {
      std::memcpy(out + middle_, in + (middle_ - w.before),
                  static_cast<size_t>(middle_end_ - middle_) * sizeof(T));
    } else {
      for (int64_t i = middle_; i < middle_end_; ++i) {
        out[i * w.out_stride] = in[(i - w.before) * w.in_stride];
      }
    }
    for (int64_t i = middle_end_; i < w.out; ++i) {
      out[i * w.out_stride] = in[source(w, i) * w.in_stride];
    }
  }

  const PadDim (&dims_)[kDims];
  Border border_;
  const Tensor& in_;
  const Tensor& out_;
  size_t size_;
  int64_t middle_ = 0;
  int64_t middle_end_ = 0;
};

// Reads the amounts of the k-th dimension from the last: padding[2k] before it and padding[2k + 1]
// after it.
Status pad_dim(KernelContext& ctx, const EValue& padding, size_t k, size_t d, Border border,
               PadDim* dim) {
  const int64_t before = padding.int_at(2 * k);
  const int64_t after = padding.int_at(2 * k + 1);
  const int64_t most = border == Border::Reflect ? dim->in - 1 : INT32_MAX;
  for (int64_t amount : {before, after}) {
    if (amount >= -INT32_MAX && amount <= most) continue;
    return ctx.fail(Code::InvalidArgument,
                    "padding of dimension %zu, of size %lld, is %lld, but must be at most %lld", d,
                    static_cast<long long>(dim->in), static_cast<long long>(amount),
                    static_cast<long long>(most));
  }
  dim->before = before;
  dim->out = dim->in + before + after;
  if (dim->out >= 1 && dim->out <= INT32_MAX) return {};
  return ctx.fail(Code::InvalidArgument,
                  "padding dimension %zu, of size %lld, by %lld and %lld leaves no valid size", d,
                  static_cast<long long>(dim->in), static_cast<long long>(before),
                  static_cast<long long>(after));
}

// (self, padding, *, out)
Status pad_images(KernelContext& ctx, EValue* const* args, size_t spatial, Border border) {
  const Tensor& self = args[0]->tensor();
  const EValue& padding = *args[1];
  Tensor& out = args[2]->tensor();
  bool fits = self.rank == spatial + 1 || self.rank == spatial + 2;
  for (size_t d = 0; fits && d < self.rank; ++d) {
    fits = self.sizes[d] > 0 || (d == 0 && self.rank == spatial + 2);
  }
  if (!fits) {
    return ctx.fail(Code::InvalidArgument,
                    "self has shape %s, but must have %zu or, with a batch, %zu dimensions and no "
                    "size but the batch's being 0",
                    ShapeText(self.shape()).text(), spatial + 1, spatial + 2);
  }
  if (padding.size() != 2 * spatial) {
    return ctx.fail(Code::InvalidArgument, "padding has %zu entries, but must have %zu",
                    padding.size(), 2 * spatial);
  }
  if (element_size(self.dtype) > 8) {
    return ctx.fail(Code::NotSupported, "self is %s; elements have at most 8 bytes",
                    dtype_name(self.dtype));
  }
  RL_TRY(check_same_type(ctx, "self", self, out));
  PadDim dims[kDims];
  Shape shape(self.shape());
  // Maps our dimensions to the tensor's: the last ones are spatial, with C and N before them.
  const auto ours = [&](size_t d) {
    return d + spatial >= self.rank ? kDims - (self.rank - d) : d + spatial + 2 - self.rank;
  };
  for (size_t d = 0; d < self.rank; ++d) {
    PadDim& dim = dims[ours(d)];
    dim.in = dim.out = self.sizes[d];
    if (d + spatial < self.rank) continue;
    RL_TRY(pad_dim(ctx, padding, self.rank - 1 - d, d, border, &dim));
    shape.sizes[d] = static_cast<int32_t>(dim.out);
  }
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  for (size_t d = 0; d < self.rank; ++d) {
    dims[ours(d)].in_stride = self.strides[d];
    dims[ours(d)].out_stride = out.strides[d];
  }
  ImagePad(dims, border, self, out).run();
  return {};
}

}  // namespace

Status reflection_pad1d_out(KernelContext& ctx, EValue* const* args) {
  return pad_images(ctx, args, 1, Border::Reflect);
}

Status reflection_pad2d_out(KernelContext& ctx, EValue* const* args) {
  return pad_images(ctx, args, 2, Border::Reflect);
}

Status reflection_pad3d_out(KernelContext& ctx, EValue* const* args) {
  return pad_images(ctx, args, 3, Border::Reflect);
}

Status replication_pad1d_out(KernelContext& ctx, EValue* const* args) {
  return pad_images(ctx, args, 1, Border::Replicate);
}

Status replication_pad2d_out(KernelContext& ctx, EValue* const* args) {
  return pad_images(ctx, args, 2, Border::Replicate);
}

Status replication_pad3d_out(KernelContext& ctx, EValue* const* args) {
  return pad_images(ctx, args, 3, Border::Replicate);
}

}  // namespace rushlight::kernels
