// Tensors that own their sizes and data.
#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <numeric>
#include <random>

namespace executorch::extension {
namespace {

// A tensor and all that it points to.
struct Storage {
  Storage(std::vector<aten::SizesType> tensor_sizes, std::vector<aten::DimOrderType> order,
          std::vector<aten::StridesType> tensor_strides, void* data, aten::ScalarType type,
          aten::TensorShapeDynamism dynamism, std::function<void(void*)> on_end)
      : sizes(std::move(tensor_sizes)),
        dim_order(std::move(order)),
        strides(std::move(tensor_strides)),
        impl(type, static_cast<ssize_t>(sizes.size()), sizes.data(), data, dim_order.data(),
             strides.data(), dynamism),
        tensor(&impl),
        deleter(std::move(on_end)) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() {
    if (deleter) deleter(impl.mutable_data());
  }

  std::vector<aten::SizesType> sizes;
  std::vector<aten::DimOrderType> dim_order;
  std::vector<aten::StridesType> strides;
  aten::TensorImpl impl;
  aten::Tensor tensor;
  std::function<void(void*)> deleter;
};

// An array of elements is wanted even where there are none.
template <typename T>
T* data_or_null(std::vector<T>& items) {
  return items.empty() ? nullptr : items.data();
}

template <typename Draw>
TensorPtr draw_strided(std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
                       aten::ScalarType type, aten::TensorShapeDynamism dynamism, Draw draw) {
  TensorPtr tensor = empty_strided(std::move(sizes), std::move(strides), type, dynamism);
  struct {
    [[noreturn]] void fail(runtime::Error) {
      ET_CHECK_MSG(false, "elements of this type cannot be set to a number");
    }
  } context;
  ET_SWITCH_REALHBBF16_AND_UINT_TYPES(type, context, "tensor", CTYPE, [&] {
    CTYPE* elements = tensor->mutable_data_ptr<CTYPE>();
    for (ssize_t i = 0; i < tensor->numel(); ++i) elements[i] = static_cast<CTYPE>(draw());
  });
  return tensor;
}

std::mt19937& generator() {
  static thread_local std::mt19937 random{std::random_device{}()};
  return random;
}

}  // namespace

TensorPtr make_tensor_ptr(std::vector<aten::SizesType> sizes, void* data,
                          std::vector<aten::DimOrderType> dim_order,
                          std::vector<aten::StridesType> strides, aten::ScalarType type,
                          aten::Device device, aten::TensorShapeDynamism dynamism,
                          std::function<void(void*)> deleter) {
  const size_t rank = sizes.size();
  ET_CHECK_MSG(device.is_cpu(), "tensors are in memory that the processor reads");
  ET_CHECK_MSG(rank <= runtime::kTensorDimensionLimit,
               "%zu dimensions, but at most %zu are allowed", rank, runtime::kTensorDimensionLimit);
  ET_CHECK_MSG(dim_order.empty() || dim_order.size() == rank,
               "a dim order of %zu dimensions for a tensor of %zu", dim_order.size(), rank);
  ET_CHECK_MSG(strides.empty() || strides.size() == rank,
               "%zu strides for a tensor of %zu dimensions", strides.size(), rank);
  if (dim_order.empty()) {
    dim_order.resize(rank);
    std::iota(dim_order.begin(), dim_order.end(), aten::DimOrderType{0});
    if (!strides.empty()) {
      ET_CHECK(runtime::stride_to_dim_order(strides.data(), rank, dim_order.data()) ==
               runtime::Error::Ok);
    }
  }
  std::vector<aten::StridesType> dense(rank);
  ET_CHECK_MSG(runtime::dim_order_to_stride(sizes.data(), dim_order.data(), rank, dense.data()) ==
                   runtime::Error::Ok,
               "the dim order is no permutation of the dimensions");
  for (size_t i = 0; i < strides.size(); ++i) {
    ET_CHECK_MSG(strides[i] == dense[i] || sizes[i] <= 1,
                 "stride %d of dimension %zu leaves gaps: a dense tensor has %d", strides[i], i,
                 dense[i]);
  }
  auto storage = std::make_shared<Storage>(std::move(sizes), std::move(dim_order), std::move(dense),
                                           data, type, dynamism, std::move(deleter));
  aten::Tensor* tensor = &storage->tensor;
  return TensorPtr(std::move(storage), tensor);
}

TensorPtr make_tensor_ptr(std::vector<aten::SizesType> sizes, std::vector<uint8_t> data,
                          std::vector<aten::DimOrderType> dim_order,
                          std::vector<aten::StridesType> strides, aten::ScalarType type,
                          aten::TensorShapeDynamism dynamism) {
  const auto numel = aten::safe_numel(sizes.data(), static_cast<ssize_t>(sizes.size()));
  ET_CHECK_MSG(numel.ok() && data.size() >= static_cast<size_t>(*numel) * aten::elementSize(type),
               "%zu bytes are too few for the sizes", data.size());
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(data));
  void* bytes = data_or_null(*owner);
  return make_tensor_ptr(std::move(sizes), bytes, std::move(dim_order), std::move(strides), type,
                         aten::Device(aten::DeviceType::CPU), dynamism,
                         [owner = std::move(owner)](void*) {});
}

TensorPtr clone_tensor_ptr(const aten::Tensor& tensor, aten::ScalarType type) {
  std::vector<aten::SizesType> sizes(tensor.sizes().begin(), tensor.sizes().end());
  std::vector<aten::DimOrderType> order(tensor.dim_order().begin(), tensor.dim_order().end());
  const auto* bytes = static_cast<const uint8_t*>(tensor.const_data_ptr());
  if (bytes == nullptr) {
    return make_tensor_ptr(std::move(sizes), nullptr, std::move(order), {}, type,
                           aten::Device(aten::DeviceType::CPU), tensor.shape_dynamism());
  }
  if (type == tensor.scalar_type()) {
    return make_tensor_ptr(std::move(sizes), std::vector<uint8_t>(bytes, bytes + tensor.nbytes()),
                           std::move(order), {}, type, tensor.shape_dynamism());
  }
  struct {
    [[noreturn]] void fail(runtime::Error) {
      ET_CHECK_MSG(false, "elements of this type cannot be cast");
    }
  } context;
  std::vector<uint8_t> cast;
  ET_SWITCH_REALHBBF16_AND_UINT_TYPES(
      tensor.scalar_type(), context, "clone_tensor_ptr", CTYPE, [&] {
        const CTYPE* elements = tensor.const_data_ptr<CTYPE>();
        cast =
            internal::cast_elements(std::vector<CTYPE>(elements, elements + tensor.numel()), type);
      });
  return make_tensor_ptr(std::move(sizes), std::move(cast), std::move(order), {}, type,
                         tensor.shape_dynamism());
}

runtime::Error resize_tensor_ptr(TensorPtr& tensor, const std::vector<aten::SizesType>& sizes) {
  return runtime::resize_tensor(*tensor,
                                aten::ArrayRef<aten::SizesType>(sizes.data(), sizes.size()));
}

TensorPtr empty_strided(std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
                        aten::ScalarType type, aten::TensorShapeDynamism dynamism) {
  const auto numel = aten::safe_numel(sizes.data(), static_cast<ssize_t>(sizes.size()));
  ET_CHECK_MSG(numel.ok(), "a size is negative, or the product of the sizes overflows");
  std::vector<uint8_t> data(static_cast<size_t>(*numel) * aten::elementSize(type));
  return make_tensor_ptr(std::move(sizes), std::move(data), {}, std::move(strides), type, dynamism);
}

TensorPtr full_strided(std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
                       aten::Scalar fill_value, aten::ScalarType type,
                       aten::TensorShapeDynamism dynamism) {
  if (fill_value.isFloatingPoint()) {
    const auto value = fill_value.to<double>();
    return draw_strided(std::move(sizes), std::move(strides), type, dynamism,
                        [=] { return value; });
  }
  const auto value =
      fill_value.isBoolean() ? int64_t{fill_value.to<bool>()} : fill_value.to<int64_t>();
  return draw_strided(std::move(sizes), std::move(strides), type, dynamism, [=] { return value; });
}

TensorPtr rand_strided(std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
                       aten::ScalarType type, aten::TensorShapeDynamism dynamism) {
  std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
  return draw_strided(std::move(sizes), std::move(strides), type, dynamism,
                      [&] { return uniform(generator()); });
}

TensorPtr randn_strided(std::vector<aten::SizesType> sizes, std::vector<aten::StridesType> strides,
                        aten::ScalarType type, aten::TensorShapeDynamism dynamism) {
  std::normal_distribution<float> normal(0.0f, 1.0f);
  return draw_strided(std::move(sizes), std::move(strides), type, dynamism,
                      [&] { return normal(generator()); });
}

TensorPtr randint_strided(int64_t low, int64_t high, std::vector<aten::SizesType> sizes,
                          std::vector<aten::StridesType> strides, aten::ScalarType type,
                          aten::TensorShapeDynamism dynamism) {
  ET_CHECK_MSG(low < high, "no integer is at least %" PRId64 " and less than %" PRId64, low, high);
  std::uniform_int_distribution<int64_t> uniform(low, high - 1);
  return draw_strided(std::move(sizes), std::move(strides), type, dynamism,
                      [&] { return uniform(generator()); });
}

}  // namespace executorch::extension
