#include "rushlight/core/named_data.h"

namespace rushlight {

StringView find_duplicate(const NamedData& first, const NamedData& second) {
  for (size_t i = 0; i < first.n_keys(); ++i) {
    const StringView wanted = first.key(i);
    if (second.get(wanted).ok()) return wanted;
  }
  return {};
}

Result<Span<const uint8_t>> MergedData::get(StringView key) const {
  if (first_ != nullptr) {
    Result<Span<const uint8_t>> bytes = first_->get(key);
    if (bytes.ok() || second_ == nullptr) return bytes;
  }
  if (second_ == nullptr) return Code::NotFound;
  return second_->get(key);
}

void MergedData::release(StringView key) const {
  const bool is_first = first_ != nullptr && first_->get(key).ok();
  const NamedData* holder = is_first ? first_ : second_;
  if (holder != nullptr) holder->release(key);
}

Result<TensorLayout> MergedData::layout(StringView key) const {
  if (first_ != nullptr && first_->get(key).ok()) return first_->layout(key);
  if (second_ == nullptr) return Code::NotFound;
  return second_->layout(key);
}

size_t MergedData::n_keys() const {
  return (first_ != nullptr ? first_->n_keys() : 0) + (second_ != nullptr ? second_->n_keys() : 0);
}

StringView MergedData::key(size_t i) const {
  const size_t n_first = first_ != nullptr ? first_->n_keys() : 0;
  if (i < n_first) return first_->key(i);
  return second_->key(i - n_first);
}

}  // namespace rushlight
