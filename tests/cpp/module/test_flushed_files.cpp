// What is said to be saved is on the disk: files are flushed, renamed, and then their folder is.
// The linker wraps these calls (see CMakeLists.txt).
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "check.h"
#include "rushlight/module/files/desktop_files.h"

namespace {

std::string g_calls;
int g_error = 0;  // of the next flush

}  // namespace

extern "C" {

int __real_rename(const char* from, const char* to);

int __wrap_fsync(int file) {
  struct stat info = {};
  CHECK(fstat(file, &info) == 0);
  g_calls += S_ISDIR(info.st_mode) ? "folder " : "file of " + std::to_string(info.st_size) + " ";
  errno = g_error;
  g_error = 0;
  return errno == 0 ? 0 : -1;
}

int __wrap_rename(const char* from, const char* to) {
  g_calls += "rename ";
  return __real_rename(from, to);
}
}

using namespace rushlight;
using namespace rushlight::test;

namespace {

constexpr char kPath[] = "test_flushed_files.txt";

// The calls that replace a file by one of five bytes.
std::string calls(FileStore::Flush flush, int error = 0, Code wanted = Code::Ok) {
  const std::string text = "hello";
  const Span<const uint8_t> part(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  Message message;
  g_calls.clear();
  g_error = error;
  const Status status = desktop_files().replace(kPath, {&part, 1}, flush, message);
  CHECK(status.code() == wanted);
  struct stat info = {};
  const bool is_there = stat(kPath, &info) == 0;
  CHECK(is_there == status.ok() && (!is_there || info.st_size == 5));
  std::remove(kPath);
  return g_calls;
}

}  // namespace

int main() {
  std::remove(kPath);
  CHECK(calls(FileStore::Flush::Yes) == "file of 5 rename folder ");
  CHECK(calls(FileStore::Flush::No) == "rename ");
  CHECK(calls(FileStore::Flush::Yes, EINTR) == "file of 5 file of 5 rename folder ");
  CHECK(calls(FileStore::Flush::Yes, EINVAL) == "file of 5 rename folder ");  // cannot be flushed
  CHECK(calls(FileStore::Flush::Yes, EIO, Code::AccessFailed) == "file of 5 ");
  CHECK(calls(FileStore::Flush::Yes, ENOSPC, Code::AccessFailed) == "file of 5 ");
  return check_result();
}
