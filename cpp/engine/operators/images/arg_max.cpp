// The maxima of windows, and where they are.
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/operators/images/geometry.h"

namespace rushlight::engine {
namespace {

class ArgMaxOperator final : public Operator {
 public:
  Status prepare(const ArgMaxParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_dtypes({DType::Float32}, {DType::Float32, DType::Int64}));
    in_ = setup.input(0);
    out_ = setup.output(0);
    places_ = setup.output(1);
    RL_TRY(setup.check_no_repeats("input", 0, *in_));
    Window window;
    for (size_t d = 0; d < 2; ++d) window.kernel[d] = window.stride[d] = parameters.kernel[d];
    ConvGeometry& g = arg_max_.geometry;
    RL_TRY(read_geometry(setup, *in_, *out_, window, false, &g));
    RL_TRY(check_channels_last(setup, "its image", *in_));
    RL_TRY(check_channels_last(setup, "its indices", *places_));
    if (g.in_channels != g.out_channels) {
      return setup.refuse("its image has %lld channels and its result %lld: they must be equal",
                          static_cast<long long>(g.in_channels),
                          static_cast<long long>(g.out_channels));
    }
    return setup.check_same_sizes("its result", *out_, "its indices", *places_);
  }

  Status run(const Frame& frame) const override {
    ArgMax job = arg_max_;
    job.in = frame.at(in_);
    job.out = frame.at(out_);
    job.places = frame.at<int64_t>(places_);
    arg_max(job, frame.workers);
    return {};
  }

 private:
  const View *in_ = nullptr, *out_ = nullptr, *places_ = nullptr;
  ArgMax arg_max_;
};

}  // namespace

Result<Operator*> make_operator(const ArgMaxParameters& parameters, Setup& setup) {
  return setup.make<ArgMaxOperator>(parameters);
}

}  // namespace rushlight::engine
