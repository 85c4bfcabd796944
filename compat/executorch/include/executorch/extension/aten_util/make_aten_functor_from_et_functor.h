// Kernels over our tensors as functions over PyTorch's, for registration with PyTorch:
//
//   TORCH_LIBRARY(my_ns, m) {
//     m.def("my_op.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", WRAP_TO_ATEN(my_op_out, 1));
//   }
//
// The number is the index of `out`, which gets the kernel's sizes and data. Needs PyTorch's
// headers.
#pragma once

#include <ATen/ATen.h>
#include <executorch/extension/kernel_util/type_list.h>
#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace executorch::extension {
namespace aten_util_internal {

// PyTorch's tensor while a kernel uses its data; one that is not in row-major order is copied.
class Lent {
 public:
  explicit Lent(const at::Tensor& tensor) : source_(tensor), lent_(tensor.contiguous()) {
    std::vector<aten::SizesType> sizes(lent_.sizes().begin(), lent_.sizes().end());
    ours_ = make_tensor_ptr(std::move(sizes), lent_.data_ptr(),
                            static_cast<aten::ScalarType>(lent_.scalar_type()));
  }
  aten::Tensor& get() { return *ours_; }

  // Gives PyTorch's tensor what the kernel wrote. The kernel may have made it smaller.
  void give_back() {
    const std::vector<int64_t> sizes(ours_->sizes().begin(), ours_->sizes().end());
    if (!lent_.sizes().equals(sizes)) {
      lent_ = lent_.flatten().narrow(0, 0, ours_->numel()).view(sizes).clone();
      source_.resize_(sizes);
    }
    if (!lent_.is_same(source_)) source_.copy_(lent_);
  }

 private:
  at::Tensor source_;
  at::Tensor lent_;
  TensorPtr ours_;
};

// What PyTorch gives for a kernel's argument, and how long it is kept. Numbers and texts are the
// same on both sides.
template <typename T>
struct Taken {
  using FromTorch = T;
  explicit Taken(T value) : value_(value) {}
  T get() { return value_; }
  T value_;
};
template <>
struct Taken<const aten::Tensor&> {
  using FromTorch = const at::Tensor&;
  explicit Taken(const at::Tensor& tensor) : lent_(tensor) {}
  const aten::Tensor& get() { return lent_.get(); }
  Lent lent_;
};
template <>
struct Taken<aten::Tensor&> {
  using FromTorch = at::Tensor&;
  explicit Taken(at::Tensor& tensor) : lent_(tensor) {}
  aten::Tensor& get() { return lent_.get(); }
  Lent lent_;
};
template <>
struct Taken<std::optional<aten::Tensor>> {
  using FromTorch = std::optional<at::Tensor>;
  explicit Taken(const std::optional<at::Tensor>& tensor) {
    if (tensor) lent_.emplace(*tensor);
  }
  std::optional<aten::Tensor> get() {
    return lent_ ? std::optional<aten::Tensor>(lent_->get()) : std::nullopt;
  }
  std::optional<Lent> lent_;
};
template <>
struct Taken<const std::optional<aten::Tensor>&> : Taken<std::optional<aten::Tensor>> {
  using Taken<std::optional<aten::Tensor>>::Taken;
};

template <typename Signature, Signature* kernel, int kOut>
struct AtenFunction;
template <typename Return, typename... Args, Return (*kernel)(Args...), int kOut>
struct AtenFunction<Return(Args...), kernel, kOut> {
  static_assert(kOut >= 0 && kOut < static_cast<int>(sizeof...(Args)),
                "the number in WRAP_TO_ATEN is the index of the kernel's argument `out`");
  static at::Tensor& call(typename Taken<Args>::FromTorch... args) {
    std::tuple<Taken<Args>...> taken{Taken<Args>(args)...};
    std::apply([](auto&... each) { (void)kernel(each.get()...); }, taken);
    std::get<kOut>(taken).lent_.give_back();
    return std::get<kOut>(std::tie(args...));
  }
};

}  // namespace aten_util_internal
}  // namespace executorch::extension

// A function over PyTorch's tensors, which calls a kernel that takes no context.
#define WRAP_TO_ATEN(kernel, out_index)                                                 \
  (&::executorch::extension::aten_util_internal::AtenFunction<decltype(kernel), kernel, \
                                                              out_index>::call)
