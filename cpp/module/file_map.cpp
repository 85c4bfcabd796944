#include "rushlight/module/file_map.h"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#include <cstdio>
#include <cstdlib>
#endif

namespace rushlight {

#if defined(__unix__) || defined(__APPLE__)

Status FileMap::open(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return Code::AccessFailed;
  struct stat info = {};
  const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  const bool fits = regular && static_cast<uint64_t>(info.st_size) <= SIZE_MAX;
  Status status = fits ? Code::Ok : Code::AccessFailed;
  if (fits && info.st_size > 0) {
    size_ = static_cast<size_t>(info.st_size);
    void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapping == MAP_FAILED) {
      size_ = 0;
      status = Code::MemoryAllocationFailed;
    } else {
      data_ = static_cast<uint8_t*>(mapping);
    }
  }
  ::close(file);
  return status;
}

FileMap::~FileMap() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void FileMap::release(size_t begin, size_t end) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;  // the mapping starts at a page
  end = end / page * page;
  if (begin < end && end <= size_) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

#else

Status FileMap::open(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return Code::AccessFailed;
  std::fseek(file, 0, SEEK_END);
  const long end = std::ftell(file);
  std::fseek(file, 0, SEEK_SET);
  Status status = end >= 0 ? Code::Ok : Code::AccessFailed;
  if (end > 0) {
    size_ = static_cast<size_t>(end);
    data_ = static_cast<uint8_t*>(std::malloc(size_));
    if (data_ == nullptr) {
      status = Code::MemoryAllocationFailed;
    } else if (std::fread(data_, 1, size_, file) != size_) {
      status = Code::AccessFailed;
    }
  }
  std::fclose(file);
  return status;
}

FileMap::~FileMap() { std::free(data_); }

void FileMap::release(size_t, size_t) {}

#endif

}  // namespace rushlight
