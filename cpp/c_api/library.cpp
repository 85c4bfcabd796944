// Versions, errors, and what belongs to the process: its allocator and its log.
#include <cstddef>

#include "rushlight/c_api/entry.h"
#include "rushlight/core/tensor.h"
#include "rushlight/module/heap.h"
#include "rushlight/platform/platform.h"

namespace rushlight::c_api {
namespace {

static_assert(RL_MAX_RANK == kMaxRank && RL_ERROR_TEXT == Message::kCapacity);
static_assert(RL_CANCELLED == static_cast<int>(Code::Cancelled));

rl_log_fn g_log = nullptr;
void* g_log_userdata = nullptr;

void log_to_caller(LogLevel level, const char* text, size_t length) {
  g_log(g_log_userdata, static_cast<int32_t>(level), {text, length});
}

void log_to_nobody(LogLevel, const char*, size_t) {}

}  // namespace

rl_status tell(rl_error* error, Status status, const Failing& failing) {
  const auto code = static_cast<rl_status>(status.code());
  if (error == nullptr || error->size < sizeof(uint32_t) * 2) return code;
  rl_error told = RL_ERROR_INIT;
  told.size = error->size;
  told.code = code;
  if (!status.ok()) {
    told.instruction = failing.instruction;
    told.delegate = failing.delegate;
    const bool has_text = !failing.message.empty();
    const char* text = has_text ? failing.message.text() : code_name(status.code());
    std::memcpy(told.text, text, std::strlen(text));
  }
  const size_t size = error->size < sizeof(told) ? error->size : sizeof(told);
  std::memcpy(error, &told, size);
  // A text that is cut still ends.
  if (size > offsetof(rl_error, text)) reinterpret_cast<char*>(error)[size - 1] = '\0';
  return code;
}

Status check_struct(const void* from, size_t known, const char* name, Message* message) {
  uint32_t size = 0;
  std::memcpy(&size, from, sizeof(size));
  constexpr uint32_t kMost = 1 << 16;
  if (size < sizeof(uint32_t) * 2 || size > kMost) {
    return message->fail(Code::InvalidArgument, "%s: its size is %u: set it to sizeof(%s)", name,
                         static_cast<unsigned>(size), name);
  }
  const auto* bytes = static_cast<const uint8_t*>(from);
  for (size_t i = known; i < size; ++i) {
    if (bytes[i] == 0) continue;
    return message->fail(Code::NotSupported,
                         "%s: it has a field at byte %zu that this library, of version %u.%u, does "
                         "not know: use a later library",
                         name, i, RL_ABI_MAJOR, RL_ABI_MINOR);
  }
  return {};
}

Status check_given(const void* pointer, const char* name, Message* message) {
  if (pointer != nullptr) return {};
  return message->fail(Code::InvalidArgument, "%s is NULL", name);
}

}  // namespace rushlight::c_api

using namespace rushlight;
using namespace rushlight::c_api;

uint32_t rl_abi_version(void) { return RL_ABI_VERSION; }

const char* rl_version(void) { return RUSHLIGHT_VERSION; }

const char* rl_status_name(rl_status code) { return code_name(static_cast<Code>(code)); }

rl_status rl_check_abi(uint32_t version, rl_error* error) {
  return enter(error, [&](Failing& failing) -> Status {
    const uint32_t major = version / 1000, minor = version % 1000;
    if (major == RL_ABI_MAJOR && minor <= RL_ABI_MINOR) return {};
    return failing.message.fail(Code::NotSupported,
                                "the caller was built for version %u.%u of the C interface, and "
                                "this library has %u.%u: %s",
                                major, minor, RL_ABI_MAJOR, RL_ABI_MINOR,
                                major >= RL_ABI_MAJOR
                                    ? "install a later library"
                                    : "build the caller again with this library's header");
  });
}

rl_status rl_set_allocator(const rl_allocator* allocator, rl_error* error) {
  return enter(error, [&](Failing& failing) -> Status {
    Message& message = failing.message;
    RL_TRY(check_given(allocator, "allocator", &message));
    rl_allocator own = {};
    RL_TRY(read_struct(allocator, &own, "rl_allocator", &message));
    if (own.allocate == nullptr || own.free == nullptr) {
      return message.fail(Code::InvalidArgument, "rl_allocator: it lacks allocate or free");
    }
    if (!set_heap({own.allocate, own.free, own.userdata})) {
      return message.fail(Code::InvalidState,
                          "memory was taken already: set the allocator once, before all else");
    }
    Platform platform = {};
    platform.release_pages = [](void*, void*) {};  // they are the allocator's
    set_platform(platform);
    return {};
  });
}

rl_status rl_set_log(rl_log_fn log, void* userdata, rl_error* error) {
  return enter(error, [&](Failing&) -> Status {
    g_log = log;
    g_log_userdata = userdata;
    Platform platform = {};
    platform.log = log != nullptr ? log_to_caller : log_to_nobody;
    set_platform(platform);
    return {};
  });
}
