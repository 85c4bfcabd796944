// `_core.KvCache`: a key-value cache of fixed size with pages of its own, for checking programs
// without a runner. Methods take it as an object, so that Python never names an address.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rushlight/delegate/kv_cache.h"

namespace rushlight::python {

class OwnKvCache {
 public:
  // Pages for `positions` positions of each of `sequences` sequences. Throws a Failure for a layout
  // that pages cannot have.
  OwnKvCache(const KvLayout& layout, size_t sequences, size_t positions);
  OwnKvCache(const OwnKvCache&) = delete;
  OwnKvCache& operator=(const OwnKvCache&) = delete;

  const KvCache& cache() const { return cache_; }
  size_t bytes() const { return bytes_; }

 private:
  struct Line {
    alignas(64) uint8_t bytes[64];
  };

  size_t bytes_ = 0;
  std::unique_ptr<Line[]> memory_;
  std::vector<uint8_t*> pages_;
  std::vector<KvSequence> sequences_;
  KvCache cache_;
};

}  // namespace rushlight::python
