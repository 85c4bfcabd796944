// Kernels from functions with types:
//
//   Tensor& my_op_out(KernelRuntimeContext& ctx, const Tensor& x, double a, Tensor& out);
//   EXECUTORCH_LIBRARY(my_ns, "my_op.out", my_op_out);
//
// The context may be left out. The types are also what a program's arguments are checked against
// when a method is loaded.
#pragma once

#include <executorch/extension/kernel_util/meta_programming.h>
#include <executorch/extension/kernel_util/type_list.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>

#include <array>
#include <type_traits>
#include <utility>

namespace executorch::extension {
namespace kernel_util_internal {

// The letter of a type in a signature (rushlight/kernel/kernel.h); a "?" stands before it if None
// is allowed.
template <typename T>
struct Argument {
  static_assert(sizeof(T) == 0, "a kernel takes no argument of this type");
};
template <>
struct Argument<const aten::Tensor&> {
  static constexpr char kLetter = 't';
};
template <>
struct Argument<aten::Tensor&> {
  static constexpr char kLetter = 'w';
};
#define ET_ARGUMENT_(Type, letter)          \
  template <>                               \
  struct Argument<Type> {                   \
    static constexpr char kLetter = letter; \
  };
ET_ARGUMENT_(aten::Tensor, 't')
ET_ARGUMENT_(int64_t, 'i')
ET_ARGUMENT_(double, 'd')
ET_ARGUMENT_(bool, 'b')
ET_ARGUMENT_(aten::Scalar, 's')
ET_ARGUMENT_(std::string_view, 'S')
ET_ARGUMENT_(aten::ScalarType, 'i')
ET_ARGUMENT_(aten::MemoryFormat, 'i')
ET_ARGUMENT_(aten::Layout, 'i')
ET_ARGUMENT_(aten::Device, 'i')
ET_ARGUMENT_(aten::ArrayRef<int64_t>, 'I')
ET_ARGUMENT_(aten::ArrayRef<double>, 'D')
ET_ARGUMENT_(aten::ArrayRef<bool>, 'B')
ET_ARGUMENT_(aten::ArrayRef<aten::Tensor>, 'T')
ET_ARGUMENT_(aten::ArrayRef<std::optional<aten::Tensor>>, 'O')
#undef ET_ARGUMENT_
template <typename T>
struct Argument<std::optional<T>> {
  static constexpr char kLetter = Argument<T>::kLetter;
};
template <typename T>
struct is_optional : std::false_type {};
template <typename T>
struct is_optional<std::optional<T>> : std::true_type {};

// Tensors are taken by reference, other arguments by value, whatever the function says.
template <typename T>
using taken_t =
    std::conditional_t<std::is_same_v<std::decay_t<T>, aten::Tensor> && std::is_reference_v<T>, T,
                       std::decay_t<T>>;

template <typename List>
struct Signature;
template <typename... Args>
struct Signature<typelist<Args...>> {
  // The letters, and "=" for the return value. A list of tensors that stands last, where nothing
  // else is written, is what the kernel writes.
  static constexpr auto kText = [] {
    std::array<char, 2 * sizeof...(Args) + 2> text{};
    size_t n = 0;
    ((is_optional<taken_t<Args>>::value ? void(text[n++] = '?') : void(),
      text[n++] = Argument<taken_t<Args>>::kLetter),
     ...);
    const bool writes = ((Argument<taken_t<Args>>::kLetter == 'w') || ... || false);
    if (n > 0 && text[n - 1] == 'T' && !writes) text[n - 1] = 'W';
    text[n] = '=';
    return text;
  }();
};

template <typename T>
decltype(auto) unbox(runtime::EValue& value) {
  if constexpr (std::is_reference_v<T>) {
    return static_cast<T>(value.toTensor());
  } else if constexpr (is_optional<T>::value) {
    return value.toOptional<typename T::value_type>();
  } else {
    return value.to<T>();
  }
}

template <typename Function, bool kHasContext, size_t... kIndices, typename... Args>
void call(runtime::KernelRuntimeContext& ctx, runtime::Span<runtime::EValue*> stack,
          std::index_sequence<kIndices...>, typelist<Args...>*) {
  if constexpr (kHasContext) {
    (void)(*Function::func_ptr())(ctx, unbox<taken_t<Args>>(*stack[kIndices])...);
  } else {
    (void)ctx;
    (void)(*Function::func_ptr())(unbox<taken_t<Args>>(*stack[kIndices])...);
  }
}

}  // namespace kernel_util_internal

template <class FuncType>
struct WrapUnboxedIntoFunctor {
  static_assert(kernel_util_internal::is_compile_time_function_pointer<FuncType>::value,
                "a kernel is made from EXECUTORCH_FN");
  using TrueType = typename FuncType::FuncType;
  using Traits = kernel_util_internal::infer_function_traits_t<TrueType>;
  using ReturnType = typename Traits::return_type;
  using ArgsType = typename Traits::parameter_types;
  static constexpr bool first_arg_is_context = std::is_same_v<
      runtime::KernelRuntimeContext,
      std::remove_reference_t<kernel_util_internal::head_with_default_t<void, ArgsType>>>;
  using ContextRemovedArgsType =
      kernel_util_internal::drop_if_nonempty_t<ArgsType, first_arg_is_context ? 1 : 0>;

  static void call(runtime::KernelRuntimeContext& ctx, runtime::Span<runtime::EValue*> stack) {
    constexpr size_t kCount = kernel_util_internal::size<ContextRemovedArgsType>::value;
    kernel_util_internal::call<FuncType, first_arg_is_context>(
        ctx, stack, std::make_index_sequence<kCount>(),
        static_cast<ContextRemovedArgsType*>(nullptr));
  }
};

template <typename FuncType>
runtime::Kernel make_boxed_kernel(const char* name, FuncType) {
  using Wrapped = WrapUnboxedIntoFunctor<FuncType>;
  runtime::Kernel kernel(name, Wrapped::call);
  kernel.signature_ =
      kernel_util_internal::Signature<typename Wrapped::ContextRemovedArgsType>::kText.data();
  return kernel;
}

}  // namespace executorch::extension

#define ET_CONCATENATE_IMPL(a, b) a##b
#define ET_CONCATENATE(a, b) ET_CONCATENATE_IMPL(a, b)
#define ET_UID __LINE__

// Registers a kernel when the program starts.
#define EXECUTORCH_LIBRARY(ns, op_name, func) _EXECUTORCH_LIBRARY_IMPL(ns, op_name, func, ET_UID)
#define _EXECUTORCH_LIBRARY_IMPL(ns, op_name, func, uid)                                 \
  static constexpr const char ET_CONCATENATE(name_of_op_, uid)[] = #ns "::" op_name;     \
  [[maybe_unused]] static const auto ET_CONCATENATE(res_##ns##_, uid) =                  \
      ::executorch::runtime::register_kernel(::executorch::extension::make_boxed_kernel( \
          ET_CONCATENATE(name_of_op_, uid),                                              \
          EXECUTORCH_FN(func, ET_CONCATENATE(name_of_op_, uid))))

namespace torch::executor {
using ::executorch::extension::make_boxed_kernel;
using ::executorch::extension::WrapUnboxedIntoFunctor;
}  // namespace torch::executor
