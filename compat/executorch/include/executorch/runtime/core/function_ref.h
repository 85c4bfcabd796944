// A callable that is not owned: for parameters that are not kept after a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace executorch::runtime {

template <typename Function>
class FunctionRef;

template <typename Return, typename... Args>
class FunctionRef<Return(Args...)> {
 public:
  FunctionRef() = default;
  FunctionRef(std::nullptr_t) {}
  template <typename Callable,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<Callable>, FunctionRef> &&
                                        std::is_invocable_r_v<Return, Callable&, Args...>>>
  FunctionRef(Callable&& callable)
      : call_([](intptr_t target, Args... args) -> Return {
          return (*reinterpret_cast<std::remove_reference_t<Callable>*>(target))(
              std::forward<Args>(args)...);
        }),
        target_(reinterpret_cast<intptr_t>(std::addressof(callable))) {}

  Return operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }
  explicit operator bool() const { return call_ != nullptr; }
  bool operator==(const FunctionRef& other) const { return target_ == other.target_; }

 private:
  Return (*call_)(intptr_t, Args...) = nullptr;
  intptr_t target_ = 0;
};

}  // namespace executorch::runtime
