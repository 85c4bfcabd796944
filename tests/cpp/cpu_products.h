// What the tests of the CPU engine's kernels share: inputs, outputs with guards around them, and
// comparison with sums in double precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "check.h"
#include "rushlight/backends/cpu/kernels/product.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/thread_pool.h"

namespace rushlight {
namespace test {

// Numbers that are the same on every machine.
class Numbers {
 public:
  explicit Numbers(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    return state_ ^= state_ << 5;
  }
  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint32_t>(high - low + 1));
  }
  std::vector<float> floats(int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& x : values) x = static_cast<float>(next() >> 8) / 8388608.0f - 1.0f;
    return values;
  }

 private:
  uint32_t state_;
};

// Memory of exactly the size asked for, so that a sanitizer sees each element too many, at a
// multiple of 64 bytes; whoever writes behind it without a sanitizer hits a guard.
class Buffer {
 public:
  explicit Buffer(int64_t n, float fill = kGuard)
      : memory_(static_cast<size_t>(n + kGuards), kGuard), n_(n) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    first_ = (64 - address % 64) % 64 / sizeof(float);
    for (int64_t i = 0; i < n; ++i) data()[i] = fill;
  }
  explicit Buffer(const std::vector<float>& values) : Buffer(static_cast<int64_t>(values.size())) {
    if (!values.empty()) std::memcpy(data(), values.data(), values.size() * sizeof(float));
  }
  float* data() { return memory_.data() + first_; }
  int64_t size() const { return n_; }
  bool guards_hold() const {
    const auto end = first_ + static_cast<size_t>(n_);
    for (size_t i = 0; i < memory_.size(); ++i) {
      if ((i < first_ || i >= end) && memory_[i] != kGuard) return false;
    }
    return true;
  }
  static constexpr float kGuard = 12345.75f;

 private:
  static constexpr int64_t kGuards = 48;
  std::vector<float> memory_;
  int64_t n_;
  size_t first_ = 0;
};

// One element of a result as it should be, and what rounding may add up to.
struct Expected {
  double value = 0;
  double size = 0;  // sum of the terms' absolute values
  void add(double term) {
    value += term;
    size += std::fabs(term);
  }
  bool holds(float result, const cpu::Finish& finish) const {
    double wanted = value;
    if (wanted < finish.low) wanted = finish.low;
    if (wanted > finish.high) wanted = finish.high;
    return std::fabs(result - wanted) <= 2e-6 * size + 1e-30;
  }
};

inline float* panel_element(float* panels, int64_t depth, int64_t k, int64_t column) {
  return panels + ((column / cpu::kPanel) * depth + k) * cpu::kPanel + column % cpu::kPanel;
}

// Bias of whole panels.
inline std::vector<float> bias_of(Numbers& numbers, int64_t columns) {
  std::vector<float> bias = numbers.floats(cpu::panels_of(columns) * cpu::kPanel);
  for (size_t j = static_cast<size_t>(columns); j < bias.size(); ++j) bias[j] = 0;
  return bias;
}

template <class Body>
void on_each_isa(Body body) {
  for (kernels::Isa isa : {kernels::Isa::Plain, kernels::Isa::Avx2, kernels::Isa::Avx512}) {
    if (!kernels::select_isa(isa)) continue;
    body();
  }
}

// A Finish::block that adds 1 to each element, by which a test sees that it comes by once.
struct Increment {
  float* c;
  int64_t c_step;
  static void block(const void* data, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    const Increment& self = *static_cast<const Increment*>(data);
    for (int64_t i = row; i < row + rows; ++i) {
      for (int64_t j = column; j < column + columns; ++j) self.c[i * self.c_step + j] += 1;
    }
  }
};

}  // namespace test
}  // namespace rushlight
