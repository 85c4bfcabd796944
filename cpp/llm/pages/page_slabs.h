// Memory for the pages of a cache from slabs of whole huge pages, where the system has them: a step
// reads all pages of a text, layer by layer, and misses an entry of the address translation for
// every 4 KiB otherwise. A slab is only reserved, and takes memory as its pages are used. What is
// free again goes back in whole huge pages, but for kSpareBytes, since new memory has to be
// cleared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rushlight/module/memory.h"

namespace rushlight::llm {

class PageSlabs {
 public:
  static constexpr size_t kSpareBytes = size_t{16} << 20;

  // Whether the system has huge pages, and some pages of this size fill one.
  static bool takes(size_t bytes);

  // Memory aligned to 64 bytes, which is not zeroed; nullptr if there is none.
  void* allocate(size_t bytes);
  // False if the memory is of no slab.
  bool free(void* memory);

  // Of all slabs, the bytes that are in memory.
  size_t resident() const;
  size_t slabs() const;

 private:
  struct Slab {
    Pages memory;
    uint8_t* start = nullptr;  // of the first huge page
    size_t page_bytes = 0;
    size_t pages = 0;
    uint32_t used = 0, spare = 0, all = 0;  // a bit for each page
    std::unique_ptr<Slab> next;
  };

  Slab* slab_with_room(size_t bytes);
  static void give_back(Slab* slab, size_t page);

  std::unique_ptr<Slab> first_;
  size_t spare_bytes_ = 0;  // of pages that are free and have their memory
};

}  // namespace rushlight::llm
