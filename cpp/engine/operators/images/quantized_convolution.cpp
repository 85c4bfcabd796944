// Convolutions of uint8 over two dimensions.
#include "rushlight/engine/kernels/images/quantized_convolution.h"

#include "rushlight/engine/loops/products/dot.h"
#include "rushlight/engine/operators/images/geometry.h"
#include "rushlight/engine/operators/quantized_results.h"

namespace rushlight::engine {
namespace {

class ConvolveBytes final : public Operator {
 public:
  Status prepare(const QuantizedConvolutionParameters& parameters, Setup& setup) {
    RL_TRY(check_result_dtypes(setup));
    in_ = setup.input(0);
    weights_ = setup.input(1);
    const View& out = *setup.output(0);
    depthwise_ = parameters.kind == ConvolutionKind::Depthwise;
    if (parameters.kind != ConvolutionKind::Dense && !depthwise_) {
      return setup.refuse("its kind is %d, but convolutions of integers are dense or depthwise",
                          static_cast<int>(parameters.kind));
    }
    ConvGeometry& g = convolution_.geometry;
    RL_TRY(read_geometry(setup, *in_, out, parameters.window, false, &g));
    RL_TRY(read_groups(setup, parameters.groups, depthwise_, &g));
    RL_TRY(check_weights(setup));
    RL_TRY(read_strides(setup));
    convolution_.padding_value = parameters.padding_value;
    setup.want_scratch(depthwise_
                           ? quantized_depthwise_scratch(g)
                           : quantized_convolution_scratch(g, convolution_.in_channel_stride));
    RL_TRY(results_.prepare(setup, parameters, g.batch * g.out_height * g.out_width, g.out_channels,
                            g.out_channels));
    if (!results_.has_residual() || !depthwise_) return {};
    return setup.refuse("it has a residual, which only dense convolutions may have");
  }

  Status run(const Frame& frame) const override {
    BoundTiles bound;
    QuantizedConvolution convolution = convolution_;
    convolution.in = frame.at<uint8_t>(in_);
    convolution.weights = frame.at<void>(weights_);
    convolution.results = results_.bind(frame, bound);
    if (depthwise_) {
      convolve_depthwise(convolution, frame.scratch, frame.workers);
    } else {
      convolve(convolution, frame.scratch, frame.workers);
    }
    return {};
  }

 private:
  Status check_weights(const Setup& setup) const {
    const ConvGeometry& g = convolution_.geometry;
    const int64_t inputs = g.in_channels / g.groups;
    const int64_t outputs = g.out_channels / g.groups;
    const int64_t terms = bounded_product({g.kernel_y, g.kernel_x, inputs});
    RL_TRY(check_terms(setup, terms));
    const int64_t bytes =
        depthwise_ ? bounded_product({g.kernel_y, g.kernel_x, panels_of(g.out_channels), kPanel})
                   : bounded_product({g.kernel_y, g.kernel_x, quads_of(inputs), kQuadBytes,
                                      panels_of(outputs), g.groups});
    return setup.check_elements("its weights", *weights_, bytes);
  }

  Status read_strides(const Setup& setup) {
    ConvGeometry& g = convolution_.geometry;
    RL_TRY(setup.check_no_repeats("input", 0, *in_));
    if (depthwise_) RL_TRY(check_channels_last(setup, "its image", *in_));
    convolution_.in_batch_stride = in_->strides[0];
    convolution_.in_row_stride = in_->strides[2];
    convolution_.in_column_stride = in_->strides[3];
    convolution_.in_channel_stride = g.in_channels > 1 ? in_->strides[1] : 1;
    if (!depthwise_) {
      drop_idle_strides(&g);
      return {};
    }
    convolution_.in_channel_stride = 1;
    convolution_.in_column_stride = g.in_channels;
    convolution_.in_row_stride = g.in_width * g.in_channels;
    convolution_.in_batch_stride = g.in_height * convolution_.in_row_stride;
    return {};
  }

  bool depthwise_ = false;
  const View* in_ = nullptr;
  const View* weights_ = nullptr;
  QuantizedConvolution convolution_;
  ResultsPlan results_;
};

}  // namespace

Result<Operator*> make_operator(const QuantizedConvolutionParameters& parameters, Setup& setup) {
  return setup.make<ConvolveBytes>(parameters);
}

}  // namespace rushlight::engine
