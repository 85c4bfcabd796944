// The same header under its older path.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<c10/util/complex.h>)
#include_next <c10/util/complex.h>
#else
#include <c10/util/complex.h>
#endif
#else
#pragma once

#include <torch/headeronly/util/complex.h>

#endif
