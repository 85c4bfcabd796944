// Layer, root-mean-square and group norms: two passes over data in cache. The second sums squares
// around the mean, so that the variance of nearly equal numbers is exact.
#include <cmath>

#include "rushlight/engine/kernels/rows/moments.h"
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/loops/rows/rows.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kGrain = int64_t{1} << 13;  // elements

int64_t grain_of(int64_t elements) {
  return elements < kGrain ? kGrain / (elements < 1 ? 1 : elements) : 1;
}

float factor_of(double squares, double count, float epsilon) {
  return static_cast<float>(1.0 / std::sqrt(squares / count + static_cast<double>(epsilon)));
}

// Normalizes one group of one image whose channels are dense.
void normalize_dense(const GroupNorm& norm, int64_t item) {
  const NormLoops& loops = norm_loops();
  const int64_t channels = norm.channels / norm.groups;
  const int64_t n = channels * norm.space;
  const float* const x = norm.in + item * n;
  const double count = static_cast<double>(n);
  const float mean = static_cast<float>(loops.sum(x, n) / count);
  const double squares = loops.squares(x, n, mean);
  const int64_t first = item % norm.groups * channels;
  if (!is_exact(static_cast<double>(mean), squares, count)) {
    return normalize_exactly(norm, x, norm.out + item * n, first, norm.space, 1);
  }
  const float factor = factor_of(squares, count, norm.epsilon);
  for (int64_t c = 0; c < channels; ++c) {
    const float scale = norm.scale != nullptr ? norm.scale[first + c] : 1.0f;
    const float shift = norm.shift != nullptr ? norm.shift[first + c] : 0.0f;
    loops.affine(x + c * norm.space, norm.space, mean, factor * scale, shift,
                 norm.out + item * n + c * norm.space);
  }
}

// Whole groups of one image, channels last: from channel `first` on, at most kColumnBlock channels
// or one group.
struct GroupRun {
  const GroupNorm& norm;
  const float* in;
  float* out;
  int64_t first, channels, group_channels;
};

// totals[g] += the sum of group g, or with means the sum of squares around them.
void add_up(const GroupRun& run, const float* means, double* totals) {
  const NormLoops& loops = norm_loops();
  float sums[kColumnBlock];
  float centers[kColumnBlock] = {};
  for (int64_t c = 0; c < run.channels; c += kColumnBlock) {
    const int64_t left = run.channels - c;
    const int64_t columns = left < kColumnBlock ? left : kColumnBlock;
    const float* const x = run.in + run.first + c;
    if (means == nullptr) {
      loops.column_sums(x, run.norm.channels, run.norm.space, columns, sums);
    } else {
      for (int64_t k = 0; k < columns; ++k) centers[k] = means[(c + k) / run.group_channels];
      loops.column_squares(x, run.norm.channels, run.norm.space, columns, centers, sums);
    }
    for (int64_t k = 0; k < columns; ++k) {
      totals[(c + k) / run.group_channels] += static_cast<double>(sums[k]);
    }
  }
}

void normalize_run_exactly(const GroupRun& run, int64_t groups) {
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = run.first + g * run.group_channels;
    normalize_exactly(run.norm, run.in + first, run.out + first, first, 1, run.norm.channels);
  }
}

void normalize_run(const GroupRun& run) {
  const GroupNorm& norm = run.norm;
  double sums[kColumnBlock] = {};
  double squares[kColumnBlock] = {};
  float means[kColumnBlock] = {};
  const int64_t groups = run.channels / run.group_channels;
  const double count = static_cast<double>(run.group_channels * norm.space);
  add_up(run, nullptr, sums);
  for (int64_t g = 0; g < groups; ++g) means[g] = static_cast<float>(sums[g] / count);
  add_up(run, means, squares);
  for (int64_t g = 0; g < groups; ++g) {
    if (is_exact(static_cast<double>(means[g]), squares[g], count)) continue;
    return normalize_run_exactly(run, groups);
  }
  float centers[kColumnBlock] = {};
  float factors[kColumnBlock] = {};
  float shifts[kColumnBlock] = {};
  for (int64_t c = 0; c < run.channels; c += kColumnBlock) {
    const int64_t left = run.channels - c;
    const int64_t columns = left < kColumnBlock ? left : kColumnBlock;
    const int64_t channel = run.first + c;
    for (int64_t k = 0; k < columns; ++k) {
      const int64_t g = (c + k) / run.group_channels;
      const float scale = norm.scale != nullptr ? norm.scale[channel + k] : 1.0f;
      centers[k] = means[g];
      factors[k] = factor_of(squares[g], count, norm.epsilon) * scale;
      shifts[k] = norm.shift != nullptr ? norm.shift[channel + k] : 0.0f;
    }
    norm_loops().column_affine(run.in + channel, norm.channels, norm.space, columns, centers,
                               factors, shifts, run.out + channel);
  }
}

}  // namespace

void normalize(const Norm& norm, Workers* workers) {
  const NormLoops& loops = norm_loops();
  share_out(workers, norm.rows, grain_of(norm.width), [&](int64_t begin, int64_t end) {
    for (int64_t row = loops.rows(norm, begin, end); row < end;) {
      normalize_exactly(norm, row);
      row = loops.rows(norm, row + 1, end);
    }
  });
}

void normalize_groups(const GroupNorm& norm, Workers* workers) {
  if (norm.channels == 0 || norm.space == 0) return;
  const int64_t group = norm.channels / norm.groups;
  if (!norm.channels_last || norm.space == 1) {
    share_out(workers, norm.batch * norm.groups, grain_of(group * norm.space),
              [&](int64_t begin, int64_t end) {
                for (int64_t item = begin; item < end; ++item) normalize_dense(norm, item);
              });
    return;
  }
  const int64_t together = group < kColumnBlock ? kColumnBlock / group : 1;
  const int64_t runs = (norm.groups + together - 1) / together;
  const int64_t width = together * group;
  share_out(workers, norm.batch * runs, grain_of(width * norm.space),
            [&](int64_t begin, int64_t end) {
              for (int64_t item = begin; item < end; ++item) {
                const int64_t at = item / runs * norm.channels * norm.space;
                const int64_t first = item % runs * width;
                const int64_t left = norm.channels - first;
                normalize_run(
                    {norm, norm.in + at, norm.out + at, first, left < width ? left : width, group});
              }
            });
}

}  // namespace rushlight::engine
