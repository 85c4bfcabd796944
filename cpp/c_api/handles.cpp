#include "rushlight/c_api/handles.h"

#include <cstddef>
#include <cstring>
#include <mutex>

#include "rushlight/module/heap.h"

namespace rushlight::c_api {
namespace {

constexpr unsigned kPlaceBits = sizeof(uintptr_t) >= 8 ? 16 : 12;
constexpr size_t kMost = size_t{1} << kPlaceBits;
constexpr uintptr_t kSerials = UINTPTR_MAX >> kPlaceBits;

struct Entry {
  Object object;
  uintptr_t serial;  // 0: the place is free
  uint32_t users;
  bool is_alone;  // one of the users wants no other
};

std::mutex g_mutex;
Entry* g_entries = nullptr;
size_t g_capacity = 0;
size_t g_open = 0;
uintptr_t g_serial = 0;

const char* kind_name(Kind kind) {
  constexpr const char* kNames[] = {"module", "language model", "session", "grammar", "adapter"};
  return kNames[static_cast<size_t>(kind)];
}

bool grow() {
  const size_t capacity = g_capacity == 0 ? 16 : g_capacity * 2;
  auto* entries = static_cast<Entry*>(heap_allocate(capacity * sizeof(Entry)));
  if (entries == nullptr) return false;
  for (size_t i = 0; i < capacity; ++i) entries[i] = i < g_capacity ? g_entries[i] : Entry{};
  heap_free(g_entries);
  g_entries = entries;
  g_capacity = capacity;
  return true;
}

Result<Entry*> find(uintptr_t handle, Kind kind, Message* message) {
  const size_t place = handle & (kMost - 1);
  const uintptr_t serial = handle >> kPlaceBits;
  if (handle == 0) {
    return message->fail(Code::InvalidArgument, "the handle of the %s is NULL", kind_name(kind));
  }
  if (serial == 0 || place >= g_capacity || g_entries[place].serial != serial) {
    return message->fail(Code::InvalidState,
                         "the handle of the %s is not open: it was closed, or never was one",
                         kind_name(kind));
  }
  if (g_entries[place].object.kind != kind) {
    return message->fail(Code::InvalidState, "the handle is that of a %s, not of a %s",
                         kind_name(g_entries[place].object.kind), kind_name(kind));
  }
  return &g_entries[place];
}

Status fail_busy(Kind kind, Message* message) {
  return message->fail(Code::InvalidState,
                       "the %s is in use by another call: call it by one thread at a time, and not "
                       "from its own callbacks",
                       kind_name(kind));
}

}  // namespace

Result<uintptr_t> add_handle(const Object& object, Message* message) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (g_open == kMost) {
    return message->fail(Code::OutOfResources, "%zu handles are open: close some", kMost);
  }
  if (g_open == g_capacity && !grow()) {
    return message->fail(Code::MemoryAllocationFailed, "there is not enough memory left");
  }
  size_t place = 0;
  while (g_entries[place].serial != 0) ++place;
  g_serial = g_serial % kSerials + 1;
  g_entries[place] = {object, g_serial, 0, false};
  ++g_open;
  return (g_serial << kPlaceBits) | place;
}

Result<void*> use_handle(uintptr_t handle, Kind kind, Use use, Message* message) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  const Result<Entry*> known = find(handle, kind, message);
  if (!known.ok()) return known.status();
  Entry& entry = *known.value();
  if (entry.is_alone || (use == Use::Alone && entry.users > 0)) return fail_busy(kind, message);
  ++entry.users;
  entry.is_alone = use == Use::Alone;
  return entry.object.object;
}

void release_handle(uintptr_t handle, Use use) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  Entry& entry = g_entries[handle & (kMost - 1)];
  --entry.users;
  if (use == Use::Alone) {
    entry.is_alone = false;
    if (entry.object.stop != nullptr) entry.object.stop->store(false);
  }
}

Result<void*> remove_handle(uintptr_t handle, Kind kind, Message* message) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  const Result<Entry*> known = find(handle, kind, message);
  if (!known.ok()) return known.status();
  Entry& entry = *known.value();
  if (entry.users > 0) return fail_busy(kind, message);
  void* object = entry.object.object;
  entry.serial = 0;
  if (--g_open > 0) return object;
  heap_free(g_entries);
  g_entries = nullptr;
  g_capacity = 0;
  return object;
}

Status stop_use(uintptr_t handle, Kind kind, Message* message) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  const Result<Entry*> known = find(handle, kind, message);
  if (!known.ok()) return known.status();
  const Entry& entry = *known.value();
  if (entry.is_alone && entry.object.stop != nullptr) entry.object.stop->store(true);
  return {};
}

bool has_handles() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  return g_open > 0;
}

}  // namespace rushlight::c_api
