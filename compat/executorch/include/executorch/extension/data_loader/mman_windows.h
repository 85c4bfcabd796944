// mmap() for Windows, which MmapDataLoader does not need here.
#pragma once

template <typename Address>
void* mmap(Address, decltype(sizeof(0)), int, int, int, unsigned long long) {
  static_assert(sizeof(Address) == 0, "there is no mmap() on Windows: use MmapDataLoader");
  return nullptr;
}
