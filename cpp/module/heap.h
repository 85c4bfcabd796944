// The heap of everything that allocates: malloc and free, or what a program gives in their place.
// The memory of C++ objects comes from here, too, where cpp/c_api/new_delete.cpp is linked.
#pragma once

#include <cstddef>

namespace rushlight {

struct Heap {
  // nullptr if there is not so much memory. `alignment` is a power of two.
  void* (*allocate)(void* context, size_t bytes, size_t alignment) = nullptr;
  void (*free)(void* context, void* memory) = nullptr;
  void* context = nullptr;
};

// Replaces the heap. False, and nothing is changed, if memory was taken from it already: to be
// called once, before anything else of Rushlight.
bool set_heap(const Heap& heap);
// True if set_heap() was called: memory then comes from nowhere else.
bool has_own_heap();

void* heap_allocate(size_t bytes, size_t alignment = alignof(std::max_align_t));
// `memory` may be nullptr.
void heap_free(void* memory);

}  // namespace rushlight
