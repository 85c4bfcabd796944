// Attention over the key-value cache of a language model's runner.
#include "rushlight/engine/kernels/products/cached_attention.h"

#include <algorithm>

#include "rushlight/engine/operators/operator.h"
#include "rushlight/engine/types/kv_page.h"

namespace rushlight::engine {
namespace {

bool has_rows(const View& view) {
  return view.rank == 3 && (view.strides[2] == 1 || view.sizes[2] <= 1);
}

TokenStrides strides_of(const View& view) { return {view.strides[0], view.strides[1]}; }

class CachedAttentionOperator final : public Operator {
 public:
  Status prepare(const CachedAttentionParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_dtypes(
        {DType::Float32, DType::Float32, DType::Float32, DType::Int64, DType::Int64},
        {DType::Float32}));
    for (size_t i = 0; i < kInputs; ++i) views_[i] = setup.input(i);
    out_ = setup.output(0);
    for (const View* view : {views_[0], views_[1], views_[2], out_}) {
      if (!has_rows(*view))
        return setup.refuse("its values are not [tokens, heads, width] in rows");
    }
    if (has_repeats(*out_)) return setup.refuse("its result repeats elements");
    CachedAttention& a = attention_;
    a.tokens = views_[0]->sizes[0];
    a.heads = views_[0]->sizes[1];
    a.width = views_[0]->sizes[2];
    a.key_heads = views_[1]->sizes[1];
    a.value_width = views_[2]->sizes[2];
    if (!fits()) return setup.refuse("its sizes do not fit");
    a.q_strides = strides_of(*views_[0]);
    a.k_strides = strides_of(*views_[1]);
    a.v_strides = strides_of(*views_[2]);
    a.out_strides = strides_of(*out_);
    a.positions_stride = views_[3]->strides[0];
    a.sequences_stride = views_[4]->strides[0];
    a.layer = parameters.layer;
    a.scale = parameters.scale;
    a.window = parameters.window;
    a.softcap = parameters.softcap;
    if (a.window < 0) return setup.refuse("its window is negative");
    if (!(a.softcap >= 0)) return setup.refuse("its softcap is no positive number");
    setup.want_scratch(cached_attention_scratch(a, setup.threads));
    return {};
  }

  Status run(const Frame& frame) const override {
    CachedAttention attention = attention_;
    attention.q = frame.at(views_[0]);
    attention.k = frame.at(views_[1]);
    attention.v = frame.at(views_[2]);
    attention.positions = frame.at<int64_t>(views_[3]);
    attention.sequences = frame.at<int64_t>(views_[4]);
    attention.out = frame.at(out_);
    RL_TRY(check_cache(frame));
    RL_TRY(check_tokens(attention, *frame.kv_cache, *frame.message));
    RL_TRY(check_runs(attention, static_cast<int64_t*>(frame.scratch), *frame.message));
    attend_to_cache(attention, *frame.kv_cache, frame.scratch, frame.workers);
    return {};
  }

 private:
  static constexpr size_t kInputs = 5;

  bool fits() const {
    const CachedAttention& a = attention_;
    for (size_t i = 1; i < kInputs; ++i) {
      if (views_[i]->rank != (i < 3 ? 3 : 1) || views_[i]->sizes[0] != a.tokens) return false;
    }
    return views_[1]->sizes[2] == a.width && views_[2]->sizes[1] == a.key_heads &&
           a.key_heads > 0 && a.heads > 0 && a.heads % a.key_heads == 0 && a.width > 0 &&
           a.width <= kKvWidth && a.value_width > 0 && a.value_width <= kKvWidth &&
           out_->sizes[0] == a.tokens && out_->sizes[1] == a.heads &&
           out_->sizes[2] == a.value_width;
  }

  Status check_cache(const Frame& frame) const {
    const CachedAttention& a = attention_;
    if (frame.kv_cache == nullptr) {
      return frame.message->fail(Code::InvalidState,
                                 "it needs the key-value cache of a language model's runner: load "
                                 "the program with rushlight.llm.load");
    }
    const KvLayout& layout = frame.kv_cache->layout;
    if (a.layer < layout.layers && a.key_heads == layout.heads && a.width == layout.width &&
        a.value_width == layout.value_width && kv_page_bytes(layout) > 0) {
      return {};
    }
    return frame.message->fail(
        Code::InvalidArgument,
        "layer %lld with %lld heads of keys of width %lld and values of width %lld does not fit "
        "the "
        "key-value cache of %u layers with %u heads, widths %u and %u, in %s",
        static_cast<long long>(a.layer), static_cast<long long>(a.key_heads),
        static_cast<long long>(a.width), static_cast<long long>(a.value_width), layout.layers,
        layout.heads, layout.width, layout.value_width, dtype_name(layout.dtype));
  }

  // Sequences and positions that the cache has; the tokens of a sequence have consecutive ones,
  // since a token sees the keys of all before it.
  static Status check_tokens(const CachedAttention& a, const KvCache& cache, Message& message) {
    for (int64_t i = 0; i < a.tokens; ++i) {
      const int64_t sequence = a.sequence(i);
      const int64_t position = a.position(i);
      if (sequence < 0 || static_cast<uint64_t>(sequence) >= cache.sequences.size()) {
        return message.fail(Code::InvalidArgument,
                            "sequences[%lld] is %lld, but the key-value cache has %zu sequences",
                            static_cast<long long>(i), static_cast<long long>(sequence),
                            cache.sequences.size());
      }
      const KvSequence& own = cache.sequences[static_cast<size_t>(sequence)];
      if (position < 0 || static_cast<uint64_t>(position) / kKvTokens >= own.n_pages) {
        return message.fail(
            Code::InvalidArgument,
            "positions[%lld] is %lld, but sequence %lld has %zu pages for positions up to %lld",
            static_cast<long long>(i), static_cast<long long>(position),
            static_cast<long long>(sequence), own.n_pages,
            static_cast<long long>(own.n_pages) * kKvTokens - 1);
      }
      if (!begins_run(a, i) && position != a.position(i - 1) + 1) {
        return message.fail(
            Code::InvalidArgument,
            "positions[%lld] is %lld after position %lld of the same sequence: they "
            "must be consecutive",
            static_cast<long long>(i), static_cast<long long>(position),
            static_cast<long long>(a.position(i - 1)));
      }
    }
    return {};
  }

  // Whether a token is the first of a run of one sequence.
  static bool begins_run(const CachedAttention& a, int64_t token) {
    return token == 0 || a.sequence(token - 1) != a.sequence(token);
  }

  // Each sequence has one run of tokens. `sequences` is scratch memory for a number of each token.
  static Status check_runs(const CachedAttention& a, int64_t* sequences, Message& message) {
    int64_t runs = 0;
    bool ascend = true;
    for (int64_t i = 0; i < a.tokens; ++i) {
      if (!begins_run(a, i)) continue;
      ascend = ascend && (runs == 0 || sequences[runs - 1] < a.sequence(i));
      sequences[runs++] = a.sequence(i);
    }
    if (ascend) return {};
    std::sort(sequences, sequences + runs);
    const int64_t* const twice = std::adjacent_find(sequences, sequences + runs);
    if (twice == sequences + runs) return {};
    int64_t begun = 0;
    int64_t token = 0;
    for (; begun < 2; ++token) begun += a.sequence(token) == *twice && begins_run(a, token) ? 1 : 0;
    return message.fail(Code::InvalidArgument,
                        "sequences[%lld] is %lld, which has tokens before those of another "
                        "sequence: the tokens of a sequence must be neighbours",
                        static_cast<long long>(token - 1), static_cast<long long>(*twice));
  }

  const View* views_[kInputs] = {};
  const View* out_ = nullptr;
  CachedAttention attention_;
};

}  // namespace

Result<Operator*> make_operator(const CachedAttentionParameters& parameters, Setup& setup) {
  return setup.make<CachedAttentionOperator>(parameters);
}

}  // namespace rushlight::engine
