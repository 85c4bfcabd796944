// The lines of Python that a failure comes from, according to a program's debug map (named data
// `rushlight/debug`, docs/file-format.md).
#pragma once

#include <cstddef>

#include "rushlight/method/method.h"

namespace rushlight {

// For the last load, execute or step of `method` that failed: writes "model.py:12 in forward: `x +
// y`", or several such texts separated by "; " if a place inside of a delegate has several lines.
// The text is truncated to `size` and ends with a NUL. Returns its length; 0 if the program has no
// such lines.
size_t failure_lines(const Method& method, char* buffer, size_t size);

}  // namespace rushlight
