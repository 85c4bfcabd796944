// Rows of a table by their numbers, which are all checked before anything is written.
#include "rushlight/engine/kernels/rows/rows.h"

#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/engine/loops/rows/copy.h"
#include "rushlight/kernel/loops/half.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kGrainBytes = int64_t{1} << 17;

float scale_of(const GroupScales& scales, int64_t at) {
  using namespace kernels::plain;
  if (scales.type == ScaleType::Float32) return static_cast<const float*>(scales.scales)[at];
  if (scales.type == ScaleType::BFloat16) {
    return widen(static_cast<const BFloat*>(scales.scales)[at]);
  }
  return widen(static_cast<const Half*>(scales.scales)[at]);
}

// A column of a matrix of integers in panels, as numbers.
void copy_column(const Gather& gather, int64_t index, float* out) {
  const int64_t together = gather.bits == 8 ? kQuad : kOct;
  const int64_t panel = index / kPanel, column = index % kPanel;
  const auto* packed = static_cast<const uint8_t*>(gather.table) +
                       panel * panel_quads(gather.width, gather.bits) * kQuadBytes + column * kQuad;
  const int64_t size = gather.width / gather.scales.groups;
  for (int64_t group = 0; group < gather.scales.groups; ++group) {
    const int64_t at = (panel * gather.scales.groups + group) * kPanel + column;
    const float scale = scale_of(gather.scales, at);
    for (int64_t i = group * size; i < (group + 1) * size; ++i) {
      const uint8_t byte = packed[i / together * kQuadBytes + i % kQuad];
      const uint8_t high = i % together >= kQuad ? byte : static_cast<uint8_t>(byte << 4);
      const int32_t number =
          gather.bits == 8 ? static_cast<int8_t>(byte) : static_cast<int8_t>(high) >> 4;
      out[i] = static_cast<float>(number) * scale;
    }
  }
}

// A row of the table, or a column of a matrix in panels: an element of each row of its panel.
void copy_row(const Gather& gather, int64_t index, char* out) {
  if (gather.bits != 0) return copy_column(gather, index, reinterpret_cast<float*>(out));
  const int64_t first = gather.panels ? index / kPanel * gather.width * kPanel + index % kPanel
                                      : index * gather.width;
  const char* from = static_cast<const char*>(gather.table) + first * gather.element_size;
  const CopyLoops& loops = copy_loops();
  const int64_t stride = gather.panels ? kPanel : 1;
  if (gather.conversion != Conversion::None) {
    loops.convert[static_cast<size_t>(gather.conversion)](from, stride, out, 1, gather.width);
  } else if (gather.panels) {
    loops.line[2](from, stride, out, 1, gather.width);
  } else {
    loops.runs(from, 0, out, 0, 1, gather.width * gather.element_size);
  }
}

}  // namespace

bool gather(const Gather& gather, int64_t* index_bad, Workers* workers) {
  for (int64_t i = 0; i < gather.count; ++i) {
    if (gather.indices[i] >= 0 && gather.indices[i] < gather.rows) continue;
    *index_bad = i;
    return false;
  }
  if (gather.width == 0) return true;
  const bool converts = gather.conversion != Conversion::None || gather.bits != 0;
  const int64_t bytes = gather.width * (converts ? 4 : gather.element_size);
  const int64_t grain = bytes < kGrainBytes ? kGrainBytes / bytes : 1;
  char* const out = static_cast<char*>(gather.out);
  share_out(workers, gather.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = gather.indices[i];
      // The indices were checked, but a file may let the result overwrite them.
      if (index >= 0 && index < gather.rows) copy_row(gather, index, out + i * bytes);
    }
  });
  return true;
}

}  // namespace rushlight::engine
