// Pools over two dimensions.
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/operators/images/geometry.h"
#include "rushlight/engine/operators/requantize.h"
#include "rushlight/engine/operators/unary.h"

namespace rushlight::engine {
namespace {

// What pools of floats and of bytes have in common.
template <typename P>
Status read_shape(const Setup& setup, const P& parameters, const View& in, const View& out,
                  PoolShape* shape) {
  const ConvGeometry& g = shape->geometry;
  RL_TRY(read_geometry(setup, in, out, parameters.window, false, &shape->geometry));
  RL_TRY(check_channels_last(setup, "its image", in));
  if (g.in_channels != g.out_channels) {
    return setup.refuse("its image has %lld channels and its result %lld: they must be equal",
                        static_cast<long long>(g.in_channels),
                        static_cast<long long>(g.out_channels));
  }
  if (g.pad_top >= g.kernel_y || g.pad_left >= g.kernel_x) {
    return setup.refuse(
        "its padding is (%lld, %lld), but must be less than its window (%lld, %lld)",
        static_cast<long long>(g.pad_top), static_cast<long long>(g.pad_left),
        static_cast<long long>(g.kernel_y), static_cast<long long>(g.kernel_x));
  }
  shape->kind = parameters.average ? Pool::Average : Pool::Max;
  shape->count_padding = parameters.count_padding;
  shape->divisor = parameters.divisor;
  return {};
}

class PoolOperator final : public UnaryOperator<Pooling, pool> {
 public:
  Status prepare(const PoolingParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(1, 1));
    in_ = setup.input(0);
    out_ = setup.output(0);
    return read_shape(setup, parameters, *in_, *out_, &job_);
  }
};

class PoolBytes final : public UnaryOperator<QuantizedPooling, pool> {
 public:
  Status prepare(const QuantizedPoolingParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_dtypes({DType::UInt8}, DType::UInt8));
    in_ = setup.input(0);
    out_ = setup.output(0);
    RL_TRY(read_shape(setup, parameters, *in_, *out_, &job_));
    RL_TRY(check_requantize(setup, parameters.requantize));
    const ConvGeometry& g = job_.geometry;
    if (parameters.average && !sums_fit(g.kernel_y, g.kernel_x)) {
      return setup.refuse("its window is (%lld, %lld), which is too large for sums of 32 bits",
                          static_cast<long long>(g.kernel_y), static_cast<long long>(g.kernel_x));
    }
    const bool is_valid = parameters.multiplier >= 0 && parameters.multiplier < __builtin_inff();
    if (!is_valid || !is_byte(parameters.in_zero_point)) {
      return setup.refuse(
          "its multiplier is %g and its zero point %d, but must be a positive number and 0..255",
          double{parameters.multiplier}, parameters.in_zero_point);
    }
    job_.in_zero_point = parameters.in_zero_point;
    job_.multiplier = parameters.multiplier;
    job_.adds_zero_point_first = parameters.adds_zero_point_first;
    job_.requantize = parameters.requantize;
    return {};
  }

 private:
  static bool sums_fit(int64_t taps_y, int64_t taps_x) {
    return taps_y * taps_x <= INT32_MAX / 255;
  }
};

}  // namespace

Result<Operator*> make_operator(const PoolingParameters& parameters, Setup& setup) {
  return setup.make<PoolOperator>(parameters);
}

Result<Operator*> make_operator(const QuantizedPoolingParameters& parameters, Setup& setup) {
  return setup.make<PoolBytes>(parameters);
}

}  // namespace rushlight::engine
