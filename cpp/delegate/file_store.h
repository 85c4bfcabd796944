// Files that a backend may keep, to have work done once: the desktop's are in
// module/files/desktop_files.h, a board has none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"

namespace rushlight {

class FileStore {
 public:
  // A file's bytes, which must not be written. They start at a multiple of 64.
  struct File {
    Span<const uint8_t> bytes;
    void* handle = nullptr;  // the store's own
  };
  enum class Flush : uint8_t { No, Yes };

  // To be closed once. NotFound if there is no such file; else what fails is in `why`.
  virtual Result<File> open(const char* path, Message& why) = 0;
  virtual void close(File file) = 0;
  // Puts a file of these parts in the place of what is at `path`: who opens it meanwhile finds the
  // one or the other, whole, and who has opened it keeps the bytes. What fails is in `why`, and
  // nothing is changed. With Flush::Yes the file is on the disk when this returns; else, which
  // costs less, a power failure may leave it damaged.
  virtual Status replace(const char* path, Span<const Span<const uint8_t>> parts, Flush flush,
                         Message& why) = 0;

 protected:
  ~FileStore() = default;
};

}  // namespace rushlight
