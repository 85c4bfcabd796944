// A file's bytes in memory: mapped where the system can map, read otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/status.h"

namespace rushlight {

class FileMap {
 public:
  FileMap() = default;
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  // Once per object. AccessFailed if the file cannot be read, MemoryAllocationFailed.
  Status open(const char* path);
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Gives back the whole pages of the range, which are read from the file again if they are touched
  // again. Nothing where the file was read, not mapped: its bytes lie in one block.
  void release(size_t begin, size_t end);

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace rushlight
