// Two maps of named data as one; no key may be in both.
#pragma once

#include <executorch/runtime/core/named_data_map.h>

#include <cinttypes>

namespace executorch::runtime::internal {

class MergedDataMap final : public NamedDataMap {
 public:
  // InvalidArgument for a key that both have. Both must outlive the result.
  static Result<MergedDataMap> load(const NamedDataMap* first, const NamedDataMap* second) {
    ET_CHECK_OR_RETURN_ERROR(first != nullptr && second != nullptr, InvalidArgument,
                             "a map of named data is null");
    ET_ASSIGN_OR_RETURN(count, first->get_num_keys());
    for (uint32_t i = 0; i < count; ++i) {
      ET_ASSIGN_OR_RETURN(key, first->get_key(i));
      Result<FreeableBuffer> other = second->get_data(key);
      ET_CHECK_OR_RETURN_ERROR(other.error() == Error::NotFound, InvalidArgument,
                               "both maps have the key %s", key);
    }
    return MergedDataMap(first, second);
  }

  ET_NODISCARD Result<const TensorLayout> get_tensor_layout(std::string_view key) const override {
    Result<const TensorLayout> layout = first_->get_tensor_layout(key);
    if (layout.ok() || layout.error() != Error::NotFound) return layout;
    return second_->get_tensor_layout(key);
  }
  ET_NODISCARD Result<FreeableBuffer> get_data(std::string_view key) const override {
    Result<FreeableBuffer> data = first_->get_data(key);
    if (data.error() != Error::NotFound) return data;
    return second_->get_data(key);
  }
  ET_NODISCARD Error load_data_into(std::string_view, void*, size_t) const override {
    return Error::NotImplemented;
  }
  ET_NODISCARD Result<uint32_t> get_num_keys() const override {
    ET_ASSIGN_OR_RETURN(a, first_->get_num_keys());
    ET_ASSIGN_OR_RETURN(b, second_->get_num_keys());
    return a + b;
  }
  ET_NODISCARD Result<const char*> get_key(uint32_t index) const override {
    ET_ASSIGN_OR_RETURN(count, first_->get_num_keys());
    return index < count ? first_->get_key(index) : second_->get_key(index - count);
  }

 private:
  MergedDataMap(const NamedDataMap* first, const NamedDataMap* second)
      : first_(first), second_(second) {}

  const NamedDataMap* first_;
  const NamedDataMap* second_;
};

}  // namespace executorch::runtime::internal
