// How bytes with a name are to be read as a tensor.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

namespace executorch::runtime {

class TensorLayout final {
 public:
  TensorLayout() = delete;
  // InvalidArgument for sizes that no tensor has. The spans belong to the caller.
  static Result<const TensorLayout> create(Span<const int32_t> sizes, Span<const uint8_t> dim_order,
                                           aten::ScalarType scalar_type) {
    Result<ssize_t> numel = aten::safe_numel(sizes.data(), static_cast<ssize_t>(sizes.size()));
    if (!numel.ok()) return numel.error();
    const auto dtype = static_cast<::rushlight::DType>(scalar_type);
    ET_CHECK_OR_RETURN_ERROR(dim_order.size() == sizes.size() &&
                                 ::rushlight::is_permutation(dim_order.data(), dim_order.size()),
                             InvalidArgument, "the dim order is no permutation of the dimensions");
    return TensorLayout(sizes, dim_order, scalar_type,
                        static_cast<size_t>(*numel) * ::rushlight::element_size(dtype));
  }
  Span<const int32_t> sizes() const { return sizes_; }
  Span<const uint8_t> dim_order() const { return dim_order_; }
  aten::ScalarType scalar_type() const { return scalar_type_; }
  size_t nbytes() const { return nbytes_; }

 private:
  TensorLayout(Span<const int32_t> sizes, Span<const uint8_t> dim_order,
               aten::ScalarType scalar_type, size_t nbytes)
      : sizes_(sizes), dim_order_(dim_order), scalar_type_(scalar_type), nbytes_(nbytes) {}

  Span<const int32_t> sizes_;
  Span<const uint8_t> dim_order_;
  aten::ScalarType scalar_type_;
  size_t nbytes_;
};

}  // namespace executorch::runtime
