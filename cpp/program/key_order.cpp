#include "rushlight/program/key_order.h"

#include <algorithm>

namespace rushlight {

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
  size_t end = n;
  while (i < end) {
    const size_t middle = i + (end - i) / 2;
    if (compare(data.key(order_[middle]), key) < 0) {
      i = middle + 1;
    } else {
      end = middle;
    }
  }
  return i < n && data.key(order_[i]) == key ? order_[i] : n;
}

}  // namespace rushlight
