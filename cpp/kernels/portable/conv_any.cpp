// Convolution of any type that can be multiplied, in any layout: for each output pixel the input
// values that it depends on are gathered, converted to the type that is summed in, and multiplied
// with the weights of each output channel. Plain, for types and layouts that nobody hurries.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/conv.h"
#include "rushlight/kernels/portable/strided_copy.h"
#include "rushlight/kernels/portable/view.h"

namespace rushlight::kernels {
namespace {

constexpr size_t kPiece = 128;  // products gathered at a time

// Where input and weight of each product lie, for one output pixel and one group.
struct Piece {
  size_t n = 0;
  int64_t input[kPiece];
  int64_t weight[kPiece];
};

template <typename T>
constexpr DType sum_type() {
  return sizeof(T) == 4 ? DType::Float32 : DType::Int64;
}
template <>
constexpr DType sum_type<double>() {
  return DType::Float64;
}

// The input coordinate that tap `t` meets at output `o`, or -1 if there is none.
int64_t met(const Conv& conv, size_t s, int64_t o, int64_t t) {
  int64_t at = 0;
  if (conv.transposed) {
    const int64_t scaled = o + conv.padding[s] - t * conv.dilation[s];
    if (scaled % conv.stride[s] != 0) return -1;
    at = scaled / conv.stride[s];
  } else {
    at = o * conv.stride[s] - conv.padding[s] + t * conv.dilation[s];
  }
  return at >= 0 && at < conv.input.size[s] ? at : -1;
}

template <typename T>
class Pixel {
 public:
  Pixel(const Conv& conv, int64_t image, int64_t group, const int64_t* at)
      : conv_(conv), dtype_(conv.input.tensor->dtype), group_(group) {
    input_ = image * conv.input.outer_step + group * conv.group_in * conv.input.inner_step;
    std::copy(at, at + kMaxSpatial, at_);
  }

  // The sum for one output channel of the group.
  T sum(int64_t channel) {
    T total = 0;
    piece_.n = 0;
    const int64_t step = conv_.transposed ? conv_.weight.inner_step : conv_.weight.outer_step;
    const int64_t group_step = conv_.transposed ? conv_.group_in * conv_.weight.outer_step
                                                : conv_.group_out * conv_.weight.outer_step;
    const int64_t weight = group_ * group_step + channel * step;
    const int64_t taps = conv_.taps();
    for (int64_t t = 0; t < taps; ++t) {
      int64_t input_offset = input_;
      int64_t weight_offset = weight;
      if (locate(t, &input_offset, &weight_offset))
        add_channels(input_offset, weight_offset, &total);
    }
    flush(&total);
    return total;
  }

 private:
  bool locate(int64_t tap, int64_t* input, int64_t* weight) const {
    for (size_t s = kMaxSpatial; s-- > 0;) {
      const int64_t t = tap % conv_.weight.size[s];
      tap /= conv_.weight.size[s];
      const int64_t i = met(conv_, s, at_[s], t);
      if (i < 0) return false;
      *input += i * conv_.input.step[s];
      *weight += t * conv_.weight.step[s];
    }
    return true;
  }

  void add_channels(int64_t input, int64_t weight, T* total) {
    const int64_t step = conv_.transposed ? conv_.weight.outer_step : conv_.weight.inner_step;
    for (int64_t c = 0; c < conv_.group_in; ++c) {
      if (piece_.n == kPiece) flush(total);
      piece_.input[piece_.n] = input + c * conv_.input.inner_step;
      piece_.weight[piece_.n++] = weight + c * step;
    }
  }

  void flush(T* total) {
    T inputs[kPiece];
    T weights[kPiece];
    gather(*conv_.input.tensor, piece_.input, inputs);
    gather(*conv_.weight.tensor, piece_.weight, weights);
    for (size_t i = 0; i < piece_.n; ++i) *total += inputs[i] * weights[i];
    piece_.n = 0;
  }

  void gather(const Tensor& tensor, const int64_t* offsets, T* values) const {
    alignas(8) uint8_t raw[kPiece * sizeof(uint64_t)];
    const size_t size = element_size(dtype_);
    for (size_t i = 0; i < piece_.n; ++i) {
      std::memcpy(raw + i * size, element_at(tensor, offsets[i]), size);
    }
    convert(raw, dtype_, values, sum_type<T>(), piece_.n);
  }

  const Conv& conv_;
  DType dtype_;
  int64_t group_;
  int64_t input_;
  int64_t at_[kMaxSpatial];
  Piece piece_;
};

template <typename T>
T bias_of(const Conv& conv, int64_t channel) {
  T bias = 0;
  if (conv.bias != nullptr) {
    convert(element_at(*conv.bias, channel), conv.bias->dtype, &bias, sum_type<T>(), 1);
  }
  return bias;
}

template <typename T>
void run(const Conv& conv) {
  const Tensor& out = *conv.out.tensor;
  for (int64_t n = 0; n < conv.batch; ++n) {
    for (int64_t pixel = 0; pixel < conv.pixels(); ++pixel) {
      const int64_t line = pixel / conv.out.size[2];
      const int64_t at[] = {line / conv.out.size[1], line % conv.out.size[1],
                            pixel % conv.out.size[2]};
      int64_t offset = n * conv.out.outer_step;
      for (size_t s = 0; s < kMaxSpatial; ++s) offset += at[s] * conv.out.step[s];
      for (int64_t g = 0; g < conv.groups; ++g) {
        Pixel<T> sums(conv, n, g, at);
        for (int64_t c = 0; c < conv.group_out; ++c) {
          const int64_t channel = g * conv.group_out + c;
          const T sum = sums.sum(c) + bias_of<T>(conv, channel);
          convert(&sum, sum_type<T>(), element_at(out, offset + channel * conv.out.inner_step),
                  out.dtype, 1);
        }
      }
    }
  }
}

}  // namespace

void conv_any(const Conv& conv) {
  const DType dtype = conv.out.tensor->dtype;
  if (dtype == DType::Float64) return run<double>(conv);
  if (is_floating(dtype)) return run<float>(conv);
  run<uint64_t>(conv);  // wraps around; the bits are int64's
}

}  // namespace rushlight::kernels
