// What adapters of a language model's runner add to linear layers of the same rows.
#include "rushlight/engine/kernels/products/adapter.h"

#include <cstring>

#include "rushlight/delegate/kv_cache.h"
#include "rushlight/engine/operators/operator.h"
#include "rushlight/engine/types/cpu_engine_fb.h"

namespace rushlight::engine {
namespace {

constexpr uint32_t kMostRank = static_cast<uint32_t>(fb::cpu_engine::Limit::ADAPTER_RANK);

class AdapterOperator final : public Operator {
 public:
  Status prepare(const AdapterParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_dtypes({DType::Float32, DType::Float32, DType::Int64}, {DType::Float32}));
    before_ = setup.input(0);
    x_ = setup.input(1);
    sequences_ = setup.input(2);
    y_ = setup.output(0);
    Rows before;
    RL_TRY(setup.read_rows("its first input", *before_, &before));
    RL_TRY(setup.read_rows("its rows", *x_, &x_rows_));
    RL_TRY(setup.read_rows("its result", *y_, &y_rows_));
    sites_ = parameters.sites;
    widths_ = parameters.widths;
    rank_ = parameters.rank;
    int64_t width = 0;
    bool is_valid =
        !sites_.empty() && sites_.size() == widths_.size() && rank_ > 0 && rank_ <= kMostRank;
    for (size_t i = 0; i < widths_.size() && is_valid; ++i) {
      is_valid = sites_[i] >= 0 && widths_[i] > 0 && widths_[i] <= y_rows_.width - width;
      width += is_valid ? widths_[i] : 0;
    }
    if (!is_valid || width != y_rows_.width) return setup.refuse("its layers do not fit");
    before_stride_ = before.stride;
    const bool fits = before.width == width && before.count == y_rows_.count &&
                      x_rows_.count == y_rows_.count && sequences_->rank == 1 &&
                      sequences_->sizes[0] == y_rows_.count;
    if (!fits) return setup.refuse("its sizes do not fit");
    setup.want_scratch(static_cast<size_t>(y_rows_.count) * rank_ * sizeof(float));
    return {};
  }

  Status run(const Frame& frame) const override {
    if (frame.kv_cache == nullptr) {
      return frame.message->fail(Code::InvalidState,
                                 "it needs the sequences of a language model's runner: load the "
                                 "program with rushlight.llm.load");
    }
    keep_result(frame);
    const KvCache& cache = *frame.kv_cache;
    int64_t row = 0;
    while (row < y_rows_.count) {
      const AdapterWeights* adapter = nullptr;
      RL_TRY(find(frame, cache, row, &adapter));
      int64_t end = row + 1;
      for (; end < y_rows_.count; ++end) {
        const AdapterWeights* next = nullptr;
        RL_TRY(find(frame, cache, end, &next));
        if (next != adapter) break;
      }
      if (adapter != nullptr) RL_TRY(add(frame, *adapter, row, end));
      row = end;
    }
    return {};
  }

 private:
  // The result before the adapters, which mostly lies where it is wanted.
  void keep_result(const Frame& frame) const {
    const float* from = frame.at(before_);
    float* to = frame.at(y_);
    if (from == to && before_stride_ == y_rows_.stride) return;
    for (int64_t i = 0; i < y_rows_.count; ++i) {
      std::memmove(to + i * y_rows_.stride, from + i * before_stride_,
                   static_cast<size_t>(y_rows_.width) * sizeof(float));
    }
  }

  // The adapter of a row; nullptr for none.
  Status find(const Frame& frame, const KvCache& cache, int64_t row,
              const AdapterWeights** adapter) const {
    const int64_t sequence = frame.at<int64_t>(sequences_)[row * sequences_->strides[0]];
    if (sequence < 0 || static_cast<uint64_t>(sequence) >= cache.sequences.size()) {
      return frame.message->fail(
          Code::InvalidArgument, "sequences[%lld] is %lld, but the runner has %zu sequences",
          static_cast<long long>(row), static_cast<long long>(sequence), cache.sequences.size());
    }
    *adapter = cache.sequences[static_cast<size_t>(sequence)].adapter;
    return {};
  }

  // Adds an adapter to the rows begin..end-1.
  Status add(const Frame& frame, const AdapterWeights& adapter, int64_t begin, int64_t end) const {
    AdapterProduct product;
    product.rows = end - begin;
    product.x = frame.at(x_) + begin * x_rows_.stride;
    product.x_stride = x_rows_.stride;
    product.y = frame.at(y_) + begin * y_rows_.stride;
    product.y_stride = y_rows_.stride;
    for (size_t i = 0; i < sites_.size(); product.y += widths_[i], ++i) {
      SiteWeights weights;
      if (static_cast<uint64_t>(sites_[i]) < adapter.sites.size()) {
        weights = adapter.sites[static_cast<size_t>(sites_[i])];
      }
      if (weights.a == nullptr) continue;
      if (weights.in != x_rows_.width || weights.out != widths_[i] || weights.rank > rank_) {
        return frame.message->fail(
            Code::InvalidArgument,
            "the adapter of site %lld has rank %u, %u inputs and %u outputs; the layer takes up to "
            "%u, and has %lld and %lld",
            static_cast<long long>(sites_[i]), weights.rank, weights.in, weights.out, rank_,
            static_cast<long long>(x_rows_.width), static_cast<long long>(widths_[i]));
      }
      add_adapter(product, weights, static_cast<float*>(frame.scratch), frame.workers);
    }
    return {};
  }

  const View *before_ = nullptr, *x_ = nullptr, *sequences_ = nullptr, *y_ = nullptr;
  Rows x_rows_, y_rows_;
  int64_t before_stride_ = 0;
  Span<const int64_t> sites_, widths_;
  uint32_t rank_ = 0;
};

}  // namespace

Result<Operator*> make_operator(const AdapterParameters& parameters, Setup& setup) {
  return setup.make<AdapterOperator>(parameters);
}

}  // namespace rushlight::engine
