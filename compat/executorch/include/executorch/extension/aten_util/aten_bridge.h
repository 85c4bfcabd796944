// Tensors of PyTorch and of ExecuTorch's interface over the same memory.
#pragma once

#include <ATen/Functions.h>
#include <ATen/Tensor.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <vector>

namespace executorch::extension {

// The types have the same numbers; PyTorch has more of them.
inline aten::ScalarType torch_to_executorch_scalar_type(caffe2::TypeMeta type) {
  const auto number = static_cast<int>(c10::typeMetaToScalarType(type));
  ET_CHECK_MSG(number < static_cast<int>(aten::ScalarType::Undefined),
               "no tensor of a program has elements of PyTorch's type %d", number);
  return static_cast<aten::ScalarType>(number);
}
inline c10::ScalarType executorch_to_torch_scalar_type(aten::ScalarType type) {
  return static_cast<c10::ScalarType>(type);
}

namespace internal {

// The strides of a dense tensor of these sizes and this dim order.
inline std::vector<int64_t> dense_strides(const aten::Tensor& et) {
  const size_t rank = et.sizes().size();
  aten::StridesType dense[::rushlight::kMaxRank] = {};
  ET_CHECK_MSG(runtime::dim_order_to_stride(et.sizes().data(), et.dim_order().data(), rank,
                                            dense) == runtime::Error::Ok,
               "the dim order is no permutation of the dimensions");
  return {dense, dense + rank};
}

}  // namespace internal

// A tensor over the memory of `et`, which must outlive it.
inline at::Tensor alias_attensor_to_etensor(const aten::Tensor& et) {
  const std::vector<int64_t> sizes(et.sizes().begin(), et.sizes().end());
  return at::from_blob(et.mutable_data_ptr(), sizes, internal::dense_strides(et),
                       at::TensorOptions(executorch_to_torch_scalar_type(et.scalar_type())));
}

// Makes `et` read and write the memory of `at`, which must be of its type, sizes and layout, and
// outlive it.
inline void alias_etensor_to_attensor(at::Tensor& at, aten::Tensor& et) {
  ET_CHECK_MSG(at.device().is_cpu(), "the tensor is not in memory that the processor reads");
  ET_CHECK_MSG(torch_to_executorch_scalar_type(at.dtype()) == et.scalar_type(),
               "the tensors are of different types: %d and %d", static_cast<int>(at.scalar_type()),
               static_cast<int>(et.scalar_type()));
  const std::vector<int64_t> strides = internal::dense_strides(et);
  bool is_same = at.dim() == et.dim();
  for (ssize_t i = 0; is_same && i < et.dim(); ++i) {
    is_same = at.size(i) == et.size(i) &&
              (at.size(i) <= 1 || at.stride(i) == strides[static_cast<size_t>(i)]);
  }
  ET_CHECK_MSG(is_same, "the tensors are of different sizes, or lie in memory differently");
  et.unsafeGetTensorImpl()->set_data(at.mutable_data_ptr());
}

// A tensor over the memory of `t`, which must be dense and outlive it.
inline TensorPtr alias_tensor_ptr_to_attensor(at::Tensor& t) {
  return make_tensor_ptr(std::vector<aten::SizesType>(t.sizes().begin(), t.sizes().end()),
                         t.mutable_data_ptr(), {},
                         std::vector<aten::StridesType>(t.strides().begin(), t.strides().end()),
                         torch_to_executorch_scalar_type(t.dtype()));
}

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::alias_attensor_to_etensor;
using ::executorch::extension::alias_etensor_to_attensor;
inline ScalarType torchToExecuTorchScalarType(caffe2::TypeMeta type) {
  return ::executorch::extension::torch_to_executorch_scalar_type(type);
}
inline c10::ScalarType execuTorchtoTorchScalarType(ScalarType type) {
  return ::executorch::extension::executorch_to_torch_scalar_type(type);
}
}  // namespace torch::executor::util

namespace torch::util {
using ::torch::executor::util::alias_attensor_to_etensor;
using ::torch::executor::util::alias_etensor_to_attensor;
using ::torch::executor::util::execuTorchtoTorchScalarType;
using ::torch::executor::util::torchToExecuTorchScalarType;
}  // namespace torch::util
