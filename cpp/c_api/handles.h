// Handles of the C interface: numbers that lead to objects by a table. They are never addresses, so
// that a handle that was closed, or never was one, is found out, and so is one that is used by two
// threads at once.
//
// A handle has the object's place in the table in its low bits and, above them, a serial number
// that no other handle gets (on 32-bit systems: that comes again after a million handles).
#pragma once

#include <atomic>
#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::c_api {

enum class Kind : uint8_t { Module, Llm, Session, Grammar, Adapter };

// Alone: one thread at a time. Shared: any number of threads, but no other may close it meanwhile.
enum class Use : uint8_t { Alone, Shared };

// An entry of the table. `stop` is set by stop_use() and is false whenever nobody uses the object
// alone; nullptr if its calls cannot be stopped.
struct Object {
  void* object = nullptr;
  Kind kind = Kind::Module;
  std::atomic<bool>* stop = nullptr;
};

// The handle of an object. Returns MemoryAllocationFailed or OutOfResources if the table cannot
// grow.
Result<uintptr_t> add_handle(const Object& object, Message* message);
// The object of a handle, which stays until release_handle(). Returns InvalidState for a handle
// that is not open, is of another kind or is in use by another thread.
Result<void*> use_handle(uintptr_t handle, Kind kind, Use use, Message* message);
void release_handle(uintptr_t handle, Use use);
// Takes a handle that nobody uses out of the table.
Result<void*> remove_handle(uintptr_t handle, Kind kind, Message* message);
// Sets `stop` of an object if another thread uses it alone.
Status stop_use(uintptr_t handle, Kind kind, Message* message);
bool has_handles();

// The object of a handle, for the time of a call.
template <class T>
class Lease {
 public:
  Lease(const void* handle, Use use, Message* message)
      : handle_(reinterpret_cast<uintptr_t>(handle)), use_(use) {
    const Result<void*> object = use_handle(handle_, T::kKind, use, message);
    status_ = object.status();
    if (object.ok()) object_ = static_cast<T*>(object.value());
  }
  ~Lease() {
    if (object_ != nullptr) release_handle(handle_, use_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Status status() const { return status_; }
  T& operator*() const { return *object_; }

 private:
  uintptr_t handle_;
  Use use_;
  Status status_;
  T* object_ = nullptr;
};

}  // namespace rushlight::c_api
