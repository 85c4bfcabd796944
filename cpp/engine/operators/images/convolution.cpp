// Convolutions over two dimensions.
#include "rushlight/engine/kernels/images/convolution.h"

#include "rushlight/engine/operators/epilogue.h"
#include "rushlight/engine/operators/images/geometry.h"

namespace rushlight::engine {
namespace {

class Convolve final : public Operator {
 public:
  Status prepare(const ConvolutionParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(3, 2));
    in_ = setup.input(0);
    weights_ = setup.input(1);
    out_ = setup.output(0);
    kind_ = parameters.kind;
    ConvGeometry& g = convolution_.geometry;
    RL_TRY(read_geometry(setup, *in_, *out_, parameters.window,
                         kind_ == ConvolutionKind::Transposed, &g));
    RL_TRY(read_groups(setup, parameters.groups, kind_ == ConvolutionKind::Depthwise, &g));
    if (kind_ == ConvolutionKind::Winograd && !suits_winograd(g)) {
      return setup.refuse(
          "Winograd's algorithm takes windows of 3 by 3 without strides, dilations or groups, and "
          "multiples of %d channels: its images have %lld and %lld",
          static_cast<int>(kPanel), static_cast<long long>(g.in_channels),
          static_cast<long long>(g.out_channels));
    }
    RL_TRY(setup.check_elements("its weights", *weights_, weight_floats(g)));
    RL_TRY(read_strides(setup));
    setup.want_scratch(scratch(g, setup.threads));
    RL_TRY(epilogue_.prepare(setup, parameters.epilogue, setup.input(2),
                             g.batch * g.out_height * g.out_width, g.out_channels));
    const bool adds = kind_ == ConvolutionKind::Dense || kind_ == ConvolutionKind::Winograd;
    if (epilogue_.has_residual() && !adds) {
      return setup.refuse("it has a residual, which only dense convolutions may have");
    }
    return {};
  }

  Status run(const Frame& frame) const override {
    BoundTiles bound;
    Convolution convolution = convolution_;
    convolution.in = frame.at(in_);
    convolution.weights = frame.at(weights_);
    convolution.out = frame.at(out_);
    convolution.epilogue = epilogue_.bind(frame, bound);
    switch (kind_) {
      case ConvolutionKind::Dense:
        convolve(convolution, frame.scratch, frame.workers);
        break;
      case ConvolutionKind::Depthwise:
        convolve_depthwise(convolution, frame.workers);
        break;
      case ConvolutionKind::Transposed:
        convolve_transposed(convolution, frame.scratch, frame.workers);
        break;
      case ConvolutionKind::Winograd:
        convolve_winograd(convolution, frame.scratch, frame.workers);
        break;
    }
    return {};
  }

 private:
  static bool suits_winograd(const ConvGeometry& g) {
    return g.kernel_y == 3 && g.kernel_x == 3 && g.stride_y == 1 && g.stride_x == 1 &&
           g.dilation_y == 1 && g.dilation_x == 1 && g.groups == 1 && g.in_channels % kPanel == 0 &&
           g.out_channels % kPanel == 0;
  }

  // -1 if the product is larger than any view.
  int64_t weight_floats(const ConvGeometry& g) const {
    const int64_t inputs = g.in_channels / g.groups;
    const int64_t outputs = g.out_channels / g.groups;
    if (kind_ == ConvolutionKind::Depthwise) {
      return bounded_product({g.kernel_y, g.kernel_x, panels_of(g.out_channels) * kPanel});
    }
    if (kind_ == ConvolutionKind::Dense) {
      return bounded_product(
          {g.kernel_y, g.kernel_x, inputs, panels_of(outputs) * kPanel, g.groups});
    }
    if (kind_ == ConvolutionKind::Winograd) {
      return bounded_product({kWinogradProducts, inputs, outputs});
    }
    const int64_t columns = bounded_product({g.kernel_y, g.kernel_x, outputs});
    // All columns of an image are computed at once.
    if (bounded_product({g.in_height, g.in_width, columns}) < 0) return -1;
    return bounded_product({inputs, panels_of(columns) * kPanel, g.groups});
  }

  Status read_strides(const Setup& setup) {
    ConvGeometry& g = convolution_.geometry;
    if (kind_ == ConvolutionKind::Dense) {
      convolution_.in_batch_stride = in_->strides[0];
      convolution_.in_channel_stride = in_->strides[1];
      convolution_.in_row_stride = in_->strides[2];
      convolution_.in_column_stride = in_->strides[3];
      drop_idle_strides(&g);
      return {};
    }
    RL_TRY(check_channels_last(setup, "its image", *in_));
    convolution_.in_column_stride = g.in_channels;
    convolution_.in_row_stride = g.in_width * g.in_channels;
    convolution_.in_batch_stride = g.in_height * convolution_.in_row_stride;
    return {};
  }

  size_t scratch(const ConvGeometry& g, size_t threads) const {
    switch (kind_) {
      case ConvolutionKind::Dense:
        return convolution_scratch(g);
      case ConvolutionKind::Transposed:
        return transposed_scratch(g);
      case ConvolutionKind::Winograd:
        return winograd_scratch(g, threads);
      case ConvolutionKind::Depthwise:
        break;
    }
    return 0;
  }

  ConvolutionKind kind_ = ConvolutionKind::Dense;
  const View* in_ = nullptr;
  const View* weights_ = nullptr;
  const View* out_ = nullptr;
  Convolution convolution_;
  EpiloguePlan epilogue_;
};

}  // namespace

Result<Operator*> make_operator(const ConvolutionParameters& parameters, Setup& setup) {
  return setup.make<Convolve>(parameters);
}

}  // namespace rushlight::engine
