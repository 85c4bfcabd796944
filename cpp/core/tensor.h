// A dense tensor: a view of memory that an arena, a program or the caller owns.
//
// A tensor is always dense (no gaps): its strides follow from its sizes and its dim order, the
// permutation of dimensions from outermost to innermost ({0,1,2,3} contiguous, {0,2,3,1}
// channels-last). Its rank and its dim order never change; its sizes may, within `capacity`.
// The arrays of sizes, strides and dim order belong to whoever made the tensor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"

namespace rushlight {

constexpr size_t kMaxRank = 16;

enum class Dynamism : int8_t { Static = 0, Bounded = 1, Unbounded = 2 };

struct Tensor {
  void* data = nullptr;
  int32_t* sizes = nullptr;
  int32_t* strides = nullptr;  // in elements
  const uint8_t* dim_order = nullptr;
  int64_t numel = 0;
  int64_t capacity = 0;  // the greatest number of elements that `data` has room for
  DType dtype = DType::Float32;
  Dynamism dynamism = Dynamism::Static;
  uint8_t rank = 0;
  bool planned = false;    // lies in an arena: an input is copied in, not pointed at
  bool read_only = false;  // a constant of the program: nothing may write it
  bool grows = false;      // has no bound: its method's TensorBlocks give it memory as it needs

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  size_t nbytes() const { return static_cast<size_t>(numel) * element_size(dtype); }
  Span<const int32_t> shape() const { return {sizes, rank}; }
  int32_t size(size_t dim) const { return sizes[dim]; }
  // The outermost dimension is the first, and so on: plain row-major order.
  bool is_contiguous() const;
  // Gives the tensor other sizes of the same rank and sets strides and numel. NotSupported if the
  // tensor is static and a size differs, if the rank differs, if the elements exceed `capacity`, or
  // if the tensor is read-only. Whoever writes a tensor calls this first, in-place operators with
  // the sizes that it has.
  Status resize(Span<const int32_t> sizes);
  // Sets all sizes to 0, whatever they may be; the rank must not be 0.
  void shrink_to_nothing();
};

// The number of elements of `sizes`; false if a size is negative or the product overflows.
bool count_elements(Span<const int32_t> sizes, int64_t* numel);
// True if `dim_order` is a permutation of 0..rank-1.
bool is_permutation(const uint8_t* dim_order, size_t rank);
// Row-major strides in elements, in the order of `dim_order`; a size of 0 counts as 1. False if one
// does not fit 32 bits.
bool strides_of(Span<const int32_t> sizes, const uint8_t* dim_order, int32_t* strides);
// Equal sizes, and the same strides on every dimension longer than one: one flat loop serves both.
bool same_layout(const Tensor& a, const Tensor& b);

// Copies every element, wherever the strides of each place it. Sizes and dtypes must be equal; the
// memory may overlap only if the layouts are the same.
void copy_elements(const Tensor& from, const Tensor& to);

}  // namespace rushlight
