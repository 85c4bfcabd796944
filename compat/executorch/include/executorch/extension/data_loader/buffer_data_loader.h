// Bytes in memory that the caller keeps.
#pragma once

#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>

#include <cstring>

namespace executorch::extension {

class BufferDataLoader final : public runtime::DataLoader {
 public:
  BufferDataLoader(const void* data, size_t size)
      : data_(static_cast<const uint8_t*>(data)), size_(size) {}

  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> load(
      size_t offset, size_t size, ET_UNUSED const SegmentInfo& segment_info) const override {
    ET_CHECK_OR_RETURN_ERROR(offset <= size_ && size <= size_ - offset, InvalidArgument,
                             "%zu bytes at %zu are asked for, of %zu", size, offset, size_);
    return runtime::FreeableBuffer(data_ + offset, size, nullptr);
  }
  ET_NODISCARD runtime::Error load_into(size_t offset, size_t size, const SegmentInfo& segment_info,
                                        void* to) const override {
    ET_CHECK_OR_RETURN_ERROR(to != nullptr, InvalidArgument, "there is no memory to load into");
    ET_ASSIGN_OR_RETURN(bytes, load(offset, size, segment_info));
    if (size > 0) std::memcpy(to, bytes.data(), size);
    return runtime::Error::Ok;
  }
  ET_NODISCARD runtime::Result<size_t> size() const override { return size_; }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::BufferDataLoader;
}  // namespace torch::executor::util
