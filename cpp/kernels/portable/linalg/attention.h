// Attention by blocks of queries and keys, for the kernels of scaled dot product attention and of
// attention over a cache of keys and values. The engine has an attention of its own
// (engine/kernels/products/attention.h), which is limited to float32 rows and is faster, because it
// packs keys and values once for many queries. This one takes any floating type, any layout, masks
// of bool and integers with scales, and computes its products with gemm.h or matmul_any.h.
#pragma once

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

// The numbers that int8 elements stand for: (element - zero) * scale, with one scale and zero for
// each row of the last dimension. The tensors lie like the one they belong to, without its last
// dimension.
struct RowQuantization {
  const float* scales = nullptr;
  const int8_t* zeros = nullptr;
};

struct Attention {
  const Tensor* query;  // [..., H, L, E]
  const Tensor* key;    // [..., Hk, S, E]
  const Tensor* value;  // [..., Hv, S, Ev]
  const Tensor* mask;   // broadcasts to [..., H, L, S], or nullptr
  const Tensor* out;    // [..., H, L, Ev], floating
  bool causal;          // query i sees the keys up to `start` + i
  double scale;
  int64_t start = 0;
  // The scales and zero points of query, key and value, if they are int8.
  RowQuantization quantized[3] = {};

  static int64_t size(const Tensor& t, size_t from_end) { return t.sizes[t.rank - from_end]; }
  int64_t length() const { return size(*query, 2); }
  int64_t keys() const { return size(*key, 2); }
  int64_t width() const { return size(*query, 1); }
  int64_t value_width() const { return size(*value, 1); }
};

// InvalidArgument unless the mask (there is one) is boolean or floating and broadcasts to the
// scores.
Status check_attention_mask(KernelContext& ctx, const Attention& a);

// Computes all of out. The shapes fit one another, and so do the types unless they are quantized;
// only strides say where elements lie, so the tensors may be permuted or cut.
Status run_attention(KernelContext& ctx, const Attention& a);

}  // namespace rushlight::kernels
