// Pools over two dimensions.
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/operators/images/geometry.h"
#include "rushlight/engine/operators/requantize.h"

namespace rushlight::engine {
namespace {

// What pools of floats and of bytes have in common.
template <typename P>
Status read_shape(const Setup& setup, const P& parameters, const View& in, const View& out,
                  PoolShape* shape) {
  const ConvGeometry& g = shape->geometry;
  RL_TRY(read_geometry(setup, in, out, parameters.window, false, &shape->geometry));
  if (!is_channels_last(in)) return setup.refuse("its image does not lie channels last");
  if (g.in_channels != g.out_channels || g.pad_top >= g.kernel_y || g.pad_left >= g.kernel_x) {
    return setup.refuse("its channels or its padding do not fit");
  }
  shape->kind = parameters.average ? Pool::Average : Pool::Max;
  shape->count_padding = parameters.count_padding;
  shape->divisor = parameters.divisor;
  return {};
}

class PoolOperator final : public Operator {
 public:
  Status prepare(const PoolingParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(1, 1));
    in_ = setup.input(0);
    out_ = setup.output(0);
    return read_shape(setup, parameters, *in_, *out_, &pooling_);
  }

  Status run(const Frame& frame) const override {
    Pooling pooling = pooling_;
    pooling.in = frame.at(in_);
    pooling.out = frame.at(out_);
    pool(pooling, frame.workers);
    return {};
  }

 private:
  const View* in_ = nullptr;
  const View* out_ = nullptr;
  Pooling pooling_;
};

class PoolBytes final : public Operator {
 public:
  Status prepare(const QuantizedPoolingParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_dtypes({DType::UInt8}, DType::UInt8));
    in_ = setup.input(0);
    out_ = setup.output(0);
    RL_TRY(read_shape(setup, parameters, *in_, *out_, &pooling_));
    RL_TRY(check_requantize(setup, parameters.requantize));
    const ConvGeometry& g = pooling_.geometry;
    if (parameters.average && !sums_fit(g.kernel_y, g.kernel_x)) {
      return setup.refuse("its window is too large for sums of 32 bits");
    }
    const bool is_valid = parameters.multiplier >= 0 && parameters.multiplier < __builtin_inff();
    if (!is_valid || !is_byte(parameters.in_zero_point)) {
      return setup.refuse("its multiplier or its zero point is not valid");
    }
    pooling_.in_zero_point = parameters.in_zero_point;
    pooling_.multiplier = parameters.multiplier;
    pooling_.adds_zero_point_first = parameters.adds_zero_point_first;
    pooling_.requantize = parameters.requantize;
    return {};
  }

  Status run(const Frame& frame) const override {
    QuantizedPooling pooling = pooling_;
    pooling.in = frame.at<uint8_t>(in_);
    pooling.out = frame.at<uint8_t>(out_);
    pool(pooling, frame.workers);
    return {};
  }

 private:
  static bool sums_fit(int64_t taps_y, int64_t taps_x) {
    return taps_y * taps_x <= INT32_MAX / 255;
  }

  const View* in_ = nullptr;
  const View* out_ = nullptr;
  QuantizedPooling pooling_;
};

}  // namespace

Result<Operator*> make_operator(const PoolingParameters& parameters, Setup& setup) {
  return setup.make<PoolOperator>(parameters);
}

Result<Operator*> make_operator(const QuantizedPoolingParameters& parameters, Setup& setup) {
  return setup.make<PoolBytes>(parameters);
}

}  // namespace rushlight::engine
