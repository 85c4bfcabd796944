#include "rushlight/llm/grammar/suffixes.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/grammar/bits.h"

namespace rushlight::llm::grammar {
namespace {

struct Suffix {
  uint64_t key;  // its first bytes
  uint32_t packed;
};

// By 16 bits at a time, the lowest first.
void sort(std::vector<Suffix>* suffixes) {
  constexpr size_t kDigits = size_t{1} << 16;
  std::vector<Suffix> sorted(suffixes->size());
  std::vector<uint32_t> starts(kDigits + 1);
  for (uint32_t shift = 0; shift < 64; shift += 16) {
    std::fill(starts.begin(), starts.end(), 0u);
    for (const Suffix& suffix : *suffixes) ++starts[(suffix.key >> shift & 0xFFFF) + 1];
    for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    for (const Suffix& suffix : *suffixes) sorted[starts[suffix.key >> shift & 0xFFFF]++] = suffix;
    sorted.swap(*suffixes);
  }
}

}  // namespace

Suffixes::Suffixes(const std::vector<std::string>& pieces) : pieces_(pieces) {
  std::vector<Suffix> suffixes;
  for (size_t token = 0; token < pieces.size(); ++token) {
    const std::string& piece = pieces[token];
    if (piece.size() > 0xFF || piece.find('\0') != std::string::npos) {
      left_out_.push_back(static_cast<uint32_t>(token));
      continue;
    }
    uint64_t key = 0;
    for (size_t at = piece.size(); at-- > 0;) {
      key = key >> 8 | static_cast<uint64_t>(static_cast<uint8_t>(piece[at])) << 56;
      suffixes.push_back({key, static_cast<uint32_t>(token << 8 | at)});
    }
  }
  sort(&suffixes);
  suffixes_.reserve(suffixes.size());
  for (const Suffix& suffix : suffixes) suffixes_.push_back(suffix.packed);
  add_large();
}

void Suffixes::add_large() {
  for (uint8_t byte = 1; byte < 0x80; ++byte) {
    const Range range = ending(with(all(), 0, byte), 1);
    if (range.last - range.first < kVeryMany) continue;
    std::vector<uint32_t> bits((pieces_.size() + 31) / 32);
    add_tokens(range, bits.data());
    large_.emplace(range.first, std::move(bits));
  }
}

uint32_t Suffixes::lower_bound(const Range& range, uint32_t depth, uint32_t byte) const {
  uint32_t first = range.first, last = range.last;
  while (first < last) {
    const uint32_t middle = first + (last - first) / 2;
    if (byte_of(middle, depth) < byte) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

Suffixes::Range Suffixes::with(const Range& range, uint32_t depth, uint8_t byte) const {
  const uint32_t first = lower_bound(range, depth, byte);
  return {first, lower_bound({first, range.last}, depth, byte + 1u)};
}

Suffixes::Range Suffixes::ending(const Range& range, uint32_t depth) const {
  return {range.first, lower_bound(range, depth, 1)};
}

void Suffixes::add_tokens(const Range& range, uint32_t* bits) const {
  const auto known = range.last - range.first < kVeryMany ? large_.end() : large_.find(range.first);
  if (known != large_.end() && range.last == ending(range, 1).last) {
    return add_bits(known->second.data(), known->second.size(), bits);
  }
  const uint32_t* const last = suffixes_.data() + range.last;
  for (const uint32_t* at = suffixes_.data() + range.first; at != last; ++at) {
    set_bit(bits, *at >> 8);
  }
}

}  // namespace rushlight::llm::grammar
