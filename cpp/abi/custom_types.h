// What the arguments of kernels of your own are in C++ (custom_kernel.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rl_kernel_v1.h"

namespace rushlight::custom {

// ExecuTorch's numbers.
enum class DType : int32_t {
  UInt8 = 0,
  Int8 = 1,
  Int16 = 2,
  Int32 = 3,
  Int64 = 4,
  Float16 = 5,
  Float32 = 6,
  Float64 = 7,
  Complex64 = 9,
  Complex128 = 10,
  Bool = 11,
  BFloat16 = 15,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
};

inline const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return "uint8";
    case DType::Int8:
      return "int8";
    case DType::Int16:
      return "int16";
    case DType::Int32:
      return "int32";
    case DType::Int64:
      return "int64";
    case DType::Float16:
      return "float16";
    case DType::Float32:
      return "float32";
    case DType::Float64:
      return "float64";
    case DType::Complex64:
      return "complex64";
    case DType::Complex128:
      return "complex128";
    case DType::Bool:
      return "bool";
    case DType::BFloat16:
      return "bfloat16";
    case DType::UInt16:
      return "uint16";
    case DType::UInt32:
      return "uint32";
    case DType::UInt64:
      return "uint64";
  }
  return "another dtype";
}

// Elements that lie one after the other in memory that belongs to somebody else.
template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  template <typename U, typename = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr Span(Span<U> other) : data_(other.data()), size_(other.size()) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) : data_(array), size_(N) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// 0, or why a call failed: one of the codes of rl_value_v1.h.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(int32_t code) : code_(code) {}
  constexpr int32_t code() const { return code_; }
  constexpr bool ok() const { return code_ == RL_OK; }

 private:
  int32_t code_ = RL_OK;
};

// A view of a tensor. Its elements lie without gaps in the order of dim_order().
class Tensor {
 public:
  DType dtype() const { return static_cast<DType>(value_.dtype); }
  const char* dtype_name() const { return custom::dtype_name(dtype()); }
  size_t rank() const { return value_.rank; }
  Span<const int32_t> sizes() const { return {value_.sizes, value_.rank}; }
  Span<const int32_t> strides() const { return {value_.strides, value_.rank}; }
  Span<const uint8_t> dim_order() const { return {value_.dim_order, value_.rank}; }
  int32_t size(size_t dim) const { return value_.sizes[dim]; }
  size_t nbytes() const { return value_.nbytes; }
  int64_t numel() const {
    int64_t n = 1;
    for (int32_t size : sizes()) n *= size;
    return n;
  }
  // Row-major: the dim order is 0, 1, 2, ...
  bool is_contiguous() const {
    for (size_t i = 0; i < rank(); ++i) {
      if (value_.dim_order[i] != i) return false;
    }
    return true;
  }
  // Elements at equal places have equal indices, so that one flat loop can process both.
  bool same_layout(const Tensor& other) const {
    if (rank() != other.rank()) return false;
    for (size_t i = 0; i < rank(); ++i) {
      if (size(i) != other.size(i)) return false;
      if (size(i) > 1 && value_.strides[i] != other.value_.strides[i]) return false;
    }
    return true;
  }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(value_.data);
  }
  template <typename T>
  T* data() {
    return static_cast<T*>(value_.data);
  }

 private:
  friend class Context;
  rl_value_v1 value_ = {};
  size_t index_ = 0;
  size_t item_ = kNoItem;
  static constexpr size_t kNoItem = static_cast<size_t>(-1);
};

// A number of any kind.
struct Scalar {
  uint32_t kind;  // RL_INT, RL_DOUBLE or RL_BOOL
  int64_t i;
  double d;
};

}  // namespace rushlight::custom
