#include "rushlight/method/initial_state.h"

#include <cstring>

#include "rushlight/program/plan_check.h"

namespace rushlight {
namespace {

// The tensor must have bytes, and its sizes must have been checked.
size_t bytes_of(fb::Tensor tensor) {
  size_t bytes = element_size(static_cast<DType>(tensor.scalar_type()));
  for (size_t i = 0; i < tensor.sizes().size(); ++i) {
    bytes *= static_cast<size_t>(tensor.sizes()[i]);
  }
  return bytes;
}

bool equal_layouts(fb::Tensor tensor, const TensorLayout& layout) {
  const size_t rank = tensor.sizes().size();
  if (static_cast<DType>(tensor.scalar_type()) != layout.dtype || rank != layout.rank) return false;
  for (size_t i = 0; i < rank; ++i) {
    if (tensor.sizes()[i] != layout.sizes[i]) return false;
    if (tensor.dim_order()[i] != layout.dim_order[i]) return false;
  }
  return true;
}

}  // namespace

Result<Span<const uint8_t>> external_bytes(fb::Tensor tensor, const NamedData* external,
                                           Message& message) {
  const StringView key = tensor.extra_tensor_info().fully_qualified_name();
  if (external == nullptr) {
    return message.fail(Code::NotFound,
                        "the data of '%.*s' is not in the program and no data file was given; load "
                        "the .ptd that was exported with it",
                        key.len(), key.data());
  }
  Result<Span<const uint8_t>> bytes = external->get(key);
  if (!bytes.ok()) {
    return message.fail(bytes.status().code(), "there is no '%.*s' in the data that was given",
                        key.len(), key.data());
  }
  Result<TensorLayout> layout = external->layout(key);
  if (!layout.ok() || !equal_layouts(tensor, layout.value())) {
    return message.fail(Code::InvalidExternalData,
                        "'%.*s' has another dtype, other sizes or another dim order in the data "
                        "that was given than in the program",
                        key.len(), key.data());
  }
  if (bytes->size() < bytes_of(tensor)) {
    return message.fail(Code::InvalidExternalData, "'%.*s' has %zu bytes of data, not %zu",
                        key.len(), key.data(), bytes->size(), bytes_of(tensor));
  }
  return bytes;
}

Status write_initial_state(const MethodMeta& meta, size_t k, Span<uint8_t> arena,
                           const NamedData* external, Message& message) {
  const fb::ExecutionPlan plan = meta.plan();
  for (size_t i = 0; i < plan.values().size(); ++i) {
    const fb::Tensor tensor = plan.values()[i].val_as_Tensor();
    if (!tensor.present() || !is_planned(tensor) || !has_file_data(tensor)) continue;
    if (tensor.allocation_info().memory_id() != k + 1) continue;
    Span<const uint8_t> bytes;
    if (is_external(tensor)) {
      Result<Span<const uint8_t>> external_data = external_bytes(tensor, external, message);
      if (!external_data.ok()) {
        message.prepend("%.*s: value %zu: ", meta.name().len(), meta.name().data(), i);
        return external_data.status();
      }
      bytes = external_data.value();
    } else {
      bytes = meta.program().mutable_state(tensor.data_buffer_idx());
    }
    const size_t n = bytes_of(tensor);
    if (n > 0) std::memcpy(arena.data() + arena_offset(tensor.allocation_info()), bytes.data(), n);
  }
  return {};
}

}  // namespace rushlight
