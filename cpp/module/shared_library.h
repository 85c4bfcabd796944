// A shared library that is loaded by its path, for the interfaces of backends and of kernels.
#pragma once

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight {

class SharedLibrary {
 public:
  SharedLibrary() = default;
  // Unloads it.
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // Loads the library and finds the function `symbol`, which is a library of `what` ("backends").
  // May be called once for each object. A relative path is relative to the current folder. Returns
  // AccessFailed if the library cannot be loaded, NotFound without the symbol, and NotSupported on
  // systems without shared libraries; the message says why.
  Status open(const char* path, const char* symbol, const char* what, Message& message);
  void* symbol() const { return symbol_; }

 private:
  void* handle_ = nullptr;
  void* symbol_ = nullptr;
};

}  // namespace rushlight
