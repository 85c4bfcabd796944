#include "rushlight/module/backend_library.h"

#include <cstdio>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#define RUSHLIGHT_HAS_DLOPEN 1
#endif

namespace rushlight {

#if defined(RUSHLIGHT_HAS_DLOPEN)

BackendLibrary::~BackendLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

Status BackendLibrary::open(const char* path, Message& message) {
  // A name without a slash would be searched for in the system's folders, but not in this one.
  char here[512];
  const bool is_name = std::strchr(path, '/') == nullptr;
  if (is_name) std::snprintf(here, sizeof(here), "./%s", path);
  handle_ = ::dlopen(is_name ? here : path, RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* why = ::dlerror();
    return message.fail(Code::AccessFailed, "%s: the library cannot be loaded: %s", path,
                        why != nullptr ? why : "no reason was given");
  }
  void* symbol = ::dlsym(handle_, RL_BACKEND_V1_SYMBOL);
  if (symbol == nullptr) {
    return message.fail(Code::NotFound,
                        "%s exports no %s: it is not a library of backends, or was built with that "
                        "symbol hidden",
                        path, RL_BACKEND_V1_SYMBOL);
  }
  return adopt_all(path, reinterpret_cast<rl_get_backend_v1_fn>(symbol), message);
}

#else

BackendLibrary::~BackendLibrary() = default;

Status BackendLibrary::open(const char* path, Message& message) {
  return message.fail(Code::NotSupported,
                      "%s: this system's shared libraries cannot be loaded; link the backend, and "
                      "add it to the table",
                      path);
}

#endif

Status BackendLibrary::adopt_all(const char* path, rl_get_backend_v1_fn get, Message& message) {
  size_t n = 0;
  for (;; ++n) {
    const rl_backend_v1* backend = get(static_cast<uint32_t>(n));
    if (backend == nullptr) break;
    Status status;
    if (n == kCapacity) {
      status = message.fail(Code::OutOfResources, "it has more than %zu backends", kCapacity);
    } else {
      status = backends_[n].adopt(backend, message);
    }
    if (status.ok()) continue;
    message.prepend("%s: ", path);
    return status;
  }
  if (n == 0) return message.fail(Code::NotFound, "%s has no backend", path);
  size_ = n;
  return {};
}

Status BackendLibrary::add_to(BackendTable& table, Message& message) {
  for (size_t i = 0; i < size_; ++i) {
    const Status status = table.add(backends_[i].id(), &backends_[i]);
    if (status.ok()) continue;
    for (size_t k = 0; k < i; ++k) (void)table.remove(StringView(backends_[k].id()));
    return message.fail(
        status.code(), "the backend %s cannot be added: %s", backends_[i].id(),
        status.code() == Code::OutOfResources ? "the table is full" : "there is one of that id");
  }
  return {};
}

}  // namespace rushlight
