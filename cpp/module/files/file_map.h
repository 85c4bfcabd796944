// A file's bytes in memory: mapped if the system can map files, else read.
//
// A mapped file must not change while it is used: writes by others are visible, and reading beyond
// a truncated end kills the process. Callers that cannot guarantee that should read the file
// instead (`map`) or watch it (`guard`). A file that is replaced by a rename keeps its bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight {

struct FileOptions {
  bool map = true;     // false: read the file into memory
  bool guard = false;  // enable check_unchanged(), for a mapped file
};

class FileMap {
 public:
  FileMap() = default;
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  // May be called once for each object. Returns AccessFailed if the file cannot be read, or
  // MemoryAllocationFailed, with the reason in `message`.
  Status open(const char* path, const FileOptions& options, Message& message);
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Releases the whole pages of the range; they are read from the file again when they are used.
  // Does nothing if the file was read, not mapped.
  void release(size_t begin, size_t end);

  bool is_guarded() const { return watch_ != nullptr; }
  // Returns AccessFailed if the file has another size, or was modified in any way since it was
  // opened; Ok if it is not guarded. Queries the system once, and does not read the file.
  Status check_unchanged(Message& message) const;

 private:
  struct Watch;

  Status take(int file, size_t size, bool map, Message& message);

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool is_mapped_ = false;
  bool is_on_heap_ = false;  // read into memory of module/heap.h
  Watch* watch_ = nullptr;
};

}  // namespace rushlight
