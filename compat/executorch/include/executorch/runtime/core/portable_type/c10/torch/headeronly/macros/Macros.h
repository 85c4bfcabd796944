// The macros of PyTorch's headers that code for ExecuTorch uses.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<torch/headeronly/macros/Macros.h>)
#include_next <torch/headeronly/macros/Macros.h>
#else
#include <torch/headeronly/macros/Macros.h>
#endif
#else
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif

#if defined(__GNUC__)
#define C10_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
#define C10_ALWAYS_INLINE __attribute__((__always_inline__)) inline
#define C10_NOINLINE __attribute__((noinline))
#else
#define C10_LIKELY(condition) (condition)
#define C10_UNLIKELY(condition) (condition)
#define C10_ALWAYS_INLINE inline
#define C10_NOINLINE
#endif
#define C10_UNUSED [[maybe_unused]]
#define C10_NODISCARD [[nodiscard]]
#define C10_RESTRICT __restrict

#define C10_STRINGIZE_IMPL(text) #text
#define C10_STRINGIZE(text) C10_STRINGIZE_IMPL(text)
#define C10_CONCATENATE_IMPL(a, b) a##b
#define C10_CONCATENATE(a, b) C10_CONCATENATE_IMPL(a, b)

#if defined(__GNUC__)
#define C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED(warning)                      \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wpragmas\"") \
      _Pragma(C10_STRINGIZE(GCC diagnostic ignored warning))
#define C10_DIAGNOSTIC_POP() _Pragma("GCC diagnostic pop")
#else
#define C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED(warning)
#define C10_DIAGNOSTIC_POP()
#endif

#endif
