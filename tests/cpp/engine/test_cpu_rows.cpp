// The CPU engine's norms, softmax and reductions, compared with plain references in double
// precision.
#include <algorithm>
#include <cstdlib>

#include "cpu_kernels.h"
#include "rushlight/engine/kernels/rows/rows.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

constexpr double kTolerance = 2e-6;

using Doubles = std::vector<double>;

// --- norms --------------------------------------------------------------------------------------

// Normalises the elements `at[...]` of x in place.
void normalize_reference(Doubles* x, const std::vector<size_t>& at, bool rms, double epsilon) {
  double mean = 0;
  double squares = 0;
  const double n = static_cast<double>(at.size());
  for (size_t i : at) mean += rms ? 0 : (*x)[i];
  mean /= n;  // for equal numbers, exactly that number
  for (size_t i : at) squares += ((*x)[i] - mean) * ((*x)[i] - mean);
  const double factor = 1 / std::sqrt(squares / n + epsilon);
  for (size_t i : at) (*x)[i] = ((*x)[i] - mean) * factor;
}

struct NormCase {
  Norm norm;
  std::vector<float> in, scale, shift;
  bool in_place;
};

void check_norm(NormCase c) {
  const int64_t n = c.norm.rows * c.norm.width;
  Doubles expected(c.in.begin(), c.in.end());
  for (int64_t r = 0; r < c.norm.rows; ++r) {
    std::vector<size_t> at;
    for (int64_t i = 0; i < c.norm.width; ++i) at.push_back(r * c.norm.width + i);
    normalize_reference(&expected, at, c.norm.rms, c.norm.epsilon);
    for (size_t i : at) {
      const size_t column = i % c.norm.width;
      if (c.norm.scale != nullptr) expected[i] *= static_cast<double>(c.scale[column]);
      if (c.norm.shift != nullptr) expected[i] += static_cast<double>(c.shift[column]);
    }
  }
  everywhere<float>(
      n,
      [&](float* out, Workers* workers) {
        Norm norm = c.norm;
        norm.in = c.in.data();
        norm.out = out;
        if (c.in_place && n != 0) {
          std::memcpy(out, c.in.data(), static_cast<size_t>(n) * 4);
          norm.in = out;
        }
        normalize(norm, workers);
      },
      [&](const float* out) { CHECK(all_close(out, expected, 2e-5, "norm", 1)); });
}

void test_norms() {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    NormCase c;
    c.norm.rows = random.whole(0, 9);
    c.norm.width = random.chance(9) ? random.whole(4000, 9000) : random.whole(1, 200);
    if (random.chance(9)) c.norm.rows = 200;
    const int64_t n = c.norm.rows * c.norm.width;
    const float offset = c.norm.width > 30 && random.chance(3) ? 100.0f : 0.0f;
    c.in = random.reals(n, offset - 2, offset + 2);
    c.scale = random.reals(c.norm.width);
    c.shift = random.reals(c.norm.width);
    c.norm.scale = random.chance(2) ? c.scale.data() : nullptr;
    c.norm.shift = random.chance(2) ? c.shift.data() : nullptr;
    c.norm.epsilon = random.chance(2) ? 1e-5f : 1e-3f;
    c.norm.rms = offset == 0 && random.chance(3);
    c.in_place = random.chance(3);
    check_norm(c);
  }
}

// Numbers whose sums or squares overflow in float, and numbers whose differences are no greater
// than the rounding error of a float mean.
std::vector<float> extremes(int64_t rows, int64_t width) {
  Random random(8);
  std::vector<float> in;
  in.reserve(static_cast<size_t>(rows * width));
  const float sizes[] = {1e20f, 3e38f, -3e38f, 1e5f, 1.0f};
  for (int64_t row = 0; row < rows; ++row) {
    const float size = sizes[row % 5];
    const int64_t kind = row / 5 % 3;  // spread out, all equal, nearly equal
    const std::vector<float> units = random.reals(width, kind == 0 ? -1.0f : 0.9999f, 1);
    for (float unit : units) in.push_back(kind == 1 ? size / 1.1f : unit * size);
  }
  return in;
}

void test_norms_of_extremes() {
  for (int64_t width : {5, 37, 5000}) {
    NormCase c;
    c.norm.rows = 15;
    c.norm.width = width;
    c.norm.epsilon = 1e-5f;
    c.in = extremes(c.norm.rows, width);
    for (bool rms : {false, true}) {
      c.norm.rms = rms;
      c.in_place = rms;
      check_norm(c);
    }
  }
}

void test_norm_of_nan() {
  Norm norm;
  norm.rows = 3;
  norm.width = 37;
  std::vector<float> in = Random(3).reals(int64_t{3} * 37);
  in[40] = kNotANumber;
  in[80] = kInfinity;
  norm.in = in.data();
  everywhere<float>(
      int64_t{3} * 37,
      [&](float* out, Workers* workers) {
        norm.out = out;
        normalize(norm, workers);
      },
      [&](const float* out) {
        for (int i = 0; i < 37; ++i) CHECK(std::isfinite(out[i]) && std::isnan(out[37 + i]));
        for (int i = 74; i < 111; ++i) CHECK(std::isnan(out[i]));
      });
}

void check_group_norm(const GroupNorm& group_norm, const std::vector<float>& in) {
  const int64_t n = group_norm.batch * group_norm.channels * group_norm.space;
  Doubles expected(in.begin(), in.end());
  const int64_t group = group_norm.channels / group_norm.groups;
  const auto index = [&](int64_t b, int64_t c, int64_t s) {
    const int64_t within =
        group_norm.channels_last ? s * group_norm.channels + c : c * group_norm.space + s;
    return static_cast<size_t>(b * group_norm.channels * group_norm.space + within);
  };
  for (int64_t item = 0; item < group_norm.batch * group_norm.groups; ++item) {
    const int64_t b = item / group_norm.groups;
    const int64_t first = item % group_norm.groups * group;
    std::vector<size_t> at;
    at.reserve(static_cast<size_t>(group * group_norm.space));
    for (int64_t i = 0; i < group * group_norm.space; ++i) {
      at.push_back(index(b, first + i / group_norm.space, i % group_norm.space));
    }
    normalize_reference(&expected, at, false, group_norm.epsilon);
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t c = first + static_cast<int64_t>(i) / group_norm.space;
      if (group_norm.scale != nullptr) expected[at[i]] *= static_cast<double>(group_norm.scale[c]);
      if (group_norm.shift != nullptr) expected[at[i]] += static_cast<double>(group_norm.shift[c]);
    }
  }
  everywhere<float>(
      n,
      [&](float* out, Workers* workers) {
        GroupNorm norm = group_norm;
        norm.in = in.data();
        norm.out = out;
        normalize_groups(norm, workers);
      },
      [&](const float* out) { CHECK(all_close(out, expected, 2e-5, "group norm", 1)); });
}

void test_group_norms() {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    GroupNorm norm;
    norm.batch = random.whole(0, 3);
    norm.groups = random.whole(1, 9);
    norm.channels = norm.groups * (random.chance(4) ? random.whole(60, 140) : random.whole(1, 12));
    norm.space = random.chance(12) ? 4500 : random.whole(1, 70);
    if (norm.space == 4500) norm.channels = norm.groups;
    norm.channels_last = random.chance(2);
    norm.epsilon = 1e-5f;
    const std::vector<float> scale = random.reals(norm.channels);
    const std::vector<float> shift = random.reals(norm.channels);
    norm.scale = random.chance(2) ? scale.data() : nullptr;
    norm.shift = random.chance(2) ? shift.data() : nullptr;
    check_group_norm(norm, random.reals(norm.batch * norm.channels * norm.space, -1, 5));
  }
}

void test_group_norms_of_extremes() {
  for (bool channels_last : {false, true}) {
    GroupNorm norm;
    norm.batch = 15;
    norm.groups = 3;
    norm.channels = 12;
    norm.space = 7;
    norm.channels_last = channels_last;
    norm.epsilon = 1e-5f;
    const std::vector<float> scale = Random(9).reals(norm.channels);
    norm.scale = norm.shift = scale.data();
    check_group_norm(norm, extremes(norm.batch, norm.channels * norm.space));
  }
}

// --- softmax and reductions ---------------------------------------------------------------------

Doubles softmax_reference(const Softmax& s, const std::vector<float>& in) {
  Doubles expected(in.size());
  for (int64_t row = 0; row < s.outer * s.inner; ++row) {
    const int64_t first = row / s.inner * s.width * s.inner + row % s.inner;
    double max = -std::numeric_limits<double>::infinity();
    double sum = 0;
    for (int64_t i = 0; i < s.width; ++i) {
      max = std::max(max, static_cast<double>(in[first + i * s.inner]));  // never NaN
    }
    for (int64_t i = 0; i < s.width; ++i) {
      sum += std::exp(static_cast<double>(in[first + i * s.inner]) - max);
    }
    for (int64_t i = 0; i < s.width; ++i) {
      const double x = static_cast<double>(in[first + i * s.inner]) - max;
      expected[first + i * s.inner] = s.log ? x - std::log(sum) : std::exp(x) / sum;
    }
  }
  return expected;
}

// Softmax must be accurate to a few units in the last place of each element, not only of the
// greatest one. Elements below 2^-125 may be 0.
bool softmax_close(const float* out, const Doubles& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double scale = std::fmax(std::fabs(expected[i]), 2.4e-38 / tolerance);
    if (close(out[i], expected[i], tolerance, scale)) continue;
    std::fprintf(stderr, "softmax: element %zu is %.9g, not %.9g\n", i, static_cast<double>(out[i]),
                 expected[i]);
    return false;
  }
  return true;
}

void test_softmax() {
  Random random(4);
  for (int round = 0; round < 300; ++round) {
    Softmax s;
    s.outer = random.chance(9) ? 100 : random.whole(0, 5);
    s.inner = random.chance(2) ? 1 : random.whole(1, 140);
    s.width = s.inner == 1 && random.chance(9) ? 10000 : random.whole(0, 150);
    s.log = random.chance(3);
    const int64_t n = s.outer * s.width * s.inner;
    const float range = random.chance(2) ? 3.0f : 60.0f;
    std::vector<float> in = random.reals(n, -range, range);
    for (int64_t k = 0; n > 0 && k < n / 5 && random.chance(2); ++k) {
      in[random.whole(0, n - 1)] = -kInfinity;
    }
    if (n > 0 && random.chance(4)) in[random.whole(0, n - 1)] = kNotANumber;
    if (n > 0 && random.chance(4)) in[random.whole(0, n - 1)] = kInfinity;
    if (s.log) {  // -inf stays -inf, so compare only finite numbers
      for (float& x : in) x = std::isfinite(x) ? x : 0.0f;
    }
    const Doubles expected = softmax_reference(s, in);
    const double tolerance = 1e-6 + 2e-7 * static_cast<double>(range);  // of the difference
    const bool in_place = random.chance(2);
    everywhere<float>(
        n,
        [&](float* out, Workers* workers) {
          Softmax run = s;
          run.in = in.data();
          run.out = out;
          if (in_place && n != 0) {
            std::memcpy(out, in.data(), static_cast<size_t>(n) * 4);
            run.in = out;
          }
          softmax(run, workers);
        },
        [&](const float* out) {
          CHECK(s.log ? all_close(out, expected, kTolerance, "log softmax", 1)
                      : softmax_close(out, expected, tolerance));
        });
  }
}

double reduce_reference(const float* x, int64_t stride, int64_t n, Reduction kind) {
  double sum = 0;
  double max = -std::numeric_limits<double>::infinity();
  double min = -max;
  bool nan = false;
  for (int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i * stride]);
    nan = nan || std::isnan(v);
    sum += v;
    max = std::fmax(max, v);
    min = std::fmin(min, v);
  }
  if (nan) return std::numeric_limits<double>::quiet_NaN();
  if (kind == Reduction::Sum) return sum;
  if (kind == Reduction::Mean) return sum / static_cast<double>(n);
  return kind == Reduction::Max ? max : min;
}

void test_reduce() {
  Random random(5);
  for (int round = 0; round < 400; ++round) {
    Reduce r;
    r.outer = random.chance(9) ? 300 : random.whole(0, 5);
    r.inner = random.chance(2) ? 1 : random.whole(1, 150);
    r.width = random.chance(12) ? random.whole(4000, 9000) : random.whole(0, 150);
    r.kind = static_cast<Reduction>(random.whole(0, 3));
    if (r.width > 4000) r.outer = 1;
    const int64_t n = r.outer * r.width * r.inner;
    std::vector<float> in = random.reals(n, -3, 5);
    if (n > 0 && random.chance(3)) in[random.whole(0, n - 1)] = kNotANumber;
    if (n > 0 && random.chance(3)) in[random.whole(0, n - 1)] = kInfinity;
    Doubles expected;
    for (int64_t i = 0; i < r.outer * r.inner; ++i) {
      const float* const first = in.data() + i / r.inner * r.width * r.inner + i % r.inner;
      expected.push_back(reduce_reference(first, r.inner, r.width, r.kind));
    }
    everywhere<float>(
        r.outer * r.inner,
        [&](float* out, Workers* workers) {
          Reduce run = r;
          run.in = in.data();
          run.out = out;
          reduce(run, workers);
        },
        [&](const float* out) { CHECK(all_close(out, expected, kTolerance, "reduce", 1)); });
  }
}

// Sums that do not overflow, although partial sums do.
void test_reduce_extremes() {
  for (int64_t inner : {1, 7, 70}) {
    Reduce r;
    r.outer = 2;
    r.width = 90;
    r.inner = inner;
    std::vector<float> in(static_cast<size_t>(r.outer * r.width * inner), 3e38f);
    for (int64_t i = 0; i < r.outer * r.width * inner; ++i) {
      if (i / inner % 2 == 1) in[i] = i % inner % 3 == 0 ? -3e38f : 2e38f;
    }
    for (Reduction kind : {Reduction::Sum, Reduction::Mean}) {
      Doubles expected;
      for (int64_t i = 0; i < r.outer * inner; ++i) {
        const float* const first = in.data() + i / inner * r.width * inner + i % inner;
        const double value = reduce_reference(first, inner, r.width, kind);
        expected.push_back(value > 3.4e38 ? static_cast<double>(kInfinity) : value);
      }
      r.kind = kind;
      everywhere<float>(
          r.outer * inner,
          [&](float* out, Workers* workers) {
            Reduce run = r;
            run.in = in.data();
            run.out = out;
            reduce(run, workers);
          },
          [&](const float* out) { CHECK(all_close(out, expected, kTolerance, "extremes")); });
    }
  }
}

}  // namespace

int main() {
  test_norms();
  test_norms_of_extremes();
  test_norm_of_nan();
  test_group_norms();
  test_group_norms_of_extremes();
  test_softmax();
  test_reduce();
  test_reduce_extremes();
  return check_result();
}
