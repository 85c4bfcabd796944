// Everything that a file of kernels includes.
#pragma once

#ifdef USE_ATEN_LIB
#include <executorch/runtime/kernel/aten_mode.h>
#else
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#endif

#include <cstddef>

#define ET_USE_STRUCTURAL_OPERATOR_NAME 0
#define ET_OPERATOR_NAME_TYPE const char*
#define ET_DEFINE_OPERATOR_NAME(variable, name) static constexpr const char variable[] = name
