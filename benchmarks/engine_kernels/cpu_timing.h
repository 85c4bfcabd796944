// For benchmarks of the CPU engine's kernels: times taken by turns with those of a reference (the
// float32 peak, a copy of memory), so that a busy machine slows both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <vector>

#include "rushlight/engine/loops/products/peak.h"
#include "rushlight/engine/loops/rows/rows.h"

namespace rushlight {
namespace benchmark {

constexpr int kRounds = 25;
constexpr double kRoundSeconds = 4e-3;

inline float* aligned(std::vector<float>& memory, size_t n) {
  memory.assign(n + 32, 0.0f);
  uint32_t state = 1;
  for (float& x : memory) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
  }
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return reinterpret_cast<float*>((address + 63) / 64 * 64);
}

// Time of this thread alone where no other works, so that other programs do not count.
inline double now(size_t threads) {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Operations per second of multiply-adds in registers alone.
inline double peak_flops(int64_t rounds) {
  float sink = 0;
  const double start = now(1);
  const int64_t operations = engine::peak_loops().multiply_adds(rounds, &sink);
  return static_cast<double>(operations) / (now(1) - start);
}

// The same for products of bytes and their additions.
inline double peak_dot_ops(int64_t rounds) {
  int32_t sink = 0;
  const double start = now(1);
  const int64_t operations = engine::dot_peak_loops().dot_products(rounds, &sink);
  return static_cast<double>(operations) / (now(1) - start);
}

struct Timing {
  double best = 1e9, peak = 0, median_share = 0;
};

// `work` (operations, bytes) of each call of `body` beside reference(), in work per second.
template <class Reference, class Body>
Timing measure_beside(Reference reference, double work, size_t threads, Body body,
                      double round_seconds = kRoundSeconds) {
  body();
  double start = now(threads);
  body();
  const int calls = std::max(1, static_cast<int>(round_seconds / (now(threads) - start)));
  Timing timing;
  std::vector<double> shares;
  for (int round = 0; round < kRounds; ++round) {
    const double peak = reference();
    start = now(threads);
    for (int i = 0; i < calls; ++i) body();
    const double seconds = (now(threads) - start) / calls;
    timing.best = std::min(timing.best, seconds);
    timing.peak = std::max(timing.peak, peak);
    shares.push_back(work / seconds / peak);
  }
  std::sort(shares.begin(), shares.end());
  timing.median_share = shares[shares.size() / 2];
  return timing;
}

// Beside the float32 peak.
template <class Body>
Timing measure(double flops, size_t threads, Body body) {
  const auto peak = [=] { return peak_flops(40000) * static_cast<double>(threads); };
  return measure_beside(peak, flops, threads, body);
}

// Beside the peak of bytes.
template <class Body>
Timing measure_dot(double operations, size_t threads, Body body) {
  const auto peak = [=] { return peak_dot_ops(40000) * static_cast<double>(threads); };
  return measure_beside(peak, operations, threads, body);
}

inline void print(const char* name, double flops, const Timing& t) {
  std::printf("%-34s %9.1f us %7.1f GOP/s  %5.1f %% of peak %5.0f (median of shares %5.1f %%)\n",
              name, t.best * 1e6, flops / t.best * 1e-9, 100 * flops / t.best / t.peak,
              t.peak * 1e-9, 100 * t.median_share);
}

// Bytes per second that one thread reads of memory that is in no cache.
inline double peak_read() {
  static const std::vector<float> memory(size_t{64} << 20, 1.0f);
  static size_t part = 0;
  constexpr size_t kFloats = size_t{4} << 20;
  part = (part + kFloats) % memory.size();
  const double start = now(1);
  (void)engine::reduce_loops().row(memory.data() + part, kFloats, engine::Reduction::Max);
  return static_cast<double>(kFloats) * 4 / (now(1) - start);
}

// Beside what is read at most.
template <class Body>
Timing measure_read(double bytes, size_t threads, Body body) {
  return measure_beside([=] { return peak_read() * static_cast<double>(threads); }, bytes, threads,
                        body);
}

// The same for a call at a time, before each of which so much else is read that it finds nothing in
// a cache: as a model's weights are between the attention of two layers.
template <class Body>
Timing measure_cold_read(double bytes, size_t threads, Body body) {
  constexpr int kReads = 3;  // of 16 MB
  const auto peak = [=] {
    double most = 0;
    for (int i = 0; i < kReads; ++i) most = std::max(most, peak_read());
    return most * static_cast<double>(threads);
  };
  return measure_beside(peak, bytes, threads, body, 0);
}

inline void print_bytes(const char* name, double bytes, const Timing& t) {
  std::printf("%-34s %9.1f us %7.1f GB/s   %5.1f %% of %5.1f (median of shares %5.1f %%)\n", name,
              t.best * 1e6, bytes / t.best * 1e-9, 100 * bytes / t.best / t.peak, t.peak * 1e-9,
              100 * t.median_share);
}

}  // namespace benchmark
}  // namespace rushlight
