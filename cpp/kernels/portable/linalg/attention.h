// Attention by blocks of queries and keys, for the kernels of scaled dot product attention and of
// attention over a cache of keys and values. The engine has its own attention
// (engine/kernels/products/attention.h). That one is limited to float32 rows and is faster, because
// it packs keys and values once for many queries. This one takes any floating type, any layout,
// bool masks and int8 tensors with scales, and computes its products with gemm.h or matmul_any.h.
#pragma once

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

// Dequantization of int8 elements: (element - zero) * scale, with one scale and one zero point for
// each row of the last dimension. Scales and zeros have the layout of their tensor without its last
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

// Returns InvalidArgument unless the mask, which must not be nullptr, is boolean or floating and
// broadcasts to the scores.
Status check_attention_mask(KernelContext& ctx, const Attention& a);

// Computes all of out. Shapes must fit each other, and so must types, unless the tensors are
// quantized. The layouts are defined by the strides alone, so the tensors may be permuted or
// sliced.
Status run_attention(KernelContext& ctx, const Attention& a);

}  // namespace rushlight::kernels
