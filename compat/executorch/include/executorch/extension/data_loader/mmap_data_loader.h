// A file that is mapped. Its pages are not locked in memory, whatever is asked for: they are read
// when they are first used.
#pragma once

#include <executorch/extension/data_loader/file_data_loader.h>

namespace executorch::extension {

class MmapDataLoader final : public runtime::DataLoader {
 public:
  enum class MlockConfig { NoMlock, UseMlock, UseMlockIgnoreErrors, UseMadvise };

  // AccessFailed for a file that cannot be read.
  static runtime::Result<MmapDataLoader> from(
      const char* file_name, ET_UNUSED MlockConfig mlock_config = MlockConfig::UseMlock) {
    ET_ASSIGN_OR_RETURN(file, internal::open_file(file_name, true));
    return MmapDataLoader(std::move(file));
  }
  ET_DEPRECATED static runtime::Result<MmapDataLoader> From(
      const char* file_name, MlockConfig mlock_config = MlockConfig::UseMlock) {
    return from(file_name, mlock_config);
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
  explicit MmapDataLoader(internal::File file)
      : file_(std::move(file)), bytes_(internal::bytes_of(file_)) {}

  internal::File file_;
  BufferDataLoader bytes_;
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::MmapDataLoader;
}  // namespace torch::executor::util
