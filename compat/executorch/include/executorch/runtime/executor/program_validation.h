// Checks of a program. Program::load() makes all of them, always; those of single tables of the
// FlatBuffer are not offered.
#pragma once

#include <executorch/runtime/core/error.h>

namespace executorch_flatbuffer {
struct Program;
struct Tensor;
}  // namespace executorch_flatbuffer

namespace executorch::runtime {

template <typename Table>
Error validate_tensor(const Table*) {
  static_assert(sizeof(Table*) == 0,
                "tables of the FlatBuffer are not public here: Program::load() checks them all");
  return Error::NotSupported;
}
template <typename Table>
Error validate_program(const Table*) {
  static_assert(sizeof(Table*) == 0,
                "tables of the FlatBuffer are not public here: Program::load() checks them all");
  return Error::NotSupported;
}

}  // namespace executorch::runtime
