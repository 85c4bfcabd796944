// Functions as types: EXECUTORCH_FN(function, name).
#pragma once

#include <executorch/extension/kernel_util/type_list.h>

#include <type_traits>

namespace executorch::extension::kernel_util_internal {

template <class Function, Function* function, const char* name>
struct CompileTimeFunctionPointer final {
  static_assert(std::is_function_v<Function>, "EXECUTORCH_FN is for functions");
  using FuncType = Function;
  static constexpr const char* func_name_ = name;
  static constexpr Function* func_ptr() { return function; }
};

template <class T>
struct is_compile_time_function_pointer : std::false_type {};
template <class Function, Function* function, const char* name>
struct is_compile_time_function_pointer<CompileTimeFunctionPointer<Function, function, name>>
    : std::true_type {};

template <class Function>
struct function_traits;
template <class Return, class... Args>
struct function_traits<Return(Args...)> {
  using func_type = Return(Args...);
  using return_type = Return;
  using parameter_types = typelist<Args...>;
  static constexpr auto number_of_parameters = sizeof...(Args);
};
template <class Function>
using infer_function_traits_t = function_traits<std::remove_pointer_t<Function>>;

}  // namespace executorch::extension::kernel_util_internal

#define EXECUTORCH_FN_TYPE(function, name)                                   \
  ::executorch::extension::kernel_util_internal::CompileTimeFunctionPointer< \
      std::remove_pointer_t<std::remove_reference_t<decltype(function)>>, function, name>
#define EXECUTORCH_FN(function, name) EXECUTORCH_FN_TYPE(function, name)()
