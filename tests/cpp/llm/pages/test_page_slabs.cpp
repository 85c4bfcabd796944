// Slabs of pages: no two pages overlap, and memory follows what is used.
#include "rushlight/llm/pages/page_slabs.h"

#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "rushlight/llm/pages/page_pool.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::llm;
using namespace rushlight::test;

namespace {

constexpr size_t kMega = size_t{1} << 20;
constexpr size_t kHugePage = 2 * kMega;

struct Page {
  uint8_t* memory;
  size_t bytes;
  uint8_t mark;

  void fill() const { std::memset(memory, mark, bytes); }
  bool is_intact() const {
    for (size_t i = 0; i < bytes; i += 509) {
      if (memory[i] != mark) return false;
    }
    return memory[bytes - 1] == mark;
  }
};

// Pages of several sizes, which are more and fewer in turn, keep what is written to them.
void test_pages_are_apart() {
  PageSlabs slabs;
  std::minstd_rand engine(seed_for(1));
  const size_t sizes[] = {65'600, 944'704, 3 * kMega + 64, 100'001};
  std::vector<Page> pages;
  for (int round = 0; round < 600; ++round) {
    const bool grows = engine() % 8 < (round / 100 % 2 == 0 ? 6u : 2u);
    if (grows && pages.size() < 60) {
      const size_t bytes = sizes[engine() % 4];
      auto* const memory = static_cast<uint8_t*>(slabs.allocate(bytes));
      CHECK(memory != nullptr && reinterpret_cast<uintptr_t>(memory) % 64 == 0);
      pages.push_back({memory, bytes, static_cast<uint8_t>(round)});
      pages.back().fill();
    } else if (!pages.empty()) {
      const size_t i = engine() % pages.size();
      CHECK(pages[i].is_intact());
      CHECK(slabs.free(pages[i].memory));
      pages[i] = pages.back();
      pages.pop_back();
    }
  }
  for (const Page& page : pages) CHECK(page.is_intact());
  CHECK(!slabs.free(&slabs));
}

void test_memory_follows_use() {
  if (!PageSlabs::takes(kMega)) return;  // the system has no huge pages
  PageSlabs slabs;
  std::vector<void*> pages;
  const auto take = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      pages.push_back(slabs.allocate(kMega));
      std::memset(pages.back(), 1, kMega);
    }
  };
  take(1);
  CHECK(slabs.slabs() == 1 && slabs.resident() <= kHugePage);
  take(63);
  CHECK(slabs.slabs() == 2 && slabs.resident() >= 64 * kMega);
  // All but one page of the first slab, which keeps it.
  for (size_t i = 1; i < pages.size(); ++i) CHECK(slabs.free(pages[i]));
  pages.resize(1);
  CHECK(slabs.slabs() == 1);
  const size_t kept = slabs.resident();
  CHECK(kept >= PageSlabs::kSpareBytes && kept <= PageSlabs::kSpareBytes + 2 * kHugePage);
  take(PageSlabs::kSpareBytes / kMega);
  CHECK(slabs.resident() == kept);  // spare pages come first
  for (void* page : pages) CHECK(slabs.free(page));
  CHECK(slabs.resident() <= PageSlabs::kSpareBytes + 2 * kHugePage);
}

// Small pages are the heap's.
void test_sizes() {
  CHECK(!PageSlabs::takes(0) && !PageSlabs::takes(256) && !PageSlabs::takes(SIZE_MAX));
  for (const size_t bytes : {size_t{256}, kMega, 70 * kMega}) {
    PagePool pool;
    pool.open(bytes, 4 * bytes, &heap_pages());
    uint8_t* const a = pool.take();
    uint8_t* const b = pool.take();
    CHECK(a != nullptr && b != nullptr && reinterpret_cast<uintptr_t>(a) % 64 == 0);
    a[0] = a[bytes - 1] = 1;
    b[0] = b[bytes - 1] = 2;
    CHECK(a[0] == 1 && a[bytes - 1] == 1);
    pool.release(a);
    CHECK(b[0] == 2 && b[bytes - 1] == 2);
    pool.release(b);
    CHECK(pool.pages() == 0);
  }
}

}  // namespace

int main() {
  test_pages_are_apart();
  test_memory_follows_use();
  test_sizes();
  return check_result();
}
