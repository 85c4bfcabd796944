// The CPU engine's gathers: rows of tables, and columns of panels of floats and of integers.
#include <cstdlib>

#include "cpu_kernels.h"
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/kernel/loops/half.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

void test_gather() {
  Random random(6);
  for (int round = 0; round < 200; ++round) {
    Gather g;
    g.rows = random.whole(1, 50);
    g.element_size = 1;
    g.width = random.chance(9) ? random.whole(900, 5000) : random.whole(0, 300);
    g.count = random.chance(9) ? 3000 : random.whole(0, 20);
    std::vector<unsigned char> table(static_cast<size_t>(g.rows * g.width));
    for (unsigned char& byte : table) byte = static_cast<unsigned char>(random.next());
    std::vector<int64_t> indices(static_cast<size_t>(g.count));
    for (int64_t& index : indices) index = random.whole(0, g.rows - 1);
    g.table = table.data();
    const bool bad = g.count > 0 && random.chance(5);
    const int64_t bad_at = bad ? random.whole(0, g.count - 1) : -1;
    if (bad) indices[bad_at] = random.chance(2) ? g.rows : -1;
    g.indices = indices.data();
    const int64_t n = g.count * g.width;
    everywhere<unsigned char>(
        n,
        [&](unsigned char* out, Workers* workers) {
          g.out = out;
          int64_t position = -1;
          CHECK(gather(g, &position, workers) == !bad);
          CHECK(position == bad_at);
        },
        [&](const unsigned char* out) {
          for (int64_t i = 0; i < g.count; ++i) {
            for (int64_t k = 0; k < g.width; ++k) {
              const unsigned char want =
                  bad ? 0xa5 : table[static_cast<size_t>(indices[i] * g.width + k)];
              if (out[i * g.width + k] != want) return CHECK(!"gathered");
            }
          }
        });
  }
}

// Rows of tables and columns of panels in a 16-bit type, read as float32.
void test_gather_halves() {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    Gather g;
    g.panels = random.chance(2);
    g.conversion = random.chance(2) ? Conversion::HalfToFloat : Conversion::BFloatToFloat;
    g.element_size = 2;
    g.rows = random.whole(1, 40);
    g.width = random.whole(1, 90);
    g.count = random.whole(0, 20);
    const int64_t columns = g.panels ? panels_of(g.rows) * kPanel : g.rows;
    std::vector<uint16_t> table(static_cast<size_t>(columns * g.width));
    for (uint16_t& element : table) {
      const float number = static_cast<float>(random.whole(-64, 64)) / 8;
      element = g.conversion == Conversion::HalfToFloat
                    ? kernels::plain::narrow_half(number).bits
                    : kernels::plain::narrow_bfloat(number).bits;
    }
    const auto number_at = [&](int64_t row, int64_t k) {
      const int64_t at =
          g.panels ? (row / kPanel * g.width + k) * kPanel + row % kPanel : row * g.width + k;
      const uint16_t bits = table[static_cast<size_t>(at)];
      return g.conversion == Conversion::HalfToFloat
                 ? kernels::plain::widen(kernels::plain::Half{bits})
                 : kernels::plain::widen(kernels::plain::BFloat{bits});
    };
    std::vector<int64_t> indices(static_cast<size_t>(g.count));
    for (int64_t& index : indices) index = random.whole(0, g.rows - 1);
    g.table = table.data();
    g.indices = indices.data();
    everywhere<float>(
        g.count * g.width,
        [&](float* out, Workers* workers) {
          g.out = out;
          int64_t bad = 0;
          CHECK(gather(g, &bad, workers));
        },
        [&](const float* out) {
          for (int64_t i = 0; i < g.count * g.width; ++i) {
            const int64_t row = indices[static_cast<size_t>(i / g.width)];
            if (out[i] != number_at(row, i % g.width)) return CHECK(!"gathered");
          }
        });
  }
}

// Writes a number of a row to panels of integers (types/panels.h).
void put(const Gather& g, int64_t row, int64_t k, int32_t number, uint8_t* table) {
  const int64_t together = g.bits == 8 ? kQuad : kOct;
  const int64_t quads = panel_quads(g.width, g.bits);
  uint8_t& byte =
      table[(row / kPanel * quads + k / together) * kQuadBytes + row % kPanel * kQuad + k % kQuad];
  if (g.bits == 8) {
    byte = static_cast<uint8_t>(number);
  } else {
    byte = static_cast<uint8_t>(byte | (number & 15) << (k % kOct >= kQuad ? 4 : 0));
  }
}

// Columns of panels of integers with scales, as products have them (types/panels.h).
void test_gather_integers() {
  Random random(8);
  for (int round = 0; round < 120; ++round) {
    Gather g;
    g.panels = true;
    g.bits = random.chance(2) ? 8 : 4;
    g.rows = random.whole(1, 40);
    g.scales.groups = random.whole(1, 4);
    g.width = g.scales.groups * random.whole(1, 30);
    g.scales.type = static_cast<ScaleType>(random.whole(0, 2));
    g.count = random.whole(0, 20);
    const int64_t panels = panels_of(g.rows), quads = panel_quads(g.width, g.bits);
    std::vector<uint8_t> table(static_cast<size_t>(panels * quads * kQuadBytes));
    std::vector<float> scales(static_cast<size_t>(panels * g.scales.groups * kPanel));
    std::vector<uint16_t> halves;
    for (float& scale : scales) {
      scale = static_cast<float>(random.whole(1, 255)) / 64;  // exact in halves of both kinds
      halves.push_back(g.scales.type == ScaleType::BFloat16
                           ? kernels::plain::narrow_bfloat(scale).bits
                           : kernels::plain::narrow_half(scale).bits);
    }
    std::vector<int32_t> numbers(static_cast<size_t>(g.rows * g.width));
    for (int64_t row = 0; row < g.rows; ++row) {
      for (int64_t k = 0; k < g.width; ++k) {
        const auto number =
            static_cast<int32_t>(g.bits == 8 ? random.whole(-128, 127) : random.whole(-8, 7));
        numbers[static_cast<size_t>(row * g.width + k)] = number;
        put(g, row, k, number, table.data());
      }
    }
    std::vector<int64_t> indices(static_cast<size_t>(g.count));
    for (int64_t& index : indices) index = random.whole(0, g.rows - 1);
    g.table = table.data();
    g.scales.scales = g.scales.type == ScaleType::Float32 ? static_cast<const void*>(scales.data())
                                                          : halves.data();
    g.indices = indices.data();
    everywhere<float>(
        g.count * g.width,
        [&](float* out, Workers* workers) {
          g.out = out;
          int64_t bad = 0;
          CHECK(gather(g, &bad, workers));
        },
        [&](const float* out) {
          for (int64_t i = 0; i < g.count * g.width; ++i) {
            const int64_t row = indices[static_cast<size_t>(i / g.width)], k = i % g.width;
            const int64_t group = k / (g.width / g.scales.groups);
            const int64_t at = (row / kPanel * g.scales.groups + group) * kPanel + row % kPanel;
            const float want = static_cast<float>(numbers[static_cast<size_t>(row * g.width + k)]) *
                               scales[static_cast<size_t>(at)];
            if (out[i] != want) return CHECK(!"gathered");
          }
        });
  }
}

}  // namespace

int main() {
  test_gather();
  test_gather_halves();
  test_gather_integers();
  return check_result();
}
