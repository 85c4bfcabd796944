#include "rushlight/core/tensor_blocks.h"

#include <cstring>

namespace rushlight {
namespace {

constexpr size_t kWorthwhile = size_t{1} << 16;  // bytes; smaller savings are not worth a new block

}  // namespace

struct TensorBlocks::Header {
  Header* next;
  void* block;
  size_t bytes;
};

bool TensorBlocks::fit(Tensor& tensor, int64_t numel) {
  const size_t element = element_size(tensor.dtype);
  const auto wanted = static_cast<uint64_t>(numel);
  if (allocator_ == nullptr || wanted > SIZE_MAX / 2 / element) return false;
  const uint64_t held = static_cast<uint64_t>(tensor.capacity) * element;
  const bool too_large = held > kWorthwhile && tensor.capacity / 4 > numel;
  if (tensor.data != nullptr && numel <= tensor.capacity && !too_large) return true;

  const size_t data_bytes = static_cast<size_t>(wanted) * element;
  const size_t bytes = data_bytes + sizeof(Header) + kAlignment;
  void* block = allocator_->allocate(bytes);
  if (block == nullptr) return numel <= tensor.capacity && tensor.data != nullptr;
  uintptr_t at = reinterpret_cast<uintptr_t>(block) + sizeof(Header);
  at += (0 - at) % kAlignment;
  Header* header = reinterpret_cast<Header*>(at) - 1;
  *header = {nullptr, block, bytes};
  void* data = reinterpret_cast<void*>(at);
  if (tensor.data != nullptr) {
    const size_t kept = tensor.nbytes();
    std::memcpy(data, tensor.data, kept < data_bytes ? kept : data_bytes);
    give_up(tensor.data);
  }
  tensor.data = data;
  tensor.capacity = numel;
  return true;
}

void TensorBlocks::release(Tensor& tensor) {
  if (tensor.data != nullptr) give_up(tensor.data);
  tensor.data = nullptr;
  tensor.capacity = 0;
  tensor.shrink_to_nothing();
}

void TensorBlocks::give_up(void* data) {
  Header* header = static_cast<Header*>(data) - 1;
  if (!keeps_) return free_block(header);
  header->next = given_up_;
  given_up_ = header;
}

void TensorBlocks::free_block(Header* header) { allocator_->free(header->block, header->bytes); }

void TensorBlocks::collect() {
  while (given_up_ != nullptr) {
    Header* next = given_up_->next;
    free_block(given_up_);
    given_up_ = next;
  }
}

}  // namespace rushlight
