#include "rushlight/core/host_tensor.h"

#include <cstring>

namespace rushlight {

HostTensor::HostTensor(DType dtype, Span<const int32_t> sizes, const void* data,
                       const uint8_t* dim_order) {
  const size_t rank = sizes.size() <= kMaxRank ? sizes.size() : kMaxRank;
  for (size_t i = 0; i < rank; ++i) {
    sizes_[i] = sizes[i];
    strides_[i] = 0;
    dim_order_[i] = dim_order != nullptr ? dim_order[i] : static_cast<uint8_t>(i);
  }
  const Span<const int32_t> own(sizes_, rank);
  valid_ = sizes.size() <= kMaxRank && is_permutation(dim_order_, rank) &&
           count_elements(own, &tensor_.numel) && strides_of(own, dim_order_, strides_);
  if (!valid_) tensor_.numel = 0;
  tensor_.data = const_cast<void*>(data);
  tensor_.read_only = true;
  tensor_.capacity = tensor_.numel;
  tensor_.dtype = dtype;
  tensor_.rank = static_cast<uint8_t>(rank);
  tensor_.sizes = sizes_;
  tensor_.strides = strides_;
  tensor_.dim_order = dim_order_;
}

HostTensor& HostTensor::operator=(const HostTensor& other) {
  if (this == &other) return *this;
  tensor_ = other.tensor_;
  valid_ = other.valid_;
  std::memcpy(sizes_, other.sizes_, sizeof(sizes_));
  std::memcpy(strides_, other.strides_, sizeof(strides_));
  std::memcpy(dim_order_, other.dim_order_, sizeof(dim_order_));
  tensor_.sizes = sizes_;
  tensor_.strides = strides_;
  tensor_.dim_order = dim_order_;
  return *this;
}

}  // namespace rushlight
