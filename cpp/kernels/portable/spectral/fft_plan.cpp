#include "rushlight/kernels/portable/spectral/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rushlight/kernels/portable/loops/spectral/fft.h"

namespace rushlight::kernels {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kAlign = 16;  // floats, which are 64 bytes

int64_t padded(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

using PassFn = void (*)(const FftPass&);

// The radix of the next pass over a sequence of n, or 0 if no pass takes a factor of n.
int64_t next_radix(int64_t n, PassFn* pass) {
  const FftLoops& loops = fft_loops();
  const struct {
    int64_t radix;
    PassFn pass;
  } all[] = {{4, loops.radix4}, {2, loops.radix2},   {3, loops.radix3},  {5, loops.radix5},
             {7, loops.radix7}, {11, loops.radix11}, {13, loops.radix13}};
  for (const auto& one : all) {
    if (n % one.radix != 0) continue;
    *pass = one.pass;
    return one.radix;
  }
  return 0;
}

bool has_passes(int64_t n) {
  PassFn unused;
  while (n > 1) {
    const int64_t radix = next_radix(n, &unused);
    if (radix == 0) return false;
    n /= radix;
  }
  return true;
}

// a *= b, for every element of every lane.
void multiply(Lanes a, const Roots& b, int64_t n, int64_t lanes) {
  for (int64_t i = 0; i < n; ++i) {
    const float re = b.re[i];
    const float im = b.im[i];
    for (int64_t k = i * lanes; k < (i + 1) * lanes; ++k) {
      const float a_re = a.re[k];
      a.re[k] = a_re * re - a.im[k] * im;
      a.im[k] = a_re * im + a.im[k] * re;
    }
  }
}

}  // namespace

void fill_roots(int64_t order, int64_t count, float* re, float* im) {
  // Every root is a product of two roots from two small tables.
  constexpr int64_t kFine = 64;
  double fine_re[kFine];
  double fine_im[kFine];
  const double angle = -2.0 * kPi / static_cast<double>(order);
  for (int64_t k = 0; k < std::min(kFine, count); ++k) {
    fine_re[k] = std::cos(angle * static_cast<double>(k));
    fine_im[k] = std::sin(angle * static_cast<double>(k));
  }
  for (int64_t begin = 0; begin < count; begin += kFine) {
    const double c = std::cos(angle * static_cast<double>(begin));
    const double s = std::sin(angle * static_cast<double>(begin));
    for (int64_t k = 0; k < std::min(kFine, count - begin); ++k) {
      re[begin + k] = static_cast<float>(c * fine_re[k] - s * fine_im[k]);
      im[begin + k] = static_cast<float>(c * fine_im[k] + s * fine_re[k]);
    }
  }
}

FftPlan::FftPlan(int64_t length) : length_(length), inner_(length) {
  if (has_passes(length)) return;
  for (inner_ = 1; inner_ < 2 * length - 1;) inner_ *= 2;
}

size_t FftPlan::shared_bytes() const {
  int64_t floats = 2 * padded(inner_);
  if (inner_ != length_) floats += 2 * padded(length_) + 2 * padded(inner_);
  return static_cast<size_t>(floats) * sizeof(float);
}

size_t FftPlan::work_bytes(int64_t lanes) const {
  return static_cast<size_t>(4 * padded(inner_ * lanes)) * sizeof(float);
}

void FftPlan::prepare(void* shared, void* work) {
  auto* memory = static_cast<float*>(shared);
  fill_roots(inner_, inner_, memory, memory + padded(inner_));
  roots_ = {memory, memory + padded(inner_)};
  if (inner_ != length_) fill_chirp(memory + 2 * padded(inner_), work);
}

void FftPlan::fill_chirp(float* memory, void* work) {
  float* re = memory;
  float* im = re + padded(length_);
  float* filter_re = im + padded(length_);
  float* filter_im = filter_re + padded(inner_);
  for (int64_t k = 0; k < length_; ++k) {
    const auto square = static_cast<uint64_t>(k) * static_cast<uint64_t>(k);
    const auto half_turns = static_cast<double>(square % static_cast<uint64_t>(2 * length_));
    const double angle = -kPi * half_turns / static_cast<double>(length_);
    re[k] = static_cast<float>(std::cos(angle));
    im[k] = static_cast<float>(std::sin(angle));
  }
  chirp_ = {re, im};
  const Lanes filter = buffer(work, 1, 0);
  std::fill_n(filter.re, inner_, 0.0F);
  std::fill_n(filter.im, inner_, 0.0F);
  for (int64_t k = 0; k < length_; ++k) {
    filter.re[k] = re[k];
    filter.im[k] = -im[k];
    if (k == 0) continue;
    filter.re[inner_ - k] = re[k];
    filter.im[inner_ - k] = -im[k];
  }
  const Lanes transformed = passes(filter, buffer(work, 1, 1), 1);
  std::copy_n(transformed.re, inner_, filter_re);
  std::copy_n(transformed.im, inner_, filter_im);
  filter_ = {filter_re, filter_im};
}

Lanes FftPlan::buffer(void* work, int64_t lanes, size_t number) const {
  const int64_t size = padded(inner_ * lanes);
  float* re = static_cast<float*>(work) + static_cast<int64_t>(number) * 2 * size;
  return {re, re + size};
}

Lanes FftPlan::input(void* work, int64_t lanes) const { return buffer(work, lanes, 0); }

Lanes FftPlan::run(void* work, int64_t lanes, bool forward) const {
  Lanes a = buffer(work, lanes, 0);
  Lanes b = buffer(work, lanes, 1);
  if (forward) return inner_ == length_ ? passes(a, b, lanes) : convolve(a, b, lanes);
  a = a.swapped();
  b = b.swapped();
  return (inner_ == length_ ? passes(a, b, lanes) : convolve(a, b, lanes)).swapped();
}

Lanes FftPlan::passes(Lanes from, Lanes to, int64_t lanes) const {
  int64_t stride = 1;
  for (int64_t n = inner_; n > 1;) {
    PassFn pass = nullptr;
    const int64_t radix = next_radix(n, &pass);
    n /= radix;
    pass({from.re, from.im, to.re, to.im, n, stride * lanes, roots_.re, roots_.im, stride});
    stride *= radix;
    std::swap(from, to);
  }
  return from;
}

Lanes FftPlan::convolve(Lanes a, Lanes b, int64_t lanes) const {
  multiply(a, chirp_, length_, lanes);
  std::fill(a.re + length_ * lanes, a.re + inner_ * lanes, 0.0F);
  std::fill(a.im + length_ * lanes, a.im + inner_ * lanes, 0.0F);
  const Lanes transformed = passes(a, b, lanes);
  const Lanes other = transformed.re == a.re ? b : a;
  multiply(transformed, filter_, inner_, lanes);
  const Lanes back = passes(transformed.swapped(), other.swapped(), lanes).swapped();
  const float factor = 1.0F / static_cast<float>(inner_);
  for (int64_t k = 0; k < length_ * lanes; ++k) {
    back.re[k] *= factor;
    back.im[k] *= factor;
  }
  multiply(back, chirp_, length_, lanes);
  return back;
}

}  // namespace rushlight::kernels
