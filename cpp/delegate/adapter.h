// What an adapter (LoRA) of a language model adds to its linear layers, which a runner lends to a
// method for one run, for each sequence (delegate/kv_cache.h). A layer that can be adapted is a
// site; the program numbers its sites.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/core/span.h"

namespace rushlight {

// Of one site: a row x of the layer's input adds (x A) B to its result.
struct SiteWeights {
  // nullptr: the adapter leaves the site as it is.
  const void* a = nullptr;       // [rank, in], each row filled up with zeros to a multiple of 16
  const void* b = nullptr;       // [rank, out] in panels of 16 columns (engine/types/panels.h)
  DType dtype = DType::Float32;  // Float32 or Float16
  uint32_t rank = 0;
  uint32_t in = 0;
  uint32_t out = 0;
};

struct AdapterWeights {
  Span<const SiteWeights> sites;
};

}  // namespace rushlight
