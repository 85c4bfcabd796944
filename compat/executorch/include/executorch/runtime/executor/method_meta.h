// What is known of a method before it is loaded.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/core/tag.h>

#include <string_view>

#include "rushlight/program/method_meta.h"

namespace executorch::runtime {

// A tensor of the program. Sizes and dim order are read in place: they live as long as the program.
class TensorInfo final {
 public:
  TensorInfo() = delete;
  Span<const int32_t> sizes() const { return sizes_; }
  Span<const uint8_t> dim_order() const { return dim_order_; }
  aten::ScalarType scalar_type() const { return scalar_type_; }
  bool is_memory_planned() const { return is_memory_planned_; }
  size_t nbytes() const { return nbytes_; }
  std::string_view name() const { return name_; }

 private:
  friend class MethodMeta;
  TensorInfo(Span<const int32_t> sizes, Span<const uint8_t> dim_order, aten::ScalarType type,
             bool is_memory_planned, size_t nbytes, std::string_view name)
      : sizes_(sizes),
        dim_order_(dim_order),
        name_(name),
        scalar_type_(type),
        is_memory_planned_(is_memory_planned),
        nbytes_(nbytes) {}

  Span<const int32_t> sizes_;
  Span<const uint8_t> dim_order_;
  std::string_view name_;
  aten::ScalarType scalar_type_;
  bool is_memory_planned_;
  size_t nbytes_;
};

// A view of the program's plan; valid as long as the program. An index that is out of range, and a
// value that is no tensor, are InvalidArgument.
class MethodMeta final {
 public:
  MethodMeta() = delete;
  explicit MethodMeta(const ::rushlight::MethodMeta& meta) : meta_(meta) {}

  const char* name() const { return meta_.name().data(); }
  size_t num_inputs() const { return meta_.n_inputs(); }
  Result<Tag> input_tag(size_t index) const;
  Result<TensorInfo> input_tensor_meta(size_t index) const;
  size_t num_outputs() const { return meta_.n_outputs(); }
  Result<Tag> output_tag(size_t index) const;
  Result<TensorInfo> output_tensor_meta(size_t index) const;
  // Mutable tensors that the program gives names.
  size_t num_attributes() const;
  Result<TensorInfo> attribute_tensor_meta(size_t index) const;
  size_t num_memory_planned_buffers() const { return meta_.n_arenas(); }
  Result<int64_t> memory_planned_buffer_size(size_t index) const;
  Result<etensor::Device> memory_planned_buffer_device(size_t index) const;
  bool uses_backend(const char* backend_name) const;
  size_t num_backends() const;
  Result<const char*> get_backend_name(size_t index) const;
  ET_EXPERIMENTAL size_t num_instructions() const { return meta_.n_instructions(); }
  ET_DEPRECATED size_t num_non_const_buffers() const { return num_memory_planned_buffers(); }
  Result<int64_t> non_const_buffer_size(size_t index) const {
    return memory_planned_buffer_size(index);
  }
  const ::rushlight::MethodMeta& rushlight() const { return meta_; }

 private:
  Result<TensorInfo> tensor_of(int32_t value) const;

  ::rushlight::MethodMeta meta_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::MethodMeta;
using ::executorch::runtime::TensorInfo;
}  // namespace torch::executor
