#include "rushlight/module/heap.h"

#include <atomic>
#include <cstdlib>
#if defined(_WIN32)
#include <malloc.h>
#endif

namespace rushlight {
namespace {

// Windows frees aligned memory by a function of its own, so all of its memory is aligned there.
void* default_allocate(void*, size_t bytes, size_t alignment) {
#if defined(_WIN32)
  return _aligned_malloc(bytes, alignment);
#else
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  void* memory = nullptr;
  return ::posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
#endif
}

void default_free(void*, void* memory) {
#if defined(_WIN32)
  _aligned_free(memory);
#else
  std::free(memory);
#endif
}

// Constant-initialised: objects are made before main() starts.
Heap g_heap = {default_allocate, default_free, nullptr};
std::atomic<bool> g_is_used{false};
bool g_is_own = false;

}  // namespace

bool set_heap(const Heap& heap) {
  if (g_is_own || g_is_used.load(std::memory_order_acquire)) return false;
  g_heap = heap;
  g_is_own = true;
  return true;
}

bool has_own_heap() { return g_is_own; }

void* heap_allocate(size_t bytes, size_t alignment) {
  if (!g_is_used.load(std::memory_order_relaxed)) g_is_used.store(true, std::memory_order_release);
  return g_heap.allocate(g_heap.context, bytes, alignment);
}

void heap_free(void* memory) {
  if (memory != nullptr) g_heap.free(g_heap.context, memory);
}

}  // namespace rushlight
