// Scaled dot product attention in float32 without the whole matrix of scores: softmax(scale * Q K^T
// + mask) V, a block of queries at a time over blocks of keys with a running maximum and sum
// (online softmax: Milakov and Gimelshein 2018; FlashAttention: Dao et al. 2022). The portable
// kernels have an attention of their own (kernels/portable/linalg/attention.h) for other dtypes and
// layouts; this one is limited to float32 rows, and packs keys and values for register tiles of its
// own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// The strides of a tensor [batch, heads, length, width]; that of the last dimension is 1.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
};

struct Attention {
  int64_t batch = 1, heads = 1, key_heads = 1;  // heads is a multiple of key_heads
  int64_t queries = 0, keys = 0, width = 0, value_width = 0;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  HeadStrides q_strides, k_strides, v_strides;
  float* out = nullptr;
  HeadStrides out_strides;
  float scale = 1;
  bool causal = false;  // query i sees keys 0..i
  // Added to scores; element (b, h, i, j) at b * batch + h * head + i * row + j * column. Strides
  // may be 0. A row that sees no key, or only keys whose mask is -infinity, gives zeros, as in
  // eager PyTorch.
  const float* mask = nullptr;
  HeadStrides mask_strides;
  int64_t mask_column = 0;
};

// Bytes of scratch, aligned to 64, for `threads` threads; attend() gets them for at least
// workers->count(). They grow with the number of keys, up to a few hundred KiB for each thread.
size_t attention_scratch(const Attention& attention, size_t threads);
void attend(const Attention& attention, void* scratch, Workers* workers);

}  // namespace rushlight::engine
