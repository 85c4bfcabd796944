// Whether arrays with any strides share memory. The answer is exact: interleaved arrays do not.
#pragma once

#include "arrays/arrays.h"

namespace rushlight::python {

// Two elements of the array share memory.
bool overlaps_itself(const Layout& array);
// An element of the one shares memory with one of the other.
bool overlap(const Layout& a, const Layout& b);

}  // namespace rushlight::python
