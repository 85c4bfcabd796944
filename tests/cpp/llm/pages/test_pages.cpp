// Pages: counted, copied on write, and found again by the tokens that they hold.
#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "rushlight/llm/pages/prefix_tree.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::llm;
using namespace rushlight::test;

namespace {

constexpr size_t kBytes = kPageTokens * sizeof(int32_t);

// Writes tokens first..tokens.size()-1 where a step would.
bool store(PageTable* table, const std::vector<int32_t>& tokens, size_t first) {
  if (!table->make_writable(first, tokens.size())) return false;
  for (size_t i = first; i < tokens.size(); ++i) {
    uint8_t* at = table->page(i / kPageTokens) + i % kPageTokens * sizeof(int32_t);
    std::memcpy(at, &tokens[i], sizeof(int32_t));
  }
  return true;
}

bool holds(const PageTable& table, const std::vector<int32_t>& tokens, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    int32_t token;
    std::memcpy(&token, table.page(i / kPageTokens) + i % kPageTokens * sizeof(token),
                sizeof(token));
    if (token != tokens[i]) return false;
  }
  return true;
}

void test_limit_and_alignment() {
  PagePool pool;
  pool.open(kBytes, 3 * kBytes + 1, &heap_pages());
  PageTable table(&pool);
  CHECK(pool.capacity() == 3);
  CHECK(!table.make_writable(0, 4 * kPageTokens) && table.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(reinterpret_cast<uintptr_t>(table.page(i)) % 64 == 0);
  table.truncate(kPageTokens + 1);
  CHECK(pool.pages() == 2 && pool.bytes() == 2 * kBytes);
  table.truncate(0);
  CHECK(pool.pages() == 0);
}

void test_copy_on_write() {
  PagePool pool;
  pool.open(kBytes, 10 * kBytes, &heap_pages());
  std::vector<int32_t> tokens(100, 7);
  PageTable a(&pool), b(&pool);
  CHECK(store(&a, tokens, 0));
  b.share(a, 100);
  CHECK(pool.pages() == 2 && b.page(1) == a.page(1));
  std::vector<int32_t> other = tokens;
  other.push_back(8);
  CHECK(store(&b, other, 100) && pool.pages() == 3);
  CHECK(b.page(0) == a.page(0) && b.page(1) != a.page(1));
  CHECK(holds(a, tokens, 100) && holds(b, other, 101));
}

// Random texts over a small alphabet share many beginnings; every match is true.
void test_prefix_tree() {
  PagePool pool;
  pool.open(kBytes, 40 * kBytes, &heap_pages());
  std::minstd_rand engine(seed_for(1));
  std::vector<std::vector<int32_t>> known;
  {
    PrefixTree tree(&pool);
    for (int round = 0; round < 400; ++round) {
      std::vector<int32_t> tokens;
      if (!known.empty()) tokens = known[engine() % known.size()];
      tokens.resize(tokens.empty() ? 0 : engine() % tokens.size());
      const size_t length = tokens.size() + 1 + engine() % 100;
      while (tokens.size() < length && tokens.size() < 300) tokens.push_back(engine() % 3);
      PageTable table(&pool);
      const size_t matched = tree.match(0, {tokens.data(), tokens.size()}, &table);
      CHECK(matched <= tokens.size() && table.size() == pages_for(matched));
      CHECK(holds(table, tokens, matched));
      while (!store(&table, tokens, matched)) CHECK(tree.drop_page());
      CHECK(holds(table, tokens, tokens.size()));
      tree.insert(0, {tokens.data(), tokens.size()}, table);
      table.truncate(0);
      PageTable again(&pool);
      CHECK(tree.match(0, {tokens.data(), tokens.size()}, &again) == tokens.size());
      CHECK(holds(again, tokens, tokens.size()));
      CHECK(pool.pages() == tree.pages());
      known.push_back(tokens);
    }
  }
  CHECK(pool.pages() == 0);
}

}  // namespace

int main() {
  test_limit_and_alignment();
  test_copy_on_write();
  test_prefix_tree();
  return check_result();
}
