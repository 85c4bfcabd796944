// The keys of named data in order, to find one by halves and not one after the other: backends ask
// for each of their weights by its key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/named_data.h"

namespace rushlight {

class KeyOrder {
 public:
  // Sorts the keys of `data`. `order` has room for data.n_keys() numbers, which are written here
  // and must outlive this object.
  void sort(const NamedData& data, uint32_t* order);
  void clear() { order_ = nullptr; }

  // The first of the entries of `data` with this key; data.n_keys() if there is none. Keys that
  // were not sorted are looked at one after the other.
  size_t find(const NamedData& data, StringView key) const;

 private:
  const uint32_t* order_ = nullptr;
};

}  // namespace rushlight
