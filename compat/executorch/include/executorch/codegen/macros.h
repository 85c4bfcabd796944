// What declarations of generated functions carry: nothing, as these are inline.
#pragma once

#include <executorch/runtime/platform/compiler.h>

#ifndef TORCH_API
#define TORCH_API
#endif
