// Single elements as numbers, for kernels that access elements at scattered positions.
#pragma once

#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/loops/half.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {

// A bool in memory; any byte except 0 is true.
struct Truth {
  uint8_t byte;
};

// Converts an element in memory to the type in which it is compared.
template <typename T>
T number(T x) {
  return x;
}
inline float number(plain::Half x) { return plain::widen(x); }
inline float number(plain::BFloat x) { return plain::widen(x); }
inline int number(Truth x) { return x.byte != 0; }

// The element at an offset. The tensor must be of a real type.
inline double double_at(const Tensor& tensor, int64_t offset) {
  if (tensor.dtype == DType::Float32) return static_cast<double>(tensor.as<float>()[offset]);
  if (tensor.dtype == DType::Float64) return tensor.as<double>()[offset];
  if (tensor.dtype == DType::Float16) {
    return static_cast<double>(plain::widen(tensor.as<plain::Half>()[offset]));
  }
  if (tensor.dtype == DType::BFloat16) {
    return static_cast<double>(plain::widen(tensor.as<plain::BFloat>()[offset]));
  }
  double value = 0.0;
  const int64_t size = static_cast<int64_t>(element_size(tensor.dtype));
  convert(tensor.as<uint8_t>() + offset * size, tensor.dtype, &value, DType::Float64, 1);
  return value;
}

inline float float_at(const Tensor& tensor, int64_t offset) {
  return static_cast<float>(double_at(tensor, offset));
}

// The same for an integer or bool tensor.
inline int64_t int64_at(const Tensor& tensor, int64_t offset) {
  if (tensor.dtype == DType::Int64) return tensor.as<int64_t>()[offset];
  if (tensor.dtype == DType::Int32) return tensor.as<int32_t>()[offset];
  if (tensor.dtype == DType::Int16) return tensor.as<int16_t>()[offset];
  if (tensor.dtype == DType::UInt8) return tensor.as<uint8_t>()[offset];
  if (tensor.dtype == DType::Int8) return tensor.as<int8_t>()[offset];
  int64_t value = 0;
  const int64_t size = static_cast<int64_t>(element_size(tensor.dtype));
  convert(tensor.as<uint8_t>() + offset * size, tensor.dtype, &value, DType::Int64, 1);
  return value;
}

}  // namespace rushlight::kernels
