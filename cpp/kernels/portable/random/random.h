// Drawing from the generator as eager does on the CPU: which bits of how many draws make a number
// of which type, and in which order a tensor is filled. What a kernel gives is then eager's, bit
// for bit, for the same state of the generator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/generator.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {

// The generator of the call; InvalidState, saying what to do, if it has none.
Status generator_of(KernelContext& ctx, Generator** generator);

// From [0, 1): 24 bits of one draw, and 53 bits of two.
inline float uniform_float(Generator& g) {
  return static_cast<float>(g.random() & 0xffffffU) * 0x1p-24f;
}
inline double uniform_double(Generator& g) {
  return static_cast<double>(g.random64() & 0x1fffffffffffffULL) * 0x1p-53;
}
// From 0 to range - 1. As in eager the remainder of a draw, so of great ranges the lower numbers
// are a little likelier.
inline uint64_t below(Generator& g, uint64_t range) {
  return (range >= (1ULL << 28) ? g.random64() : g.random()) % range;
}
// Two draws of 53 bits make two variates; the second is kept in the generator.
double normal_double(Generator& g, double mean, double std);

// Fills a floating tensor with numbers from [from, to). `out` has its final sizes.
void fill_uniform(Generator& g, double from, double to, Tensor& out);
// Fills a floating tensor with normal variates: 16 at a time if it is of 16 elements or more and
// in the usual order of dimensions, else one by one.
void fill_normal(Generator& g, double mean, double std, Tensor& out);

// Fills a tensor of any real type with draw() after draw(), in the order of memory. T, what a draw
// gives, is float, double or int64_t; `as` is the same type's name.
template <typename T, typename Draw>
void fill_drawn(Tensor& out, DType as, Draw draw) {
  T values[kChunk];
  float narrow[kChunk];
  const bool half = out.dtype == DType::Float16 || out.dtype == DType::BFloat16;
  const size_t size = element_size(out.dtype);
  const size_t total = static_cast<size_t>(out.numel);
  for (size_t done = 0; done < total;) {
    const size_t n = total - done < kChunk ? total - done : kChunk;
    for (size_t i = 0; i < n; ++i) values[i] = draw();
    uint8_t* to = out.as<uint8_t>() + done * size;
    if (half) {  // through float32, as eager converts
      convert(values, as, narrow, DType::Float32, n);
      convert(narrow, DType::Float32, to, out.dtype, n);
    } else {
      convert(values, as, to, out.dtype, n);
    }
    done += n;
  }
}

template <typename Draw>
void fill_doubles(Tensor& out, Draw draw) {
  fill_drawn<double>(out, DType::Float64, draw);
}

// Yields the elements of a tensor, one by one, in the order in which `out`, to whose shape it
// broadcasts, lies in memory. Both have elements, and their types convert to float64.
class ElementReader {
 public:
  ElementReader(const Tensor& tensor, const Tensor& out) : dtype_(tensor.dtype), left_(out.numel) {
    reader_.init(broadcast_view(tensor, out), out);
  }
  double next() {
    if (at_ == kChunk) refill();
    return values_[at_++];
  }

 private:
  void refill();

  StridedReader reader_;
  DType dtype_;
  int64_t left_;
  size_t at_ = kChunk;
  double values_[kChunk];
  alignas(16) uint8_t raw_[kChunk * sizeof(double)];
};

}  // namespace rushlight::kernels
