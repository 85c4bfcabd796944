// Bytes in memory that the loader shares.
#pragma once

#include <executorch/extension/data_loader/buffer_data_loader.h>

#include <memory>

namespace executorch::extension {

class SharedPtrDataLoader final : public runtime::DataLoader {
 public:
  SharedPtrDataLoader(std::shared_ptr<void> data, size_t size)
      : data_(std::move(data)), bytes_(data_.get(), size) {}

  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> load(
      size_t offset, size_t size, const SegmentInfo& segment_info) const override {
    return bytes_.load(offset, size, segment_info);
  }
  ET_NODISCARD runtime::Error load_into(size_t offset, size_t size, const SegmentInfo& segment_info,
                                        void* to) const override {
    return bytes_.load_into(offset, size, segment_info, to);
  }
  ET_NODISCARD runtime::Result<size_t> size() const override { return bytes_.size(); }

 private:
  std::shared_ptr<void> data_;
  BufferDataLoader bytes_;
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::SharedPtrDataLoader;
}  // namespace torch::executor::util
