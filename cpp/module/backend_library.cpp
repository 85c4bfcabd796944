#include "rushlight/module/backend_library.h"

namespace rushlight {

Status BackendLibrary::open(const char* path, Message& message) {
  RL_TRY(library_.open(path, RL_BACKEND_V1_SYMBOL, "backends", message));
  return adopt_all(path, reinterpret_cast<rl_get_backend_v1_fn>(library_.symbol()), message);
}

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
