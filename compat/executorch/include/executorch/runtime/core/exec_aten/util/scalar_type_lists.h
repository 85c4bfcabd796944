// Lists of element types, for macros: ET_FORALL_REAL_TYPES(_) is _(uint8_t, Byte) and so on. Names
// have the groups REAL (integers and floats), H (float16), BF16 and B (bool).
#pragma once

#define ET_FORALL_INT_TYPES(_) \
  _(uint8_t, Byte)             \
  _(int8_t, Char)              \
  _(int16_t, Short)            \
  _(int32_t, Int)              \
  _(int64_t, Long)
#define ET_FORALL_INT_TYPES_WITH(A, _) \
  _(A, uint8_t, Byte)                  \
  _(A, int8_t, Char)                   \
  _(A, int16_t, Short)                 \
  _(A, int32_t, Int)                   \
  _(A, int64_t, Long)
#define ET_FORALL_INT_TYPES_WITH2(A, B, _) \
  _(A, B, uint8_t, Byte)                   \
  _(A, B, int8_t, Char)                    \
  _(A, B, int16_t, Short)                  \
  _(A, B, int32_t, Int)                    \
  _(A, B, int64_t, Long)
#define ET_FORALL_INT_TYPES_AND(S, _) \
  _(uint8_t, Byte)                    \
  _(int8_t, Char)                     \
  _(int16_t, Short)                   \
  _(int32_t, Int)                     \
  _(int64_t, Long)                    \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S>::type, S)
#define ET_FORALL_FLOAT_TYPES(_) \
  _(float, Float)                \
  _(double, Double)
#define ET_FORALL_FLOAT_TYPES_AND(S, _) \
  _(float, Float)                       \
  _(double, Double)                     \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S>::type, S)
#define ET_FORALL_FLOAT_TYPES_AND2(S1, S2, _)                                                 \
  _(float, Float)                                                                             \
  _(double, Double)                                                                           \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S1>::type, S1) \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S2>::type, S2)
#define ET_FORALL_FLOATH_TYPES(_) \
  _(float, Float)                 \
  _(double, Double)               \
  _(::executorch::aten::Half, Half)
#define ET_FORALL_FLOATHBF16_TYPES(_) \
  _(float, Float)                     \
  _(double, Double)                   \
  _(::executorch::aten::Half, Half)   \
  _(::executorch::aten::BFloat16, BFloat16)
#define ET_FORALL_FLOAT_TYPES_WITH(A, _) \
  _(A, float, Float)                     \
  _(A, double, Double)
#define ET_FORALL_FLOATH_TYPES_WITH(A, _) \
  _(A, float, Float)                      \
  _(A, double, Double)                    \
  _(A, ::executorch::aten::Half, Half)
#define ET_FORALL_FLOAT_TYPES_WITH2(A, B, _) \
  _(A, B, float, Float)                      \
  _(A, B, double, Double)
#define ET_FORALL_FLOATHBF16_TYPES_WITH2(A, B, _) \
  _(A, B, float, Float)                           \
  _(A, B, double, Double)                         \
  _(A, B, ::executorch::aten::Half, Half)         \
  _(A, B, ::executorch::aten::BFloat16, BFloat16)
#define ET_FORALL_REAL_TYPES(_) \
  _(uint8_t, Byte)              \
  _(int8_t, Char)               \
  _(int16_t, Short)             \
  _(int32_t, Int)               \
  _(int64_t, Long)              \
  _(float, Float)               \
  _(double, Double)
#define ET_FORALL_REAL_TYPES_WITH(A, _) \
  _(A, uint8_t, Byte)                   \
  _(A, int8_t, Char)                    \
  _(A, int16_t, Short)                  \
  _(A, int32_t, Int)                    \
  _(A, int64_t, Long)                   \
  _(A, float, Float)                    \
  _(A, double, Double)
#define ET_FORALL_REAL_TYPES_WITH2(A, B, _) \
  _(A, B, uint8_t, Byte)                    \
  _(A, B, int8_t, Char)                     \
  _(A, B, int16_t, Short)                   \
  _(A, B, int32_t, Int)                     \
  _(A, B, int64_t, Long)                    \
  _(A, B, float, Float)                     \
  _(A, B, double, Double)
#define ET_FORALL_REALHBF16_TYPES_WITH2(A, B, _) \
  _(A, B, uint8_t, Byte)                         \
  _(A, B, int8_t, Char)                          \
  _(A, B, int16_t, Short)                        \
  _(A, B, int32_t, Int)                          \
  _(A, B, int64_t, Long)                         \
  _(A, B, float, Float)                          \
  _(A, B, double, Double)                        \
  _(A, B, ::executorch::aten::Half, Half)        \
  _(A, B, ::executorch::aten::BFloat16, BFloat16)
#define ET_FORALL_REALHBBF16_TYPES_WITH2(A, B, _) \
  _(A, B, uint8_t, Byte)                          \
  _(A, B, int8_t, Char)                           \
  _(A, B, int16_t, Short)                         \
  _(A, B, int32_t, Int)                           \
  _(A, B, int64_t, Long)                          \
  _(A, B, float, Float)                           \
  _(A, B, double, Double)                         \
  _(A, B, ::executorch::aten::Half, Half)         \
  _(A, B, ::executorch::aten::BFloat16, BFloat16) \
  _(A, B, bool, Bool)
#define ET_FORALL_REAL_TYPES_AND(S, _) \
  _(uint8_t, Byte)                     \
  _(int8_t, Char)                      \
  _(int16_t, Short)                    \
  _(int32_t, Int)                      \
  _(int64_t, Long)                     \
  _(float, Float)                      \
  _(double, Double)                    \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S>::type, S)
#define ET_FORALL_REAL_TYPES_AND2(S1, S2, _)                                                  \
  _(uint8_t, Byte)                                                                            \
  _(int8_t, Char)                                                                             \
  _(int16_t, Short)                                                                           \
  _(int32_t, Int)                                                                             \
  _(int64_t, Long)                                                                            \
  _(float, Float)                                                                             \
  _(double, Double)                                                                           \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S1>::type, S1) \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S2>::type, S2)
#define ET_FORALL_REAL_TYPES_AND3(S1, S2, S3, _)                                              \
  _(uint8_t, Byte)                                                                            \
  _(int8_t, Char)                                                                             \
  _(int16_t, Short)                                                                           \
  _(int32_t, Int)                                                                             \
  _(int64_t, Long)                                                                            \
  _(float, Float)                                                                             \
  _(double, Double)                                                                           \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S1>::type, S1) \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S2>::type, S2) \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S3>::type, S3)
#define ET_FORALL_REAL_TYPES_AND_WITH(S, A, _) \
  _(A, uint8_t, Byte)                          \
  _(A, int8_t, Char)                           \
  _(A, int16_t, Short)                         \
  _(A, int32_t, Int)                           \
  _(A, int64_t, Long)                          \
  _(A, float, Float)                           \
  _(A, double, Double)                         \
  _(A, ::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::S>::type, S)
#define ET_FORALL_REALH_TYPES(_) \
  _(uint8_t, Byte)               \
  _(int8_t, Char)                \
  _(int16_t, Short)              \
  _(int32_t, Int)                \
  _(int64_t, Long)               \
  _(float, Float)                \
  _(double, Double)              \
  _(::executorch::aten::Half, Half)
#define ET_FORALL_REALHBF16_TYPES(_) \
  _(uint8_t, Byte)                   \
  _(int8_t, Char)                    \
  _(int16_t, Short)                  \
  _(int32_t, Int)                    \
  _(int64_t, Long)                   \
  _(float, Float)                    \
  _(double, Double)                  \
  _(::executorch::aten::Half, Half)  \
  _(::executorch::aten::BFloat16, BFloat16)
#define ET_FORALL_REALHBBF16_TYPES(_)       \
  _(uint8_t, Byte)                          \
  _(int8_t, Char)                           \
  _(int16_t, Short)                         \
  _(int32_t, Int)                           \
  _(int64_t, Long)                          \
  _(float, Float)                           \
  _(double, Double)                         \
  _(::executorch::aten::Half, Half)         \
  _(::executorch::aten::BFloat16, BFloat16) \
  _(bool, Bool)

#define ET_FORALL_QINT_TYPES(_)             \
  _(::executorch::aten::qint8, QInt8)       \
  _(::executorch::aten::quint8, QUInt8)     \
  _(::executorch::aten::qint32, QInt32)     \
  _(::executorch::aten::quint4x2, QUInt4x2) \
  _(::executorch::aten::quint2x4, QUInt2x4)
#define ET_FORALL_COMPLEX_TYPES(_)                    \
  _(::executorch::aten::complex<float>, ComplexFloat) \
  _(::executorch::aten::complex<double>, ComplexDouble)
#define ET_FORALL_COMPLEXH_TYPES(_)                                     \
  _(::executorch::aten::complex<::executorch::aten::Half>, ComplexHalf) \
  ET_FORALL_COMPLEX_TYPES(_)
