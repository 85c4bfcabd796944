// One loaded method of a module, with the memory that it owns.
#pragma once

#include "rushlight/method/method.h"
#include "rushlight/module/files/page_keeper.h"
#include "rushlight/module/memory.h"
#include "rushlight/module/module.h"

namespace rushlight {

// An arena that several methods use; `index` is the index in MethodMemory::arenas.
struct SharedArena {
  size_t index = 0;
  Pages pages;
  SharedArena* next = nullptr;
};

struct MethodSlot {
  ~MethodSlot() { delete[] spans; }

  // The method is destroyed first, since its delegates may read the memory.
  HeapAllocator structures;
  Pages arenas;  // own arenas, one after the other, then its unplanned outputs
  Pages scratch_pages;
  Span<uint8_t>* spans = nullptr;  // one for each arena, including shared ones
  Allocator scratch;
  PageKeeper keeper;
  MemoryUse use;
  Method method;
};

// True if k is at least 1, more than one method plans arena `k`, and all of these plan it with the
// size that this method plans.
bool is_shared_arena(const MethodMeta& meta, size_t k);

// The memory of a method, including all arenas.
MemoryUse measure_method(const MethodMeta& meta, size_t scratch_bytes);

// Allocates the memory, loads the method, and gives memory to unplanned outputs. On failure the
// method's message has the explanation.
Status load_method(MethodSlot& slot, const MethodMeta& meta, const SharedArena* shared,
                   MethodOptions options, Message& message);

}  // namespace rushlight
