// Keeps the values of a trace in memory of the application.
#pragma once

#include <executorch/devtools/etdump/data_sinks/data_sink_base.h>
#include <executorch/devtools/etdump/utils.h>
#include <executorch/runtime/core/span.h>

#include <cstring>

namespace executorch::etdump {

class BufferDataSink : public DataSinkBase {
 public:
  // `alignment` is of the address of each value, a power of two; anything else is refused.
  static runtime::Result<BufferDataSink> create(runtime::Span<uint8_t> buffer,
                                                size_t alignment = 64) noexcept {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
      return runtime::Error::InvalidArgument;
    }
    return BufferDataSink(buffer, alignment);
  }
  static runtime::Result<BufferDataSink> create(void* ptr, size_t size,
                                                size_t alignment = 64) noexcept {
    return create({static_cast<uint8_t*>(ptr), size}, alignment);
  }
  BufferDataSink() = default;
  BufferDataSink(const BufferDataSink&) = delete;
  BufferDataSink& operator=(const BufferDataSink&) = delete;
  BufferDataSink(BufferDataSink&&) = default;
  BufferDataSink& operator=(BufferDataSink&&) = default;
  ~BufferDataSink() override = default;

  runtime::Result<size_t> write(const void* ptr, size_t size) override {
    if (size == 0) return used_;
    const size_t at = next_offset();
    if (at > buffer_.size() || size > buffer_.size() - at) return runtime::Error::OutOfResources;
    std::memcpy(buffer_.data() + at, ptr, size);
    used_ = at + size;
    return at;
  }
  runtime::Result<size_t> get_storage_size() const { return buffer_.size(); }
  size_t get_used_bytes() const override { return used_; }
  size_t next_offset() const override {
    if (buffer_.data() == nullptr) return 0;
    return static_cast<size_t>(internal::align_pointer(buffer_.data() + used_, alignment_) -
                               buffer_.data());
  }

 private:
  BufferDataSink(runtime::Span<uint8_t> buffer, size_t alignment)
      : buffer_(buffer), alignment_(alignment) {}

  runtime::Span<uint8_t> buffer_;
  size_t used_ = 0;
  size_t alignment_ = 64;
};

}  // namespace executorch::etdump
