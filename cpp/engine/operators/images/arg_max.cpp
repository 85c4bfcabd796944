// The maxima of windows, and where they are.
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/operators/images/geometry.h"

namespace rushlight::engine {
namespace {

class ArgMaxOperator final : public Operator {
 public:
  Status prepare(const ArgMaxParameters& parameters, Setup& setup) {
    in_ = setup.input(0);
    out_ = setup.output(0);
    places_ = setup.output(1);
    if (in_ == nullptr || out_ == nullptr || places_ == nullptr) {
      return setup.refuse("a value is missing");
    }
    if (in_->dtype != DType::Float32 || out_->dtype != DType::Float32 ||
        places_->dtype != DType::Int64 || has_repeats(*in_)) {
      return setup.refuse("its values are of other dtypes, or repeat elements");
    }
    Window window;
    for (size_t d = 0; d < 2; ++d) window.kernel[d] = window.stride[d] = parameters.kernel[d];
    ConvGeometry& g = arg_max_.geometry;
    RL_TRY(read_geometry(setup, *in_, *out_, window, false, &g));
    if (!is_channels_last(*in_) || !is_channels_last(*places_) || !same_sizes(*out_, *places_) ||
        g.in_channels != g.out_channels) {
      return setup.refuse("its values have other sizes, or do not lie channels last");
    }
    return {};
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
