// Discrete Fourier transforms of complex64 and float32 tensors along any dimensions.
//
// A transform along several dimensions is one transform along each of them. Several rows at a time
// are copied into the lanes of fft_plan.h. A real row of even length n is transformed as a complex
// row of length n / 2, whose elements are the pairs of the real row.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/spectral/fft.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/spectral/fft_plan.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kMaxLanes = 16;
constexpr size_t kStackBytes = 1 << 13;

// All the available scratch memory. Transforms along several dimensions use it one after the other.
struct Memory {
  uint8_t* data = nullptr;
  size_t bytes = 0;

  static Memory of(KernelContext& ctx) {
    const size_t left = ctx.scratch_left();
    auto* data = static_cast<uint8_t*>(ctx.scratch(left));
    return {data, data != nullptr ? left : 0};
  }
};

enum class Kind { Complex, RealToComplex, ComplexToReal };

// The rows along one dimension, with the offset of each in a tensor. `order` is the order of the
// other dimensions, outermost first.
class Rows {
 public:
  Rows(const Tensor& tensor, size_t dim, const uint8_t* order)
      : tensor_(tensor), dim_(dim), order_(order) {}
  int64_t stride() const { return tensor_.strides[dim_]; }
  bool is_complex() const { return tensor_.dtype == DType::Complex64; }
  int64_t offset(int64_t row) const {
    int64_t offset = 0;
    for (size_t k = tensor_.rank; k-- > 0;) {
      const size_t d = order_[k];
      if (d == dim_) continue;
      offset += row % tensor_.sizes[d] * tensor_.strides[d];
      row /= tensor_.sizes[d];
    }
    return offset;
  }
  template <typename T>
  T* at(int64_t offset) const {
    return tensor_.as<T>() + offset;
  }

 private:
  const Tensor& tensor_;
  size_t dim_;
  const uint8_t* order_;
};

// Visits all elements of all lanes in small tiles. Rows may be a power of two apart; if whole rows
// were visited, a cache line would be evicted before its next element is used.
template <typename Body>
void for_each_tile(int64_t count, int64_t lanes, Body body) {
  constexpr int64_t kTile = 8;
  for (int64_t begin = 0; begin < count; begin += kTile) {
    const int64_t end = std::min(begin + kTile, count);
    for (int64_t b = 0; b < lanes; ++b) {
      for (int64_t i = begin; i < end; ++i) body(i, b);
    }
  }
}

// A transform along one dimension.
struct Transform {
  Kind kind = Kind::Complex;
  bool forward = true;
  bool onesided = true;  // for RealToComplex
  int64_t length = 1;    // length of the real rows or, if there are none, of the complex rows
  float factor = 1;
};

class RowTransform {
 public:
  RowTransform(const Transform& t, const Tensor& in, const Tensor& out, size_t dim)
      : t_(t),
        half_(t.kind != Kind::Complex && t.length % 2 == 0),
        plan_(half_ ? t.length / 2 : t.length),
        in_(in, dim, out.dim_order),
        out_(out, dim, out.dim_order),
        rows_(out.numel / out.sizes[dim]) {}

  Status run(KernelContext& ctx, Memory memory) {
    const int64_t roots = half_ ? (t_.length / 2 + 15) / 16 * 16 : 0;
    const size_t shared = plan_.shared_bytes() + static_cast<size_t>(2 * roots) * sizeof(float);
    const size_t least = shared + plan_.work_bytes(1);
    alignas(64) uint8_t stack[kStackBytes];
    if (memory.bytes < least && least <= kStackBytes) memory = {stack, kStackBytes};
    if (memory.bytes < least) {
      return ctx.fail(Code::MemoryAllocationFailed,
                      "a Fourier transform of length %lld takes %zu bytes of scratch memory, of "
                      "which %zu are left",
                      static_cast<long long>(t_.length), least, memory.bytes);
    }
    lanes_ = std::min(kMaxLanes, rows_);
    while (lanes_ > 1 && shared + plan_.work_bytes(lanes_) > memory.bytes) lanes_ /= 2;
    const size_t each = plan_.work_bytes(lanes_);
    const size_t wanted = std::min<size_t>({ctx.threads(), 64, static_cast<size_t>(rows_)});
    workers_ = shared + wanted * each <= memory.bytes ? wanted : 1;
    work_ = memory.data + shared;
    plan_.prepare(memory.data, work_);
    if (half_) {
      auto* re = reinterpret_cast<float*>(memory.data + plan_.shared_bytes());
      fill_roots(t_.length, t_.length / 2, re, re + roots);
      roots_ = {re, re + roots};
    }
    run_groups(ctx);
    return {};
  }

 private:
  void run_groups(KernelContext& ctx) {
    const int64_t groups = (rows_ + lanes_ - 1) / lanes_;
    const auto run = [this](int64_t begin, int64_t end) {
      const size_t worker = take_worker();
      for (int64_t g = begin; g < end; ++g) {
        group(g * lanes_, std::min(lanes_, rows_ - g * lanes_),
              work_ + worker * plan_.work_bytes(lanes_));
      }
      taken_.fetch_and(~(uint64_t{1} << worker));
    };
    const int64_t grain = std::max<int64_t>(1, (1 << 13) / (t_.length * lanes_));
    if (workers_ > 1) {
      ctx.parallel(groups, grain, run);
    } else {
      run(0, groups);
    }
  }

  // Returns a work memory that no thread is using. There are as many as threads.
  size_t take_worker() {
    for (;;) {
      uint64_t taken = taken_.load();
      for (size_t k = 0; k < workers_; ++k) {
        const uint64_t bit = uint64_t{1} << k;
        if ((taken & bit) == 0 && taken_.compare_exchange_strong(taken, taken | bit)) return k;
      }
    }
  }

  void group(int64_t first, int64_t lanes, void* work) const {
    int64_t from[kMaxLanes];
    int64_t to[kMaxLanes];
    for (int64_t b = 0; b < lanes; ++b) {
      from[b] = in_.offset(first + b);
      to[b] = out_.offset(first + b);
    }
    const Lanes x = plan_.input(work, lanes);
    switch (t_.kind) {
      case Kind::Complex:
        load(in_, from, t_.length, lanes, x);
        return store(plan_.run(work, lanes, t_.forward), t_.length, lanes, out_, to);
      case Kind::RealToComplex:
        load_real(from, lanes, x);
        return store_spectrum(plan_.run(work, lanes, true), lanes, to);
      case Kind::ComplexToReal:
        load_spectrum(from, lanes, x);
        return store_real(plan_.run(work, lanes, false), lanes, to);
    }
  }

  // Reads pairs of floats: complex numbers, or pairs of neighbours in real rows.
  struct Pairs {
    Pairs(const Rows& rows, const int64_t* offsets, int64_t lanes) {
      const bool complex = rows.is_complex();
      stride = 2 * rows.stride();
      gap = complex ? 1 : rows.stride();
      for (int64_t b = 0; b < lanes; ++b) row[b] = rows.at<float>((complex ? 2 : 1) * offsets[b]);
    }
    bool consecutive() const { return stride == 2 && gap == 1; }

    float* row[kMaxLanes];
    int64_t stride;
    int64_t gap;
  };

  static void load(const Rows& rows, const int64_t* from, int64_t n, int64_t lanes, Lanes x) {
    const Pairs pairs(rows, from, lanes);
    if (pairs.consecutive()) return fft_loops().read_rows({pairs.row, n, lanes, x.re, x.im});
    for_each_tile(n, lanes, [&](int64_t i, int64_t b) {
      const float* at = pairs.row[b] + i * pairs.stride;
      x.re[i * lanes + b] = at[0];
      x.im[i * lanes + b] = at[pairs.gap];
    });
  }

  void store(Lanes y, int64_t n, int64_t lanes, const Rows& rows, const int64_t* to) const {
    const Pairs pairs(rows, to, lanes);
    if (pairs.consecutive()) {
      return fft_loops().write_rows({pairs.row, n, lanes, y.re, y.im}, t_.factor);
    }
    for_each_tile(n, lanes, [&](int64_t i, int64_t b) {
      float* at = pairs.row[b] + i * pairs.stride;
      at[0] = y.re[i * lanes + b] * t_.factor;
      at[pairs.gap] = y.im[i * lanes + b] * t_.factor;
    });
  }

  void load_real(const int64_t* from, int64_t lanes, Lanes x) const {
    if (half_) return load(in_, from, t_.length / 2, lanes, x);
    for_each_tile(t_.length, lanes, [&](int64_t i, int64_t b) {
      x.re[i * lanes + b] = *in_.at<const float>(from[b] + i * in_.stride());
      x.im[i * lanes + b] = 0.0F;
    });
  }

  void store_real(Lanes y, int64_t lanes, const int64_t* to) const {
    if (half_) return store(y, t_.length / 2, lanes, out_, to);
    for_each_tile(t_.length, lanes, [&](int64_t i, int64_t b) {
      *out_.at<float>(to[b] + i * out_.stride()) = y.re[i * lanes + b] * t_.factor;
    });
  }

  FftHalves halves(Lanes lanes, int64_t count) const {
    return {lanes.re, lanes.im, t_.length / 2, count, roots_.re, roots_.im};
  }

  // Stores the first half of the spectrum and, unless onesided, its conjugate mirror image.
  // Elements that are real in exact arithmetic get an imaginary part of 0.
  void store_spectrum(Lanes y, int64_t lanes, const int64_t* to) const {
    float last[kMaxLanes];
    if (half_) {
      fft_loops().to_spectrum(halves(y, lanes));
      std::copy_n(y.im, lanes, last);
    }
    std::fill_n(y.im, lanes, 0.0F);
    store(y, (t_.length + 1) / 2, lanes, out_, to);
    for (int64_t b = 0; b < lanes; ++b) {
      Complex* row = out_.at<Complex>(to[b]);
      if (half_) row[t_.length / 2 * out_.stride()] = {last[b] * t_.factor, 0.0F};
      for (int64_t k = 1; !t_.onesided && 2 * k < t_.length; ++k) {
        const Complex value = row[k * out_.stride()];
        row[(t_.length - k) * out_.stride()] = {value.re, -value.im};
      }
    }
  }

  // Reads half of a spectrum; the rest is its conjugate mirror image. Imaginary parts of elements
  // that must be real are ignored.
  void load_spectrum(const int64_t* from, int64_t lanes, Lanes x) const {
    load(in_, from, (t_.length + 1) / 2, lanes, x);
    std::fill_n(x.im, lanes, 0.0F);
    if (half_) {
      for (int64_t b = 0; b < lanes; ++b) {
        x.im[b] = in_.at<const Complex>(from[b] + t_.length / 2 * in_.stride())->re;
      }
      return fft_loops().from_spectrum(halves(x, lanes));
    }
    for (int64_t k = 1; 2 * k < t_.length; ++k) {
      const int64_t mirror = (t_.length - k) * lanes;
      for (int64_t b = 0; b < lanes; ++b) {
        x.re[mirror + b] = x.re[k * lanes + b];
        x.im[mirror + b] = -x.im[k * lanes + b];
      }
    }
  }

  Transform t_;
  bool half_;  // real rows are transformed as complex rows of half the length
  FftPlan plan_;
  Rows in_;
  Rows out_;
  int64_t rows_;
  int64_t lanes_ = 1;
  size_t workers_ = 1;
  uint8_t* work_ = nullptr;
  Roots roots_;  // exp(-2 pi i k / length), for half of the k
  std::atomic<uint64_t> taken_{0};
};

// The dimensions of a call, in order and without duplicates.
struct Dims {
  size_t count = 0;
  size_t dim[kMaxRank];
};

Status read_dims(KernelContext& ctx, const EValue& list, const Tensor& in, Dims* dims) {
  bool flags[kMaxRank];
  RL_TRY(wrap_dims(ctx, list, in.rank, false, flags));
  if (in.rank == 0 && list.size() > 0) {
    return ctx.fail(Code::InvalidArgument, "self has no dimensions, but dim names one");
  }
  dims->count = list.size();
  for (size_t k = 0; k < dims->count; ++k)
    RL_TRY(wrap_dim(ctx, list.int_at(k), in.rank, &dims->dim[k]));
  return {};
}

Status check_sizes(KernelContext& ctx, const Tensor& tensor, const Dims& dims) {
  for (size_t k = 0; k < dims.count; ++k) {
    if (tensor.sizes[dims.dim[k]] > 0) continue;
    return ctx.fail(Code::InvalidArgument,
                    "the transform runs along dimension %zu of shape %s, whose size is 0",
                    dims.dim[k], ShapeText(tensor.shape()).text());
  }
  return {};
}

// The factor of a normalization mode: 0 is none, 1 divides by the square root of the number of
// elements, 2 by that number.
Status factor_of(KernelContext& ctx, const EValue& mode, const Tensor& signal, const Dims& dims,
                 float* factor) {
  double elements = 1;
  for (size_t k = 0; k < dims.count; ++k) elements *= signal.sizes[dims.dim[k]];
  const int64_t which = mode.to_int();
  if (which < 0 || which > 2) {
    return ctx.fail(Code::InvalidArgument,
                    "normalization is %lld, but must be 0 (none), 1 (by the square root of the "
                    "number of elements) or 2 (by that number)",
                    static_cast<long long>(which));
  }
  *factor = static_cast<float>(which == 0   ? 1.0
                               : which == 1 ? 1.0 / std::sqrt(elements)
                                            : 1.0 / elements);
  return {};
}

// Transforms `tensor` in place along the dims.
Status run_in_place(KernelContext& ctx, Memory memory, const Tensor& tensor, const Dims& dims,
                    bool forward) {
  Transform t;
  t.forward = forward;
  for (size_t k = 0; k < dims.count; ++k) {
    t.length = tensor.sizes[dims.dim[k]];
    RL_TRY(RowTransform(t, tensor, tensor, dims.dim[k]).run(ctx, memory));
  }
  return {};
}

Status check_types(KernelContext& ctx, const Tensor& in, DType in_type, const Tensor& out,
                   DType out_type) {
  RL_TRY(check_dtype(ctx, "self", in, in_type));
  return check_dtype(ctx, "out", out, out_type);
}

}  // namespace

// _fft_c2c(self, dim, normalization, forward, *, out)
Status fft_c2c_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[4]->tensor();
  Dims dims;
  float factor = 1;
  RL_TRY(check_types(ctx, in, DType::Complex64, out, DType::Complex64));
  RL_TRY(read_dims(ctx, *args[1], in, &dims));
  RL_TRY(factor_of(ctx, *args[2], in, dims, &factor));
  RL_TRY(ctx.resize_like(out, in));
  if (out.numel == 0) return {};
  if (dims.count == 0) {
    copy_all(in, out);
    return {};
  }
  Transform t;
  t.forward = args[3]->to_bool();
  t.length = in.sizes[dims.dim[dims.count - 1]];
  t.factor = factor;
  const Memory memory = Memory::of(ctx);
  RL_TRY(RowTransform(t, in, out, dims.dim[--dims.count]).run(ctx, memory));
  return run_in_place(ctx, memory, out, dims, t.forward);
}

// _fft_r2c(self, dim, normalization, onesided, *, out)
Status fft_r2c_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[4]->tensor();
  Dims dims;
  Transform t;
  t.kind = Kind::RealToComplex;
  t.onesided = args[3]->to_bool();
  RL_TRY(check_types(ctx, in, DType::Float32, out, DType::Complex64));
  RL_TRY(read_dims(ctx, *args[1], in, &dims));
  if (dims.count == 0) {
    return ctx.fail(Code::InvalidArgument, "dim is empty, but must name a dimension");
  }
  RL_TRY(check_sizes(ctx, in, dims));
  RL_TRY(factor_of(ctx, *args[2], in, dims, &t.factor));
  const size_t last = dims.dim[--dims.count];
  t.length = in.sizes[last];
  Shape shape(in.shape());
  if (t.onesided) shape.sizes[last] = static_cast<int32_t>(t.length / 2 + 1);
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  const Memory memory = Memory::of(ctx);
  RL_TRY(RowTransform(t, in, out, last).run(ctx, memory));
  return run_in_place(ctx, memory, out, dims, true);
}

// _fft_c2r(self, dim, normalization, last_dim_size, *, out)
Status fft_c2r_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[4]->tensor();
  Dims dims;
  Transform t;
  t.kind = Kind::ComplexToReal;
  t.length = args[3]->to_int();
  RL_TRY(check_types(ctx, in, DType::Complex64, out, DType::Float32));
  RL_TRY(read_dims(ctx, *args[1], in, &dims));
  if (dims.count == 0) {
    return ctx.fail(Code::InvalidArgument, "dim is empty, but must name a dimension");
  }
  RL_TRY(check_sizes(ctx, in, dims));
  const size_t last = dims.dim[dims.count - 1];
  if (t.length < 1 || t.length / 2 + 1 != in.sizes[last]) {
    return ctx.fail(Code::InvalidArgument,
                    "last_dim_size is %lld, but a spectrum of size %d is that of %d or %d elements",
                    static_cast<long long>(t.length), static_cast<int>(in.sizes[last]),
                    static_cast<int>(2 * in.sizes[last] - 2),
                    static_cast<int>(2 * in.sizes[last] - 1));
  }
  Shape shape(in.shape());
  shape.sizes[last] = static_cast<int32_t>(t.length);
  RL_TRY(ctx.resize(out, shape.span()));
  RL_TRY(factor_of(ctx, *args[2], out, dims, &t.factor));
  if (out.numel == 0) return {};
  Memory memory = Memory::of(ctx);
  if (--dims.count == 0) return RowTransform(t, in, out, last).run(ctx, memory);
  const size_t bytes = (in.nbytes() + 63) / 64 * 64;
  if (memory.bytes < bytes) {
    return ctx.fail(Code::MemoryAllocationFailed,
                    "a transform to real numbers along several dimensions takes %zu bytes of "
                    "scratch memory for its input, of which %zu are left",
                    bytes, memory.bytes);
  }
  Tensor copy = in;
  copy.data = memory.data;
  memory = {memory.data + bytes, memory.bytes - bytes};
  std::memcpy(copy.data, in.data, in.nbytes());
  RL_TRY(run_in_place(ctx, memory, copy, dims, false));
  return RowTransform(t, copy, out, last).run(ctx, memory);
}

}  // namespace rushlight::kernels
