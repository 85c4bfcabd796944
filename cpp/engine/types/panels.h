// Weights of matrix products, packed ahead of time.
//
// A packed matrix of k rows and n columns lies in panels of kPanel columns, the last one filled up
// with zeros: element (i, j) is at ((j / kPanel) * k + i) * kPanel + j % kPanel. Panels start at
// multiples of 64 bytes (of 32 with half types). Every instruction set reads the same bytes.
//
// With int8, rows are filled up with zeros to quads of four: element (i, j) is byte ((j / 16) *
// quads + i / 4) * 64 + (j % 16) * 4 + i % 4. Arrays with one element for each column are filled up
// to whole panels, too. With 4 bits (two's complement), rows are filled up to octs of eight, and
// byte ((j / 16) * octs + i / 8) * 64 + (j % 16) * 4 + i % 4 has element (i, j) in its lower half
// if i % 8 < 4, in its upper half otherwise.
#pragma once

#include <cstdint>

namespace rushlight::engine {

constexpr int64_t kPanel = 16;

// What panels of products in float32 hold. Int8 and Int4 are integers with scales.
enum class PanelType : uint8_t { Float32, BFloat16, Float16, Int8, Int4 };

constexpr bool has_scales(PanelType type) { return type >= PanelType::Int8; }

constexpr int64_t panels_of(int64_t columns) { return (columns + kPanel - 1) / kPanel; }

// What scales of integers are stored as.
enum class ScaleType : uint8_t { Float32, BFloat16, Float16 };

constexpr int64_t scale_bytes(ScaleType type) { return type == ScaleType::Float32 ? 4 : 2; }

// Scales that groups of neighbouring terms share: [groups, kPanel] for each panel.
struct GroupScales {
  int64_t groups = 0;  // 0: there are none
  const void* scales = nullptr;
  ScaleType type = ScaleType::Float32;
  int64_t panel_bytes() const { return groups * kPanel * scale_bytes(type); }
};

constexpr int64_t kQuad = 4;  // terms of a column that lie together
constexpr int64_t kOct = 8;   // the same with 4 bits
constexpr int64_t kQuadBytes = kQuad * kPanel;

constexpr int64_t quads_of(int64_t terms) { return (terms + kQuad - 1) / kQuad; }
// The size of a panel, in units of kQuadBytes.
constexpr int64_t panel_quads(int64_t terms, int32_t bits) {
  return bits == 8 ? quads_of(terms) : (terms + kOct - 1) / kOct;
}

}  // namespace rushlight::engine
