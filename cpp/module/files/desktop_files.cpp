#include "rushlight/module/files/desktop_files.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#if defined(_WIN32)
#include <process.h>
#else
#include <unistd.h>
#endif

#include "rushlight/module/files/file_map.h"

namespace rushlight {
namespace {

constexpr size_t kLongestPath = 1024;

bool exists(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return errno != ENOENT;
  std::fclose(file);
  return true;
}

// A name in the folder of the file, so that it is on the same disk, and unique to this process and
// call.
bool name_beside(const char* path, char (&name)[kLongestPath]) {
  static std::atomic<unsigned> calls{0};
#if defined(_WIN32)
  const int process = _getpid();
#else
  const int process = static_cast<int>(::getpid());
#endif
  const int length = std::snprintf(name, sizeof(name), "%s.%d.%u", path, process, calls++);
  return length > 0 && static_cast<size_t>(length) < sizeof(name);
}

bool write_parts(const char* path, Span<const Span<const uint8_t>> parts) {
  std::FILE* file = std::fopen(path, "wb");
  if (file == nullptr) return false;
  bool ok = true;
  for (const Span<const uint8_t>& part : parts) {
    ok = ok && std::fwrite(part.data(), 1, part.size(), file) == part.size();
  }
  return std::fclose(file) == 0 && ok;
}

bool rename_over(const char* from, const char* to) {
#if defined(_WIN32)
  std::remove(to);  // rename() does not replace a file on Windows
#endif
  return std::rename(from, to) == 0;
}

class DesktopFiles final : public FileStore {
 public:
  Result<File> open(const char* path, Message& why) override {
    if (!exists(path)) return Code::NotFound;
    auto* map = new (std::nothrow) FileMap();
    if (map == nullptr) return Code::MemoryAllocationFailed;
    const Status status = map->open(path, {}, why);
    if (status.ok()) return File{{map->data(), map->size()}, map};
    delete map;
    return status;
  }

  void close(File file) override { delete static_cast<FileMap*>(file.handle); }

  Status replace(const char* path, Span<const Span<const uint8_t>> parts, Message& why) override {
    char name[kLongestPath];
    if (!name_beside(path, name)) {
      return why.fail(Code::InvalidArgument, "its path is too long");
    }
    // Not flushed to the disk: readers must detect what is left after a power failure.
    if (write_parts(name, parts) && rename_over(name, path)) return {};
    const int error = errno;
    std::remove(name);
    return why.fail(Code::AccessFailed, "%s", std::strerror(error));
  }
};

}  // namespace

FileStore& desktop_files() {
  static DesktopFiles files;
  return files;
}

}  // namespace rushlight
