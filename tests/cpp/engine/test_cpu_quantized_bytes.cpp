// The CPU engine's elementwise operators on uint8, compared with plain integers: repeated operands,
// gaps, other dim orders, scales and zero points at their bounds. The bytes are the same on every
// instruction set and with any number of threads.
#include <algorithm>
#include <cmath>

#include "cpu_quantized.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

// One element, by the definitions of XNNPACK's vadd and vmul.
int32_t expected(const QuantizedBinary& q, float a_scale, float b_scale, float scale, int32_t a,
                 int32_t b) {
  const int64_t x = a - q.a_zero_point;
  const int64_t y = b - q.b_zero_point;
  if (q.kind == QuantizedBinaryKind::Multiply) {
    return requantized(x * y, a_scale * b_scale / scale, q.requantize);
  }
  const float greatest = std::fmax(a_scale / scale, b_scale / scale);
  const int shift = 20 - std::ilogb(greatest);
  const auto factor = [&](float ratio) {
    return std::llrint(std::ldexp(static_cast<double>(ratio), shift));
  };
  const int64_t sign = q.kind == QuantizedBinaryKind::Subtract ? -1 : 1;
  const int64_t sum = x * factor(a_scale / scale) + sign * y * factor(b_scale / scale);
  return clamped(static_cast<int64_t>(std::floor(
                     std::ldexp(static_cast<double>(sum + (int64_t{1} << (shift - 1))), -shift))),
                 q.requantize);
}

// Random sizes. Each operand is dense, repeated, or has gaps; the output has any dim order.
struct Layout {
  ByteOperands operands;
  int64_t out_bytes = 0, in_bytes = 0;

  explicit Layout(Random& random) {
    constexpr size_t kRank = 4;
    operands.rank = kRank;
    for (size_t d = 0; d < kRank; ++d) {
      operands.sizes[d] = random.chance(8) ? 1 : random.whole(1, d + 1 == kRank ? 150 : 5);
    }
    size_t order[kRank] = {0, 1, 2, 3};
    if (random.chance(3)) std::swap(order[3], order[random.whole(0, 2)]);
    out_bytes = strides(random, order, false, operands.out_strides);
    if (random.chance(3)) std::swap(order[3], order[random.whole(0, 2)]);
    in_bytes = std::max(strides(random, order, true, operands.a_strides),
                        strides(random, order, true, operands.b_strides));
  }

 private:
  int64_t strides(Random& random, const size_t (&order)[4], bool repeats, int64_t* strides) {
    int64_t stride = random.chance(4) ? 2 : 1;
    for (size_t i = 4; i-- > 0;) {
      const size_t d = order[i];
      const bool repeated = repeats && random.chance(5);
      strides[d] = repeated ? 0 : stride;
      if (!repeated) stride *= operands.sizes[d] + (random.chance(6) ? 3 : 0);
    }
    return stride + 2;
  }
};

template <typename Element>
void for_each_element(const ByteOperands& o, Element element) {
  const int64_t numel = o.sizes[0] * o.sizes[1] * o.sizes[2] * o.sizes[3];
  for (int64_t i = 0; i < numel; ++i) {
    int64_t a = 0, b = 0, out = 0, rest = i;
    for (size_t d = o.rank; d-- > 0; rest /= o.sizes[d]) {
      a += rest % o.sizes[d] * o.a_strides[d];
      b += rest % o.sizes[d] * o.b_strides[d];
      out += rest % o.sizes[d] * o.out_strides[d];
    }
    element(a, b, out);
  }
}

void test_combine() {
  Random random(61);
  for (int round = 0; round < 300; ++round) {
    const Layout layout(random);
    QuantizedBinary q;
    q.kind = static_cast<QuantizedBinaryKind>(random.whole(0, 2));
    q.a_zero_point = static_cast<int32_t>(random.whole(0, 255));
    q.b_zero_point = static_cast<int32_t>(random.whole(0, 255));
    q.requantize = draw_requantize(random);
    const float scale = std::exp2(random.real(-6, 6));
    const float a_scale = scale * std::exp2(random.real(-10, 7.9f));
    const float b_scale = scale * std::exp2(random.real(-10, 7.9f));
    q.multiplier = a_scale * b_scale / scale;
    if (q.kind != QuantizedBinaryKind::Multiply) CHECK(set_sum(a_scale, b_scale, scale, &q));
    const std::vector<uint8_t> a = bytes_of(random, layout.in_bytes);
    const std::vector<uint8_t> b = bytes_of(random, layout.in_bytes);
    everywhere<uint8_t>(
        layout.out_bytes,
        [&](uint8_t* out, Workers* workers) {
          ByteOperands operands = layout.operands;
          operands.a = a.data();
          operands.b = b.data();
          operands.out = out;
          combine(q, operands, workers);
        },
        [&](const uint8_t* out) {
          int64_t wrong = 0;
          for_each_element(layout.operands, [&](int64_t i, int64_t j, int64_t k) {
            const int32_t wanted = expected(q, a_scale, b_scale, scale, a[static_cast<size_t>(i)],
                                            b[static_cast<size_t>(j)]);
            wrong += out[k] != wanted;
          });
          CHECK(wrong == 0);
        });
  }
}

// Large enough to be divided among threads; has every pair of bytes.
void test_all_pairs() {
  QuantizedBinary q;
  q.a_zero_point = 131;
  q.b_zero_point = 3;
  q.requantize.zero_point = 100;
  CHECK(set_sum(0.02f, 0.013f, 0.021f, &q));
  std::vector<uint8_t> a(1 << 16), b(1 << 16);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<uint8_t>(i >> 8);
    b[i] = static_cast<uint8_t>(i);
  }
  ByteOperands operands;
  operands.rank = 1;
  operands.sizes[0] = 1 << 16;
  operands.a_strides[0] = operands.b_strides[0] = operands.out_strides[0] = 1;
  operands.a = a.data();
  operands.b = b.data();
  everywhere<uint8_t>(
      1 << 16,
      [&](uint8_t* out, Workers* workers) {
        operands.out = out;
        combine(q, operands, workers);
      },
      [&](const uint8_t* out) {
        int64_t wrong = 0;
        for (size_t i = 0; i < a.size(); ++i) {
          wrong += out[i] != expected(q, 0.02f, 0.013f, 0.021f, a[i], b[i]);
        }
        CHECK(wrong == 0);
      });
}

void test_look_up() {
  Random random(62);
  for (int round = 0; round < 100; ++round) {
    Layout layout(random);
    for (size_t d = 0; d < layout.operands.rank; ++d) layout.operands.b_strides[d] = 0;
    const std::vector<uint8_t> in = bytes_of(random, layout.in_bytes);
    const std::vector<uint8_t> table = bytes_of(random, 256);
    everywhere<uint8_t>(
        layout.out_bytes,
        [&](uint8_t* out, Workers* workers) {
          ByteOperands operands = layout.operands;
          operands.a = in.data();
          operands.b = table.data();
          operands.out = out;
          look_up(operands, workers);
        },
        [&](const uint8_t* out) {
          int64_t wrong = 0;
          for_each_element(layout.operands, [&](int64_t i, int64_t, int64_t k) {
            wrong += out[k] != table[in[static_cast<size_t>(i)]];
          });
          CHECK(wrong == 0);
        });
  }
}

void test_empty() {
  ByteOperands operands;
  operands.rank = 2;
  operands.sizes[0] = 3;
  combine(QuantizedBinary(), operands, nullptr);
  look_up(operands, nullptr);
}

void test_scales_refused() {
  QuantizedBinary q;
  CHECK(set_sum(0x1p-10f, 0, 1, &q));
  CHECK(set_sum(0, 255.9f, 1, &q));
  CHECK(!set_sum(0x1.fp-11f, 0x1.fp-11f, 1, &q));
  CHECK(!set_sum(256, 1, 1, &q));
  CHECK(!set_sum(-1, 1, 1, &q));
  CHECK(!set_sum(1, 1, 0, &q));
  CHECK(!set_sum(kNotANumber, 1, 1, &q));
  CHECK(!set_sum(1, kInfinity, 1, &q));
  CHECK(!set_sum(1, 1, kNotANumber, &q));
}

}  // namespace

int main() {
  test_combine();
  test_all_pairs();
  test_look_up();
  test_empty();
  test_scales_refused();
  return check_result();
}
