#include "rushlight/program/key_order.h"

#include <algorithm>
#include <cstring>

namespace rushlight {
namespace {

// Negative if `a` comes first, 0 if they are equal, else positive.
int compare(StringView a, StringView b) {
  const int order = std::memcmp(a.data(), b.data(), a.size() < b.size() ? a.size() : b.size());
  if (order != 0 || a.size() == b.size()) return order;
  return a.size() < b.size() ? -1 : 1;
}

}  // namespace

void KeyOrder::sort(const NamedData& data, uint32_t* order) {
  const size_t n = data.n_keys();
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<uint32_t>(i);
  std::sort(order, order + n, [&data](uint32_t a, uint32_t b) {
    const int keys = compare(data.key(a), data.key(b));
    return keys != 0 ? keys < 0 : a < b;
  });
  order_ = order;
}

size_t KeyOrder::find(const NamedData& data, StringView key) const {
  const size_t n = data.n_keys();
  size_t i = 0;
  if (order_ == nullptr) {
    while (i < n && data.key(i) != key) ++i;
    return i;
  }
  const uint32_t* const place = std::lower_bound(
      order_, order_ + n, key,
      [&data](uint32_t a, StringView wanted) { return compare(data.key(a), wanted) < 0; });
  return place != order_ + n && data.key(*place) == key ? *place : n;
}

}  // namespace rushlight
