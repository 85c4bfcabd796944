// Macros over attributes and builtins of compilers, under ExecuTorch's names.
#pragma once

#if (defined(_MSC_VER) && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)) || \
    (!defined(_MSC_VER) && __cplusplus < 201703L)
#error "these headers need C++17: set CMAKE_CXX_STANDARD to 17 or later"
#endif

#ifndef _MSC_VER
#include <sys/types.h>
#else
#include <stddef.h>
using ssize_t = ptrdiff_t;
#endif

#define ET_NORETURN [[noreturn]]
#define ET_DEPRECATED [[deprecated]]
#define ET_EXPERIMENTAL [[deprecated("This API is experimental and may change.")]]
#define ET_FALLTHROUGH [[fallthrough]]
#define ET_NODISCARD [[nodiscard]]
#define ET_UNUSED [[maybe_unused]]

#if defined(_MSC_VER)
#include <sal.h>
#define ET_NOINLINE __declspec(noinline)
#define ET_INLINE __forceinline
#define ET_RESTRICT __restrict
#define ET_UNREACHABLE() __assume(0)
#define ET_WEAK
#define ET_PRINTFLIKE(format_index, args_index) _Printf_format_string_
#else
#define ET_NOINLINE __attribute__((noinline))
#define ET_INLINE __attribute__((always_inline)) inline
#define ET_RESTRICT __restrict__
#define ET_UNREACHABLE() __builtin_unreachable()
#define ET_WEAK __attribute__((weak))
#define ET_PRINTFLIKE(format_index, args_index) \
  __attribute__((format(printf, format_index, args_index)))
#endif

#if __cplusplus >= 202002L
#define ET_LIKELY(condition) (condition) [[likely]]
#define ET_UNLIKELY(condition) (condition) [[unlikely]]
#else
#define ET_LIKELY(condition) (condition)
#define ET_UNLIKELY(condition) (condition)
#endif

#ifdef __FILE_NAME__
#define ET_SHORT_FILENAME __FILE_NAME__
#elif defined(__GNUC__)
#define ET_SHORT_FILENAME (__builtin_strrchr("/" __FILE__, '/') + 1)
#else
#define ET_SHORT_FILENAME __FILE__
#endif
#define ET_LINE __LINE__
#define ET_FUNCTION __FUNCTION__

#define ET_PRIsize_t "zu"
#define ET_PRIssize_t "zd"

#if defined(__GNUC__)
#define ET_HAVE_GNU_STATEMENT_EXPRESSIONS 1
#else
#define ET_HAVE_GNU_STATEMENT_EXPRESSIONS 0
#endif
#if defined(__EXCEPTIONS) || (defined(_HAS_EXCEPTIONS) && _HAS_EXCEPTIONS)
#define ET_HAS_EXCEPTIONS 1
#else
#define ET_HAS_EXCEPTIONS 0
#endif

// The same under their old names.
#define __ET_DEPRECATED ET_DEPRECATED
#define __ET_FALLTHROUGH ET_FALLTHROUGH
#define __ET_FUNCTION ET_FUNCTION
#define __ET_HAVE_GNU_STATEMENT_EXPRESSIONS ET_HAVE_GNU_STATEMENT_EXPRESSIONS
#define __ET_INLINE ET_INLINE
#define __ET_LIKELY ET_LIKELY
#define __ET_LINE ET_LINE
#define __ET_NODISCARD ET_NODISCARD
#define __ET_NOINLINE ET_NOINLINE
#define __ET_NORETURN ET_NORETURN
#define __ET_PRINTFLIKE ET_PRINTFLIKE
#define __ET_SHORT_FILENAME ET_SHORT_FILENAME
#define __ET_UNLIKELY ET_UNLIKELY
#define __ET_UNREACHABLE ET_UNREACHABLE
#define __ET_UNUSED ET_UNUSED
#define __ET_WEAK ET_WEAK
