// A file that is read into memory when the loader is made.
#pragma once

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace rushlight {
class FileMap;
}  // namespace rushlight

namespace executorch::extension {

namespace internal {
// The bytes of a file, read or mapped.
using File = std::shared_ptr<::rushlight::FileMap>;
runtime::Result<File> open_file(const char* name, bool map);
BufferDataLoader bytes_of(const File& file);
}  // namespace internal

class FileDataLoader final : public runtime::DataLoader {
 public:
  // AccessFailed for a file that cannot be read; InvalidArgument for an alignment that is no power
  // of two, NotSupported for one of more than any type needs.
  static runtime::Result<FileDataLoader> from(const char* file_name,
                                              size_t alignment = alignof(std::max_align_t)) {
    ET_CHECK_OR_RETURN_ERROR(alignment != 0 && (alignment & (alignment - 1)) == 0, InvalidArgument,
                             "alignment %zu is no power of two", alignment);
    ET_CHECK_OR_RETURN_ERROR(alignment <= alignof(std::max_align_t), NotSupported,
                             "alignment %zu is more than %zu: use MmapDataLoader", alignment,
                             alignof(std::max_align_t));
    ET_ASSIGN_OR_RETURN(file, internal::open_file(file_name, false));
    return FileDataLoader(std::move(file));
  }
  ET_DEPRECATED static runtime::Result<FileDataLoader> From(
      const char* file_name, size_t alignment = alignof(std::max_align_t)) {
    return from(file_name, alignment);
  }

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
  explicit FileDataLoader(internal::File file)
      : file_(std::move(file)), bytes_(internal::bytes_of(file_)) {}

  internal::File file_;
  BufferDataLoader bytes_;
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::FileDataLoader;
}  // namespace torch::executor::util
