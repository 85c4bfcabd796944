// Which program a file is, for what was recorded of one and is read beside another.
#pragma once

#include <cstdint>

#include "rushlight/program/program.h"

namespace rushlight {

// A digest of everything that says what a program computes and where that comes from: its methods,
// its map to lines of Python, its size; and of samples of the rest, so that it takes no longer for
// large weights.
uint64_t identity_of(const Program& program);

}  // namespace rushlight
