// For tests of the CPU engine's kernels: random numbers, outputs with guards around them,
// comparison with results in double precision, and running every case on each instruction set, with
// one thread and with two.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "check.h"
#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/thread_pool.h"
#include "seed.h"

namespace rushlight {
namespace test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

// Random numbers from the test's own seed. `generator` selects one of several sequences.
class Random {
 public:
  explicit Random(uint64_t generator) : state_(uint64_t{seed_for(generator)} << 32 | 1) {
    for (int i = 0; i < 8; ++i) next();  // the first bits depend too much on the seed
  }
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  // From low to high, both included.
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

// The output of a kernel, aligned to 64 bytes. It is filled with a pattern, as are some bytes
// before and after it.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t n)
      : n_(static_cast<size_t>(n)), bytes_(2 * kGuard + kAlignment + n_ * sizeof(T)) {
    reset();
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data() + kGuard);
    first_ = kGuard + (kAlignment - address % kAlignment) % kAlignment;
  }
  Guarded(int64_t n, T value) : Guarded(n) {
    for (size_t i = 0; i < n_; ++i) data()[i] = value;
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  // Restores the initial content.
  void reset() { std::memset(bytes_.data(), kPattern, bytes_.size()); }
  T* data() { return reinterpret_cast<T*>(bytes_.data() + first_); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data() + first_); }
  const T& operator[](int64_t i) const { return data()[i]; }
  size_t size() const { return n_; }
  // True if nothing was written before or after it.
  bool intact() const {
    return is_pattern(0, first_) && is_pattern(first_ + n_ * sizeof(T), bytes_.size());
  }
  // True if element i was not written either.
  bool untouched(int64_t i) const {
    const size_t at = first_ + static_cast<size_t>(i) * sizeof(T);
    return is_pattern(at, at + sizeof(T));
  }
  // True if the results and the bytes that were not written are equal, bit by bit.
  bool operator==(const Guarded& other) const {
    return n_ == other.n_ && (n_ == 0 || std::memcmp(data(), other.data(), n_ * sizeof(T)) == 0);
  }

 private:
  static constexpr size_t kGuard = 192;
  static constexpr size_t kAlignment = 64;
  static constexpr unsigned char kPattern = 0xa5;
  bool is_pattern(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      if (bytes_[i] != kPattern) return false;
    }
    return true;
  }

  size_t n_;
  std::vector<unsigned char> bytes_;
  size_t first_ = 0;
};

// True if equal to the reference within `tolerance` of `scale`; NaN and infinities must be exact.
inline bool close(float value, double expected, double tolerance, double scale) {
  if (std::isnan(expected)) return std::isnan(value);
  if (std::isinf(expected)) return static_cast<double>(value) == expected;
  return std::fabs(static_cast<double>(value) - expected) <= tolerance * scale;
}

// Prints the first element that is not close. `scale` is at least the greatest reference.
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

// One element of the expected result, and the size of its rounding errors.
struct Expected {
  double value = 0;
  double size = 0;  // sum of the terms' absolute values
  void add(double term) {
    value += term;
    size += std::fabs(term);
  }
  bool holds(float result, const engine::Epilogue& epilogue) const {
    double wanted = value;
    if (wanted < epilogue.low) wanted = epilogue.low;
    if (wanted > epilogue.high) wanted = epilogue.high;
    return std::fabs(result - wanted) <= 2e-6 * size + 1e-30;
  }
};

inline float* panel_element(float* panels, int64_t depth, int64_t k, int64_t column) {
  return panels + ((column / engine::kPanel) * depth + k) * engine::kPanel +
         column % engine::kPanel;
}

// A bias for whole panels.
inline std::vector<float> bias_of(Random& random, int64_t columns) {
  std::vector<float> bias = random.reals(engine::panels_of(columns) * engine::kPanel, -1, 1);
  for (size_t j = static_cast<size_t>(columns); j < bias.size(); ++j) bias[j] = 0;
  return bias;
}

// An Epilogue::block that adds 1 to each element, so that a test sees that each is visited once.
struct Increment {
  float* c;
  int64_t c_stride;
  static void block(const void* data, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    const Increment& self = *static_cast<const Increment*>(data);
    for (int64_t i = row; i < row + rows; ++i) {
      for (int64_t j = column; j < column + columns; ++j) self.c[i * self.c_stride + j] += 1;
    }
  }
};

// Runs body() on each instruction set of the processor.
template <typename Body>
void on_each_isa(Body body) {
  const kernels::Isa before = kernels::current_isa();
  for (kernels::Isa isa : kernels::kIsas) {
    if (kernels::select_isa(isa)) body();
  }
  kernels::select_isa(before);
}

// Runs run(out, workers) and check(out) on each instruction set. Two threads must write the same
// bits.
template <typename T, typename Run, typename Check>
void everywhere(int64_t n, Run run, Check check) {
  static PoolWorkers two(2);
  on_each_isa([&] {
    Guarded<T> alone(n);
    Guarded<T> shared(n);
    run(alone.data(), static_cast<Workers*>(nullptr));
    run(shared.data(), static_cast<Workers*>(&two));
    CHECK(alone.intact() && shared.intact());
    CHECK(alone == shared);
    check(static_cast<const T*>(alone.data()));
  });
}

}  // namespace test
}  // namespace rushlight
