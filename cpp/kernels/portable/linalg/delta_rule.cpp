// Linear attention with a decaying state: the gated delta rule with one decay for each channel of
// the keys (Kimi Team, Kimi Linear: an expressive, efficient attention architecture, 2025).
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"

namespace rushlight::kernels {
namespace {

// One head: its sequences, and its state [K, V], which is updated.
struct Head {
  const float* query;  // [T, K]
  const float* key;    // [T, K]
  const float* value;  // [T, V]
  const float* decay;  // [T, K]
  const float* beta;   // [T]
  float* state;
  float* out;  // [T, V]
};

// For each token the state decays, is corrected towards the value for the key, and is read by the
// query. `out` temporarily holds what the state gives for the key.
void run_head(const Head& head, int64_t tokens, int64_t keys, int64_t values) {
  for (int64_t t = 0; t < tokens; ++t) {
    const float* k = head.key + t * keys;
    const float* q = head.query + t * keys;
    const float* v = head.value + t * values;
    float* out = head.out + t * values;
    std::fill(out, out + values, 0.0F);
    for (int64_t i = 0; i < keys; ++i) {
      float* row = head.state + i * values;
      const float decay = head.decay[t * keys + i];
      for (int64_t j = 0; j < values; ++j) {
        row[j] *= decay;
        out[j] += row[j] * k[i];
      }
    }
    float* delta = out;
    for (int64_t j = 0; j < values; ++j) delta[j] = (v[j] - delta[j]) * head.beta[t];
    for (int64_t i = 0; i < keys; ++i) {
      float* row = head.state + i * values;
      for (int64_t j = 0; j < values; ++j) row[j] += k[i] * delta[j];
    }
    std::fill(out, out + values, 0.0F);
    for (int64_t i = 0; i < keys; ++i) {
      const float* row = head.state + i * values;
      for (int64_t j = 0; j < values; ++j) out[j] += row[j] * q[i];
    }
  }
}

Status check_shape(KernelContext& ctx, const char* name, const Tensor& tensor,
                   std::initializer_list<int32_t> shape) {
  RL_TRY(check_dtype(ctx, name, tensor, DType::Float32));
  const Span<const int32_t> wanted(shape.begin(), shape.size());
  bool fits = tensor.rank == wanted.size() && tensor.is_contiguous();
  for (size_t d = 0; fits && d < tensor.rank; ++d) fits = tensor.sizes[d] == wanted[d];
  if (fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "%s has shape %s, but beside query and value it must be %s, in row-major order",
                  name, ShapeText(tensor.shape()).text(), ShapeText(wanted).text());
}

}  // namespace

// channelwise_gated_delta_rule(query, key, value, decay, beta, initial_state, *, out,
//                              final_state_out)
Status channelwise_gated_delta_rule_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& query = args[0]->tensor();
  const Tensor& value = args[2]->tensor();
  const Tensor& initial = args[5]->tensor();
  Tensor& out = args[6]->tensor();
  Tensor& state = args[7]->tensor();
  RL_TRY(check_rank(ctx, "query", query, 4));
  RL_TRY(check_rank(ctx, "value", value, 4));
  const int32_t b = query.sizes[0];
  const int32_t h = query.sizes[1];
  const int32_t t = query.sizes[2];
  const int32_t k = query.sizes[3];
  const int32_t v = value.sizes[3];
  RL_TRY(check_shape(ctx, "query", query, {b, h, t, k}));
  RL_TRY(check_shape(ctx, "key", args[1]->tensor(), {b, h, t, k}));
  RL_TRY(check_shape(ctx, "value", value, {b, h, t, v}));
  RL_TRY(check_shape(ctx, "decay", args[3]->tensor(), {b, h, t, k}));
  RL_TRY(check_shape(ctx, "beta", args[4]->tensor(), {b, h, t}));
  RL_TRY(check_shape(ctx, "initial_state", initial, {b, h, k, v}));
  RL_TRY(check_dtype(ctx, "out", out, DType::Float32));
  RL_TRY(check_dtype(ctx, "final_state_out", state, DType::Float32));
  RL_TRY(ctx.resize_like(out, value));
  RL_TRY(ctx.resize_like(state, initial));
  if (!out.is_contiguous() || !state.is_contiguous()) {
    return ctx.fail(Code::NotSupported, "the outputs do not lie in row-major order");
  }
  if (state.data != initial.data && initial.numel > 0) {
    std::memcpy(state.data, initial.data, initial.nbytes());
  }
  if (b == 0 || h == 0) return {};  // other sizes may have any value then
  const int64_t each = int64_t{t} * k * v + 1;
  ctx.parallel(int64_t{b} * h, kGrain / each + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t keys = i * t * k;
      const int64_t values = i * t * v;
      const Head head = {query.as<const float>() + keys,
                         args[1]->tensor().as<const float>() + keys,
                         value.as<const float>() + values,
                         args[3]->tensor().as<const float>() + keys,
                         args[4]->tensor().as<const float>() + i * t,
                         state.as<float>() + i * k * v,
                         out.as<float>() + values};
      run_head(head, t, k, v);
    }
  });
  return {};
}

}  // namespace rushlight::kernels
