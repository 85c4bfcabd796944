// Marks of exported symbols: nothing is exported, since everything is linked statically.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<torch/headeronly/macros/Export.h>)
#include_next <torch/headeronly/macros/Export.h>
#else
#include <torch/headeronly/macros/Export.h>
#endif
#else
#pragma once

#define C10_EXPORT
#define C10_IMPORT
#define C10_HIDDEN
#define C10_API
#define TORCH_API
#define C10_API_ENUM

#endif
