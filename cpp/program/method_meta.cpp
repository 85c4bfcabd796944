#include "rushlight/program/method_meta.h"

#include <cstring>

#include "rushlight/program/plan_check.h"
#include "rushlight/program/program.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {
namespace {

void copy_bounds(fb::Tensor tensor, int32_t* bounds) {
  const fb::Vector<int32_t> sizes = tensor.sizes();
  const bool is_bounded = tensor.shape_dynamism() != fb::TensorShapeDynamism::DYNAMIC_UNBOUND;
  for (size_t k = 0; k < sizes.size(); ++k) bounds[k] = is_bounded ? sizes[k] : INT32_MAX;
}

TensorMeta tensor_meta(fb::Tensor tensor) {
  TensorMeta meta;
  meta.dtype = static_cast<DType>(tensor.scalar_type());
  meta.dynamism = static_cast<Dynamism>(tensor.shape_dynamism());
  meta.rank = static_cast<uint8_t>(tensor.sizes().size());
  meta.planned = is_planned(tensor);
  meta.constant = is_constant(tensor);
  copy_bounds(tensor, meta.sizes);
  if (meta.rank > 0) std::memcpy(meta.dim_order, tensor.dim_order().bytes(), meta.rank);
  int64_t numel = 0;
  const size_t element = element_size(meta.dtype);
  const bool counted =
      count_elements(meta.shape(), &numel) && static_cast<uint64_t>(numel) <= SIZE_MAX / element;
  meta.nbytes = counted ? static_cast<size_t>(numel) * element : SIZE_MAX;
  return meta;
}

}  // namespace

StringView OperatorName::join(char* buffer, size_t size) const {
  if (size == 0) return {};
  size_t used = 0;
  const StringView parts[] = {name, overload.empty() ? "" : ".", overload};
  for (StringView part : parts) {
    const size_t n = part.size() < size - 1 - used ? part.size() : size - 1 - used;
    std::memcpy(buffer + used, part.data(), n);
    used += n;
  }
  buffer[used] = '\0';
  return {buffer, used};
}

fb::ExecutionPlan MethodMeta::plan() const { return program_->root().execution_plan()[index_]; }

StringView MethodMeta::name() const { return program_ != nullptr ? plan().name() : StringView(); }

size_t MethodMeta::n_inputs() const { return sizes_.inputs; }

size_t MethodMeta::n_outputs() const { return sizes_.outputs; }

ValueMeta MethodMeta::input(size_t i) const {
  return value(static_cast<size_t>(plan().inputs()[i]));
}

ValueMeta MethodMeta::output(size_t i) const {
  return value(static_cast<size_t>(plan().outputs()[i]));
}

ValueMeta MethodMeta::value(size_t i) const {
  const fb::EValue value = plan().values()[i];
  ValueMeta meta;
  meta.tag = tag_of(value.val_type());
  if (meta.tag == Tag::Int) meta.i = value.val_as_Int().int_val();
  if (meta.tag == Tag::Bool) meta.i = value.val_as_Bool().bool_val();
  if (meta.tag == Tag::Double) meta.d = value.val_as_Double().double_val();
  if (meta.tag == Tag::String) meta.text = value.val_as_String().string_val();
  if (meta.tag == Tag::Tensor) meta.tensor = tensor_meta(value.val_as_Tensor());
  return meta;
}

StringView MethodMeta::state_name(size_t i) const {
  const fb::Tensor tensor = plan().values()[i].val_as_Tensor();
  if (!tensor.present() || !tensor.has_allocation_info()) return {};
  return tensor.extra_tensor_info().fully_qualified_name();
}

TensorMeta MethodMeta::output_tensor(size_t i) const {
  return tensor_meta(plan().values()[static_cast<size_t>(plan().outputs()[i])].val_as_Tensor());
}

void MethodMeta::copy_input_bounds(size_t i, int32_t* bounds) const {
  const fb::ExecutionPlan plan = this->plan();
  copy_bounds(plan.values()[static_cast<size_t>(plan.inputs()[i])].val_as_Tensor(), bounds);
}

size_t MethodMeta::n_arenas() const { return plan().non_const_buffer_sizes().size() - 1; }

size_t MethodMeta::arena_bytes(size_t k) const {
  return static_cast<size_t>(plan().non_const_buffer_sizes()[k + 1]);
}

uint64_t MethodMeta::total_arena_bytes() const {
  uint64_t total = 0;
  for (size_t k = 0; k < n_arenas(); ++k) total += arena_bytes(k);
  return total;
}

size_t MethodMeta::n_values() const { return sizes_.values; }

size_t MethodMeta::n_instructions() const { return sizes_.instructions; }

size_t MethodMeta::n_operators() const { return plan().operators().size(); }

OperatorName MethodMeta::operator_name(size_t i) const {
  const fb::Operator op = plan().operators()[i];
  return {op.name(), op.overload()};
}

size_t MethodMeta::n_delegates() const { return sizes_.delegates; }

StringView MethodMeta::delegate_id(size_t i) const { return plan().delegates()[i].id(); }

}  // namespace rushlight
