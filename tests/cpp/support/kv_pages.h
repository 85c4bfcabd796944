// Pages for the programs of tests/golden that attend to a runner's key-value cache; other methods
// do not look at them.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>

#include "rushlight/delegate/kv_cache.h"
#include "rushlight/engine/types/kv_page.h"

namespace rushlight {
namespace test {

// One page of zeros for each of two sequences, as CachedSequences in make_cpu_engine.py needs them.
class KvPages {
 public:
  KvPages() {
    cache_.layout.layers = kLayers;
    cache_.layout.heads = kHeads;
    cache_.layout.width = cache_.layout.value_width = kWidth;
    const size_t bytes = engine::kv_page_bytes(cache_.layout);
    for (size_t i = 0; i < kSequences; ++i) {
      pages_[i] = static_cast<uint8_t*>(operator new(bytes, kAlignment));
      std::memset(pages_[i], 0, bytes);
      sequences_[i] = {&pages_[i], 1};
    }
    cache_.sequences = {sequences_, kSequences};
  }
  ~KvPages() {
    for (uint8_t* page : pages_) operator delete(page, kAlignment);
  }
  KvPages(const KvPages&) = delete;
  KvPages& operator=(const KvPages&) = delete;

  const KvCache* cache() const { return &cache_; }

 private:
  static constexpr uint32_t kLayers = 2, kHeads = 2, kWidth = 8;
  static constexpr size_t kSequences = 2;
  static constexpr std::align_val_t kAlignment{64};

  uint8_t* pages_[kSequences];
  KvSequence sequences_[kSequences];
  KvCache cache_;
};

}  // namespace test
}  // namespace rushlight
