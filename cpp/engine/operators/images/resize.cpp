// Images at other sizes.
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/operators/images/geometry.h"
#include "rushlight/engine/operators/unary.h"

namespace rushlight::engine {
namespace {

class ResizeOperator final : public UnaryOperator<Resize, resize_bilinear> {
 public:
  Status prepare(const ResizeParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(1, 1));
    in_ = setup.input(0);
    out_ = setup.output(0);
    RL_TRY(check_channels_last(setup, "its image", *in_));
    RL_TRY(check_channels_last(setup, "its result", *out_));
    ConvGeometry& g = job_.geometry;
    g.batch = in_->sizes[0];
    g.in_channels = g.out_channels = in_->sizes[1];
    g.in_height = in_->sizes[2];
    g.in_width = in_->sizes[3];
    g.out_height = out_->sizes[2];
    g.out_width = out_->sizes[3];
    if (out_->sizes[0] != g.batch || out_->sizes[1] != g.in_channels ||
        (out_->numel > 0 && in_->numel == 0)) {
      return setup.refuse(
          "its image has sizes %s and its result %s: batch and channels must be equal, and an "
          "empty "
          "image has an empty result",
          text_of(*in_).text(), text_of(*out_).text());
    }
    job_.align_corners = parameters.align_corners;
    return {};
  }
};

}  // namespace

Result<Operator*> make_operator(const ResizeParameters& parameters, Setup& setup) {
  return setup.make<ResizeOperator>(parameters);
}

}  // namespace rushlight::engine
