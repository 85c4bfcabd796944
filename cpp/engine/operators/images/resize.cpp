// Images at other sizes.
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/operators/images/geometry.h"

namespace rushlight::engine {
namespace {

class ResizeOperator final : public Operator {
 public:
  Status prepare(const ResizeParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(1, 1));
    in_ = setup.input(0);
    out_ = setup.output(0);
    if (!is_channels_last(*in_) || !is_channels_last(*out_)) {
      return setup.refuse("its images do not lie channels last");
    }
    ConvGeometry& g = resize_.geometry;
    g.batch = in_->sizes[0];
    g.in_channels = g.out_channels = in_->sizes[1];
    g.in_height = in_->sizes[2];
    g.in_width = in_->sizes[3];
    g.out_height = out_->sizes[2];
    g.out_width = out_->sizes[3];
    if (out_->sizes[0] != g.batch || out_->sizes[1] != g.in_channels ||
        (out_->numel > 0 && in_->numel == 0)) {
      return setup.refuse("the sizes of its images do not fit");
    }
    resize_.align_corners = parameters.align_corners;
    return {};
  }

  Status run(const Frame& frame) const override {
    Resize resize = resize_;
    resize.in = frame.at(in_);
    resize.out = frame.at(out_);
    if (out_->numel > 0) resize_bilinear(resize, frame.workers);
    return {};
  }

 private:
  const View *in_ = nullptr, *out_ = nullptr;
  Resize resize_;
};

}  // namespace

Result<Operator*> make_operator(const ResizeParameters& parameters, Setup& setup) {
  return setup.make<ResizeOperator>(parameters);
}

}  // namespace rushlight::engine
