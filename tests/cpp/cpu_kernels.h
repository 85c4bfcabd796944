// For tests of the CPU engine's kernels: random numbers, outputs with guards behind them, and every
// case on each instruction set, alone and shared out.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "check.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/thread_pool.h"

namespace rushlight {
namespace test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  // From low to high, both among them.
  int64_t whole(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int64_t one_in) { return whole(1, one_in) == 1; }
  float real(float low, float high) {
    const double unit = static_cast<double>(next() >> 11) / 9007199254740992.0;
    return static_cast<float>(low + (high - low) * unit);
  }
  std::vector<float> reals(int64_t n, float low = -2, float high = 2) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = real(low, high);
    return values;
  }

 private:
  uint64_t state_;
};

// What a kernel writes to: filled with a pattern, as are some bytes before and behind it.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t n) : n_(static_cast<size_t>(n)), bytes_(kGuard * 2 + n_ * sizeof(T)) {
    std::memset(bytes_.data(), kPattern, bytes_.size());
  }
  T* data() { return reinterpret_cast<T*>(bytes_.data() + kGuard); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data() + kGuard); }
  const T& operator[](int64_t i) const { return data()[i]; }
  size_t size() const { return n_; }
  bool intact() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (bytes_[i] != kPattern || bytes_[bytes_.size() - 1 - i] != kPattern) return false;
    }
    return true;
  }
  // Both the results and what was left alone are equal, bit by bit.
  bool operator==(const Guarded& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr size_t kGuard = 192;
  static constexpr unsigned char kPattern = 0xa5;
  size_t n_;
  std::vector<unsigned char> bytes_;
};

// Equal to the reference within `tolerance` of `scale`; NaN and infinities exactly.
inline bool close(float value, double expected, double tolerance, double scale) {
  if (std::isnan(expected)) return std::isnan(value);
  if (std::isinf(expected)) return static_cast<double>(value) == expected;
  return std::fabs(static_cast<double>(value) - expected) <= tolerance * scale;
}

// Prints the first element that is not close; `scale` is the greatest reference at least.
inline bool all_close(const float* values, const std::vector<double>& expected, double tolerance,
                      const char* what, double scale = 1e-30) {
  for (double e : expected) {
    if (std::isfinite(e)) scale = std::fmax(scale, std::fabs(e));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (close(values[i], expected[i], tolerance, scale)) continue;
    std::fprintf(stderr, "%s on %s: element %zu is %.9g, not %.9g\n", what,
                 kernels::isa_name(kernels::current_isa()), i, static_cast<double>(values[i]),
                 expected[i]);
    return false;
  }
  return true;
}

// check(out) for run(out, workers) on each instruction set; two threads must write the same bits.
template <typename T, typename Run, typename Check>
void everywhere(int64_t n, Run run, Check check) {
  using kernels::Isa;
  static PoolWorkers two(2);
  const Isa before = kernels::current_isa();
  for (Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512}) {
    if (!kernels::select_isa(isa)) continue;
    Guarded<T> alone(n);
    Guarded<T> shared(n);
    run(alone.data(), static_cast<Workers*>(nullptr));
    run(shared.data(), static_cast<Workers*>(&two));
    CHECK(alone.intact());
    CHECK(alone == shared);
    check(static_cast<const T*>(alone.data()));
  }
  kernels::select_isa(before);
}

}  // namespace test
}  // namespace rushlight
