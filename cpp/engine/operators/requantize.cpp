#include "rushlight/engine/operators/requantize.h"

namespace rushlight::engine {

Status check_requantize(const Setup& setup, const Requantize& requantize) {
  if (is_byte(requantize.zero_point) && is_byte(requantize.low) && is_byte(requantize.high) &&
      requantize.low <= requantize.high) {
    return {};
  }
  return setup.refuse("its zero point or its bounds are not within 0..255");
}

Status read_binary(const Setup& setup, const QuantizedBinaryParameters& parameters,
                   QuantizedBinary* binary) {
  RL_TRY(check_requantize(setup, parameters.requantize));
  if (!is_byte(parameters.a_zero_point) || !is_byte(parameters.b_zero_point)) {
    return setup.refuse("a zero point is not within 0..255");
  }
  binary->kind = parameters.kind;
  binary->requantize = parameters.requantize;
  binary->a_zero_point = parameters.a_zero_point;
  binary->b_zero_point = parameters.b_zero_point;
  if (parameters.kind != QuantizedBinaryKind::Multiply) {
    if (set_sum(parameters.a_scale, parameters.b_scale, parameters.scale, binary)) return {};
    return setup.refuse("its operands' scales are not within 2^-10 and 2^8 of its result's");
  }
  binary->multiplier = parameters.a_scale * parameters.b_scale / parameters.scale;
  if (binary->multiplier >= 0 && binary->multiplier < __builtin_inff()) return {};
  return setup.refuse("its scales are not valid");
}

}  // namespace rushlight::engine
