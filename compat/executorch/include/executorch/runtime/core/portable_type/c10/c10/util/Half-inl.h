// What used to define the functions of Half.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<c10/util/Half-inl.h>)
#include_next <c10/util/Half-inl.h>
#else
#include <c10/util/Half-inl.h>
#endif
#else
#pragma once

#include <torch/headeronly/util/Half.h>

#endif
