// Any number of maps of named data as one; no key may be in two.
#pragma once

#include <executorch/runtime/core/named_data_map.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace executorch::extension::merged_data_map {

class MergedDataMap final : public runtime::NamedDataMap {
 public:
  // InvalidArgument for a key that two maps have. All maps must outlive the result.
  static runtime::Result<MergedDataMap> load(runtime::Span<const runtime::NamedDataMap*> maps) {
    MergedDataMap merged;
    for (const runtime::NamedDataMap* map : maps) {
      ET_CHECK_OR_RETURN_ERROR(map != nullptr, InvalidArgument, "a map of named data is null");
      ET_ASSIGN_OR_RETURN(count, map->get_num_keys());
      for (uint32_t i = 0; i < count; ++i) {
        ET_ASSIGN_OR_RETURN(key, map->get_key(i));
        ET_CHECK_OR_RETURN_ERROR(merged.maps_.emplace(key, map).second, InvalidArgument,
                                 "two maps have the key %s", key);
        merged.keys_.push_back(key);
      }
    }
    return merged;
  }

  ET_NODISCARD runtime::Result<const runtime::TensorLayout> get_tensor_layout(
      std::string_view key) const override {
    const runtime::NamedDataMap* map = find(key);
    if (map == nullptr) return runtime::Error::NotFound;
    return map->get_tensor_layout(key);
  }
  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> get_data(
      std::string_view key) const override {
    const runtime::NamedDataMap* map = find(key);
    if (map == nullptr) return runtime::Error::NotFound;
    return map->get_data(key);
  }
  ET_NODISCARD runtime::Error load_data_into(std::string_view key, void* to,
                                             size_t size) const override {
    const runtime::NamedDataMap* map = find(key);
    if (map == nullptr) return runtime::Error::NotFound;
    return map->load_data_into(key, to, size);
  }
  ET_NODISCARD runtime::Result<uint32_t> get_num_keys() const override {
    return static_cast<uint32_t>(keys_.size());
  }
  ET_NODISCARD runtime::Result<const char*> get_key(uint32_t index) const override {
    if (index >= keys_.size()) return runtime::Error::InvalidArgument;
    return keys_[index];
  }

 private:
  const runtime::NamedDataMap* find(std::string_view key) const {
    const auto found = maps_.find(std::string(key));
    return found != maps_.end() ? found->second : nullptr;
  }

  std::unordered_map<std::string, const runtime::NamedDataMap*> maps_;
  std::vector<const char*> keys_;
};

}  // namespace executorch::extension::merged_data_map
