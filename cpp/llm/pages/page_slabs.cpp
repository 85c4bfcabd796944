#include "rushlight/llm/pages/page_slabs.h"

#include <new>
#include <utility>

namespace rushlight::llm {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t x, size_t to) { return (x + to - 1) / to * to; }

// The pages of a slab: so many that little is lost to the ends of huge pages.
size_t pages_of(size_t bytes) {
  constexpr size_t kMost = 32;
  constexpr size_t kSlab = size_t{64} << 20;
  const size_t fit = kSlab / bytes;
  return fit == 0 ? 1 : fit < kMost ? fit : kMost;
}

}  // namespace

bool PageSlabs::takes(size_t bytes) {
#if defined(__linux__)
  return bytes > 0 && bytes < SIZE_MAX / 2 && pages_of(bytes) * bytes >= kHugePage;
#else
  (void)bytes;
  return false;
#endif
}

// A slab with spare pages, or one with any free page, or a new one.
PageSlabs::Slab* PageSlabs::slab_with_room(size_t bytes) {
  Slab* room = nullptr;
  for (Slab* slab = first_.get(); slab != nullptr; slab = slab->next.get()) {
    if (slab->page_bytes != bytes || slab->used == slab->all) continue;
    if (slab->spare != 0) return slab;
    room = slab;
  }
  if (room != nullptr) return room;
  std::unique_ptr<Slab> made(new (std::nothrow) Slab);
  const size_t pages = pages_of(bytes);
  if (made == nullptr || !made->memory.reserve(pages * bytes + kHugePage)) return nullptr;
  made->memory.use_huge_pages();
  const auto address = reinterpret_cast<uintptr_t>(made->memory.data());
  made->start = made->memory.data() + (round_up(address, kHugePage) - address);
  made->page_bytes = bytes;
  made->pages = pages;
  made->all = UINT32_MAX >> (32 - pages);
  made->next = std::move(first_);
  first_ = std::move(made);
  return first_.get();
}

void* PageSlabs::allocate(size_t bytes) {
  bytes = round_up(bytes, kAlignment);
  Slab* const slab = slab_with_room(bytes);
  if (slab == nullptr) return nullptr;
  const uint32_t from = slab->spare != 0 ? slab->spare : slab->all & ~slab->used;
  if (slab->spare != 0) spare_bytes_ -= bytes;
  size_t page = 0;
  while ((from >> page & 1) == 0) ++page;
  slab->used |= uint32_t{1} << page;
  slab->spare &= ~slab->used;
  return slab->start + page * bytes;
}

bool PageSlabs::free(void* memory) {
  std::unique_ptr<Slab>* link = &first_;
  for (; *link != nullptr; link = &(*link)->next) {
    Slab& slab = **link;
    const auto offset =
        reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(slab.start);
    if (offset >= slab.pages * slab.page_bytes) continue;
    const size_t page = offset / slab.page_bytes;
    slab.used &= ~(uint32_t{1} << page);
    if (spare_bytes_ + slab.page_bytes <= kSpareBytes) {
      slab.spare |= uint32_t{1} << page;
      spare_bytes_ += slab.page_bytes;
    } else if ((slab.used | slab.spare) == 0) {
      *link = std::move(slab.next);
    } else {
      give_back(&slab, page);
    }
    return true;
  }
  return false;
}

// Gives back the huge pages that a page lies in, as far as nothing else uses them.
void PageSlabs::give_back(Slab* slab, size_t page) {
  const uint32_t kept = slab->used | slab->spare;
  size_t begin = page;
  size_t end = page + 1;
  while (begin > 0 && (kept >> (begin - 1) & 1) == 0) --begin;
  while (end < slab->pages && (kept >> end & 1) == 0) ++end;
  // Of these huge pages, those before and behind the page's own were given back with other pages.
  size_t from = round_up(begin * slab->page_bytes, kHugePage);
  size_t to = end * slab->page_bytes / kHugePage * kHugePage;
  const size_t own = page * slab->page_bytes / kHugePage * kHugePage;
  const size_t own_end = round_up((page + 1) * slab->page_bytes, kHugePage);
  if (from < own) from = own;
  if (to > own_end) to = own_end;
  const auto first = static_cast<size_t>(slab->start - slab->memory.data());
  if (from < to) slab->memory.release(first + from, first + to);
}

size_t PageSlabs::resident() const {
  size_t bytes = 0;
  for (const Slab* slab = first_.get(); slab != nullptr; slab = slab->next.get()) {
    bytes += slab->memory.resident();
  }
  return bytes;
}

size_t PageSlabs::slabs() const {
  size_t count = 0;
  for (const Slab* slab = first_.get(); slab != nullptr; slab = slab->next.get()) ++count;
  return count;
}

}  // namespace rushlight::llm
