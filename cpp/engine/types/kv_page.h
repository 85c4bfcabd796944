// How a page of keys and values is laid out inside: the engine writes and reads pages, their owner
// only copies them whole. A page has, for each layer and each head of keys and values, the rows of
// KvLayout::kPageTokens tokens.
//
// Of float32 and float16, keys lie as [panel of 32 tokens][width][32], so that a vector has the
// same channel of many tokens, and values as [token][value width], filled up to whole vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/delegate/kv_cache.h"
#include "rushlight/engine/types/cpu_engine_fb.h"

namespace rushlight::engine {

constexpr int64_t kKvTokens = KvLayout::kPageTokens;
// The greatest width of keys and values.
constexpr int64_t kKvWidth = static_cast<int64_t>(fb::cpu_engine::Limit::CACHED_WIDTH);
// The tokens of a panel of keys.
constexpr int64_t kKvPanel = 32;
// Values are filled up to a multiple of it.
constexpr int64_t kKvVector = 16;

// Where the parts of one head of one layer begin, in bytes from the head's start, and the bytes of
// a head and a page. Heads of a layer follow each other, and layers, too.
struct KvPageShape {
  int64_t value_stride = 0;  // elements from one token's values to the next ones
  size_t values = 0;
  size_t head_bytes = 0;
  size_t page_bytes = 0;
};

inline int64_t kv_round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

// All zeros for a layout that no page can have.
inline KvPageShape kv_page_shape(const KvLayout& layout) {
  KvPageShape shape;
  constexpr uint32_t kMost = uint32_t{1} << 16;  // layers, and heads
  if (layout.layers - 1 >= kMost || layout.heads - 1 >= kMost || layout.width - 1 >= kKvWidth ||
      layout.value_width - 1 >= kKvWidth) {
    return shape;
  }
  if (layout.dtype != DType::Float32) return shape;
  const size_t element = element_size(layout.dtype);
  shape.value_stride = kv_round_up(layout.value_width, kKvVector);
  shape.values = static_cast<size_t>(kKvTokens) * layout.width * element;
  const size_t values = static_cast<size_t>(kKvTokens * shape.value_stride) * element;
  shape.head_bytes = (shape.values + values + 63) / 64 * 64;
  shape.page_bytes = shape.head_bytes * layout.heads * layout.layers;
  return shape;
}

// The bytes of a page, a multiple of 64; 0 for a layout that no page can have.
inline size_t kv_page_bytes(const KvLayout& layout) { return kv_page_shape(layout).page_bytes; }

}  // namespace rushlight::engine
