// Where memory ends. Containers throw std::bad_alloc then, and nothing else throws: cpp/llm is
// compiled with exceptions so that what was begun is undone on the way out, and what has a Message
// returns the error as a value. Functions without one may throw std::bad_alloc.
#pragma once

#include <new>
#include <stdexcept>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::llm {

// `what` is what there was no memory to do, such as "save the session".
inline Status out_of_memory(const char* what, Message* message) {
  return message->fail(Code::MemoryAllocationFailed, "there is not enough memory left to %s", what);
}

// What an error means to somebody who gave the data: `code`, unless memory ended.
inline Status recoded(Status status, Code code) {
  return status.code() == Code::MemoryAllocationFailed ? status : Status(code);
}

// Calls `body`; false if there was no memory for it.
template <class Body>
bool has_memory_for(const Body& body) {
  try {
    body();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const std::length_error&) {  // more than any memory has
    return false;
  }
}

// What `body` returns, a Status or a Result; or the error.
template <class Body>
auto guard(const char* what, Message* message, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return out_of_memory(what, message);
  } catch (const std::length_error&) {
    return out_of_memory(what, message);
  }
}

}  // namespace rushlight::llm
