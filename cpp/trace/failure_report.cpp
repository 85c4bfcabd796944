#include "rushlight/trace/failure_report.h"

#include <cstring>

namespace rushlight {
namespace {

// The CRC-32 of zlib, four bits at a time.
uint32_t crc32(const uint8_t* bytes, size_t size) {
  static constexpr uint32_t kTable[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                          0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                          0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                          0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  uint32_t crc = ~uint32_t{0};
  for (size_t i = 0; i < size; ++i) {
    crc = kTable[(crc ^ bytes[i]) & 15] ^ (crc >> 4);
    crc = kTable[(crc ^ (bytes[i] >> 4)) & 15] ^ (crc >> 4);
  }
  return ~crc;
}

void set_tensor(const Tensor& tensor, FailureValue* to) {
  to->dtype = static_cast<int8_t>(tensor.dtype);
  to->rank = tensor.rank;
  to->number = tensor.numel;
  if (tensor.data == nullptr && tensor.numel > 0) to->flags |= FailureValue::kNoMemory;
  if (tensor.read_only) to->flags |= FailureValue::kConstant;
  for (size_t d = 0; d < tensor.rank && d < FailureValue::kMaxSizes; ++d) {
    to->sizes[d] = tensor.sizes[d];
  }
}

}  // namespace

void FailureReport::clear() {
  const size_t first = offsetof(FailureReport, program);
  auto* const start = reinterpret_cast<uint8_t*>(this);
  const uint64_t begun = n_events;
  std::memset(start + first, 0, offsetof(FailureReport, events) - first);
  n_events = begun;
  chain = instruction = delegate = input = kNone;
  bytes = checksum = 0;
}

void FailureReport::add_value(uint32_t index, const EValue& value, uint8_t flags) {
  if (n_values++ >= kValues) return;
  FailureValue to = {};
  to.value = index;
  to.tag = static_cast<uint8_t>(value.tag);
  to.flags = flags;
  if (value.tag == Tag::Tensor) {
    set_tensor(*value.t, &to);
  } else if (value.tag == Tag::Double) {
    std::memcpy(&to.number, &value.d, sizeof(to.number));
  } else if (value.is_scalar()) {
    to.number = value.i;
  } else {
    to.number = value.size();
  }
  values[n_values - 1] = to;
}

void FailureReport::add_memory(FailureMemory::Kind kind, uint32_t id, uint64_t wanted,
                               uint64_t available) {
  if (n_memories++ < kMemories) memories[n_memories - 1] = {kind, id, wanted, available};
}

void FailureReport::seal() {
  bytes = sizeof(FailureReport);
  const Span<const uint8_t> all = content();
  const size_t first = offsetof(FailureReport, program);
  checksum = crc32(all.data() + first, all.size() - first);
}

}  // namespace rushlight
