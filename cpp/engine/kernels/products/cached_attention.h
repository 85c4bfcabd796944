// Attention of the tokens of many sequences over the pages of a runner's cache
// (delegate/kv_cache.h): stores the tokens' keys and values at their positions, then lets each
// token attend to the positions of its sequence up to its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/delegate/kv_cache.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// The strides of a tensor [tokens, heads, width]; that of the last dimension is 1.
struct TokenStrides {
  int64_t token = 0, head = 0;
};

struct CachedAttention {
  int64_t tokens = 0, heads = 1, key_heads = 1;  // heads is a multiple of key_heads
  int64_t width = 0, value_width = 0;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  TokenStrides q_strides, k_strides, v_strides;
  // Of each token. Tokens of one sequence are neighbours, at consecutive positions.
  const int64_t *positions = nullptr, *sequences = nullptr;
  int64_t positions_stride = 1, sequences_stride = 1;
  float* out = nullptr;
  TokenStrides out_strides;
  int64_t layer = 0;
  float scale = 1;
  int64_t window = 0;
  float softcap = 0;

  int64_t position(int64_t token) const { return positions[token * positions_stride]; }
  int64_t sequence(int64_t token) const { return sequences[token * sequences_stride]; }
};

// Bytes of scratch, aligned to 64, for `threads` threads.
size_t cached_attention_scratch(const CachedAttention& attention, size_t threads);
// The cache has pages for all positions. Results do not depend on the number of threads.
void attend_to_cache(const CachedAttention& attention, const KvCache& cache, void* scratch,
                     Workers* workers);

}  // namespace rushlight::engine
