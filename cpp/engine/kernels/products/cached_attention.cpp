#include "rushlight/engine/kernels/products/cached_attention.h"

#include <cmath>

#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/types/kv_page.h"

namespace rushlight::engine {
namespace {

struct Head {
  const CachedAttention& a;
  const KvCache& cache;
  KvPageShape shape;
  int64_t head;

  float* start(int64_t token, int64_t position) const {
    uint8_t* const page =
        cache.sequences[static_cast<size_t>(a.sequence(token))].pages[position / kKvTokens];
    const size_t index = static_cast<size_t>(a.layer * a.key_heads + head);
    return reinterpret_cast<float*>(page + index * shape.head_bytes);
  }
  float* key(int64_t token, int64_t position) const {
    const int64_t at = position % kKvTokens;
    return start(token, position) + at / kKvPanel * kKvPanel * a.width + at % kKvPanel;
  }
  float* value(int64_t token, int64_t position) const {
    return start(token, position) + kKvTokens * a.width + position % kKvTokens * shape.value_stride;
  }
  void store(int64_t token) const {
    const int64_t position = a.position(token);
    float* const to = key(token, position);
    const float* const k = a.k + token * a.k_strides.token + head * a.k_strides.head;
    for (int64_t w = 0; w < a.width; ++w) to[w * kKvPanel] = k[w];
    float* const values = value(token, position);
    const float* const v = a.v + token * a.v_strides.token + head * a.v_strides.head;
    for (int64_t w = 0; w < a.value_width; ++w) values[w] = v[w];
    for (int64_t w = a.value_width; w < shape.value_stride; ++w) values[w] = 0;
  }
  float score(int64_t token, const float* q, int64_t position) const {
    const float* const k = key(token, position);
    float sum = 0;
    for (int64_t w = 0; w < a.width; ++w) sum += q[w] * k[w * kKvPanel];
    sum *= a.scale;
    return a.softcap > 0 ? a.softcap * std::tanh(sum / a.softcap) : sum;
  }
  void attend(int64_t token, int64_t query_head) const {
    const float* const q = a.q + token * a.q_strides.token + query_head * a.q_strides.head;
    float* const out = a.out + token * a.out_strides.token + query_head * a.out_strides.head;
    const int64_t last = a.position(token);
    const int64_t first = a.window > 0 && last + 1 > a.window ? last + 1 - a.window : 0;
    float max = -__builtin_inff();
    float sum = 0;
    for (int64_t w = 0; w < a.value_width; ++w) out[w] = 0;
    for (int64_t position = first; position <= last; ++position) {
      const float s = score(token, q, position);
      const float next = s > max ? s : max;
      const float factor = std::exp(max - next);
      const float weight = std::exp(s - next);
      sum = sum * factor + weight;
      const float* const v = value(token, position);
      for (int64_t w = 0; w < a.value_width; ++w) out[w] = out[w] * factor + weight * v[w];
      max = next;
    }
    for (int64_t w = 0; w < a.value_width; ++w) out[w] /= sum;
  }
};

}  // namespace

size_t cached_attention_scratch(const CachedAttention&, size_t) { return 0; }

void attend_to_cache(const CachedAttention& a, const KvCache& cache, void*, Workers* workers) {
  const KvPageShape shape = kv_page_shape(cache.layout);
  const int64_t group = a.heads / a.key_heads;
  share_out(workers, a.key_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const Head one = {a, cache, shape, head};
      for (int64_t token = 0; token < a.tokens; ++token) one.store(token);
      for (int64_t token = 0; token < a.tokens; ++token) {
        for (int64_t h = 0; h < group; ++h) one.attend(token, head * group + h);
      }
    }
  });
}

}  // namespace rushlight::engine
