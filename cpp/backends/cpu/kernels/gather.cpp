// Rows of a table by their numbers, which are all checked before anything is written.
#include "rushlight/backends/cpu/kernels/rows.h"

#include <cstring>

#include "rushlight/backends/cpu/kernels/product.h"
#include "rushlight/backends/cpu/loops/copy.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kGrainBytes = int64_t{1} << 17;

// A column of a matrix in panels: an element of each row of its panel.
void copy_column(const Gather& gather, int64_t column, float* out) {
  const int64_t depth = gather.width_bytes / static_cast<int64_t>(sizeof(float));
  const int64_t first = column / kPanel * depth * kPanel + column % kPanel;
  if (gather.halves) {
    const uint16_t* from = static_cast<const uint16_t*>(gather.table) + first;
    for (int64_t k = 0; k < depth; ++k) {
      const uint32_t bits = static_cast<uint32_t>(from[k * kPanel]) << 16;
      std::memcpy(out + k, &bits, sizeof(bits));
    }
    return;
  }
  const float* from = static_cast<const float*>(gather.table) + first;
  for (int64_t k = 0; k < depth; ++k) out[k] = from[k * kPanel];
}

}  // namespace

bool gather(const Gather& gather, int64_t* index_bad, Workers* workers) {
  for (int64_t i = 0; i < gather.count; ++i) {
    if (gather.indices[i] >= 0 && gather.indices[i] < gather.rows) continue;
    *index_bad = i;
    return false;
  }
  if (gather.width_bytes == 0) return true;
  const CopyLoops& loops = copy_loops();
  const int64_t width = gather.width_bytes;
  const int64_t grain = width < kGrainBytes ? kGrainBytes / width : 1;
  const char* const table = static_cast<const char*>(gather.table);
  char* const out = static_cast<char*>(gather.out);
  share_out(workers, gather.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = gather.indices[i];
      // They were good, and still are unless a file lets the result lie over them.
      if (index < 0 || index >= gather.rows) continue;
      if (gather.panels) {
        copy_column(gather, index, reinterpret_cast<float*>(out + i * width));
        continue;
      }
      loops.runs(table + index * width, 0, out + i * width, 0, 1, width);
    }
  });
  return true;
}

}  // namespace rushlight::cpu
