// The lines of Python that a failure comes from, out of a program's debug map (named data
// `rushlight/debug`, docs/file-format.md).
#pragma once

#include <cstddef>

#include "rushlight/method/method.h"

namespace rushlight {

// For the last load, execute or step of `method` that failed: writes "model.py:12 in forward:
// `x + y`", or several such parted by "; " if a place inside a delegate has several, cut to `size`
// and closed with a NUL; returns the length, 0 if the program does not tell.
size_t failure_lines(const Method& method, char* buffer, size_t size);

}  // namespace rushlight
