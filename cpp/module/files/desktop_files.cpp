#include "rushlight/module/files/desktop_files.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(_WIN32)
#include <io.h>
#include <process.h>
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "rushlight/module/files/file_map.h"

namespace rushlight {
namespace {

#if defined(_WIN32)

constexpr size_t kLongestPath = 1024;
using Mode = int;

bool exists(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return errno != ENOENT;
  std::fclose(file);
  return true;
}

bool find_place(const char* path, char (&place)[kLongestPath], Mode*) {
  const int length = std::snprintf(place, sizeof(place), "%s", path);
  if (length > 0 && static_cast<size_t>(length) < sizeof(place)) return true;
  errno = length > 0 ? ENAMETOOLONG : ENOENT;
  return false;
}

std::FILE* create(const char* path, Mode) { return std::fopen(path, "wb"); }

int process_id() { return _getpid(); }

bool flush_file(std::FILE* file) { return std::fflush(file) == 0 && _commit(_fileno(file)) == 0; }

void flush_folder_of(char*) {}  // it cannot be flushed on Windows

bool rename_over(const char* from, const char* to) {
  std::remove(to);  // rename() does not replace a file on Windows
  return std::rename(from, to) == 0;
}

#else

constexpr size_t kLongestPath = PATH_MAX;
using Mode = mode_t;

bool exists(const char* path) {
  struct stat info;  // opening a pipe would wait
  return ::stat(path, &info) == 0 || errno != ENOENT;
}

// Where the file is that is replaced, which is the target of a symbolic link, and the permissions
// that the new one may have; or where there is none. False with errno if something else than a file
// is there, or it may not be written.
bool find_place(const char* path, char (&place)[kLongestPath], Mode* mode) {
  *mode = 0666;
  if (::realpath(path, place) == nullptr) {
    if (errno != ENOENT) return false;
    const int length = std::snprintf(place, sizeof(place), "%s", path);
    if (length > 0 && static_cast<size_t>(length) < sizeof(place)) return true;
    errno = length > 0 ? ENAMETOOLONG : ENOENT;
    return false;
  }
  struct stat info;
  if (::stat(place, &info) != 0) return false;
  if (!S_ISREG(info.st_mode)) {
    errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    return false;
  }
  *mode = info.st_mode & 0777;
  return ::access(place, W_OK) == 0;
}

// A new file: one that an earlier process left is removed, and a link is not followed.
std::FILE* create(const char* path, Mode mode) {
  ::unlink(path);
  const int file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  return file >= 0 ? ::fdopen(file, "wb") : nullptr;
}

int process_id() { return static_cast<int>(::getpid()); }

bool flush_to_disk(int file) {
#if defined(F_FULLFSYNC)
  if (::fcntl(file, F_FULLFSYNC) == 0) return true;  // on macOS fsync leaves it to the drive
#endif
  while (::fsync(file) != 0) {
    if (errno != EINTR) return errno == EINVAL;  // what cannot be flushed is written
  }
  return true;
}

bool flush_file(std::FILE* file) { return std::fflush(file) == 0 && flush_to_disk(::fileno(file)); }

// Without it the file's new name could be lost. Not every system can flush a folder, nor is every
// folder readable, and the file has its place by now: that it fails is no error. Cuts the path.
void flush_folder_of(char* path) {
  char* const slash = std::strrchr(path, '/');
  if (slash != nullptr) slash[slash == path ? 1 : 0] = '\0';
  const int folder = ::open(slash == nullptr ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  flush_to_disk(folder);
  ::close(folder);
}

bool rename_over(const char* from, const char* to) { return std::rename(from, to) == 0; }

#endif

// A name in the folder of the file, so that it is on the same disk, and unique to this process and
// call.
bool name_beside(const char* path, char (&name)[kLongestPath]) {
  static std::atomic<unsigned> calls{0};
  const int length = std::snprintf(name, sizeof(name), "%s.%d.%u", path, process_id(), calls++);
  return length > 0 && static_cast<size_t>(length) < sizeof(name);
}

bool write_parts(const char* path, Mode mode, Span<const Span<const uint8_t>> parts,
                 FileStore::Flush flush) {
  std::FILE* file = create(path, mode);
  if (file == nullptr) return false;
  bool ok = true;
  for (const Span<const uint8_t>& part : parts) {
    if (part.size() == 0) continue;  // it may have no address
    ok = ok && std::fwrite(part.data(), 1, part.size(), file) == part.size();
  }
  if (flush == FileStore::Flush::Yes) ok = ok && flush_file(file);
  const int error = errno;
  if (std::fclose(file) != 0) return false;
  errno = error;
  return ok;
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

  Status replace(const char* path, Span<const Span<const uint8_t>> parts, Flush flush,
                 Message& why) override {
    char place[kLongestPath], name[kLongestPath];
    Mode mode = {};
    if (!find_place(path, place, &mode)) {
      const bool is_no_file = errno == EINVAL;
      return why.fail(Code::AccessFailed, "%s",
                      is_no_file ? "it is a pipe or a device, not a file" : std::strerror(errno));
    }
    if (!name_beside(place, name)) {
      return why.fail(Code::InvalidArgument, "its path is too long");
    }
    if (write_parts(name, mode, parts, flush) && rename_over(name, place)) {
      if (flush == Flush::Yes) flush_folder_of(place);
      return {};
    }
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
