// Softmax, and reductions over neighbouring dimensions.
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {
namespace {

// The products of the sizes before, in and after dimensions first..last-1.
struct Split {
  int64_t outer = 1;
  int64_t width = 1;
  int64_t inner = 1;
};

Split split(const View& view, size_t first, size_t last) {
  Split sizes;
  for (size_t d = 0; d < view.rank; ++d) {
    (d < first ? sizes.outer : d < last ? sizes.width : sizes.inner) *= view.sizes[d];
  }
  return sizes;
}

class SoftmaxOperator final : public Operator {
 public:
  Status prepare(const SoftmaxParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(1, 1));
    in_ = setup.input(0);
    out_ = setup.output(0);
    const size_t dim = parameters.dim;
    if (dim >= in_->rank || !same_sizes(*in_, *out_) || !is_dense(*in_) || !is_dense(*out_)) {
      return setup.refuse("its values have other sizes, or gaps");
    }
    const Split sizes = split(*in_, dim, dim + 1);
    softmax_.outer = sizes.outer;
    softmax_.width = sizes.width;
    softmax_.inner = sizes.inner;
    softmax_.log = parameters.log;
    return {};
  }

  Status run(const Frame& frame) const override {
    Softmax kernel = softmax_;
    kernel.in = frame.at(in_);
    kernel.out = frame.at(out_);
    softmax(kernel, frame.workers);
    return {};
  }

 private:
  const View* in_ = nullptr;
  const View* out_ = nullptr;
  Softmax softmax_;
};

class ReduceOperator final : public Operator {
 public:
  Status prepare(const ReductionParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(1, 1));
    in_ = setup.input(0);
    out_ = setup.output(0);
    if (parameters.first >= parameters.last || parameters.last > in_->rank || !is_dense(*in_) ||
        !is_dense(*out_)) {
      return setup.refuse("its dimensions are wrong, or its values have gaps");
    }
    const Split sizes = split(*in_, parameters.first, parameters.last);
    if (out_->numel != sizes.outer * sizes.inner) return setup.refuse("its result has other sizes");
    reduce_.kind = parameters.kind;
    const bool is_extreme = reduce_.kind == Reduction::Max || reduce_.kind == Reduction::Min;
    if (is_extreme && sizes.width == 0) return setup.refuse("it has no elements to choose from");
    reduce_.outer = sizes.outer;
    reduce_.width = sizes.width;
    reduce_.inner = sizes.inner;
    return {};
  }

  Status run(const Frame& frame) const override {
    Reduce kernel = reduce_;
    kernel.in = frame.at(in_);
    kernel.out = frame.at(out_);
    reduce(kernel, frame.workers);
    return {};
  }

 private:
  const View* in_ = nullptr;
  const View* out_ = nullptr;
  Reduce reduce_;
};

}  // namespace

Result<Operator*> make_operator(const SoftmaxParameters& parameters, Setup& setup) {
  return setup.make<SoftmaxOperator>(parameters);
}

Result<Operator*> make_operator(const ReductionParameters& parameters, Setup& setup) {
  return setup.make<ReduceOperator>(parameters);
}

}  // namespace rushlight::engine
