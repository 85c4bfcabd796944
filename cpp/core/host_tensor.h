// A tensor that the caller makes, over memory of its own.
#pragma once

#include <initializer_list>

#include "rushlight/core/tensor.h"

namespace rushlight {

// A tensor over the caller's memory, for inputs. It contains its own arrays of sizes and strides.
class HostTensor {
 public:
  HostTensor() = default;  // no tensor
  HostTensor(DType dtype, Span<const int32_t> sizes, const void* data,
             const uint8_t* dim_order = nullptr);
  HostTensor(DType dtype, std::initializer_list<int32_t> sizes, const void* data)
      : HostTensor(dtype, Span<const int32_t>(sizes.begin(), sizes.size()), data) {}
  HostTensor(const HostTensor& other) { *this = other; }
  HostTensor& operator=(const HostTensor& other);

  // False if the sizes or the dim order were invalid; the tensor has no elements then.
  bool valid() const { return valid_; }
  const Tensor& tensor() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }

 private:
  Tensor tensor_;
  int32_t sizes_[kMaxRank] = {};
  int32_t strides_[kMaxRank] = {};
  uint8_t dim_order_[kMaxRank] = {};
  bool valid_ = false;
};

}  // namespace rushlight
