#include "rushlight/c_api/inputs.h"

#include <climits>
#include <cstring>

namespace rushlight::c_api {
namespace {

// A caller's tensor, with strides in elements.
struct Source {
  DType dtype = DType::UInt8;
  size_t rank = 0;
  const uint8_t* data = nullptr;
  int32_t sizes[kMaxRank] = {};
  int32_t strides[kMaxRank] = {};
  uint8_t dim_order[kMaxRank] = {};
  bool is_dense = true;  // its strides are those of dim_order
  int64_t numel = 0;
};

// Fails with the method and the input before the text.
Status fail(const MethodFace& face, const Method& method, uint32_t index, Code code, Message* to,
            const char* text) {
  return to->fail(code, "%.*s: %s: %s", method.name().len(), method.name().data(),
                  label_of(face.contract, index).c_str(), text);
}

// The dim order of strides without gaps; false if there is none. Dimensions of size 1 have any.
bool order_of(Source* source) {
  const size_t rank = source->rank;
  for (size_t k = 0; k < rank; ++k) {
    size_t at = k;
    for (; at > 0; --at) {
      const size_t before = source->dim_order[at - 1];
      const bool is_free = source->sizes[k] <= 1 || source->sizes[before] <= 1;
      if (is_free || source->strides[before] >= source->strides[k]) break;
      source->dim_order[at] = static_cast<uint8_t>(before);
    }
    source->dim_order[at] = static_cast<uint8_t>(k);
  }
  int32_t dense[kMaxRank];
  if (!strides_of({source->sizes, rank}, source->dim_order, dense)) return false;
  for (size_t k = 0; k < rank; ++k) {
    if (source->sizes[k] > 1 && dense[k] != source->strides[k]) return false;
  }
  return true;
}

// The bytes from the first element on that a tensor with strides has; UINT64_MAX for more than any
// memory.
uint64_t extent_of(const Source& source) {
  if (source.numel == 0) return 0;
  int64_t last = 0;
  for (size_t k = 0; k < source.rank; ++k) {
    if (source.strides[k] > 0) last += int64_t{source.sizes[k] - 1} * source.strides[k];
    if (last > INT64_MAX / 64) return UINT64_MAX;
  }
  return (static_cast<uint64_t>(last) + 1) * element_size(source.dtype);
}

// nullptr, or what is wrong with the value.
const char* read_tensor(const rl_value_v1& value, Source* source) {
  if (value.dtype < 0 || value.dtype > INT8_MAX ||
      element_size(static_cast<DType>(value.dtype)) == 0) {
    return "there is no such dtype: rushlight.h lists them";
  }
  source->dtype = static_cast<DType>(value.dtype);
  if (value.rank > kMaxRank) return "it has more than 16 dimensions";
  source->rank = value.rank;
  source->data = static_cast<const uint8_t*>(value.data);
  if (value.rank > 0 && value.sizes == nullptr) return "its sizes are NULL";
  for (size_t k = 0; k < source->rank; ++k) {
    source->sizes[k] = value.sizes[k];
    source->dim_order[k] =
        value.dim_order != nullptr ? value.dim_order[k] : static_cast<uint8_t>(k);
  }
  if (!is_permutation(source->dim_order, source->rank)) return "its dim order is no permutation";
  const Span<const int32_t> sizes(source->sizes, source->rank);
  if (!count_elements(sizes, &source->numel)) return "a size is negative, or they are too large";
  if (value.strides != nullptr) {
    for (size_t k = 0; k < source->rank; ++k) source->strides[k] = value.strides[k];
    source->is_dense = source->numel == 0 || order_of(source);
  } else if (!strides_of(sizes, source->dim_order, source->strides)) {
    return "its sizes are too large";
  }
  if (source->numel > 0 && source->data == nullptr) return "its data is NULL";
  if (value.nbytes > 0 && value.nbytes < extent_of(*source)) {
    return "its sizes and strides reach beyond its nbytes";
  }
  return nullptr;
}

// Copies a tensor without gaps, in a dim order.
void gather(const Source& from, const uint8_t* dim_order, uint8_t* to) {
  const size_t bytes = element_size(from.dtype);
  int32_t at[kMaxRank] = {};
  const uint8_t* element = from.data;
  for (int64_t i = 0; i < from.numel; ++i, to += bytes) {
    std::memcpy(to, element, bytes);
    for (size_t k = from.rank; k-- > 0;) {
      const size_t dim = dim_order[k];
      const int64_t stride = int64_t{from.strides[dim]} * static_cast<int64_t>(bytes);
      element += stride;
      if (++at[dim] < from.sizes[dim]) break;
      element -= stride * from.sizes[dim];
      at[dim] = 0;
    }
  }
}

// Whether the method can read the tensor where it lies, or copies it by itself.
bool is_readable(const Source& source, const TensorMeta& meta) {
  if (!source.is_dense) return false;
  if (reinterpret_cast<uintptr_t>(source.data) % element_alignment(source.dtype) != 0) return false;
  if (meta.planned) return true;
  int32_t strides[kMaxRank];
  if (!strides_of({source.sizes, source.rank}, meta.dim_order, strides)) return false;
  for (size_t k = 0; k < source.rank; ++k) {
    if (source.sizes[k] > 1 && strides[k] != source.strides[k]) return false;
  }
  return true;
}

Status set_tensor(MethodFace& face, Method& method, uint32_t index, const rl_value_v1& value,
                  Message* message) {
  Source source;
  const char* fault = read_tensor(value, &source);
  if (fault != nullptr) return fail(face, method, index, Code::InvalidArgument, message, fault);
  const MethodMeta& meta = method.meta();
  const TensorMeta wanted = meta.input(index).tensor;
  if (source.dtype != wanted.dtype) {
    const Status status = message->fail(Code::InvalidArgument, "got %s, the method takes %s",
                                        dtype_name(source.dtype), dtype_name(wanted.dtype));
    message->prepend("%.*s: %s: ", method.name().len(), method.name().data(),
                     label_of(face.contract, index).c_str());
    return status;
  }
  const Span<const int32_t> sizes(source.sizes, source.rank);
  RL_TRY(face.contract.check(index, meta, sizes, {face.known.data(), face.known.size()}, message));
  const void* data = source.data;
  const uint8_t* dim_order = source.dim_order;
  if (source.numel > 0 && !is_readable(source, wanted)) {
    std::vector<uint64_t>& copy = face.copies[index];
    const size_t bytes = static_cast<size_t>(source.numel) * element_size(source.dtype);
    copy.resize((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    gather(source, wanted.dim_order, reinterpret_cast<uint8_t*>(copy.data()));
    data = copy.data();
    dim_order = wanted.dim_order;
  }
  const HostTensor tensor(source.dtype, sizes, data, dim_order);
  if (!tensor.valid()) {
    return fail(face, method, index, Code::InvalidArgument, message, "its sizes are too large");
  }
  const Status status = method.set_input(index, tensor);
  if (!status.ok()) *message = method.message();
  return status;
}

bool is_near(double a, double b) {
  if (a == b || (a != a && b != b)) return true;
  const double distance = a > b ? a - b : b - a;
  return distance <= 1e-4 + 1e-5 * (b < 0 ? -b : b);
}

constexpr char kFixed[] =
    "the program was exported with another value and holds no other; for a value that changes, "
    "export with a 0-d tensor";

// Whether a scalar is one that the contract allows; nullptr, or what is wrong.
const char* check_scalar(const ValueContract& contract, const ValueMeta& meta,
                         const rl_value_v1& value) {
  switch (meta.tag) {
    case Tag::Int:
      return !contract.is_fixed || value.i == meta.i ? nullptr : kFixed;
    case Tag::Bool:
      return !contract.is_fixed || (value.i != 0) == (meta.i != 0) ? nullptr : kFixed;
    case Tag::Double:
      return !contract.is_fixed || is_near(value.d, meta.d) ? nullptr : kFixed;
    default:
      return nullptr;
  }
}

}  // namespace

Status read_item(const rl_value_v1* items, uint32_t index, rl_value_v1* value, Message* message) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(items);
  const size_t size = items[0].size;
  const auto* item = reinterpret_cast<const rl_value_v1*>(bytes + index * size);
  RL_TRY(check_struct(items, sizeof(rl_value_v1), "rl_value_v1", message));
  if (item->size == size && size % alignof(rl_value_v1) == 0) {
    return read_struct(item, value, "rl_value_v1", message);
  }
  return message->fail(
      Code::InvalidArgument,
      "rl_value_v1: all values of an array have sizeof(rl_value_v1) as their size");
}

Status set_input(MethodFace& face, Method& method, uint32_t index, const rl_value_v1& value,
                 Message* message) {
  if (value.kind == RL_TENSOR && method.meta().input(index).tag == Tag::Tensor) {
    return set_tensor(face, method, index, value, message);
  }
  const ValueMeta meta = method.meta().input(index);
  Status status;
  switch (value.kind) {
    case RL_NONE:
      status = method.set_input_none(index);
      break;
    case RL_INT:
      status = method.set_input_int(index, value.i);
      break;
    case RL_BOOL:
      status = method.set_input_bool(index, value.i != 0);
      break;
    case RL_DOUBLE:
      status = method.set_input_double(index, value.d);
      break;
    case RL_STRING:
      // Programs of torch.export have None in the place of strings.
      status = meta.tag == Tag::None ? method.set_input_none(index)
                                     : method.set_input_string(index, view(value.text));
      break;
    case RL_TENSOR:
      status = method.set_input(index, HostTensor());
      break;
    default:
      return fail(face, method, index, Code::InvalidArgument, message,
                  "its kind is none that an input can have");
  }
  if (!status.ok()) {
    *message = method.message();
    return status;
  }
  const char* fault = check_scalar(face.contract.inputs[index], meta, value);
  if (fault != nullptr) return fail(face, method, index, Code::InvalidArgument, message, fault);
  if (meta.tag != Tag::Int || face.contract.inputs[index].is_fixed) return {};
  return face.contract.check_integer(index, method.meta(), value.i,
                                     {face.known.data(), face.known.size()}, message);
}

}  // namespace rushlight::c_api
