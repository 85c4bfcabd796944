// Softmax, and reductions over neighbouring dimensions.
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/operators/unary.h"

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

class SoftmaxOperator final : public UnaryOperator<Softmax, softmax> {
 public:
  Status prepare(const SoftmaxParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(1, 1));
    in_ = setup.input(0);
    out_ = setup.output(0);
    const size_t dim = parameters.dim;
    if (dim >= in_->rank) {
      return setup.refuse("its dimension is %zu, but its input has %u", dim, unsigned{in_->rank});
    }
    RL_TRY(setup.check_same_sizes("its input", *in_, "its result", *out_));
    RL_TRY(setup.check_elements("its input", *in_, in_->numel));
    RL_TRY(setup.check_elements("its result", *out_, out_->numel));
    const Split sizes = split(*in_, dim, dim + 1);
    job_.outer = sizes.outer;
    job_.width = sizes.width;
    job_.inner = sizes.inner;
    job_.log = parameters.log;
    return {};
  }
};

class ReduceOperator final : public UnaryOperator<Reduce, reduce> {
 public:
  Status prepare(const ReductionParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(1, 1));
    in_ = setup.input(0);
    out_ = setup.output(0);
    if (parameters.first >= parameters.last || parameters.last > in_->rank) {
      return setup.refuse("its dimensions are %zu to %zu, but its input has %u", parameters.first,
                          parameters.last, unsigned{in_->rank});
    }
    RL_TRY(setup.check_elements("its input", *in_, in_->numel));
    const Split sizes = split(*in_, parameters.first, parameters.last);
    RL_TRY(setup.check_elements("its result", *out_, sizes.outer * sizes.inner));
    job_.kind = parameters.kind;
    const bool is_extreme = job_.kind == Reduction::Max || job_.kind == Reduction::Min;
    if (is_extreme && sizes.width == 0) {
      return setup.refuse("it is a maximum or minimum over no elements");
    }
    job_.outer = sizes.outer;
    job_.width = sizes.width;
    job_.inner = sizes.inner;
    return {};
  }
};

}  // namespace

Result<Operator*> make_operator(const SoftmaxParameters& parameters, Setup& setup) {
  return setup.make<SoftmaxOperator>(parameters);
}

Result<Operator*> make_operator(const ReductionParameters& parameters, Setup& setup) {
  return setup.make<ReduceOperator>(parameters);
}

}  // namespace rushlight::engine
