#include "rushlight/engine/loops/rows/rows.h"

#include "rushlight/kernel/loops/vec.h"
#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

// Combine two values or vectors; the maximum and the minimum keep NaN.
struct Add {
  static constexpr float kStart = 0;
  static Vec combine(Vec a, Vec b) { return a + b; }
  static float combine(float a, float b) { return a + b; }
};
struct Greater {
  static constexpr float kStart = -kInf;
  static Vec combine(Vec a, Vec b) { return b != b ? b : max_of(b, a); }
  static float combine(float a, float b) { return b > a || b != b ? b : a; }
};
struct Less {
  static constexpr float kStart = kInf;
  static Vec combine(Vec a, Vec b) { return b != b ? b : min_of(b, a); }
  static float combine(float a, float b) { return b < a || b != b ? b : a; }
};

constexpr int64_t kUnroll = 4;
constexpr int64_t kBlock = 4096;  // sums of this many floats are exact enough in float

template <typename Op>
float block(const float* x, int64_t n) {
  Vec parts[kUnroll];
  for (int64_t u = 0; u < kUnroll; ++u) parts[u] = splat(Op::kStart);
  int64_t i = 0;
  for (; i + kUnroll * kLanes <= n; i += kUnroll * kLanes) {
#pragma GCC unroll 4
    for (int64_t u = 0; u < kUnroll; ++u) {
      parts[u] = Op::combine(parts[u], load(x + i + u * kLanes));
    }
  }
  for (; i + kLanes <= n; i += kLanes) parts[0] = Op::combine(parts[0], load(x + i));
  float lanes[kLanes];
  store(lanes, Op::combine(Op::combine(parts[0], parts[1]), Op::combine(parts[2], parts[3])));
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) lanes[k] = Op::combine(lanes[k], lanes[k + width]);
  }
  for (; i < n; ++i) lanes[0] = Op::combine(lanes[0], x[i]);
  return lanes[0];
}

float row(const float* x, int64_t n, Reduction kind) {
  if (kind == Reduction::Max) return block<Greater>(x, n);
  if (kind == Reduction::Min) return block<Less>(x, n);
  double total = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    total += static_cast<double>(block<Add>(x + i, n - i < kBlock ? n - i : kBlock));
  }
  return static_cast<float>(kind == Reduction::Mean ? total / static_cast<double>(n) : total);
}

constexpr int64_t kRowBlock = 256;  // the same for sums with one accumulator

// Reduces kVecs vectors of columns, or the first `lanes` of one.
template <typename Op, int kVecs>
void strip(const float* x, int64_t stride, int64_t rows, int64_t lanes, double divisor,
           float* out) {
  double totals[kVecs * kLanes] = {};
  Vec parts[kVecs];
  for (int64_t start = 0; start == 0 || start < rows; start += kRowBlock) {
    const bool sums = Op::kStart == 0;
    const int64_t end = rows - start < kRowBlock ? rows : start + kRowBlock;
    for (int64_t v = 0; v < kVecs && (sums || start == 0); ++v) parts[v] = splat(Op::kStart);
    for (int64_t i = start; i < end; ++i) {
#pragma GCC unroll 8
      for (int64_t v = 0; v < kVecs; ++v) {
        const float* const from = x + i * stride + v * kLanes;
        parts[v] = Op::combine(parts[v], lanes == kLanes ? load(from) : load_first(from, lanes));
      }
    }
    for (int64_t k = 0; k < kVecs * kLanes; ++k) {
      const double part = static_cast<double>(parts[k / kLanes][k % kLanes]);
      totals[k] = sums ? totals[k] + part : part;
    }
  }
  const int64_t count = lanes == kLanes ? kVecs * kLanes : lanes;
  for (int64_t k = 0; k < count; ++k) out[k] = static_cast<float>(totals[k] / divisor);
}

template <typename Op>
void strips(const float* x, int64_t stride, int64_t rows, int64_t columns, double divisor,
            float* out) {
  int64_t j = 0;
  for (; j + 4 * kLanes <= columns; j += 4 * kLanes) {
    strip<Op, 4>(x + j, stride, rows, kLanes, divisor, out + j);
  }
  for (; j + kLanes <= columns; j += kLanes) {
    strip<Op, 1>(x + j, stride, rows, kLanes, divisor, out + j);
  }
  if (j < columns) strip<Op, 1>(x + j, stride, rows, columns - j, divisor, out + j);
}

void columns(const float* x, int64_t stride, int64_t rows, int64_t columns, Reduction kind,
             float* out) {
  if (kind == Reduction::Max) return strips<Greater>(x, stride, rows, columns, 1, out);
  if (kind == Reduction::Min) return strips<Less>(x, stride, rows, columns, 1, out);
  const double divisor = kind == Reduction::Mean ? static_cast<double>(rows) : 1;
  strips<Add>(x, stride, rows, columns, divisor, out);
}

}  // namespace

const ReduceLoops reduce_loops = {row, columns};

}  // namespace rushlight::engine::RL_ISA
