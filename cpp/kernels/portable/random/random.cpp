#include "rushlight/kernels/portable/random/random.h"

#include <algorithm>
#include <cmath>

#include "rushlight/kernels/portable/loops/random/normal.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

constexpr double kTwoPi = 6.283185307179586;
constexpr int64_t kBlock = 16;  // variates that are generated together

// True if the order is row-major; dimensions of size 1 may have any stride.
bool is_contiguous(const Tensor& tensor) {
  int64_t stride = 1;
  for (size_t d = tensor.rank; d-- > 0;) {
    if (tensor.sizes[d] == 1) continue;
    if (tensor.strides[d] != stride) return false;
    stride *= tensor.sizes[d];
  }
  return true;
}

// If the last block is partial, a full block that ends with the tensor is drawn again.
void fill_normal_floats(Generator& g, double mean, double std, Tensor& out) {
  const auto fill = normal_loops().fill;
  const float m = static_cast<float>(mean);
  const float s = static_cast<float>(std);
  float* values = out.as<float>();
  for (int64_t i = 0; i < out.numel; ++i) values[i] = uniform_float(g);
  fill(values, static_cast<size_t>(out.numel / kBlock), m, s);
  if (out.numel % kBlock == 0) return;
  float* last = values + out.numel - kBlock;
  for (int64_t i = 0; i < kBlock; ++i) last[i] = uniform_float(g);
  fill(last, 1, m, s);
}

// Unlike for float32, only whole blocks are drawn.
void fill_normal_halves(Generator& g, double mean, double std, Tensor& out) {
  const auto fill = normal_loops().fill;
  uint16_t* values = out.as<uint16_t>();
  float block[kBlock];
  for (int64_t done = 0; done < out.numel; done += kBlock) {
    const int64_t at = done + kBlock <= out.numel ? done : out.numel - kBlock;
    for (float& value : block) value = uniform_float(g);
    fill(block, 1, static_cast<float>(mean), static_cast<float>(std));
    convert(block, DType::Float32, values + at, out.dtype, kBlock);
  }
}

void normal_block(double* values, double mean, double std) {
  constexpr int64_t kPairs = kBlock / 2;
  for (int64_t k = 0; k < kPairs; ++k) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - values[k]));
    const double angle = kTwoPi * values[k + kPairs];
    values[k] = std::fma(radius * std::cos(angle), std, mean);  // fused, as in eager
    values[k + kPairs] = std::fma(radius * std::sin(angle), std, mean);
  }
}

void fill_normal_doubles(Generator& g, double mean, double std, Tensor& out) {
  double* values = out.as<double>();
  for (int64_t i = 0; i < out.numel; ++i) values[i] = uniform_double(g);
  for (int64_t i = 0; i + kBlock <= out.numel; i += kBlock) normal_block(values + i, mean, std);
  if (out.numel % kBlock == 0) return;
  double* last = values + out.numel - kBlock;
  for (int64_t i = 0; i < kBlock; ++i) last[i] = uniform_double(g);
  normal_block(last, mean, std);
}

}  // namespace

Status generator_of(KernelContext& ctx, Generator** generator) {
  *generator = ctx.generator();
  if (*generator != nullptr) return {};
  return ctx.fail(
      Code::InvalidState,
      "there is no generator to draw random numbers from: set MethodOptions::generator");
}

void ElementReader::refill() {
  const size_t n = left_ < static_cast<int64_t>(kChunk) ? static_cast<size_t>(left_) : kChunk;
  convert(reader_.next(n, raw_), dtype_, values_, DType::Float64, n);
  left_ -= static_cast<int64_t>(n);
  at_ = 0;
}

double normal_double(Generator& g, double mean, double std) {
  double value = 0.0;
  if (!g.take_spare(&value)) {
    const double angle = kTwoPi * uniform_double(g);
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform_double(g)));
    g.keep_spare(radius * std::sin(angle));
    value = radius * std::cos(angle);
  }
  return std::fma(value, std, mean);
}

void fill_uniform(Generator& g, double from, double to, Tensor& out) {
  if (out.dtype == DType::Float64) {
    return fill_doubles(out, [&] { return uniform_double(g) * (to - from) + from; });
  }
  const float low = static_cast<float>(from);
  const float range = static_cast<float>(to) - low;
  if (out.dtype == DType::Float32) {
    float* values = out.as<float>();
    for (int64_t i = 0; i < out.numel; ++i) values[i] = uniform_float(g) * range + low;
    return;
  }
  // Rounding may give the excluded end of the range, which eager replaces by the other end.
  const float high = static_cast<float>(to);
  uint16_t end = 0;
  convert(&high, DType::Float32, &end, out.dtype, 1);
  uint16_t start = 0;
  convert(&low, DType::Float32, &start, out.dtype, 1);
  float values[kChunk];
  uint16_t* rounded = out.as<uint16_t>();
  for (int64_t left = out.numel; left > 0;) {
    const int64_t n = std::min(left, static_cast<int64_t>(kChunk));
    for (int64_t i = 0; i < n; ++i) values[i] = uniform_float(g) * range + low;
    convert(values, DType::Float32, rounded, out.dtype, static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) rounded[i] = rounded[i] == end ? start : rounded[i];
    rounded += n;
    left -= n;
  }
}

void fill_normal(Generator& g, double mean, double std, Tensor& out) {
  if (out.numel < kBlock || !is_contiguous(out)) {
    return fill_doubles(out, [&] { return normal_double(g, mean, std); });
  }
  switch (out.dtype) {
    case DType::Float32:
      return fill_normal_floats(g, mean, std, out);
    case DType::Float64:
      return fill_normal_doubles(g, mean, std, out);
    default:
      return fill_normal_halves(g, mean, std, out);
  }
}

}  // namespace rushlight::kernels
