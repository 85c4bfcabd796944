// Attention over a cache of keys and values, and writing into such a cache: the operators of
// ExecuTorch's language models. Tokens come before heads: queries are [B, L, H, E], caches [B, S,
// Hk, E].
#include <cmath>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/index/indexing.h"
#include "rushlight/kernels/portable/linalg/attention.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

constexpr size_t kRank = 4;

// A view of a tensor with its heads before its tokens.
struct HeadsFirst {
  Tensor tensor;
  int32_t sizes[kRank];
  int32_t strides[kRank];

  HeadsFirst(const Tensor& from, bool tokens_first) : tensor(from) {
    for (size_t d = 0; d < kRank; ++d) {
      const size_t source = tokens_first && (d == 1 || d == 2) ? 3 - d : d;
      sizes[d] = from.sizes[source];
      strides[d] = from.strides[source];
    }
    tensor.sizes = sizes;
    tensor.strides = strides;
  }
  HeadsFirst(const HeadsFirst&) = delete;
  HeadsFirst& operator=(const HeadsFirst&) = delete;
};

Status check_input(KernelContext& ctx, const char* name, const Tensor& tensor) {
  RL_TRY(check_rank(ctx, name, tensor, kRank));
  if (tensor.is_contiguous()) return {};
  return ctx.fail(Code::NotSupported, "%s does not lie in row-major order", name);
}

// Checks that `count` tokens from `start` on fit a cache of `size` tokens.
Status check_range(KernelContext& ctx, int64_t start, int64_t count, int64_t size) {
  if (start >= 0 && start <= size && count <= size - start) return {};
  return ctx.fail(Code::InvalidArgument,
                  "start_pos is %lld, and from there on %lld tokens do not fit a cache of %lld",
                  static_cast<long long>(start), static_cast<long long>(count),
                  static_cast<long long>(size));
}

// Checks that `value` fits `cache` in all dimensions except the tokens.
Status check_piece(KernelContext& ctx, const Tensor& value, const Tensor& cache) {
  RL_TRY(check_input(ctx, "value", value));
  RL_TRY(check_input(ctx, "cache", cache));
  RL_TRY(check_same_type(ctx, "value", value, cache));
  bool fits = true;
  for (const size_t d : {size_t{0}, size_t{2}, size_t{3}}) {
    fits = fits && value.sizes[d] == cache.sizes[d];
  }
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "value has shape %s and the cache %s: they may differ in their tokens alone",
                  ShapeText(value.shape()).text(), ShapeText(cache.shape()).text());
}

// Writes the tokens of `value` into the cache, starting at position `start`.
void write_tokens(const Tensor& value, const Tensor& cache, int64_t start) {
  CopyBlock block;
  for (size_t d = 0; d < kRank; ++d) {
    block.push(value.sizes[d], value.strides[d], cache.strides[d]);
  }
  strided_copy(value.data, element_at(cache, start * cache.strides[1]), block,
               element_size(cache.dtype));
}

// This result is never read. ExecuTorch has it because every operator must have a result.
Status write_nothing(KernelContext& ctx, const Tensor& value, Tensor& out) {
  RL_TRY(check_same_type(ctx, "value", value, out));
  const int32_t one[] = {1};
  RL_TRY(ctx.resize(out, {one, 1}));
  std::memset(out.data, 0, out.nbytes());
  return {};
}

Status check_shapes(KernelContext& ctx, const Attention& a) {
  const Tensor* tensors[] = {a.query, a.key, a.value};
  bool fits = a.width() == Attention::size(*a.key, 1) && a.width() == a.value_width() &&
              a.keys() == Attention::size(*a.value, 2);
  for (const Tensor* tensor : tensors) {
    fits = fits && tensor->sizes[0] == a.query->sizes[0] && tensor->sizes[1] > 0;
  }
  fits = fits && a.key->sizes[1] == a.value->sizes[1] && a.query->sizes[1] % a.key->sizes[1] == 0;
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "query has shape %s, key %s and value %s (heads before tokens), which do not fit "
                  "one another",
                  ShapeText(a.query->shape()).text(), ShapeText(a.key->shape()).text(),
                  ShapeText(a.value->shape()).text());
}

// The arguments after query, key and value that all these operators have.
struct Options {
  const EValue& start;
  const EValue& mask;
  const EValue& dropout;
  const EValue& causal;
  const EValue& scale;
  // Keys and values that are written to the caches after all checks, before the attention; or
  // nullptr.
  const Tensor* pieces[2] = {};
};

// With a mask, queries see all keys of the cache, else the keys up to the last query's position.
Status attend(KernelContext& ctx, const Tensor& query, const Tensor& key, const Tensor& value,
              const Options& options, Tensor& out, bool tokens_first,
              const RowQuantization* quantized) {
  RL_TRY(ctx.resize_like(out, query));
  const HeadsFirst q(query, tokens_first);
  const HeadsFirst o(out, tokens_first);
  HeadsFirst k(key, tokens_first);
  HeadsFirst v(value, tokens_first);
  Attention a{};
  a.query = &q.tensor;
  a.key = &k.tensor;
  a.value = &v.tensor;
  a.out = &o.tensor;
  a.mask = options.mask.tensor_or_null();
  a.causal = options.causal.to_bool();
  a.start = options.start.to_int();
  if (options.dropout.to_double() != 0.0) {
    return ctx.fail(Code::NotSupported, "drpout_p is %g, but must be 0: no random numbers here",
                    options.dropout.to_double());
  }
  RL_TRY(check_shapes(ctx, a));
  RL_TRY(check_range(ctx, a.start, a.length(), a.keys()));
  if (a.mask != nullptr) {
    RL_TRY(check_rank(ctx, "attn_mask", *a.mask, 2));
    RL_TRY(check_attention_mask(ctx, a));
  } else {
    k.sizes[2] = static_cast<int32_t>(a.start + a.length());
    v.sizes[2] = k.sizes[2];
  }
  for (size_t i = 0; quantized != nullptr && i < 3; ++i) a.quantized[i] = quantized[i];
  if (options.pieces[0] != nullptr) write_tokens(*options.pieces[0], key, a.start);
  if (options.pieces[1] != nullptr) write_tokens(*options.pieces[1], value, a.start);
  a.scale = double_or(options.scale, 1.0 / std::sqrt(static_cast<double>(a.width())));
  return run_attention(ctx, a);
}

Status attend_floating(KernelContext& ctx, const Tensor& query, const Tensor& key,
                       const Tensor& value, const Options& options, Tensor& out) {
  const char* const names[] = {"query", "key", "value"};
  const Tensor* const tensors[] = {&query, &key, &value};
  for (size_t k = 0; k < 3; ++k) {
    RL_TRY(check_input(ctx, names[k], *tensors[k]));
    RL_TRY(check_floating(ctx, names[k], *tensors[k]));
    RL_TRY(check_same_type(ctx, names[k], *tensors[k], out));
  }
  return attend(ctx, query, key, value, options, out, true, nullptr);
}

// The names of a quantized tensor, its zero points and its scales, for messages.
struct Names {
  const char* tensor;
  const char* zeros;
  const char* scales;
};

// Reads the scales and zero points of a quantized tensor, one for each row.
Status read_quantization(KernelContext& ctx, const Names& names, const Tensor& tensor,
                         const EValue& zeros, const EValue& scales, RowQuantization* into) {
  const char* const name = names.tensor;
  RL_TRY(check_input(ctx, name, tensor));
  RL_TRY(check_dtype(ctx, name, tensor, DType::Int8));
  if (zeros.is_none() || scales.is_none()) {
    return ctx.fail(Code::InvalidArgument, "%s is int8, but its zero points or scales are None",
                    name);
  }
  const Tensor* const parts[] = {&zeros.tensor(), &scales.tensor()};
  RL_TRY(check_dtype(ctx, names.zeros, *parts[0], DType::Int8));
  RL_TRY(check_dtype(ctx, names.scales, *parts[1], DType::Float32));
  for (const Tensor* one : parts) {
    bool fits = one->rank == kRank && one->is_contiguous() && one->sizes[3] == 1;
    for (size_t d = 0; fits && d < 3; ++d) fits = one->sizes[d] == tensor.sizes[d];
    if (fits) continue;
    return ctx.fail(Code::InvalidArgument,
                    "%s has shape %s, so that its zero points and scales must have it with a last "
                    "size of 1, but are %s",
                    name, ShapeText(tensor.shape()).text(), ShapeText(one->shape()).text());
  }
  *into = {parts[1]->as<const float>(), parts[0]->as<const int8_t>()};
  return {};
}

}  // namespace

// update_cache(value, cache, start_pos, *, out): writes the cache in place.
Status update_cache_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& value = args[0]->tensor();
  Tensor& cache = args[1]->tensor();
  const int64_t start = args[2]->to_int();
  RL_TRY(check_piece(ctx, value, cache));
  RL_TRY(check_range(ctx, start, value.sizes[1], cache.sizes[1]));
  RL_TRY(ctx.resize_like(cache, cache));
  RL_TRY(write_nothing(ctx, value, args[3]->tensor()));
  write_tokens(value, cache, start);
  return {};
}

// update_cache_with_indices(value, cache, start_pos, indices, *, out): indices [B, L] give the
// position of each token; start_pos is ignored.
Status update_cache_with_indices_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& value = args[0]->tensor();
  Tensor& cache = args[1]->tensor();
  const Tensor& indices = args[3]->tensor();
  RL_TRY(check_piece(ctx, value, cache));
  RL_TRY(check_rank(ctx, "indices", indices, 2));
  RL_TRY(check_dtype(ctx, "indices", indices, DType::Int64));
  if (indices.sizes[0] != value.sizes[0] || indices.sizes[1] != value.sizes[1] ||
      !indices.is_contiguous()) {
    return ctx.fail(Code::InvalidArgument,
                    "indices has shape %s, but must have one for each token of value, of shape %s, "
                    "in row-major order",
                    ShapeText(indices.shape()).text(), ShapeText(value.shape()).text());
  }
  for (int64_t i = 0; i < indices.numel; ++i) {
    const int64_t index = indices.as<int64_t>()[i];
    if (index < 0 || index >= cache.sizes[1]) {
      return index_out_of_range(ctx, index, 1, cache.sizes[1], 0);
    }
  }
  RL_TRY(ctx.resize_like(cache, cache));
  RL_TRY(write_nothing(ctx, value, args[4]->tensor()));
  const int64_t token = int64_t{value.sizes[2]} * value.sizes[3];
  const size_t bytes = static_cast<size_t>(token) * element_size(value.dtype);
  for (int64_t i = 0; i < indices.numel && bytes > 0; ++i) {
    const int64_t batch = i / value.sizes[1];
    const int64_t place = batch * cache.sizes[1] + indices.as<int64_t>()[i];
    std::memcpy(element_at(cache, place * token), element_at(value, i * token), bytes);
  }
  return {};
}

// custom_sdpa(query, key, value, start_pos, attn_mask, drpout_p, is_causal, scale, *, out)
Status custom_sdpa_out(KernelContext& ctx, EValue* const* args) {
  const Options options{*args[3], *args[4], *args[5], *args[6], *args[7]};
  return attend_floating(ctx, args[0]->tensor(), args[1]->tensor(), args[2]->tensor(), options,
                         args[8]->tensor());
}

// sdpa_with_kv_cache(query, key, value, key_cache, value_cache, start_pos, seq_len, attn_mask,
//                    drpout_p, is_causal, scale, *, out):
// writes key and value into the caches and computes attention over these.
Status sdpa_with_kv_cache_out(KernelContext& ctx, EValue* const* args) {
  const int64_t start = args[5]->to_int();
  for (size_t k = 0; k < 2; ++k) {
    const Tensor& piece = args[1 + k]->tensor();
    Tensor& cache = args[3 + k]->tensor();
    RL_TRY(check_piece(ctx, piece, cache));
    RL_TRY(check_range(ctx, start, piece.sizes[1], cache.sizes[1]));
    RL_TRY(ctx.resize_like(cache, cache));
  }
  const Options options{*args[5], *args[7],  *args[8],
                        *args[9], *args[10], {&args[1]->tensor(), &args[2]->tensor()}};
  return attend_floating(ctx, args[0]->tensor(), args[3]->tensor(), args[4]->tensor(), options,
                         args[11]->tensor());
}

// custom_quantized_sdpa(query, key, value, start_pos, attn_mask, drpout_p, is_causal, scale,
//                       q_zero_points, q_scales, k_zero_points, k_scales, v_zero_points, v_scales,
//                       is_seq_at_dim_2, *, out)
Status custom_quantized_sdpa_out(KernelContext& ctx, EValue* const* args) {
  constexpr Names names[] = {{"query", "q_zero_points", "q_scales"},
                             {"key", "k_zero_points", "k_scales"},
                             {"value", "v_zero_points", "v_scales"}};
  Tensor& out = args[15]->tensor();
  RowQuantization quantized[3];
  for (size_t k = 0; k < 3; ++k) {
    RL_TRY(read_quantization(ctx, names[k], args[k]->tensor(), *args[8 + 2 * k], *args[9 + 2 * k],
                             &quantized[k]));
  }
  RL_TRY(check_dtype(ctx, "out", out, DType::Float32));
  const Options options{*args[3], *args[4], *args[5], *args[6], *args[7]};
  return attend(ctx, args[0]->tensor(), args[1]->tensor(), args[2]->tensor(), options, out,
                !args[14]->to_bool(), quantized);
}

}  // namespace rushlight::kernels
