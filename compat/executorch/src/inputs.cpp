#include <executorch/extension/runner_util/inputs.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cstring>

namespace executorch::extension {
namespace {

using runtime::Error;
using runtime::EValue;
using runtime::MethodMeta;
using runtime::Result;
using runtime::Tag;

template <typename T>
Error fill_ones(void* data, size_t bytes) {
  std::fill_n(static_cast<T*>(data), bytes / sizeof(T), static_cast<T>(1));
  return Error::Ok;
}

Error fill_ones(aten::ScalarType type, void* data, size_t bytes) {
#define FILL_ONES(ctype, name) \
  case aten::ScalarType::name: \
    return fill_ones<ctype>(data, bytes);
  switch (type) {
    ET_FORALL_REALHBBF16_TYPES(FILL_ONES)
    default:
      ET_LOG(Error, "there are no ones of dtype %s: give the bytes of the input",
             runtime::toString(type));
      return Error::InvalidArgument;
  }
#undef FILL_ONES
}

template <typename T>
Error set_number(Method& method, size_t index, const std::pair<char*, size_t>& bytes) {
  T value;
  ET_CHECK_OR_RETURN_ERROR(bytes.second == sizeof value, InvalidArgument,
                           "input %zu: got %zu bytes, expected %zu", index, bytes.second,
                           sizeof value);
  std::memcpy(&value, bytes.first, sizeof value);
  return method.set_input(EValue(value), index);
}

Error set_number(Method& method, Tag tag, size_t index, const std::pair<char*, size_t>& bytes) {
  if (tag == Tag::Int) return set_number<int64_t>(method, index, bytes);
  if (tag == Tag::Double) return set_number<double>(method, index, bytes);
  if (tag == Tag::Bool) return set_number<bool>(method, index, bytes);
  ET_LOG(Error, "input %zu is a %s, which has no bytes: give them for tensors and numbers", index,
         runtime::tag_to_string(tag));
  return Error::InvalidArgument;
}

struct Blocks {
  explicit Blocks(size_t count)
      : data(static_cast<void**>(std::malloc(std::max<size_t>(count, 1) * sizeof(void*)))) {}
  BufferCleanup owner() const { return BufferCleanup({data, count}); }
  void** data;
  size_t count = 0;
};

Error set_tensor(Method& method, TensorInfo& meta, size_t index, Blocks& blocks,
                 const std::pair<char*, size_t>* bytes) {
  void* data = std::malloc(std::max<size_t>(meta.nbytes(), 1));
  if (data == nullptr) {
    ET_LOG(Error, "no memory for the %zu bytes of input %zu", meta.nbytes(), index);
    return Error::MemoryAllocationFailed;
  }
  blocks.data[blocks.count++] = data;
  if (bytes != nullptr && bytes->second < meta.nbytes()) {
    ET_LOG(Error, "input %zu: got %zu bytes, expected %zu", index, bytes->second, meta.nbytes());
    return Error::InvalidArgument;
  }
  if (bytes != nullptr) std::memcpy(data, bytes->first, meta.nbytes());
  return internal::fill_and_set_input(method, meta, index, data, bytes == nullptr);
}

Error set_inputs(Method& method, const PrepareInputTensorsOptions& options,
                 const std::vector<std::pair<char*, size_t>>& given, Blocks& blocks) {
  const MethodMeta meta = method.method_meta();
  size_t total = 0;
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    const auto* bytes = given.empty() ? nullptr : &given[i];
    ET_ASSIGN_OR_RETURN(tag, meta.input_tag(i));
    if (tag != Tag::Tensor) {
      if (bytes != nullptr) ET_CHECK_OK_OR_RETURN_ERROR(set_number(method, tag, i, *bytes));
      continue;
    }
    ET_ASSIGN_OR_RETURN(info, meta.input_tensor_meta(i));
    total += info.nbytes();
    ET_CHECK_OR_RETURN_ERROR(total <= options.max_total_allocation_size, InvalidProgram,
                             "inputs 0 to %zu take %zu bytes, more than the %zu that are allowed",
                             i, total, options.max_total_allocation_size);
    ET_CHECK_OK_OR_RETURN_ERROR(set_tensor(method, info, i, blocks, bytes));
  }
  return Error::Ok;
}

}  // namespace

Error internal::fill_and_set_input(Method& method, TensorInfo& tensor_meta, size_t input_index,
                                   void* data_ptr, bool fill_tensor) {
  if (fill_tensor) {
    ET_CHECK_OK_OR_RETURN_ERROR(
        fill_ones(tensor_meta.scalar_type(), data_ptr, tensor_meta.nbytes()));
  }
  aten::TensorImpl tensor(tensor_meta.scalar_type(),
                          static_cast<ssize_t>(tensor_meta.sizes().size()),
                          const_cast<int32_t*>(tensor_meta.sizes().data()), data_ptr,
                          const_cast<uint8_t*>(tensor_meta.dim_order().data()));
  return method.set_input(aten::Tensor(&tensor), input_index);
}

Result<BufferCleanup> prepare_input_tensors(
    Method& method, PrepareInputTensorsOptions options,
    const std::vector<std::pair<char*, size_t>>& input_buffers) {
  const size_t count = method.inputs_size();
  ET_CHECK_OR_RETURN_ERROR(count <= options.max_inputs, InvalidProgram,
                           "the method has %zu inputs, more than the %zu that are allowed", count,
                           options.max_inputs);
  ET_CHECK_OR_RETURN_ERROR(input_buffers.empty() || input_buffers.size() == count, InvalidArgument,
                           "%zu inputs are given, but the method has %zu", input_buffers.size(),
                           count);
  Blocks blocks(count);
  ET_CHECK_OR_RETURN_ERROR(blocks.data != nullptr, MemoryAllocationFailed,
                           "no memory for the list of %zu inputs", count);
  const Error error = set_inputs(method, options, input_buffers, blocks);
  BufferCleanup owner = blocks.owner();
  if (error != Error::Ok) return error;
  return owner;
}

}  // namespace executorch::extension
