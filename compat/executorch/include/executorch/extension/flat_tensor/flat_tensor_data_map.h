// A data file (.ptd): tensors with names.
#pragma once

#include <executorch/extension/flat_tensor/serialize/flat_tensor_header.h>
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/tensor_layout.h>
#include <executorch/runtime/executor/pte_data_map.h>

#include <memory>
#include <utility>

#include "rushlight/program/external_data.h"

namespace executorch::extension {

class FlatTensorDataMap final : public runtime::NamedDataMap {
 public:
  // Reads the whole file by one call of the loader. InvalidExternalData for a file that is none.
  static runtime::Result<FlatTensorDataMap> load(runtime::DataLoader* loader) {
    ET_CHECK_OR_RETURN_ERROR(loader != nullptr, InvalidArgument, "there is no loader");
    ET_ASSIGN_OR_RETURN(size, loader->size());
    const runtime::DataLoader::SegmentInfo info(runtime::DataLoader::SegmentInfo::Type::External);
    ET_ASSIGN_OR_RETURN(image, loader->load(0, size, info));
    auto file = std::make_unique<File>(std::move(image));
    const runtime::Error error = file->data.load(file->bytes).code();
    ET_CHECK_OK_OR_RETURN_ERROR(error, "%s", file->data.message().text());
    return FlatTensorDataMap(std::move(file));
  }

  ET_NODISCARD runtime::Result<const runtime::TensorLayout> get_tensor_layout(
      std::string_view key) const override {
    return file_->map.get_tensor_layout(key);
  }
  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> get_data(
      std::string_view key) const override {
    return file_->map.get_data(key);
  }
  ET_NODISCARD runtime::Error load_data_into(std::string_view key, void* to,
                                             size_t size) const override {
    return file_->map.load_data_into(key, to, size);
  }
  ET_NODISCARD runtime::Result<uint32_t> get_num_keys() const override {
    return file_->map.get_num_keys();
  }
  ET_NODISCARD runtime::Result<const char*> get_key(uint32_t index) const override {
    return file_->map.get_key(index);
  }

 private:
  struct File {
    explicit File(runtime::FreeableBuffer image)
        : memory(std::move(image)), bytes(memory.data(), memory.size()) {}

    runtime::FreeableBuffer memory;
    ::rushlight::MemoryLoader bytes;
    ::rushlight::ExternalData data;
    runtime::internal::PteDataMap map{&data};
  };
  explicit FlatTensorDataMap(std::unique_ptr<File> file) : file_(std::move(file)) {}

  std::unique_ptr<File> file_;
};

}  // namespace executorch::extension
