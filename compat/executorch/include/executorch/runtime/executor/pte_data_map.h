// The runtime's named data as a NamedDataMap: a program's, a data file's, or both.
#pragma once

#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/named_data_map.h>

#include "rushlight/core/named_data.h"

namespace executorch::runtime::internal {

class PteDataMap final : public NamedDataMap {
 public:
  explicit PteDataMap(const ::rushlight::NamedData* data) : data_(data) {}

  // The sizes of the layout are kept for the last key that was asked for.
  ET_NODISCARD Result<const TensorLayout> get_tensor_layout(std::string_view key) const override {
    ::rushlight::Result<::rushlight::TensorLayout> layout = data_->layout(view(key));
    if (!layout.ok()) return layout.status().code();
    layout_ = layout.value();
    return TensorLayout::create({layout_.sizes, layout_.rank}, {layout_.dim_order, layout_.rank},
                                static_cast<aten::ScalarType>(layout_.dtype));
  }
  ET_NODISCARD Result<FreeableBuffer> get_data(std::string_view key) const override {
    ::rushlight::Result<::rushlight::Span<const uint8_t>> data = data_->get(view(key));
    if (!data.ok()) return data.status().code();
    return FreeableBuffer(data.value().data(), data.value().size(), nullptr);
  }
  ET_NODISCARD Error load_data_into(std::string_view key, void* to, size_t size) const override {
    ::rushlight::Result<::rushlight::Span<const uint8_t>> data = data_->get(view(key));
    if (!data.ok()) return data.status().code();
    ET_CHECK_OR_RETURN_ERROR(to != nullptr && size <= data.value().size(), InvalidArgument,
                             "%zu bytes are asked for, but the key has %zu", size,
                             data.value().size());
    if (size > 0) std::memcpy(to, data.value().data(), size);
    return Error::Ok;
  }
  ET_NODISCARD Result<uint32_t> get_num_keys() const override {
    return static_cast<uint32_t>(data_->n_keys());
  }
  ET_NODISCARD Result<const char*> get_key(uint32_t index) const override {
    ET_CHECK_OR_RETURN_ERROR(index < data_->n_keys(), InvalidArgument,
                             "there is no key %u among %zu", index, data_->n_keys());
    return data_->key(index).data();
  }

 private:
  static ::rushlight::StringView view(std::string_view text) { return {text.data(), text.size()}; }

  const ::rushlight::NamedData* data_;
  mutable ::rushlight::TensorLayout layout_;
};

}  // namespace executorch::runtime::internal
