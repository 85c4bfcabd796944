// A dense tensor: a view of memory that belongs to an arena, a program or the caller.
//
// A tensor is always dense (without gaps): its strides follow from its sizes and its dim order,
// which is the permutation of dimensions from outermost to innermost ({0,1,2,3} is contiguous,
// {0,2,3,1} channels-last). Its rank and its dim order never change; its sizes may, within
// `capacity`. The arrays of sizes, strides and dim order belong to the creator of the tensor.
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
  int64_t capacity = 0;  // maximum number of elements that fit into `data`
  DType dtype = DType::Float32;
  Dynamism dynamism = Dynamism::Static;
  uint8_t rank = 0;
  bool planned = false;    // in an arena: an input is copied in, not read in place
  bool read_only = false;  // a constant of the program, which must not be written
  bool grows = false;      // has no bound: TensorBlocks gives it memory when needed

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  size_t nbytes() const { return static_cast<size_t>(numel) * element_size(dtype); }
  Span<const int32_t> shape() const { return {sizes, rank}; }
  int32_t size(size_t dim) const { return sizes[dim]; }
  // True if the dim order is 0, 1, …: row-major order.
  bool is_contiguous() const;
  // Changes the sizes, with the same rank, and sets strides and numel. Returns NotSupported if the
  // tensor is static and a size differs, if the rank differs, if the number of elements exceeds
  // `capacity`, or if the tensor is read-only. Code that writes a tensor calls this first; an
  // in-place operator calls it with the current sizes.
  Status resize(Span<const int32_t> sizes);
  // Sets all sizes to 0 unconditionally. The rank must not be 0.
  void shrink_to_nothing();
};

// The number of elements of `sizes`; false if a size is negative or the product overflows.
bool count_elements(Span<const int32_t> sizes, int64_t* numel);
// True if `dim_order` is a permutation of 0..rank-1.
bool is_permutation(const uint8_t* dim_order, size_t rank);
// Row-major strides in elements, following `dim_order`; a size of 0 counts as 1. False if a stride
// does not fit 32 bits.
bool strides_of(Span<const int32_t> sizes, const uint8_t* dim_order, int32_t* strides);
// True if sizes are equal, and so are the strides of all dimensions longer than one. Then one flat
// loop can process both.
bool same_layout(const Tensor& a, const Tensor& b);

// Copies every element to the position with the same index. Sizes and dtypes must be equal. The
// memory may overlap only if the layouts are equal.
void copy_elements(const Tensor& from, const Tensor& to);

}  // namespace rushlight
