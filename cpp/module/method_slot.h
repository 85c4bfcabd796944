// One loaded method of a module with the memory that it owns.
#pragma once

#include "rushlight/method/method.h"
#include "rushlight/module/files/page_keeper.h"
#include "rushlight/module/memory.h"
#include "rushlight/module/module.h"

namespace rushlight {

// An arena that several methods use; `index` as in MethodMemory::arenas.
struct SharedArena {
  size_t index = 0;
  Pages pages;
  SharedArena* next = nullptr;
};

struct MethodSlot {
  ~MethodSlot() { delete[] spans; }

  // The method is destroyed first, since its delegates may look at the memory.
  HeapAllocator structures;
  Pages arenas;  // its own, one behind the other, and behind them its outputs without a place
  Pages scratch_pages;
  Span<uint8_t>* spans = nullptr;  // all its arenas, shared ones included; one per arena
  Allocator scratch;
  PageKeeper keeper;
  MemoryUse use;
  Method method;
};

// True if k is 1 or more, every method that plans arena `k` plans it with the size that this one
// does, and there is more than one.
bool is_shared_arena(const MethodMeta& meta, size_t k);

// The memory of a method, with all arenas.
MemoryUse measure_method(const MethodMeta& meta, size_t scratch_bytes);

// Takes the memory, loads the method, gives memory to unplanned outputs. The method's message says
// what failed.
Status load_method(MethodSlot& slot, const MethodMeta& meta, const SharedArena* shared,
                   MethodOptions options, Message& message);

}  // namespace rushlight
