// How a page of keys and values is laid out inside: the engine writes and reads pages, their owner
// only copies them whole. A page has, for each layer and each head of keys and values, the rows of
// KvLayout::kPageTokens tokens.
//
// Float32 and float16: keys lie as [panels of 32 tokens][width][32], so that a vector has the same
// channel of many tokens; values as [token][value width, filled up].
//
// Int8: values have 8 bits and a scale for each token and head; they lie as [quads of 4
// tokens][value width, filled up][4], as dot products of bytes read them. Keys have 12 bits and a
// scale for each token and head, and are rotated by a Hadamard transform, as queries are, which
// leaves their products as they are. The transform spreads channels that are far greater than the
// rest, as trained models have them, over all channels; 12 bits, because with 8 such channels 50
// times the rest move attention's result by 2 to 9 %, rotated or not, and by 0.7 to 4 % with a
// scale for each channel. A scale for each token, because a token's bytes must not depend on how
// many tokens came at once, or were taken back: scales of channels would. Keys lie as [panels of 16
// tokens][width / 8][3][16][2] int16: channels 0 to 5 of eight in the upper 12 bits of three pairs,
// channels 6 and 7 in the lower 4, their least bits in the first pair. Scales are bfloat16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/delegate/kv_cache.h"
#include "rushlight/engine/types/cpu_engine_fb.h"

namespace rushlight::engine {

constexpr int64_t kKvTokens = KvLayout::kPageTokens;
// The greatest width of keys and values.
constexpr int64_t kKvWidth = static_cast<int64_t>(fb::cpu_engine::Limit::CACHED_WIDTH);
// The tokens of a panel of keys: of floats, and of bytes.
constexpr int64_t kKvPanel = 32;
constexpr int64_t kKvBytePanel = 16;

// Where the parts of one head begin, in bytes from the head's start. The heads of a layer follow
// each other, and so do layers.
struct KvPageShape {
  int64_t key_width = 0;    // of int8: filled up with zeros to whole eights
  int64_t value_width = 0;  // filled up with zeros to a multiple of 16
  size_t values = 0;
  size_t key_scales = 0;  // bfloat16 [tokens]
  size_t value_scales = 0;
  size_t head_bytes = 0;
  size_t page_bytes = 0;
};

// All zeros for a layout that no page can have.
inline KvPageShape kv_page_shape(const KvLayout& layout) {
  constexpr uint32_t kMost = uint32_t{1} << 16;  // layers, and heads
  if (layout.layers - 1 >= kMost || layout.heads - 1 >= kMost || layout.width - 1 >= kKvWidth ||
      layout.value_width - 1 >= kKvWidth) {
    return {};
  }
  const auto round_up = [](size_t x, size_t to) { return (x + to - 1) / to * to; };
  const bool is_int8 = layout.dtype == DType::Int8;
  if (!is_int8 && layout.dtype != DType::Float32 && layout.dtype != DType::Float16) return {};
  constexpr size_t kTokens = KvLayout::kPageTokens;
  const size_t element = element_size(layout.dtype);
  const size_t width = round_up(layout.width, is_int8 ? 8 : 1);
  const size_t value_width = round_up(layout.value_width, 16);
  KvPageShape shape;
  shape.key_width = static_cast<int64_t>(width);
  shape.value_width = static_cast<int64_t>(value_width);
  shape.values = kTokens * width * element + (is_int8 ? kTokens * width / 2 : 0);
  shape.key_scales = shape.values + kTokens * value_width * element;
  shape.value_scales = shape.key_scales + (is_int8 ? kTokens * sizeof(uint16_t) : 0);
  shape.head_bytes = shape.value_scales + (is_int8 ? kTokens * sizeof(uint16_t) : 0);
  shape.page_bytes = shape.head_bytes * layout.heads * layout.layers;
  return shape;
}

// The bytes of a page, a multiple of 64; 0 for a layout that no page can have.
inline size_t kv_page_bytes(const KvLayout& layout) { return kv_page_shape(layout).page_bytes; }

}  // namespace rushlight::engine
