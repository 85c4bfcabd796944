#include "arrays/overlap.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace rushlight::python {

namespace {

// The bytes of an array: dense blocks, one at each sum of multiples of the dimensions' strides.
struct Blocks {
  struct Dim {
    uint64_t stride;
    uint64_t count;  // 2 or more
  };
  uintptr_t begin = 0;    // of the first block
  uint64_t bytes = 0;     // of one
  std::vector<Dim> dims;  // from the smallest stride
  uint64_t extent = 0;    // from the first byte to the last

  uintptr_t end() const { return begin + extent; }
};

Blocks blocks_of(const Layout& array) {
  Blocks blocks;
  blocks.begin = reinterpret_cast<uintptr_t>(array.data);
  blocks.bytes = element_size(array.dtype);
  for (size_t d = 0; d < array.rank; ++d) {
    const auto more = static_cast<uint64_t>(array.sizes[d]) - 1;
    if (more == 0) continue;
    const int64_t stride = array.strides[d];
    if (stride < 0) blocks.begin -= more * static_cast<uint64_t>(-stride);
    blocks.dims.push_back({static_cast<uint64_t>(stride < 0 ? -stride : stride), more + 1});
  }
  std::sort(blocks.dims.begin(), blocks.dims.end(),
            [](const Blocks::Dim& a, const Blocks::Dim& b) { return a.stride < b.stride; });
  size_t dense = 0;
  while (dense < blocks.dims.size() && blocks.dims[dense].stride == blocks.bytes) {
    blocks.bytes *= blocks.dims[dense++].count;
  }
  blocks.dims.erase(blocks.dims.begin(), blocks.dims.begin() + static_cast<ptrdiff_t>(dense));
  blocks.extent = blocks.bytes;
  for (const Blocks::Dim& s : blocks.dims) blocks.extent += s.stride * (s.count - 1);
  return blocks;
}

// From the first byte to the end of the last.
struct Range {
  uintptr_t begin;
  uintptr_t end;
};

Range range_of(const Layout& array) {
  Range range = {reinterpret_cast<uintptr_t>(array.data), 0};
  range.end = range.begin + element_size(array.dtype);
  for (size_t d = 0; d < array.rank; ++d) {
    const auto more = static_cast<uint64_t>(array.sizes[d]) - 1;
    const int64_t stride = array.strides[d];
    if (stride < 0) {
      range.begin -= more * static_cast<uint64_t>(-stride);
    } else {
      range.end += more * static_cast<uint64_t>(stride);
    }
  }
  return range;
}

// Every stride exceeds what the inner dimensions span, as in most arrays that are lent.
bool is_nested(const Layout& array) {
  uint64_t inner = element_size(array.dtype);
  for (size_t d = array.rank; d-- > 0;) {
    if (array.sizes[d] == 1) continue;
    if (array.strides[d] < 0 || static_cast<uint64_t>(array.strides[d]) < inner) return false;
    inner += static_cast<uint64_t>(array.strides[d]) * (static_cast<uint64_t>(array.sizes[d]) - 1);
  }
  return true;
}

// Calls `visit(begin, end)` for each block until it returns true, and returns whether it did.
template <class Visit>
bool any_block(const Blocks& blocks, uintptr_t at, size_t n_dims, const Visit& visit) {
  if (n_dims == 0) return visit(at, at + blocks.bytes);
  const Blocks::Dim& outer = blocks.dims[n_dims - 1];
  for (uint64_t i = 0; i < outer.count; ++i, at += outer.stride) {
    if (any_block(blocks, at, n_dims - 1, visit)) return true;
  }
  return false;
}

template <class Visit>
bool any_block(const Blocks& blocks, const Visit& visit) {
  return any_block(blocks, blocks.begin, blocks.dims.size(), visit);
}

// Which bytes of a stretch of memory have been seen.
class Seen {
 public:
  Seen(uintptr_t begin, uintptr_t end) : begin_(begin), bytes_(end - begin) {}
  // Sees the part of a block in the stretch; true if some of it had been seen.
  bool add(uintptr_t from, uintptr_t to) {
    bool again = false;
    for_part(from, to, [&](size_t i) {
      again = again || bytes_[i];
      bytes_[i] = true;
    });
    return again;
  }
  bool has(uintptr_t from, uintptr_t to) const {
    bool overlaps = false;
    for_part(from, to, [&](size_t i) { overlaps = overlaps || bytes_[i]; });
    return overlaps;
  }

 private:
  template <class Each>
  void for_part(uintptr_t from, uintptr_t to, const Each& each) const {
    const uintptr_t first = std::max(from, begin_);
    const uintptr_t last = std::min(to, begin_ + bytes_.size());
    for (uintptr_t at = first; at < last; ++at) each(at - begin_);
  }

  uintptr_t begin_;
  std::vector<bool> bytes_;
};

// All strides are multiples of one number, and the blocks of a and b lie in different parts of each
// such period: alternate rows or columns, halves of rows, real and imaginary parts.
bool interleave(const Blocks& a, const Blocks& b) {
  uint64_t period = 0;
  for (const Blocks* blocks : {&a, &b}) {
    for (const Blocks::Dim& s : blocks->dims) period = std::gcd(period, s.stride);
  }
  if (period == 0) return false;
  const bool a_first = a.begin <= b.begin;
  const uint64_t gap = (a_first ? b.begin - a.begin : a.begin - b.begin) % period;
  const uint64_t first = a_first ? a.bytes : b.bytes;
  const uint64_t second = a_first ? b.bytes : a.bytes;
  return gap >= first && gap + second <= period;
}

}  // namespace

bool overlaps_itself(const Layout& array) {
  if (array.numel() < 2 || is_nested(array)) return false;
  const Blocks blocks = blocks_of(array);
  if (blocks.extent < array.nbytes()) return true;
  uint64_t inner = blocks.bytes;  // what the dimensions so far reach over
  bool nested = true;
  for (const Blocks::Dim& s : blocks.dims) {
    nested = nested && s.stride >= inner;
    inner += s.stride * (s.count - 1);
  }
  if (nested) return false;
  Seen seen(blocks.begin, blocks.end());
  return any_block(blocks, [&](uintptr_t from, uintptr_t to) { return seen.add(from, to); });
}

bool overlap(const Layout& a, const Layout& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  const uintptr_t begin = std::max(range_of(a).begin, range_of(b).begin);
  const uintptr_t end = std::min(range_of(a).end, range_of(b).end);
  if (begin >= end) return false;
  const Blocks x = blocks_of(a);
  const Blocks y = blocks_of(b);
  if (interleave(x, y)) return false;
  if (x.begin == y.begin || (x.dims.empty() && y.dims.empty())) return true;
  Seen seen(begin, end);
  (void)any_block(x, [&](uintptr_t from, uintptr_t to) {
    (void)seen.add(from, to);
    return false;
  });
  return any_block(y, [&](uintptr_t from, uintptr_t to) { return seen.has(from, to); });
}

}  // namespace rushlight::python
