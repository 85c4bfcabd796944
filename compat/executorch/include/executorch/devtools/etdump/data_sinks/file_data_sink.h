// Writes the values of a trace to a file.
#pragma once

#include <executorch/devtools/etdump/data_sinks/data_sink_base.h>

#include <cstdio>
#include <utility>

namespace executorch::etdump {

class FileDataSink : public DataSinkBase {
 public:
  static runtime::Result<FileDataSink> create(const char* file_path) {
    FILE* file = std::fopen(file_path, "wb");
    if (file == nullptr) return runtime::Error::AccessFailed;
    return FileDataSink(file);
  }
  ~FileDataSink() override { close(); }
  FileDataSink(const FileDataSink&) = delete;
  FileDataSink& operator=(const FileDataSink&) = delete;
  FileDataSink(FileDataSink&& other) noexcept
      : file_(std::exchange(other.file_, nullptr)), used_(other.used_) {}
  FileDataSink& operator=(FileDataSink&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(used_, other.used_);
    return *this;
  }

  runtime::Result<size_t> write(const void* ptr, size_t size) override {
    if (size == 0) return used_;
    if (file_ == nullptr) return runtime::Error::AccessFailed;
    if (std::fwrite(ptr, 1, size, file_) != size) return runtime::Error::AccessFailed;
    used_ += size;
    return used_ - size;
  }
  size_t get_used_bytes() const override { return used_; }
  void close() {
    if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
  }

 private:
  explicit FileDataSink(FILE* file) : file_(file) {}

  FILE* file_;
  size_t used_ = 0;
};

}  // namespace executorch::etdump
