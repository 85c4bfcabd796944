#include "rushlight/core/tensor.h"

#include <cstring>

namespace rushlight {

bool count_elements(Span<const int32_t> sizes, int64_t* numel) {
  // Sizes of 0 are left out of the product at first. So {0, huge, huge} is an overflow as well, and
  // the order of the sizes does not matter.
  uint64_t product = 1;
  bool empty = false;
  for (int32_t size : sizes) {
    if (size < 0) return false;
    if (size == 0) {
      empty = true;
      continue;
    }
    // Multiplied in halves, where nothing overflows, and without a division of 64 bits.
    const auto factor = static_cast<uint32_t>(size);
    const uint64_t low = (product & UINT32_MAX) * factor;
    const uint64_t high = (product >> 32) * factor + (low >> 32);
    if (high > INT32_MAX) return false;
    product = high << 32 | (low & UINT32_MAX);
  }
  *numel = empty ? 0 : static_cast<int64_t>(product);
  return true;
}

bool is_permutation(const uint8_t* dim_order, size_t rank) {
  static_assert(kMaxRank <= 32, "one bit per dimension");
  if (rank > kMaxRank) return false;
  uint32_t seen = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (dim_order[i] >= rank) return false;
    seen |= uint32_t{1} << dim_order[i];
  }
  return seen == (uint64_t{1} << rank) - 1;
}

bool strides_of(Span<const int32_t> sizes, const uint8_t* dim_order, int32_t* strides) {
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (stride > INT32_MAX) return false;
    const uint8_t dim = dim_order[i];
    strides[dim] = static_cast<int32_t>(stride);
    if (sizes[dim] > 1) stride *= sizes[dim];
  }
  return true;
}

bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.rank != b.rank) return false;
  for (size_t i = 0; i < a.rank; ++i) {
    if (a.sizes[i] != b.sizes[i]) return false;
    if (a.sizes[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

void copy_elements(const Tensor& from, const Tensor& to) {
  if (to.numel == 0) return;
  if (same_layout(from, to)) {
    std::memmove(to.data, from.data, to.nbytes());
    return;
  }
  // Counts through all indices; offsets are in elements.
  const size_t element = element_size(to.dtype);
  int32_t at[kMaxRank] = {0};
  int64_t source = 0;
  int64_t target = 0;
  for (int64_t done = 0; done < to.numel; ++done) {
    std::memcpy(to.as<uint8_t>() + static_cast<size_t>(target) * element,
                from.as<uint8_t>() + static_cast<size_t>(source) * element, element);
    for (size_t dim = to.rank; dim-- > 0;) {
      source += from.strides[dim];
      target += to.strides[dim];
      if (++at[dim] < to.sizes[dim]) break;
      source -= static_cast<int64_t>(at[dim]) * from.strides[dim];
      target -= static_cast<int64_t>(at[dim]) * to.strides[dim];
      at[dim] = 0;
    }
  }
}

bool Tensor::is_contiguous() const {
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != stride) return numel == 0;
    stride *= sizes[i];
  }
  return true;
}

void Tensor::shrink_to_nothing() {
  std::memset(sizes, 0, rank * sizeof(int32_t));
  strides_of(shape(), dim_order, strides);
  numel = 0;
}

Status Tensor::resize(Span<const int32_t> new_sizes) {
  if (read_only || new_sizes.size() != rank) return Code::NotSupported;
  if (rank == 0 || std::memcmp(sizes, new_sizes.data(), rank * sizeof(int32_t)) == 0) return {};
  if (dynamism == Dynamism::Static) return Code::NotSupported;
  int64_t count = 0;
  if (!count_elements(new_sizes, &count) || count > capacity) return Code::NotSupported;
  int32_t new_strides[kMaxRank];
  if (!strides_of(new_sizes, dim_order, new_strides)) return Code::NotSupported;
  std::memcpy(sizes, new_sizes.data(), rank * sizeof(int32_t));
  std::memcpy(strides, new_strides, rank * sizeof(int32_t));
  numel = count;
  return {};
}

}  // namespace rushlight
