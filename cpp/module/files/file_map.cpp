#include "rushlight/module/files/file_map.h"

#include <cerrno>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <new>
#else
#include <cstdio>
#endif

#include "rushlight/module/heap.h"

namespace rushlight {
namespace {

Status fail_with_errno(Message& message) {
  const int error = errno;
  if (error == ENOENT || error == ENOTDIR) {
    (void)message.fail(Code::AccessFailed, "no such file: check the path");
  } else {
    (void)message.fail(Code::AccessFailed, "the file cannot be read: %s", std::strerror(error));
  }
  return Code::AccessFailed;
}

Status out_of_memory(Message& message) {
  return message.fail(Code::MemoryAllocationFailed, "the system has no memory left");
}

}  // namespace

#if defined(__unix__) || defined(__APPLE__)

namespace {

// Longer than a tick of the system's clock, within which two writes may get the same time.
constexpr int64_t kTick = 20'000'000;

#if defined(__APPLE__)
timespec modified(const struct stat& info) { return info.st_mtimespec; }
timespec changed(const struct stat& info) { return info.st_ctimespec; }
#else
timespec modified(const struct stat& info) { return info.st_mtim; }
timespec changed(const struct stat& info) { return info.st_ctim; }
#endif

bool same(timespec a, timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

int64_t since(timespec then) {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (now.tv_sec - then.tv_sec > 1) return kTick;
  return (now.tv_sec - then.tv_sec) * 1'000'000'000LL + now.tv_nsec - then.tv_nsec;
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

bool read_all(int file, uint8_t* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(file, data, size < (size_t{1} << 30) ? size : size_t{1} << 30);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // the file has become shorter
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

Status check_kind(const struct stat& info, Message& message) {
  if (!S_ISREG(info.st_mode)) {
    return message.fail(Code::AccessFailed, "it is %s, not a file", kind_of(info.st_mode));
  }
  if (static_cast<uint64_t>(info.st_size) <= SIZE_MAX) return {};
  return message.fail(Code::MemoryAllocationFailed, "it is too large for this system");
}

#if defined(MADV_HUGEPAGE)

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLeastForHugePages = 4 * kHugePage;

// Maps the file at a multiple of kHugePage, where its cached bytes can be mapped by huge pages, and
// asks the system to read it in these. Weights that each token reads in a row are then read up to a
// sixth faster. Returns MAP_FAILED if there is no room.
void* map_by_huge_pages(int file, size_t size) {
  const size_t room = size + kHugePage;
  void* start =
      ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return MAP_FAILED;
  auto* first = static_cast<uint8_t*>(start);
  uint8_t* aligned =
      first + (kHugePage - reinterpret_cast<uintptr_t>(first) % kHugePage) % kHugePage;
  if (::mmap(aligned, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED) {
    ::munmap(start, room);
    return MAP_FAILED;
  }
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  uint8_t* end = aligned + (size + page - 1) / page * page;
  if (aligned > first) ::munmap(first, static_cast<size_t>(aligned - first));
  if (end < first + room) ::munmap(end, static_cast<size_t>(first + room - end));
  ::madvise(aligned, size, MADV_HUGEPAGE);  // a wish: not every kernel and file system can
  return aligned;
}

#endif

void* map_file(int file, size_t size) {
#if defined(MADV_HUGEPAGE)
  if (size >= kLeastForHugePages) {
    void* memory = map_by_huge_pages(file, size);
    if (memory != MAP_FAILED) return memory;
  }
#endif
  return ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
}

void* map_memory(size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
#if defined(MADV_HUGEPAGE)
  if (memory != MAP_FAILED && size >= kLeastForHugePages) ::madvise(memory, size, MADV_HUGEPAGE);
#endif
  return memory;
}

// Opens regular files only: opening a device may have side effects, and opening a pipe may block.
Status open_file(const char* path, int* file, struct stat* info, Message& message) {
  if (::stat(path, info) != 0) return fail_with_errno(message);
  RL_TRY(check_kind(*info, message));
  *file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (*file < 0 || ::fstat(*file, info) != 0) return fail_with_errno(message);
  return check_kind(*info, message);
}

}  // namespace

// The stored state of a guarded file, and the check against it.
struct FileMap::Watch {
  int file = -1;
  struct stat info = {};
  char* path = nullptr;

  ~Watch() {
    if (file >= 0) ::close(file);
    delete[] path;
  }

  Status start(const char* name, Message& message) {
    // Waits if the file was written just now: another write could get the same time.
    for (int i = 0; i < 5 && (since(modified(info)) < kTick || since(changed(info)) < kTick); ++i) {
      const timespec pause = {0, kTick};
      ::nanosleep(&pause, nullptr);
      if (::fstat(file, &info) != 0) return fail_with_errno(message);
    }
    const size_t length = std::strlen(name) + 1;
    path = new (std::nothrow) char[length];
    if (path == nullptr) return out_of_memory(message);
    std::memcpy(path, name, length);
    return {};
  }
};

Status FileMap::open(const char* path, const FileOptions& options, Message& message) {
  auto* watch = new (std::nothrow) Watch;
  if (watch == nullptr) return out_of_memory(message);
  Status status = open_file(path, &watch->file, &watch->info, message);
  const bool is_guarded = options.map && options.guard;
  if (status.ok() && is_guarded) status = watch->start(path, message);
  if (status.ok())
    status = take(watch->file, static_cast<size_t>(watch->info.st_size), options.map, message);
  if (status.ok() && is_guarded) {
    watch_ = watch;
  } else {
    delete watch;
  }
  return status;
}

// Maps or reads the open file.
Status FileMap::take(int file, size_t size, bool map, Message& message) {
  if (size == 0) return {};
  is_on_heap_ = !map && has_own_heap();
  void* memory = MAP_FAILED;
  if (is_on_heap_) {
    memory = heap_allocate(size);
    if (memory == nullptr) return out_of_memory(message);
  } else {
    memory = map ? map_file(file, size) : map_memory(size);
  }
  if (memory == MAP_FAILED) {
    return message.fail(Code::MemoryAllocationFailed, "the file cannot be mapped: %s",
                        std::strerror(errno));
  }
  data_ = static_cast<uint8_t*>(memory);
  size_ = size;
  is_mapped_ = map;
  return map || read_all(file, data_, size_) ? Status() : fail_with_errno(message);
}

FileMap::~FileMap() {
  if (is_on_heap_) {
    heap_free(data_);
  } else if (data_ != nullptr) {
    ::munmap(data_, size_);
  }
  delete watch_;
}

void FileMap::release(size_t begin, size_t end) {
  if (!is_mapped_) return;
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;  // the mapping starts at a page
  end = end / page * page;
  if (begin < end && end <= size_) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

Status FileMap::check_unchanged(Message& message) const {
  if (watch_ == nullptr) return {};
  static constexpr char kAdvice[] =
      "load it again; a file that others write must be replaced by renaming a new one over it, or "
      "be loaded without mapping it (the option map)";
  const struct stat& before = watch_->info;
  struct stat now = {};
  if (::fstat(watch_->file, &now) != 0) return fail_with_errno(message);
  if (now.st_size != before.st_size) {
    return message.fail(
        Code::AccessFailed,
        "%s was changed after it was loaded: it had %lld bytes, now it has %lld; %s", watch_->path,
        static_cast<long long>(before.st_size), static_cast<long long>(now.st_size), kAdvice);
  }
  const bool is_written = !same(modified(now), modified(before));
  // Another file was renamed over it. The old one cannot be opened any more, so its bytes stay.
  const bool is_gone = now.st_nlink == 0;
  if (!is_written && (is_gone || same(changed(now), changed(before)))) return {};
  return message.fail(Code::AccessFailed, "%s was changed after it was loaded: %s; %s",
                      watch_->path,
                      is_written ? "it was written to (its modification time is another)"
                                 : "its status is another (its change time is)",
                      kAdvice);
}

#else

struct FileMap::Watch {};

// Files are always read here: the system cannot map or watch them.
Status FileMap::open(const char* path, const FileOptions&, Message& message) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return fail_with_errno(message);
  std::fseek(file, 0, SEEK_END);
  const long end = std::ftell(file);
  std::fseek(file, 0, SEEK_SET);
  Status status = end >= 0 ? Status() : fail_with_errno(message);
  if (end > 0) {
    size_ = static_cast<size_t>(end);
    data_ = static_cast<uint8_t*>(heap_allocate(size_));
    if (data_ == nullptr) {
      status = out_of_memory(message);
    } else if (std::fread(data_, 1, size_, file) != size_) {
      status = fail_with_errno(message);
    }
  }
  std::fclose(file);
  return status;
}

FileMap::~FileMap() { heap_free(data_); }

void FileMap::release(size_t, size_t) {}

Status FileMap::check_unchanged(Message&) const { return {}; }

#endif

}  // namespace rushlight
