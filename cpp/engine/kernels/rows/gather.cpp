// Rows of a table by their numbers, which are all checked before anything is written.
#include "rushlight/engine/kernels/rows/rows.h"

#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/engine/loops/rows/copy.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kGrainBytes = int64_t{1} << 17;

// A row of the table, or a column of a matrix in panels: an element of each row of its panel.
void copy_row(const Gather& gather, int64_t index, char* out) {
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
  const bool converts = gather.conversion != Conversion::None;
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
