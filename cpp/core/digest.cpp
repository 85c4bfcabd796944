#include "rushlight/core/digest.h"

#include <atomic>
#include <cstring>

namespace rushlight {
namespace {

constexpr size_t kLanes = 8;
constexpr size_t kBlock = kLanes * sizeof(uint64_t);
constexpr size_t kPiece = size_t{1} << 18;
constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;

// Every operation is invertible, so that two different words never give the same digest.
uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 32) * kOdd;
  x = (x ^ x >> 29) * kOdd;
  return x ^ x >> 32;
}

void take(const uint8_t* block, uint64_t (&lanes)[kLanes]) {
  uint64_t words[kLanes];
  std::memcpy(words, block, kBlock);
  for (size_t i = 0; i < kLanes; ++i) {
    const uint64_t lane = (lanes[i] ^ words[i]) * kOdd;
    lanes[i] = lane << 29 | lane >> 35;
  }
}

uint64_t digest_of_piece(Span<const uint8_t> bytes, uint64_t number) {
  uint64_t lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = mixed(number * kLanes + i + 1);
  size_t at = 0;
  for (; at + kBlock <= bytes.size(); at += kBlock) take(bytes.data() + at, lanes);
  if (at < bytes.size()) {
    uint8_t rest[kBlock] = {};
    std::memcpy(rest, bytes.data() + at, bytes.size() - at);
    take(rest, lanes);
  }
  uint64_t sum = bytes.size();
  for (const uint64_t lane : lanes) sum = mixed(sum ^ lane);
  return sum;
}

// The sum over the pieces begin..end-1.
uint64_t digest_of_pieces(Span<const uint8_t> bytes, int64_t begin, int64_t end) {
  uint64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    const size_t start = static_cast<size_t>(i) * kPiece;
    const size_t left = bytes.size() - start;
    const Span<const uint8_t> piece(bytes.data() + start, left < kPiece ? left : kPiece);
    sum += digest_of_piece(piece, static_cast<uint64_t>(i));
  }
  return sum;
}

int64_t pieces_of(Span<const uint8_t> bytes) {
  return static_cast<int64_t>((bytes.size() + kPiece - 1) / kPiece);
}

uint64_t digest_alone(Span<const uint8_t> bytes) {
  return mixed(bytes.size() + digest_of_pieces(bytes, 0, pieces_of(bytes)));
}

}  // namespace

// Processors without atomic numbers of 64 bits have no threads to share the work with.
#if ATOMIC_LLONG_LOCK_FREE == 2
uint64_t digest_of(Span<const uint8_t> bytes, Workers* workers) {
  std::atomic<uint64_t> sum{bytes.size()};
  share_out(workers, pieces_of(bytes), 1, [&](int64_t begin, int64_t end) {
    const uint64_t of_pieces = digest_of_pieces(bytes, begin, end);
    sum.fetch_add(of_pieces, std::memory_order_relaxed);  // in any order
  });
  return mixed(sum.load(std::memory_order_relaxed));
}
#else
uint64_t digest_of(Span<const uint8_t> bytes, Workers*) { return digest_alone(bytes); }
#endif

uint64_t extend_digest(uint64_t before, Span<const uint8_t> part) {
  return (before << 23 | before >> 41) ^ digest_alone(part);
}

}  // namespace rushlight
