// The sorted keys of named data, for a binary search: backends request each of their weights by its
// key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/named_data.h"

namespace rushlight {

class KeyOrder {
 public:
  // Sorts the keys of `data`. `order` must have room for data.n_keys() numbers, which are written
  // here, and must outlive this object.
  void sort(const NamedData& data, uint32_t* order);
  void clear() { order_ = nullptr; }

  // The index of the first entry of `data` with this key, or data.n_keys() if there is none.
  // Without sort() the search is linear.
  size_t find(const NamedData& data, StringView key) const;

 private:
  const uint32_t* order_ = nullptr;
};

}  // namespace rushlight
