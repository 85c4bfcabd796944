#include "rushlight/module/files/trace_file.h"

#include <cerrno>
#include <cstring>
#include <new>

#include "rushlight/trace/etdump.h"

namespace rushlight {
namespace {

Status cannot_write(const std::string& path, Message& message) {
  return message.fail(Code::AccessFailed, "%s cannot be written: %s", path.c_str(),
                      std::strerror(errno));
}

class FileSink : public ByteSink {
 public:
  explicit FileSink(std::FILE* file) : file_(file) {}
  bool write(Span<const uint8_t> bytes) override {
    return bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  }

 private:
  std::FILE* file_;
};

}  // namespace

class TraceFile::Values : public ValueStore {
 public:
  ~Values() override {
    if (file_ != nullptr) std::fclose(file_);
  }
  bool open(const std::string& path) {
    file_ = std::fopen(path.c_str(), "wb");
    // Memory for the file is taken now, so that nothing allocates while a method runs.
    return file_ != nullptr && std::setvbuf(file_, buffer_, _IOFBF, sizeof buffer_) == 0;
  }
  int64_t begin(size_t bytes) override {
    static constexpr char kZeros[kAlignment] = {};
    const size_t gap = (kAlignment - size_ % kAlignment) % kAlignment;
    write(kZeros, gap);
    if (failed_ || bytes > static_cast<uint64_t>(INT64_MAX) - size_) return -1;
    return static_cast<int64_t>(size_);
  }
  void append(Span<const uint8_t> bytes) override { write(bytes.data(), bytes.size()); }
  bool flush() {
    if (file_ != nullptr && std::fflush(file_) != 0) failed_ = true;
    return !failed_;
  }

 private:
  static constexpr size_t kAlignment = 64;

  void write(const void* data, size_t size) {
    if (size == 0 || failed_) return;
    failed_ = std::fwrite(data, 1, size, file_) != size;
    size_ += size;
  }

  std::FILE* file_ = nullptr;
  uint64_t size_ = 0;
  bool failed_ = false;
  char buffer_[1 << 16];
};

TraceFile::TraceFile() = default;

TraceFile::~TraceFile() = default;

Tracer* TraceFile::tracer() { return recorder_.get(); }

Status TraceFile::open(const TraceFileOptions& options, Message& message) {
  options_ = options;
  if (options_.values_path.empty()) options_.values_path = options_.path + ".values";
  room_.reset(new (std::nothrow) uint8_t[options_.bytes]);  // not initialised
  if (room_ == nullptr) {
    return message.fail(Code::MemoryAllocationFailed, "no memory is left for a trace of %zu bytes",
                        options_.bytes);
  }
  if (options_.values != ValueLevel::None) {
    values_ = std::make_unique<Values>();
    if (!values_->open(options_.values_path)) return cannot_write(options_.values_path, message);
  }
  recorder_ = std::make_unique<TraceRecorder>(Span<uint8_t>(room_.get(), options_.bytes),
                                              values_.get(), options_.values);
  for (const std::string& name : options_.names) names_.emplace_back(name.data(), name.size());
  recorder_->choose_values({names_.data(), names_.size()});
  return {};
}

Status TraceFile::save(Message& message) {
  if (values_ != nullptr && !values_->flush()) return cannot_write(options_.values_path, message);
  std::FILE* file = std::fopen(options_.path.c_str(), "wb");
  if (file == nullptr) return cannot_write(options_.path, message);
  FileSink sink(file);
  const Status status = write_etdump(*recorder_, sink);
  const bool closed = std::fclose(file) == 0;
  if (status.code() == Code::OutOfResources) {
    return message.fail(status.code(), "the trace is larger than 2 GiB, which its format allows");
  }
  return status.ok() && closed ? Status() : cannot_write(options_.path, message);
}

}  // namespace rushlight
