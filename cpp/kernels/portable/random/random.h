// Draws from the generator exactly as eager does on the CPU: which bits of how many draws make a
// number of each type, and in which order a tensor is filled. With the same state of the generator,
// a kernel therefore gives the same bits as eager.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/generator.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {

// Sets the generator of the call. Returns InvalidState, with advice, if it has none.
Status generator_of(KernelContext& ctx, Generator** generator);

// A number in [0, 1) from 24 bits of one draw, and from 53 bits of two draws.
inline float uniform_float(Generator& g) {
  return static_cast<float>(g.random() & 0xffffffU) * 0x1p-24f;
}
inline double uniform_double(Generator& g) {
  return static_cast<double>(g.random64() & 0x1fffffffffffffULL) * 0x1p-53;
}
// An integer from 0 to range - 1. As in eager it is the remainder of a draw, so for large ranges
// small integers are slightly more likely.
inline uint64_t below(Generator& g, uint64_t range) {
  return (range >= (1ULL << 28) ? g.random64() : g.random()) % range;
}
// Two draws of 53 bits give two variates; the second is kept in the generator.
double normal_double(Generator& g, double mean, double std);

// Fills a floating tensor with numbers in [from, to). `out` must have its final sizes.
void fill_uniform(Generator& g, double from, double to, Tensor& out);
// Fills a floating tensor with normal variates: 16 at a time if it has at least 16 elements and is
// row-major, else one by one.
void fill_normal(Generator& g, double mean, double std, Tensor& out);

// Fills a tensor of any real type with results of draw(), in memory order. T is the type that
// draw() returns: float, double or int64_t; `as` is the DType of T.
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
    if (half) {  // by way of float32, as in eager
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

// Returns the elements of a tensor one by one, in the memory order of `out`, to whose shape the
// tensor broadcasts. Both must have elements, and their types must convert to float64.
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
