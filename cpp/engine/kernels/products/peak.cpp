#include "rushlight/engine/kernels/products/peak.h"

#include <cstdint>

#include "rushlight/engine/loops/products/peak.h"
#include "rushlight/engine/loops/rows/rows.h"
#include "rushlight/platform/platform.h"

namespace rushlight::engine {
namespace {

constexpr int kRounds = 12;
constexpr double kRoundNs = 3e6;
constexpr int64_t kFirstRepeats = 20000;

int64_t count_of(Workers* workers) {
  return workers != nullptr ? static_cast<int64_t>(workers->count()) : 1;
}

// Nanoseconds of one call of body(part) for each worker.
template <class Body>
double time_all(Workers* workers, Body body) {
  const uint64_t start = now_ns();
  share_out(workers, count_of(workers), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) body(part);
  });
  const uint64_t ns = now_ns() - start;
  return ns > 0 ? static_cast<double>(ns) : 1;
}

// The operations per second of loop(rounds, sink), which returns how many it ran.
template <class Number>
double measure_loop(int64_t (*loop)(int64_t, Number*), Workers* workers) {
  int64_t repeats = kFirstRepeats;
  double best = 0;
  for (int round = 0; round <= kRounds; ++round) {
    const double ns = time_all(workers, [&](int64_t) {
      Number sink = 0;
      loop(repeats, &sink);
    });
    if (round == 0) {  // the first round measures how long it takes
      const double factor = kRoundNs / ns;
      repeats = factor > 1 ? static_cast<int64_t>(static_cast<double>(repeats) * factor) : repeats;
      continue;
    }
    Number sink = 0;
    const int64_t each = loop(1, &sink) * repeats;
    const double rate = static_cast<double>(each * count_of(workers)) / ns * 1e9;
    if (rate > best) best = rate;
  }
  return best;
}

}  // namespace

double measure_flops(Workers* workers) { return measure_loop(peak_loops().multiply_adds, workers); }

double measure_integer_ops(Workers* workers) {
  return measure_loop(dot_peak_loops().dot_products, workers);
}

double measure_bandwidth(const float* data, size_t n, Workers* workers) {
  const ReduceLoops& loops = reduce_loops();
  const int64_t part = static_cast<int64_t>(n) / count_of(workers);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double ns =
        time_all(workers, [&](int64_t i) { loops.row(data + i * part, part, Reduction::Max); });
    const double rate = static_cast<double>(part * count_of(workers)) * sizeof(float) / ns * 1e9;
    if (rate > best) best = rate;
  }
  return best;
}

}  // namespace rushlight::engine
