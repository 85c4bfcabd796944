#include "rushlight/module/shared_library.h"

#include <cstdio>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#define RUSHLIGHT_HAS_DLOPEN 1
#endif

namespace rushlight {

#if defined(RUSHLIGHT_HAS_DLOPEN)

namespace {

// The processors of ELF files, by their number there.
struct Processor {
  int number;
  const char* name;
};
constexpr Processor kProcessors[] = {
    {3, "x86 (32 bits)"}, {40, "ARM (32 bits)"}, {62, "x86-64"}, {183, "ARM64"}, {243, "RISC-V"}};
#if defined(__x86_64__)
constexpr int kOwn = 62;
#elif defined(__aarch64__)
constexpr int kOwn = 183;
#elif defined(__arm__)
constexpr int kOwn = 40;
#elif defined(__i386__)
constexpr int kOwn = 3;
#elif defined(__riscv)
constexpr int kOwn = 243;
#else
constexpr int kOwn = 0;
#endif

const char* name_of(int number) {
  for (const Processor& one : kProcessors) {
    if (one.number == number) return one.name;
  }
  return "another processor";
}

// The number of the processor that a library is for; kOwn if that cannot be told. The system's own
// message for a library of another processor is that there is no such file.
int processor_of(const char* path) {
  constexpr size_t kHeader = 20;
  unsigned char head[kHeader] = {};
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return kOwn;
  const size_t n = std::fread(head, 1, kHeader, file);
  std::fclose(file);
  const bool is_elf = n == kHeader && std::memcmp(head, "\177ELF", 4) == 0;
  const bool is_little = head[5] == 1;
  return is_elf && is_little ? head[18] | head[19] << 8 : kOwn;
}

}  // namespace

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

Status SharedLibrary::open(const char* path, const char* symbol, const char* what,
                           Message& message) {
  // A name without a slash would be searched for in the system's folders, but not in this one.
  char here[512];
  const bool is_name = std::strchr(path, '/') == nullptr;
  if (is_name) std::snprintf(here, sizeof(here), "./%s", path);
  handle_ = ::dlopen(is_name ? here : path, RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* why = ::dlerror();
    const int processor = processor_of(path);
    if (kOwn != 0 && processor != kOwn) {
      return message.fail(Code::AccessFailed,
                          "%s: the library is built for %s, and this process runs on %s: give the "
                          "build for that",
                          path, name_of(processor), name_of(kOwn));
    }
    return message.fail(Code::AccessFailed, "%s: the library cannot be loaded: %s", path,
                        why != nullptr ? why : "no reason was given");
  }
  symbol_ = ::dlsym(handle_, symbol);
  if (symbol_ != nullptr) return {};
  return message.fail(Code::NotFound,
                      "%s exports no %s: it is not a library of %s, or was built with that symbol "
                      "hidden",
                      path, symbol, what);
}

#else

SharedLibrary::~SharedLibrary() = default;

Status SharedLibrary::open(const char* path, const char*, const char* what, Message& message) {
  return message.fail(Code::NotSupported,
                      "%s: this system's shared libraries cannot be loaded; link the %s, and add "
                      "them to the table",
                      path, what);
}

#endif

}  // namespace rushlight
