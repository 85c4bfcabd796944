// Counts allocations. The linker wraps malloc and similar functions (see CMakeLists.txt), which
// operator new calls, too. For the one file of a test.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

namespace rushlight::test {
std::atomic<size_t> g_allocations{0};
}

extern "C" {
void* __real_malloc(size_t);
void* __real_calloc(size_t, size_t);
void* __real_realloc(void*, size_t);
void* __wrap_malloc(size_t size) {
  ++rushlight::test::g_allocations;
  return __real_malloc(size);
}
void* __wrap_calloc(size_t n, size_t size) {
  ++rushlight::test::g_allocations;
  return __real_calloc(n, size);
}
void* __wrap_realloc(void* old, size_t size) {
  ++rushlight::test::g_allocations;
  return __real_realloc(old, size);
}
}

void* operator new(size_t size) {
  void* memory = __wrap_malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return __wrap_malloc(size); }
void* operator new[](size_t size) { return operator new(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return __wrap_malloc(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
