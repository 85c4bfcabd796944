// Conversion of float32 rows to uint8 and back, compared with XNNPACK's formulas: the same integers
// on each instruction set, for rows with gaps, extremes, NaN and infinities.
#include <cfloat>

#include "cpu_quantized.h"
#include "rushlight/engine/kernels/rows/quantize.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

uint8_t byte_of(float x, float inverse, int32_t zero_point) {
  const float scaled = x * inverse;
  if (std::isnan(scaled)) return 0;
  const double q = std::nearbyint(static_cast<double>(scaled)) + zero_point;
  return static_cast<uint8_t>(std::fmin(std::fmax(q, 0), 255));
}

struct Scale {
  float scale, inverse;
  int32_t zero_point;
};

// XNNPACK's formula for signed integers, in the same order of operations.
Scale scale_of(const float* row, int64_t n) {
  float low = 0;
  float high = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(row[i])) return {kNotANumber, 0, 128};
    low = std::fmin(low, row[i]);
    high = std::fmax(high, row[i]);
  }
  if (high - low < 1e-36f) return {1, 1, 255};
  float inverse = 255.0f / (high - low);
  if (inverse == 0) inverse = 127.5f / (high / 2 - low / 2);
  const float least = low * inverse;
  const float greatest = high * inverse;
  float zero = (-128.0f + least) + (127.0f + greatest) > 0 ? -128.0f - least : 127.0f - greatest;
  zero = std::fmin(std::fmax(zero, -128.0f), 127.0f);
  return {1 / inverse, inverse, static_cast<int32_t>(std::nearbyint(zero)) + 128};
}

void check_rows(int64_t rows, int64_t width, int64_t gap, const std::vector<float>& in) {
  QuantizeRows job;
  job.rows = rows;
  job.width = width;
  job.in = in.data();
  job.in_stride = width + gap;
  job.out_stride = width + 1;
  Guarded<float> scales(2 * rows);
  job.scales = scales.data();
  everywhere<uint8_t>(
      rows * job.out_stride,
      [&](uint8_t* out, Workers* workers) {
        job.out = out;
        quantize_rows(job, workers);
        CHECK(scales.intact());
      },
      [&](const uint8_t* out) {
        for (int64_t i = 0; i < rows; ++i) {
          const float* row = in.data() + i * job.in_stride;
          const Scale scale = scale_of(row, width);
          const float stored = scales[2 * i];
          CHECK(stored == scale.scale || (std::isnan(stored) && std::isnan(scale.scale)));
          CHECK(scales[2 * i + 1] == static_cast<float>(scale.zero_point));
          for (int64_t j = 0; j < width; ++j) {
            CHECK(out[i * job.out_stride + j] == byte_of(row[j], scale.inverse, scale.zero_point));
          }
        }
      });
}

void test_drawn_rows() {
  Random random(3);
  for (int64_t width : {0, 1, 3, 15, 16, 17, 31, 32, 33, 64, 100, 4099}) {
    for (int64_t rows : {0, 1, 5}) {
      const float low = random.real(-3, 1);
      check_rows(rows, width, 2, random.reals(rows * (width + 2), low, low + 2));
    }
  }
  check_rows(300, 500, 0, random.reals(300 * 500));
}

void test_special_rows() {
  for (float special : {0.0f, -0.0f, 1e-45f, FLT_MIN, 1e-37f, 1.0f, -5.0f, FLT_MAX, -FLT_MAX,
                        kInfinity, -kInfinity, kNotANumber}) {
    for (int64_t width : {1, 33, 40}) {
      for (int64_t at : {int64_t{0}, width - 1, width / 2}) {
        std::vector<float> in(static_cast<size_t>(2 * width), 0.0f);
        in[static_cast<size_t>(at)] = special;
        in[static_cast<size_t>(2 * width - 1)] = -special;
        check_rows(2, width, 0, in);
        if (std::isfinite(special)) in[0] = FLT_MAX;
        check_rows(2, width, 0, in);
      }
    }
  }
}

void test_to_bytes() {
  Random random(5);
  for (int64_t width : {1, 5, 16, 100, 5000}) {
    std::vector<float> in = random.reals(3 * (width + 1), -70, 70);
    in[0] = kNotANumber;
    in[static_cast<size_t>(width)] = kInfinity;
    in[static_cast<size_t>(width - 1)] = -1e30f;
    for (float& x : in) x = random.chance(3) ? std::nearbyint(x) / 4 : x;
    Convert job;
    job.kind = ByteConversion::ToBytes;
    job.rows = 3;
    job.width = width;
    job.in = in.data();
    job.in_stride = width + 1;
    job.out_stride = width;
    job.scale = 0.5f;
    job.zero_point = 131;
    everywhere<uint8_t>(
        3 * width,
        [&](uint8_t* out, Workers* workers) {
          job.out = out;
          convert(job, workers);
        },
        [&](const uint8_t* out) {
          for (int64_t i = 0; i < 3 * width; ++i) {
            const float x = in[static_cast<size_t>(i / width * job.in_stride + i % width)];
            CHECK(out[i] == byte_of(x, 2.0f, 131));
          }
        });
  }
}

void test_from_bytes() {
  Random random(9);
  for (int64_t width : {1, 5, 16, 100, 5000}) {
    const std::vector<uint8_t> in = bytes_of(random, 2 * (width + 3));
    Convert job;
    job.rows = 2;
    job.width = width;
    job.in = in.data();
    job.in_stride = width + 3;
    job.out_stride = width;
    job.scale = 0.3f;
    job.zero_point = 17;
    const auto at = [&](int64_t i) {
      return in[static_cast<size_t>(i / width * job.in_stride + i % width)];
    };
    job.kind = ByteConversion::ToFloats;
    everywhere<float>(
        2 * width,
        [&](float* out, Workers* workers) {
          job.out = out;
          convert(job, workers);
        },
        [&](const float* out) {
          for (int64_t i = 0; i < 2 * width; ++i) {
            CHECK(out[i] == static_cast<float>(at(i) - 17) * 0.3f);
          }
        });
    job.kind = ByteConversion::Flip;
    everywhere<int8_t>(
        2 * width,
        [&](int8_t* out, Workers* workers) {
          job.out = out;
          convert(job, workers);
        },
        [&](const int8_t* out) {
          for (int64_t i = 0; i < 2 * width; ++i) CHECK(out[i] == at(i) - 128);
        });
  }
}

}  // namespace

int main() {
  test_drawn_rows();
  test_special_rows();
  test_to_bytes();
  test_from_bytes();
  return check_result();
}
