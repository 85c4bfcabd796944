#include "rushlight/engine/operators/requantize.h"

namespace rushlight::engine {

Status check_requantize(const Setup& setup, const Requantize& requantize) {
  if (is_byte(requantize.zero_point) && is_byte(requantize.low) && is_byte(requantize.high) &&
      requantize.low <= requantize.high) {
    return {};
  }
  return setup.refuse(
      "its zero point is %d and its bounds %d to %d, but all must be within 0..255 and in order",
      requantize.zero_point, requantize.low, requantize.high);
}

Status read_binary(const Setup& setup, const QuantizedBinaryParameters& parameters,
                   QuantizedBinary* binary) {
  RL_TRY(check_requantize(setup, parameters.requantize));
  if (!is_byte(parameters.a_zero_point) || !is_byte(parameters.b_zero_point)) {
    return setup.refuse("its operands' zero points are %d and %d, which are not within 0..255",
                        parameters.a_zero_point, parameters.b_zero_point);
  }
  binary->kind = parameters.kind;
  binary->requantize = parameters.requantize;
  binary->a_zero_point = parameters.a_zero_point;
  binary->b_zero_point = parameters.b_zero_point;
  if (parameters.kind != QuantizedBinaryKind::Multiply) {
    if (set_sum(parameters.a_scale, parameters.b_scale, parameters.scale, binary)) return {};
    return setup.refuse(
        "its operands' scales are %g and %g, which are not within 2^-10 and 2^8 of its result's, "
        "%g",
        double{parameters.a_scale}, double{parameters.b_scale}, double{parameters.scale});
  }
  binary->multiplier = parameters.a_scale * parameters.b_scale / parameters.scale;
  if (binary->multiplier >= 0 && binary->multiplier < __builtin_inff()) return {};
  return setup.refuse("its scales %g, %g and %g are not positive numbers",
                      double{parameters.a_scale}, double{parameters.b_scale},
                      double{parameters.scale});
}

}  // namespace rushlight::engine
