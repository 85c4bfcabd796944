// What mapping a file needs of the system.
#pragma once

#include <executorch/runtime/platform/compiler.h>

#if defined(_WIN32)
static_assert(false, "there is no mmap() on Windows: use MmapDataLoader");
#else
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

ET_INLINE long get_os_page_size() { return ::sysconf(_SC_PAGESIZE); }
ET_INLINE int get_file_stat(int fd, size_t* size) {
  struct stat about;
  const int error = ::fstat(fd, &about);
  if (error >= 0) *size = static_cast<size_t>(about.st_size);
  return error;
}
ET_INLINE off_t get_mmap_offset(size_t offset) { return static_cast<off_t>(offset); }
ET_INLINE void madvise_pages_willneed_sequential(void* address, size_t size) {
  ::madvise(address, size, MADV_WILLNEED);
  ::madvise(address, size, MADV_SEQUENTIAL);
}
ET_INLINE void fcntl_rdadvise_apple(int, size_t) {}
#endif
