// Backends of a separately built shared library: loads it by its path, checks it, and adds its
// backends to a table.
//
//   rushlight::BackendLibrary library;
//   rushlight::BackendTable table;
//   rushlight::Message message;
//   if (!library.open("libmine.so", message).ok()) return complain(message.text());
//   if (!library.add_to(table, message).ok()) return complain(message.text());
#pragma once

#include <cstddef>

#include "rushlight/delegate/plugin.h"
#include "rushlight/module/shared_library.h"

namespace rushlight {

class BackendLibrary {
 public:
  static constexpr size_t kCapacity = BackendTable::kCapacity;

  BackendLibrary() = default;
  // Unloads the library. Tables and modules that use its backends must be destroyed before.
  ~BackendLibrary() = default;
  BackendLibrary(const BackendLibrary&) = delete;
  BackendLibrary& operator=(const BackendLibrary&) = delete;

  // May be called once for each object. A relative path is relative to the current folder. Returns
  // AccessFailed if the library cannot be loaded, NotFound if it exports no backends,
  // DelegateInvalidCompatibility if a backend cannot be used here, and NotSupported on systems
  // without shared libraries; the message says why. After a failure there are no backends.
  Status open(const char* path, Message& message);
  size_t size() const { return size_; }
  PluginBackend& backend(size_t i) { return backends_[i]; }
  // Adds all backends, or none on failure: RegistrationAlreadyRegistered for an id that the table
  // has already, OutOfResources if the table is full.
  Status add_to(BackendTable& table, Message& message);

 private:
  Status adopt_all(const char* path, rl_get_backend_v1_fn get, Message& message);

  SharedLibrary library_;  // unloaded last
  PluginBackend backends_[kCapacity];
  size_t size_ = 0;
};

}  // namespace rushlight
