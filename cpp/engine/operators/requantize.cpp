#include "rushlight/engine/operators/requantize.h"

namespace rushlight::engine {

Status check_requantize(const Setup& setup, const Requantize& given) {
  if (is_byte(given.zero_point) && is_byte(given.low) && is_byte(given.high) &&
      given.low <= given.high) {
    return {};
  }
  return setup.refuse("its zero point or its bounds are not within 0..255");
}

Status read_binary(const Setup& setup, const QuantizedBinaryParameters& given,
                   QuantizedBinary* binary) {
  RL_TRY(check_requantize(setup, given.requantize));
  if (!is_byte(given.a_zero_point) || !is_byte(given.b_zero_point)) {
    return setup.refuse("a zero point is not within 0..255");
  }
  binary->kind = given.kind;
  binary->requantize = given.requantize;
  binary->a_zero_point = given.a_zero_point;
  binary->b_zero_point = given.b_zero_point;
  if (given.kind != QuantizedBinaryKind::Multiply) {
    if (set_sum(given.a_scale, given.b_scale, given.scale, binary)) return {};
    return setup.refuse("its operands' scales are not within 2^-10 and 2^8 of its result's");
  }
  binary->multiplier = given.a_scale * given.b_scale / given.scale;
  if (binary->multiplier >= 0 && binary->multiplier < __builtin_inff()) return {};
  return setup.refuse("its scales are not valid");
}

}  // namespace rushlight::engine
