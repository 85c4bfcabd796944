// The memory of C++ objects comes from the heap of module/heap.h. Only for a library that has the
// C++ runtime inside of it: what one library allocates must not be freed by another.
#include <new>

#include "rushlight/module/heap.h"

namespace {

constexpr size_t kAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

void* allocate(size_t bytes, size_t alignment) noexcept {
  return rushlight::heap_allocate(bytes > 0 ? bytes : 1, alignment);
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

size_t number(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes, kAlignment); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes, kAlignment); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kAlignment);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kAlignment);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, number(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, number(alignment));
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, number(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, number(alignment));
}

void operator delete(void* memory) noexcept { rushlight::heap_free(memory); }
void operator delete[](void* memory) noexcept { rushlight::heap_free(memory); }
void operator delete(void* memory, size_t) noexcept { rushlight::heap_free(memory); }
void operator delete[](void* memory, size_t) noexcept { rushlight::heap_free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { rushlight::heap_free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { rushlight::heap_free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  rushlight::heap_free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  rushlight::heap_free(memory);
}
