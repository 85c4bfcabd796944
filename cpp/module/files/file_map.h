// A file's bytes in memory: mapped where the system can map, read otherwise.
//
// A mapped file must stay as it is while it is used: others' writes to it are visible, and reading
// past a truncated end kills the process. Callers that cannot promise that read it instead (`map`),
// or have it watched (`guard`). A file that is renamed over keeps its bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight {

struct FileOptions {
  bool map = true;     // false: read it into memory
  bool guard = false;  // for check_unchanged(); where the file is mapped
};

class FileMap {
 public:
  FileMap() = default;
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  // Once per object. AccessFailed if the file cannot be read, MemoryAllocationFailed; the reason
  // is in `message`.
  Status open(const char* path, const FileOptions& options, Message& message);
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Gives back the whole pages of the range, which are read from the file again if they are touched
  // again. Nothing where the file was read, not mapped.
  void release(size_t begin, size_t end);

  bool is_guarded() const { return watch_ != nullptr; }
  // AccessFailed if the file has another size, or was written or changed in another way since it
  // was opened. Ok if it is not guarded. Asks the system once, and reads nothing of the file.
  Status check_unchanged(Message& message) const;

 private:
  struct Watch;

  Status take(int file, size_t size, bool map, Message& message);

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool is_mapped_ = false;
  Watch* watch_ = nullptr;
};

}  // namespace rushlight
