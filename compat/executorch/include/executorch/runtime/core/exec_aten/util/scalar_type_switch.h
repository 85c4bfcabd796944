// ET_SWITCH_X(type, context, name, CTYPE, body): calls `body`, a lambda that sees CTYPE, for the
// C++ type of an element type of group X. For other types, the context's fail() is called and the
// name goes to the log.
#pragma once

#include <executorch/runtime/core/error.h>

#include <string_view>

// In a build for the dtypes of some programs, gen_selected_op_variants has written which those are.
#ifdef EXECUTORCH_SELECTIVE_BUILD_DTYPE
#include "selected_op_variants.h"
#define ET_SWITCH_IS_SELECTED_(name_) \
  should_include_kernel_dtype(et_switch_name, ::executorch::aten::ScalarType::name_)
#else
#define ET_SWITCH_IS_SELECTED_(name_) true
#endif

#define ET_SWITCH_CASE_(name_, alias_, ...)                                                      \
  case ::executorch::aten::ScalarType::name_: {                                                  \
    if (!ET_SWITCH_IS_SELECTED_(name_)) break;                                                   \
    using alias_ [[maybe_unused]] =                                                              \
        ::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::name_>::type; \
    return __VA_ARGS__();                                                                        \
  }
#define ET_SWITCH_(type_, context_, name_, ...)                                                 \
  [&] {                                                                                         \
    const ::executorch::aten::ScalarType et_switch_type = type_;                                \
    const char* const et_switch_name = name_;                                                   \
    switch (et_switch_type) {                                                                   \
      __VA_ARGS__                                                                               \
      default:                                                                                  \
        break;                                                                                  \
    }                                                                                           \
    context_.fail(::executorch::runtime::Error::InvalidArgument);                               \
    ET_LOG(Error, "Unhandled dtype %s for %s", ::executorch::runtime::toString(et_switch_type), \
           et_switch_name);                                                                     \
  }()

#define ET_SWITCH_ALL_TYPES(type_, context_, name_, alias_, ...)                                   \
  ET_SWITCH_(                                                                                      \
      type_, context_, name_,                                                                      \
      ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__)        \
          ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                             \
              Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)                 \
              ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                         \
                  Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Half, alias_, __VA_ARGS__)          \
                  ET_SWITCH_CASE_(Bool, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                      ComplexFloat, alias_, __VA_ARGS__) ET_SWITCH_CASE_(ComplexDouble, alias_,    \
                                                                         __VA_ARGS__)              \
                      ET_SWITCH_CASE_(BFloat16, alias_, __VA_ARGS__) ET_SWITCH_CASE_(              \
                          QInt8, alias_, __VA_ARGS__) ET_SWITCH_CASE_(QUInt8, alias_, __VA_ARGS__) \
                          ET_SWITCH_CASE_(QInt32, alias_, __VA_ARGS__)                             \
                              ET_SWITCH_CASE_(QUInt4x2, alias_, __VA_ARGS__)                       \
                                  ET_SWITCH_CASE_(QUInt2x4, alias_, __VA_ARGS__) ET_SWITCH_CASE_(  \
                                      Bits1x8, alias_, __VA_ARGS__)                                \
                                      ET_SWITCH_CASE_(Bits2x4, alias_, __VA_ARGS__)                \
                                          ET_SWITCH_CASE_(Bits4x2, alias_, __VA_ARGS__)            \
                                              ET_SWITCH_CASE_(Bits8, alias_, __VA_ARGS__)          \
                                                  ET_SWITCH_CASE_(Bits16, alias_, __VA_ARGS__))
#define ET_SWITCH_REAL_TYPES(type_, context_, name_, alias_, ...)                                  \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__)                                   \
                         ET_SWITCH_CASE_(Double, alias_, __VA_ARGS__))
#define ET_SWITCH_REAL_TYPES_AND(a_, type_, context_, name_, alias_, ...)                          \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                         Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__))
#define ET_SWITCH_REAL_TYPES_AND2(a_, b_, type_, context_, name_, alias_, ...)                     \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                         Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__)     \
                         ET_SWITCH_CASE_(b_, alias_, __VA_ARGS__))
#define ET_SWITCH_REAL_TYPES_AND3(a_, b_, c_, type_, context_, name_, alias_, ...)                 \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                         Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__)     \
                         ET_SWITCH_CASE_(b_, alias_, __VA_ARGS__)                                  \
                             ET_SWITCH_CASE_(c_, alias_, __VA_ARGS__))
#define ET_SWITCH_REALH_TYPES(type_, context_, name_, alias_, ...)                                 \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                         Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Half, alias_, __VA_ARGS__))
#define ET_SWITCH_REALHBF16_TYPES(type_, context_, name_, alias_, ...)                             \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                         Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Half, alias_, __VA_ARGS__)   \
                         ET_SWITCH_CASE_(BFloat16, alias_, __VA_ARGS__))
#define ET_SWITCH_REALB_TYPES(type_, context_, name_, alias_, ...)                                 \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                         Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Bool, alias_, __VA_ARGS__))
#define ET_SWITCH_REALHB_TYPES(type_, context_, name_, alias_, ...)                                \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                         Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Half, alias_, __VA_ARGS__)   \
                         ET_SWITCH_CASE_(Bool, alias_, __VA_ARGS__))
#define ET_SWITCH_REALHBBF16_TYPES(type_, context_, name_, alias_, ...)                            \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                         Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Half, alias_, __VA_ARGS__)   \
                         ET_SWITCH_CASE_(Bool, alias_, __VA_ARGS__)                                \
                             ET_SWITCH_CASE_(BFloat16, alias_, __VA_ARGS__))
#define ET_SWITCH_REALHBBF16_AND_UINT_TYPES(type_, context_, name_, alias_, ...)                   \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)          \
                     ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                         Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Half, alias_, __VA_ARGS__)   \
                         ET_SWITCH_CASE_(Bool, alias_, __VA_ARGS__)                                \
                             ET_SWITCH_CASE_(BFloat16, alias_, __VA_ARGS__)                        \
                                 ET_SWITCH_CASE_(UInt16, alias_, __VA_ARGS__)                      \
                                     ET_SWITCH_CASE_(UInt32, alias_, __VA_ARGS__)                  \
                                         ET_SWITCH_CASE_(UInt64, alias_, __VA_ARGS__))
#define ET_SWITCH_INT_TYPES(type_, context_, name_, alias_, ...)                                   \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                      \
                     Int, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__))
#define ET_SWITCH_INT_TYPES_AND(a_, type_, context_, name_, alias_, ...)                        \
  ET_SWITCH_(                                                                                   \
      type_, context_, name_,                                                                   \
      ET_SWITCH_CASE_(Byte, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Char, alias_, __VA_ARGS__)     \
          ET_SWITCH_CASE_(Short, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Int, alias_, __VA_ARGS__) \
              ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__) ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__))
#define ET_SWITCH_FLOAT_TYPES(type_, context_, name_, alias_, ...) \
  ET_SWITCH_(type_, context_, name_,                               \
             ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__)           \
                 ET_SWITCH_CASE_(Double, alias_, __VA_ARGS__))
#define ET_SWITCH_FLOAT_TYPES_AND(a_, type_, context_, name_, alias_, ...) \
  ET_SWITCH_(type_, context_, name_,                                       \
             ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(  \
                 Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__))
#define ET_SWITCH_FLOAT_TYPES_AND2(a_, b_, type_, context_, name_, alias_, ...)                \
  ET_SWITCH_(                                                                                  \
      type_, context_, name_,                                                                  \
      ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Double, alias_, __VA_ARGS__) \
          ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__) ET_SWITCH_CASE_(b_, alias_, __VA_ARGS__))
#define ET_SWITCH_FLOAT_TYPES_AND3(a_, b_, c_, type_, context_, name_, alias_, ...)            \
  ET_SWITCH_(                                                                                  \
      type_, context_, name_,                                                                  \
      ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Double, alias_, __VA_ARGS__) \
          ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__) ET_SWITCH_CASE_(b_, alias_, __VA_ARGS__)    \
              ET_SWITCH_CASE_(c_, alias_, __VA_ARGS__))
#define ET_SWITCH_FLOATH_TYPES(type_, context_, name_, alias_, ...)       \
  ET_SWITCH_(type_, context_, name_,                                      \
             ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_( \
                 Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Half, alias_, __VA_ARGS__))
#define ET_SWITCH_FLOATHBF16_TYPES(type_, context_, name_, alias_, ...)                  \
  ET_SWITCH_(type_, context_, name_,                                                     \
             ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                \
                 Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Half, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(BFloat16, alias_, __VA_ARGS__))
#define ET_SWITCH_FLOATHBF16_TYPES_AND(a_, type_, context_, name_, alias_, ...)          \
  ET_SWITCH_(type_, context_, name_,                                                     \
             ET_SWITCH_CASE_(Float, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                \
                 Double, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Half, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(BFloat16, alias_, __VA_ARGS__)                          \
                     ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__))
#define ET_SWITCH_QINT_TYPES(type_, context_, name_, alias_, ...)                          \
  ET_SWITCH_(type_, context_, name_,                                                       \
             ET_SWITCH_CASE_(QInt8, alias_, __VA_ARGS__) ET_SWITCH_CASE_(                  \
                 QUInt8, alias_, __VA_ARGS__) ET_SWITCH_CASE_(QInt32, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(QUInt4x2, alias_, __VA_ARGS__)                            \
                     ET_SWITCH_CASE_(QUInt2x4, alias_, __VA_ARGS__))
#define ET_SWITCH_COMPLEX_TYPES(type_, context_, name_, alias_, ...) \
  ET_SWITCH_(type_, context_, name_,                                 \
             ET_SWITCH_CASE_(ComplexFloat, alias_, __VA_ARGS__)      \
                 ET_SWITCH_CASE_(ComplexDouble, alias_, __VA_ARGS__))
#define ET_SWITCH_COMPLEXH_TYPES(type_, context_, name_, alias_, ...) \
  ET_SWITCH_(type_, context_, name_,                                  \
             ET_SWITCH_CASE_(ComplexFloat, alias_, __VA_ARGS__)       \
                 ET_SWITCH_CASE_(ComplexDouble, alias_, __VA_ARGS__)  \
                     ET_SWITCH_CASE_(ComplexHalf, alias_, __VA_ARGS__))
#define ET_SWITCH_SCALAR_OBJ_TYPES(type_, context_, name_, alias_, ...)                            \
  ET_SWITCH_(type_, context_, name_,                                                               \
             ET_SWITCH_CASE_(Bool, alias_, __VA_ARGS__) ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(Double, alias_, __VA_ARGS__))
#define ET_SWITCH_SCALAR_OBJ_REAL_TYPES(type_, context_, name_, alias_, ...) \
  ET_SWITCH_(type_, context_, name_,                                         \
             ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__)                      \
                 ET_SWITCH_CASE_(Double, alias_, __VA_ARGS__))
#define ET_SWITCH_SCALAR_OBJ_INTB_TYPES(type_, context_, name_, alias_, ...) \
  ET_SWITCH_(type_, context_, name_,                                         \
             ET_SWITCH_CASE_(Bool, alias_, __VA_ARGS__)                      \
                 ET_SWITCH_CASE_(Long, alias_, __VA_ARGS__))
#define ET_SWITCH_SCALAR_OBJ_FLOATB_TYPES(type_, context_, name_, alias_, ...) \
  ET_SWITCH_(type_, context_, name_,                                           \
             ET_SWITCH_CASE_(Bool, alias_, __VA_ARGS__)                        \
                 ET_SWITCH_CASE_(Double, alias_, __VA_ARGS__))
#define ET_SWITCH_TWO_TYPES(a_, b_, type_, context_, name_, alias_, ...) \
  ET_SWITCH_(type_, context_, name_,                                     \
             ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__) ET_SWITCH_CASE_(b_, alias_, __VA_ARGS__))
#define ET_SWITCH_THREE_TYPES(a_, b_, c_, type_, context_, name_, alias_, ...)                 \
  ET_SWITCH_(type_, context_, name_,                                                           \
             ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__) ET_SWITCH_CASE_(b_, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(c_, alias_, __VA_ARGS__))
#define ET_SWITCH_FOUR_TYPES(a_, b_, c_, d_, type_, context_, name_, alias_, ...)              \
  ET_SWITCH_(type_, context_, name_,                                                           \
             ET_SWITCH_CASE_(a_, alias_, __VA_ARGS__) ET_SWITCH_CASE_(b_, alias_, __VA_ARGS__) \
                 ET_SWITCH_CASE_(c_, alias_, __VA_ARGS__)                                      \
                     ET_SWITCH_CASE_(d_, alias_, __VA_ARGS__))
