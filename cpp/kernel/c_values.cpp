#include "rushlight/kernel/c_values.h"

namespace rushlight::c_values {
namespace {

int64_t kind_of_items(Tag list) {
  switch (list) {
    case Tag::TensorList:
      return RL_TENSOR;
    case Tag::IntList:
      return RL_INT;
    case Tag::DoubleList:
      return RL_DOUBLE;
    case Tag::BoolList:
      return RL_BOOL;
    default:
      return RL_NONE;
  }
}

}  // namespace

rl_value_v1 value_of(const Tensor& tensor) {
  rl_value_v1 to = {};
  to.kind = RL_TENSOR;
  to.data = tensor.data;
  to.sizes = tensor.sizes;
  to.strides = tensor.strides;
  to.dim_order = tensor.dim_order;
  to.rank = tensor.rank;
  to.dtype = static_cast<int32_t>(tensor.dtype);
  to.nbytes = tensor.nbytes();
  to.capacity = static_cast<size_t>(tensor.capacity) * element_size(tensor.dtype);
  return to;
}

rl_value_v1 value_of(const EValue& value) {
  rl_value_v1 to = {};
  switch (value.tag) {
    case Tag::Tensor:
      return value_of(value.tensor());
    case Tag::None:
      to.kind = RL_NONE;
      break;
    case Tag::Int:
    case Tag::Bool:
    case Tag::Double:
      to.kind = value.tag == Tag::Int ? RL_INT : value.tag == Tag::Bool ? RL_BOOL : RL_DOUBLE;
      to.i = value.to_int();
      to.d = value.to_double();
      break;
    case Tag::String:
      to.kind = RL_STRING;
      to.text = text_of(value.string());
      break;
    default:
      to.kind = RL_LIST;
      to.i = kind_of_items(value.tag);
      to.n_items = value.size();
  }
  return to;
}

Status status_of(int32_t code, Message& message, const char* who) {
  const auto known = static_cast<Code>(code);
  if (code == RL_OK || std::strcmp(code_name(known), "?") != 0) return known;
  message.append("%sthe %s returned %ld", message.empty() ? "" : "; ", who,
                 static_cast<long>(code));
  return Code::Internal;
}

}  // namespace rushlight::c_values
