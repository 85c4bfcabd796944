// What all functions of the C interface do: read the caller's structs, end in a code and a text,
// and let no exception out.
#pragma once

#include <cstring>
#include <memory>

#include "rushlight/c_api/handles.h"
#include "rushlight/c_api/rushlight.h"
#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/kernel/c_values.h"
#include "rushlight/llm/memory/guard.h"

namespace rushlight::c_api {

// What a failure is told with.
struct Failing {
  Message message;
  uint32_t instruction = RL_NO_INDEX;
  uint32_t delegate = RL_NO_INDEX;
};

// Fills the caller's rl_error, which may be nullptr, and returns the code.
rl_status tell(rl_error* error, Status status, const Failing& failing);

// Calls `body(Failing&)`, which returns a Status. Memory that ends becomes an error.
template <class Body>
rl_status enter(rl_error* error, const Body& body) {
  Failing failing;
  const Status status =
      llm::guard("do this", &failing.message, [&]() -> Status { return body(failing); });
  return tell(error, status, failing);
}

// The same with the object of a handle: `body(T&, Failing&)`.
template <class T, class Body>
rl_status enter(const void* handle, Use use, rl_error* error, const Body& body) {
  return enter(error, [&](Failing& failing) -> Status {
    const Lease<T> lease(handle, use, &failing.message);
    RL_TRY(lease.status());
    return body(*lease, failing);
  });
}

// Checks the size of a caller's struct, and that what this library does not know of it is 0.
Status check_struct(const void* from, size_t known, const char* name, Message* message);

// Reads a caller's struct into *to, which has the defaults; `from` may be nullptr, which leaves
// them.
template <class T>
Status read_struct(const T* from, T* to, const char* name, Message* message) {
  if (from == nullptr) return {};
  RL_TRY(check_struct(from, sizeof(T), name, message));
  std::memcpy(to, from, from->size < sizeof(T) ? from->size : sizeof(T));
  return {};
}

// Writes a struct for the caller, as much of it as its size says.
template <class T>
Status write_struct(const T& from, T* to, const char* name, Message* message) {
  if (to == nullptr || to->size < sizeof(uint32_t) * 2) {
    return message->fail(Code::InvalidArgument, "%s: %s", name,
                         to == nullptr ? "is NULL" : "its size is not set: set it to sizeof");
  }
  const uint32_t size = to->size;
  std::memcpy(to, &from, size < sizeof(T) ? size : sizeof(T));
  to->size = size;
  return {};
}

// Returns InvalidArgument if `pointer` is nullptr.
Status check_given(const void* pointer, const char* name, Message* message);

using c_values::text_of;
using c_values::value_of;
using c_values::view;

// Gives an object to the caller as a handle, and deletes it if that fails.
template <class T, class Handle>
Status hand_over(std::unique_ptr<T> object, std::atomic<bool>* stop, Handle** handle,
                 Message* message) {
  const Result<uintptr_t> added = add_handle({object.get(), T::kKind, stop}, message);
  if (!added.ok()) return added.status();
  (void)object.release();
  *handle = reinterpret_cast<Handle*>(added.value());
  return {};
}

// Closes a handle, which may be nullptr.
template <class T>
rl_status close(const void* handle, rl_error* error) {
  return enter(error, [&](Failing& failing) -> Status {
    if (handle == nullptr) return {};
    const Result<void*> object =
        remove_handle(reinterpret_cast<uintptr_t>(handle), T::kKind, &failing.message);
    if (!object.ok()) return object.status();
    delete static_cast<T*>(object.value());
    return {};
  });
}

}  // namespace rushlight::c_api
