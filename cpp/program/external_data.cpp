#include "rushlight/program/external_data.h"

#include <cstring>

#include "rushlight/program/flat_tensor_fb.h"
#include "rushlight/program/plan_check.h"

namespace rushlight {
namespace {

namespace ft = fb::flat_tensor;

constexpr size_t kHeaderOffset = 8;
constexpr size_t kHeaderSize = 40;
constexpr char kHeaderMagic[] = "FH01";

bool in_range(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

ft::FlatTensor root(Span<const uint8_t> flatbuffer) {
  return ft::root_FlatTensor(flatbuffer.data());
}

bool is_layout(ft::TensorLayout layout) {
  const Span<const uint8_t> dim_order = fb::as_span(layout.dim_order());
  const size_t rank = layout.sizes().size();
  if (rank > kMaxRank || dim_order.size() != rank) return false;
  for (size_t i = 0; i < rank; ++i) {
    if (layout.sizes()[i] < 0) return false;
  }
  return element_size(static_cast<DType>(layout.scalar_type())) != 0 &&
         is_permutation(dim_order.data(), rank);
}

}  // namespace

Status ExternalData::load(DataLoader& loader) {
  message_.clear();
  order_.clear();
  image_ = flatbuffer_ = segments_ = {};
  Result<Span<const uint8_t>> image = loader.load(0, loader.size());
  if (!image.ok()) return message_.fail(image.status().code(), "the data file cannot be read");
  image_ = image.value();
  const Status status = verify(message_);
  if (!status.ok()) image_ = flatbuffer_ = segments_ = {};
  return status;
}

Status ExternalData::verify(Message& message) {
  const uint8_t* data = image_.data();
  const uint64_t size = image_.size();
  const bool has_header = size >= kHeaderOffset + kHeaderSize &&
                          fb::has_identifier(data, image_.size(), ft::kFlatTensorIdentifier) &&
                          std::memcmp(data + kHeaderOffset, kHeaderMagic, 4) == 0;
  if (!has_header) {
    return message.fail(Code::InvalidExternalData,
                        "not a .ptd data file: the identifier or the header is missing");
  }
  const uint8_t* header = data + kHeaderOffset;
  const uint64_t offset = fb::read<uint64_t>(header + 8);
  const uint64_t bytes = fb::read<uint64_t>(header + 16);
  const uint64_t base = fb::read<uint64_t>(header + 24);
  const uint64_t segment_bytes = fb::read<uint64_t>(header + 32);
  const bool fits = fb::read<uint32_t>(header + 4) >= kHeaderSize &&
                    in_range(offset, bytes, size) && in_range(base, segment_bytes, size);
  if (!fits) {
    return message.fail(Code::InvalidExternalData,
                        "the data file has %zu bytes, which its header does not agree with; it may "
                        "have been cut",
                        image_.size());
  }
  flatbuffer_ = {data, static_cast<size_t>(offset + bytes)};
  segments_ = {data + base, static_cast<size_t>(size - base)};
  if (!ft::verify_FlatTensor(flatbuffer_.data(), flatbuffer_.size())) {
    return message.fail(Code::InvalidExternalData,
                        "the data file is damaged: its tables lead outside of it");
  }
  const ft::FlatTensor tables = root(flatbuffer_);
  for (size_t i = 0; i < tables.segments().size(); ++i) {
    const fb::DataSegment segment = tables.segments()[i];
    if (in_range(segment.offset(), segment.size(), segments_.size())) continue;
    return message.fail(Code::InvalidExternalData, "segment %zu leaves the data file", i);
  }
  uint64_t key_bytes = 0;
  for (size_t i = 0; i < n_keys(); ++i) {
    const ft::NamedData entry = tables.named_data()[i];
    key_bytes += entry.key().size();
    const bool valid = entry.segment_index() < tables.segments().size() &&
                       (!entry.has_tensor_layout() || is_layout(entry.tensor_layout()));
    if (valid) continue;
    return message.fail(Code::InvalidExternalData,
                        "the entry '%.*s' of the data file has no segment or no valid layout",
                        entry.key().len(), entry.key().data());
  }
  if (key_bytes <= flatbuffer_.size()) return {};
  return message.fail(Code::InvalidExternalData,
                      "the data file is damaged: its keys take more bytes than it has");
}

void ExternalData::sort_keys(uint32_t* order) { order_.sort(*this, order); }

size_t ExternalData::n_keys() const {
  return flatbuffer_.empty() ? 0 : root(flatbuffer_).named_data().size();
}

StringView ExternalData::key(size_t i) const { return root(flatbuffer_).named_data()[i].key(); }

Result<Span<const uint8_t>> ExternalData::get(StringView key) const {
  const size_t i = order_.find(*this, key);
  if (i == n_keys()) return Code::NotFound;
  const ft::FlatTensor tables = root(flatbuffer_);
  const fb::DataSegment segment = tables.segments()[tables.named_data()[i].segment_index()];
  return Span<const uint8_t>(segments_.data() + segment.offset(),
                             static_cast<size_t>(segment.size()));
}

Result<TensorLayout> ExternalData::layout(StringView key) const {
  const size_t i = order_.find(*this, key);
  if (i == n_keys()) return Code::NotFound;
  const ft::NamedData entry = root(flatbuffer_).named_data()[i];
  if (!entry.has_tensor_layout()) return Code::NotImplemented;
  const ft::TensorLayout from = entry.tensor_layout();
  TensorLayout layout;
  layout.dtype = static_cast<DType>(from.scalar_type());
  layout.rank = static_cast<uint8_t>(from.sizes().size());
  copy_sizes(from.sizes(), layout.sizes);
  if (layout.rank > 0) std::memcpy(layout.dim_order, from.dim_order().bytes(), layout.rank);
  return layout;
}

}  // namespace rushlight
