// Backends of a shared library that was built apart: loaded by its path, checked, and added to a
// table.
//
//   rushlight::BackendLibrary library;
//   rushlight::BackendTable table;
//   rushlight::Message message;
//   if (!library.open("libmine.so", message).ok()) return complain(message.text());
//   if (!library.add_to(table, message).ok()) return complain(message.text());
#pragma once

#include <cstddef>

#include "rushlight/delegate/plugin.h"

namespace rushlight {

class BackendLibrary {
 public:
  static constexpr size_t kCapacity = BackendTable::kCapacity;

  BackendLibrary() = default;
  // Unloads it: the tables and the modules that use its backends must be gone.
  ~BackendLibrary();
  BackendLibrary(const BackendLibrary&) = delete;
  BackendLibrary& operator=(const BackendLibrary&) = delete;

  // Once per object; a relative path starts from the current folder. AccessFailed if it cannot be
  // loaded, NotFound if it exports no backends, DelegateInvalidCompatibility if one cannot be used
  // here, NotSupported where there are no shared libraries; the message says why. None of its
  // backends is there then.
  Status open(const char* path, Message& message);
  size_t size() const { return size_; }
  PluginBackend& backend(size_t i) { return backends_[i]; }
  // Adds all. RegistrationAlreadyRegistered for an id that is there, OutOfResources; then none.
  Status add_to(BackendTable& table, Message& message);

 private:
  Status adopt_all(const char* path, rl_get_backend_v1_fn get, Message& message);

  void* handle_ = nullptr;
  PluginBackend backends_[kCapacity];
  size_t size_ = 0;
};

}  // namespace rushlight
