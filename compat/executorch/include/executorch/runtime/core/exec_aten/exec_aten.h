// The types of values under executorch::aten. What ExecuTorch calls ATen mode, where these are
// PyTorch's own types, is not built.
#pragma once

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/portable_type/bfloat16.h>
#include <executorch/runtime/core/portable_type/bfloat16_math.h>
#include <executorch/runtime/core/portable_type/complex.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/portable_type/half.h>
#include <executorch/runtime/core/portable_type/optional.h>
#include <executorch/runtime/core/portable_type/qint_types.h>
#include <executorch/runtime/core/portable_type/scalar.h>
#include <executorch/runtime/core/portable_type/scalar_type.h>
#include <executorch/runtime/core/portable_type/string_view.h>
#include <executorch/runtime/core/portable_type/tensor.h>
#include <executorch/runtime/core/portable_type/tensor_options.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/tensor_shape_dynamism.h>
#include <executorch/runtime/platform/assert.h>
#include <executorch/runtime/platform/compiler.h>

#include <optional>
#include <string_view>

#ifdef USE_ATEN_LIB
static_assert(false,
              "ATen mode is not built: compile without USE_ATEN_LIB, and copy between at::Tensor "
              "and executorch::aten::Tensor by from_blob");
#endif
#ifndef ET_RUNTIME_NAMESPACE
#define ET_RUNTIME_NAMESPACE runtime
#endif

namespace executorch::aten {

using ::executorch::runtime::ArrayRef;
using ::executorch::runtime::IntArrayRef;
using ::executorch::runtime::TensorShapeDynamism;
using ::executorch::runtime::etensor::BFloat16;
using ::executorch::runtime::etensor::complex;
using ::executorch::runtime::etensor::compute_numel;
using ::executorch::runtime::etensor::Device;
using ::executorch::runtime::etensor::DeviceType;
using ::executorch::runtime::etensor::Half;
using ::executorch::runtime::etensor::Layout;
using ::executorch::runtime::etensor::MemoryFormat;
using ::executorch::runtime::etensor::qint32;
using ::executorch::runtime::etensor::qint8;
using ::executorch::runtime::etensor::quint2x4;
using ::executorch::runtime::etensor::quint4x2;
using ::executorch::runtime::etensor::quint8;
using ::executorch::runtime::etensor::safe_numel;
using ::executorch::runtime::etensor::Scalar;
using ::executorch::runtime::etensor::ScalarType;
using ::executorch::runtime::etensor::Tensor;
using ::executorch::runtime::etensor::TensorImpl;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using std::string_view;

using TensorList = ArrayRef<Tensor>;
using SizesType = Tensor::SizesType;
using DimOrderType = Tensor::DimOrderType;
using StridesType = Tensor::StridesType;
template <typename T>
using OptionalArrayRef = std::optional<ArrayRef<T>>;
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

}  // namespace executorch::aten

namespace exec_aten = executorch::aten;

namespace torch::executor {
using TensorList = ::executorch::aten::TensorList;
}  // namespace torch::executor
