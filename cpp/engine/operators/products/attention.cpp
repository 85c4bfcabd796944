// Scaled dot product attention.
#include "rushlight/engine/kernels/products/attention.h"

#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {
namespace {

HeadStrides strides_of(const View& view) {
  return {view.strides[0], view.strides[1], view.strides[2]};
}

constexpr int64_t kMostQueries = int64_t{1} << 31;

// Whether rows are dense and do not overlap or repeat, which bounds the work by the size of the
// memory. Batches and heads may repeat.
bool has_rows(const View& view) {
  return view.rank == 4 && (view.strides[3] == 1 || view.sizes[3] <= 1) &&
         (view.strides[2] >= view.sizes[3] || view.sizes[2] <= 1);
}

class AttentionOperator final : public Operator {
 public:
  Status prepare(const AttentionParameters& parameters, Setup& setup) {
    for (size_t i = 0; i < 3; ++i) views_[i] = setup.input(i);
    mask_ = setup.input(3);
    out_ = setup.output(0);
    for (const View* view : {views_[0], views_[1], views_[2], out_}) {
      if (view == nullptr || view->dtype != DType::Float32 || !has_rows(*view)) {
        return setup.refuse("its values are not [batch, heads, length, width] in rows of float32");
      }
    }
    if (has_repeats(*out_)) return setup.refuse("its result repeats elements");
    const View &q = *views_[0], &k = *views_[1], &v = *views_[2];
    Attention& a = attention_;
    a.batch = q.sizes[0];
    a.heads = q.sizes[1];
    a.key_heads = k.sizes[1];
    a.queries = q.sizes[2];
    a.keys = k.sizes[2];
    a.width = q.sizes[3];
    a.value_width = v.sizes[3];
    if (!fits(k, v) || a.queries > kMostQueries) return setup.refuse("its sizes do not fit");
    a.q_strides = strides_of(q);
    a.k_strides = strides_of(k);
    a.v_strides = strides_of(v);
    a.out_strides = strides_of(*out_);
    a.scale = parameters.scale;
    a.causal = parameters.causal;
    RL_TRY(read_mask(setup));
    setup.want_scratch(attention_scratch(a, setup.threads));
    return {};
  }

  Status run(const Frame& frame) const override {
    Attention attention = attention_;
    attention.q = frame.at(views_[0]);
    attention.k = frame.at(views_[1]);
    attention.v = frame.at(views_[2]);
    attention.mask = frame.at(mask_);
    attention.out = frame.at(out_);
    attend(attention, frame.scratch, frame.workers);
    return {};
  }

 private:
  bool fits(const View& k, const View& v) const {
    const Attention& a = attention_;
    return k.sizes[0] == a.batch && v.sizes[0] == a.batch && v.sizes[1] == a.key_heads &&
           v.sizes[2] == a.keys && k.sizes[3] == a.width && a.key_heads > 0 &&
           a.heads % a.key_heads == 0 && out_->sizes[0] == a.batch && out_->sizes[1] == a.heads &&
           out_->sizes[2] == a.queries && out_->sizes[3] == a.value_width;
  }

  Status read_mask(Setup& setup) {
    if (mask_ == nullptr) return {};
    const Attention& a = attention_;
    if (mask_->rank != 4 || mask_->dtype != DType::Float32 || mask_->sizes[0] != a.batch ||
        mask_->sizes[1] != a.heads || mask_->sizes[2] != a.queries || mask_->sizes[3] != a.keys) {
      return setup.refuse("its mask is not [batch, heads, queries, keys] of float32");
    }
    attention_.mask_strides = strides_of(*mask_);
    attention_.mask_column = mask_->strides[3];
    return {};
  }

  const View* views_[3] = {};
  const View* mask_ = nullptr;
  const View* out_ = nullptr;
  Attention attention_;
};

}  // namespace

Result<Operator*> make_operator(const AttentionParameters& parameters, Setup& setup) {
  return setup.make<AttentionOperator>(parameters);
}

}  // namespace rushlight::engine
