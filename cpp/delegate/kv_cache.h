// The keys and values of a language model's sequences, and their adapters (delegate/adapter.h),
// which a runner owns and lends to a method for one run. Keys and values lie in pages of
// kPageTokens positions; a page has those of all layers. How a page is laid out inside is the
// engine's: see engine/types/kv_page.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/core/span.h"

namespace rushlight {

struct AdapterWeights;  // delegate/adapter.h

// What the pages of one model hold. All layers have the same shapes.
struct KvLayout {
  static constexpr size_t kPageTokens = 64;

  DType dtype = DType::Float32;  // Float32, Float16, or Int8 with a scale for each token and head
  uint32_t layers = 0;
  uint32_t heads = 0;        // of keys and values
  uint32_t width = 0;        // of a key
  uint32_t value_width = 0;  // of a value
};

// One sequence. The pages that a run writes belong to this sequence alone.
struct KvSequence {
  // Of positions 0..63, 64..127, ...; aligned to 64 bytes. Those before the window of all layers
  // may be nullptr.
  uint8_t* const* pages = nullptr;
  size_t n_pages = 0;
  // What is added to the linear layers for its tokens; nullptr: nothing.
  const AdapterWeights* adapter = nullptr;
};

struct KvCache {
  KvLayout layout;
  Span<const KvSequence> sequences;  // the input `sequences` of a step has indices of these
};

}  // namespace rushlight
