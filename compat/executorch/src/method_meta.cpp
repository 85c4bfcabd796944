#include <executorch/runtime/executor/method_meta.h>

#include <cstring>

#include "rushlight/program/program_fb.h"

namespace executorch::runtime {
namespace {

Tag tag_of(const ::rushlight::MethodMeta& meta, int32_t value) {
  return static_cast<Tag>(meta.value(static_cast<size_t>(value)).tag);
}

}  // namespace

Result<TensorInfo> MethodMeta::tensor_of(int32_t value) const {
  const auto tensor = meta_.plan().values()[static_cast<size_t>(value)].val_as_Tensor();
  const ::rushlight::TensorMeta meta = meta_.value(static_cast<size_t>(value)).tensor;
  const ::rushlight::StringView name = tensor.extra_tensor_info().fully_qualified_name();
  // The verifier saw to it that sizes are aligned.
  const auto* sizes =
      reinterpret_cast<const int32_t*>(meta.rank > 0 ? tensor.sizes().bytes() : nullptr);
  const uint8_t* order = meta.rank > 0 ? tensor.dim_order().bytes() : nullptr;
  return TensorInfo({sizes, meta.rank}, {order, meta.rank},
                    static_cast<aten::ScalarType>(meta.dtype), meta.planned || meta.constant,
                    meta.nbytes, {name.data(), name.size()});
}

#define ET_META_CHECK_INDEX_(index_, count_)                                                  \
  ET_CHECK_OR_RETURN_ERROR((index_) < (count_), InvalidArgument, "there is no %zu among %zu", \
                           static_cast<size_t>(index_), static_cast<size_t>(count_))

Result<Tag> MethodMeta::input_tag(size_t index) const {
  ET_META_CHECK_INDEX_(index, num_inputs());
  return tag_of(meta_, meta_.plan().inputs()[index]);
}

Result<TensorInfo> MethodMeta::input_tensor_meta(size_t index) const {
  ET_ASSIGN_OR_RETURN(tag, input_tag(index));
  ET_CHECK_OR_RETURN_ERROR(tag == Tag::Tensor, InvalidArgument, "input %zu is no tensor", index);
  return tensor_of(meta_.plan().inputs()[index]);
}

Result<Tag> MethodMeta::output_tag(size_t index) const {
  ET_META_CHECK_INDEX_(index, num_outputs());
  return tag_of(meta_, meta_.plan().outputs()[index]);
}

Result<TensorInfo> MethodMeta::output_tensor_meta(size_t index) const {
  ET_ASSIGN_OR_RETURN(tag, output_tag(index));
  ET_CHECK_OR_RETURN_ERROR(tag == Tag::Tensor, InvalidArgument, "output %zu is no tensor", index);
  return tensor_of(meta_.plan().outputs()[index]);
}

size_t MethodMeta::num_attributes() const {
  size_t count = 0;
  for (size_t i = 0; i < meta_.n_values(); ++i) count += meta_.state_name(i).empty() ? 0 : 1;
  return count;
}

Result<TensorInfo> MethodMeta::attribute_tensor_meta(size_t index) const {
  for (size_t i = 0; i < meta_.n_values(); ++i) {
    if (!meta_.state_name(i).empty() && index-- == 0) return tensor_of(static_cast<int32_t>(i));
  }
  return Error::InvalidArgument;
}

Result<int64_t> MethodMeta::memory_planned_buffer_size(size_t index) const {
  ET_META_CHECK_INDEX_(index, num_memory_planned_buffers());
  return static_cast<int64_t>(meta_.arena_bytes(index));
}

Result<etensor::Device> MethodMeta::memory_planned_buffer_device(size_t index) const {
  ET_META_CHECK_INDEX_(index, num_memory_planned_buffers());
  return etensor::Device(etensor::DeviceType::CPU);
}

#undef ET_META_CHECK_INDEX_

bool MethodMeta::uses_backend(const char* backend_name) const {
  for (size_t i = 0; i < meta_.n_delegates(); ++i) {
    if (meta_.delegate_id(i) == ::rushlight::StringView(backend_name)) return true;
  }
  return false;
}

size_t MethodMeta::num_backends() const {
  size_t count = 0;
  while (get_backend_name(count).ok()) ++count;
  return count;
}

// Each backend once, in the order of its first delegate.
Result<const char*> MethodMeta::get_backend_name(size_t index) const {
  for (size_t i = 0; i < meta_.n_delegates(); ++i) {
    bool is_first = true;
    for (size_t k = 0; k < i; ++k) {
      is_first = is_first && meta_.delegate_id(k) != meta_.delegate_id(i);
    }
    if (is_first && index-- == 0) return meta_.delegate_id(i).data();
  }
  return Error::InvalidArgument;
}

}  // namespace executorch::runtime
