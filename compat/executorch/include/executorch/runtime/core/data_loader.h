// Where the bytes of a program come from.
#pragma once

#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>

namespace executorch::runtime {

class DataLoader {
 public:
  struct SegmentInfo {
    enum class Type { Program, Constant, Backend, Mutable, External };

    Type segment_type;
    size_t segment_index;
    const char* descriptor;  // of a backend's segment: its id

    SegmentInfo() = default;
    explicit SegmentInfo(Type type, size_t index = 0, const char* descriptor = nullptr)
        : segment_type(type), segment_index(index), descriptor(descriptor) {}
  };

  virtual ~DataLoader() = default;
  ET_NODISCARD virtual Result<FreeableBuffer> load(size_t offset, size_t size,
                                                   const SegmentInfo& segment_info) const = 0;
  ET_NODISCARD virtual Error load_into(size_t, size_t, const SegmentInfo&, void*) const {
    ET_LOG(Error, "this data loader has no load_into(): call load()");
    return Error::NotImplemented;
  }
  ET_NODISCARD virtual Result<size_t> size() const = 0;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::DataLoader;
}  // namespace torch::executor
