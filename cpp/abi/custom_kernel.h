// Kernels of your own from C++ functions. Their arguments are unpacked by templates from the
// function's own type, which is also the signature that a program's schema is compared with:
//
//   #include "custom_kernel.h"
//   using namespace rushlight::custom;
//
//   // acme::snake.out(Tensor x, float a, *, Tensor(a!) out) -> Tensor(a!)
//   RUSHLIGHT_KERNEL(acme, snake_out)(Context& ctx, const Tensor& x, double a, Tensor& out) {
//     if (x.dtype() != DType::Float32) return ctx.fail("x is %s", x.dtype_name());
//
//     if (Status s = ctx.resize_like(out, x); !s.ok()) return s;
//
//     ...
//     return {};
//   }
//   RUSHLIGHT_KERNEL_LIBRARY(RUSHLIGHT_OP(acme, snake_out))
//
// It needs C++17 and includes nothing of the runtime but rl_kernel_v1.h, to which it compiles: the
// library may be built by another compiler and with other flags than the runtime. Nothing is
// registered by static initialisers. The types of arguments:
//
//   Tensor              const Tensor&        Tensor?         const Tensor*, nullptr for None
//   Tensor(a!)          Tensor&              Tensor[]        Span<const Tensor>
//   Tensor(a!)[]        Span<Tensor>         Tensor?[]       Span<const Tensor* const>
//   int, SymInt         int64_t              int[]           Span<const int64_t>
//   float               double               float[]         Span<const double>
//   bool                bool                 bool[]          Span<const bool>
//   str                 std::string_view     Scalar          Scalar
//   other types with ?  std::optional<T>
#pragma once

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#if defined(__cpp_exceptions)
#include <exception>
#endif

#include "custom_types.h"

namespace rushlight::custom {

// What a kernel may ask of the runtime during one call.
class Context {
 public:
  explicit Context(const rl_kernel_call_v1& call) : call_(call) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Says why the call fails; the runtime adds the method, the instruction and the operator.
  [[gnu::format(printf, 2, 3)]] Status fail(const char* format, ...) {
    char text[512];
    std::va_list args;
    va_start(args, format);
    const int n = std::vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const size_t size = n < 0 ? 0 : static_cast<size_t>(n);
    call_.host->explain(call_.context, {text, size < sizeof(text) ? size : sizeof(text) - 1});
    return RL_INVALID_ARGUMENT;
  }

  // Gives a tensor that the kernel writes the sizes of the result; call it before writing.
  Status resize(Tensor& out, Span<const int32_t> sizes) {
    const bool is_item = out.item_ != Tensor::kNoItem;
    const int32_t code = call_.host->resize(call_.context, out.index_, is_item ? out.item_ : 0,
                                            sizes.data(), static_cast<uint32_t>(sizes.size()));
    return code != RL_OK ? Status(code) : read(out, out.index_, out.item_);
  }
  Status resize_like(Tensor& out, const Tensor& like) { return resize(out, like.sizes()); }

  // Memory until the call returns, 64-byte aligned; nullptr if so much is not there.
  void* scratch(size_t bytes) { return call_.host->scratch(call_.context, bytes); }
  size_t scratch_left() { return call_.host->scratch_left(call_.context); }

  size_t threads() { return call_.host->threads(call_.context); }
  // Calls body(begin, end) for runs of `grain` items that together are 0..items-1, maybe on several
  // threads at once. The body must not fail, and must not use this context.
  template <typename Body>
  void parallel(int64_t items, int64_t grain, Body&& body) {
    const auto call = [](void* data, int64_t begin, int64_t end) {
      (*static_cast<std::remove_reference_t<Body>*>(data))(begin, end);
    };
    void* data = const_cast<void*>(static_cast<const void*>(&body));
    call_.host->parallel(call_.context, items, grain, call, data);
  }

  // For the templates below: an argument, or an item of a list.
  Status read(size_t index, rl_value_v1& value) {
    value.size = sizeof(value);
    return call_.host->value(call_.context, index, &value);
  }
  Status read(size_t index, size_t item, rl_value_v1& value) {
    value.size = sizeof(value);
    return call_.host->item(call_.context, index, item, &value);
  }
  Status read(Tensor& tensor, size_t index, size_t item = Tensor::kNoItem) {
    tensor.index_ = index;
    tensor.item_ = item;
    return item == Tensor::kNoItem ? read(index, tensor.value_) : read(index, item, tensor.value_);
  }
  static bool is_none(const Tensor& tensor) { return tensor.value_.kind != RL_TENSOR; }

 private:
  const rl_kernel_call_v1& call_;
};

namespace detail {

// For each type of argument: its letters in a signature, how it is read, and what the kernel gets.
template <typename T>
struct Argument {
  static_assert(!std::is_same_v<T, T>, "a kernel cannot have an argument of this type");
};

struct TensorArgument {
  Tensor tensor;
  Status read(Context& ctx, size_t index) { return ctx.read(tensor, index); }
};

template <>
struct Argument<const Tensor&> : TensorArgument {
  static constexpr std::string_view letters = "t";
  const Tensor& get() { return tensor; }
};

template <>
struct Argument<Tensor&> : TensorArgument {
  static constexpr std::string_view letters = "w";
  Tensor& get() { return tensor; }
};

template <>
struct Argument<const Tensor*> : TensorArgument {
  static constexpr std::string_view letters = "?t";
  const Tensor* get() { return Context::is_none(tensor) ? nullptr : &tensor; }
};

struct ValueArgument {
  rl_value_v1 value = {};
  Status read(Context& ctx, size_t index) { return ctx.read(index, value); }
};

template <>
struct Argument<int64_t> : ValueArgument {
  static constexpr std::string_view letters = "i";
  int64_t get() { return value.i; }
};

template <>
struct Argument<double> : ValueArgument {
  static constexpr std::string_view letters = "d";
  double get() { return value.d; }
};

template <>
struct Argument<bool> : ValueArgument {
  static constexpr std::string_view letters = "b";
  bool get() { return value.i != 0; }
};

template <>
struct Argument<Scalar> : ValueArgument {
  static constexpr std::string_view letters = "s";
  Scalar get() { return {value.kind, value.i, value.d}; }
};

template <>
struct Argument<std::string_view> : ValueArgument {
  static constexpr std::string_view letters = "S";
  std::string_view get() { return {value.text.data, value.text.size}; }
};

// A list in scratch memory.
template <typename T>
struct ListArgument {
  Span<T> items;
  bool is_none = false;

  template <typename ReadItem>
  Status read_items(Context& ctx, size_t index, ReadItem read_item) {
    rl_value_v1 list = {};
    if (Status s = ctx.read(index, list); !s.ok()) return s;
    is_none = list.kind == RL_NONE;
    const size_t n = list.n_items;
    if (n == 0) return {};
    T* memory = static_cast<T*>(ctx.scratch(n * sizeof(T)));
    if (memory == nullptr) {
      (void)ctx.fail("there is no scratch memory for a list of %zu items", n);
      return RL_MEMORY_ALLOCATION_FAILED;
    }
    items = {memory, n};
    for (size_t k = 0; k < n; ++k) {
      new (memory + k) T();
      if (Status s = read_item(k, memory[k]); !s.ok()) return s;
    }
    return {};
  }
};

struct TensorListArgument : ListArgument<Tensor> {
  Status read(Context& ctx, size_t index) {
    return read_items(ctx, index, [&](size_t k, Tensor& to) { return ctx.read(to, index, k); });
  }
};

template <>
struct Argument<Span<const Tensor>> : TensorListArgument {
  static constexpr std::string_view letters = "T";
  Span<const Tensor> get() { return items; }
};

template <>
struct Argument<Span<Tensor>> : TensorListArgument {
  static constexpr std::string_view letters = "W";
  Span<Tensor> get() { return items; }
};

template <>
struct Argument<Span<const Tensor* const>> {
  static constexpr std::string_view letters = "O";
  TensorListArgument tensors;
  ListArgument<const Tensor*> pointers;

  Status read(Context& ctx, size_t index) {
    if (Status s = tensors.read(ctx, index); !s.ok()) return s;
    return pointers.read_items(ctx, index, [&](size_t k, const Tensor*& to) {
      to = Context::is_none(tensors.items[k]) ? nullptr : &tensors.items[k];
      return Status();
    });
  }
  Span<const Tensor* const> get() { return pointers.items; }
};

template <typename T>
struct NumberListArgument : ListArgument<T> {
  Status read(Context& ctx, size_t index) {
    return this->read_items(ctx, index, [&](size_t k, T& to) {
      rl_value_v1 value = {};
      const Status status = ctx.read(index, k, value);
      if constexpr (std::is_same_v<T, bool>) {
        to = value.i != 0;
      } else if constexpr (std::is_same_v<T, double>) {
        to = value.d;
      } else {
        to = value.i;
      }
      return status;
    });
  }
  Span<const T> get() { return this->items; }
};

template <>
struct Argument<Span<const int64_t>> : NumberListArgument<int64_t> {
  static constexpr std::string_view letters = "I";
};

template <>
struct Argument<Span<const double>> : NumberListArgument<double> {
  static constexpr std::string_view letters = "D";
};

template <>
struct Argument<Span<const bool>> : NumberListArgument<bool> {
  static constexpr std::string_view letters = "B";
};

inline bool is_none(const ValueArgument& argument) { return argument.value.kind == RL_NONE; }
template <typename T>
bool is_none(const ListArgument<T>& argument) {
  return argument.is_none;
}

template <typename T>
struct Argument<std::optional<T>> {
  static constexpr char kLetters[] = {'?', Argument<T>::letters[0]};
  static constexpr std::string_view letters = {kLetters, 2};
  Argument<T> inner;

  Status read(Context& ctx, size_t index) { return inner.read(ctx, index); }
  std::optional<T> get() { return is_none(inner) ? std::nullopt : std::optional<T>(inner.get()); }
};

// A function as a kernel.
template <auto kFunction>
struct Bound;

template <typename... Args, Status (*kFunction)(Context&, Args...)>
struct Bound<kFunction> {
  // The letters of all arguments, "=" and a NUL.
  static constexpr auto signature = [] {
    std::array<char, 2 * sizeof...(Args) + 2> text = {};
    size_t n = 0;
    const auto add = [&](std::string_view letters) {
      for (char c : letters) text[n++] = c;
    };
    (add(Argument<Args>::letters), ...);
    text[n] = '=';
    return text;
  }();

  static int32_t run(void*, const rl_kernel_call_v1* call) {
    Context ctx(*call);
#if defined(__cpp_exceptions)
    try {
      return call_with(ctx, std::index_sequence_for<Args...>()).code();
    } catch (const std::exception& error) {
      (void)ctx.fail("%s", error.what());
    } catch (...) {
      (void)ctx.fail("the kernel threw an exception that says nothing");
    }
    return RL_INTERNAL;
#else
    return call_with(ctx, std::index_sequence_for<Args...>()).code();
#endif
  }

 private:
  template <size_t... kIndices>
  static Status call_with(Context& ctx, std::index_sequence<kIndices...>) {
    std::tuple<Argument<Args>...> arguments;
    Status status;
    ((status = status.ok() ? std::get<kIndices>(arguments).read(ctx, kIndices) : status), ...);
    return status.ok() ? kFunction(ctx, std::get<kIndices>(arguments).get()...) : status;
  }
};

// "acme", "snake_out" -> "acme::snake.out"
template <size_t kSpace, size_t kName>
constexpr auto operator_name(const char (&space)[kSpace], const char (&name)[kName]) {
  std::array<char, kSpace + kName + 2> text = {};
  size_t n = 0;
  for (size_t i = 0; i + 1 < kSpace; ++i) text[n++] = space[i];
  text[n++] = ':';
  text[n++] = ':';
  const size_t start = n;
  for (size_t i = 0; i + 1 < kName; ++i) text[n++] = name[i];
  if (n - start > 4 && std::string_view(text.data() + n - 4, 4) == "_out") text[n - 4] = '.';
  return text;
}

template <auto kFunction>
constexpr rl_kernel_v1 entry(const char* name, const char* key = nullptr) {
  return {RL_KERNEL_V1_VERSION,
          sizeof(rl_kernel_v1),
          name,
          Bound<kFunction>::signature.data(),
          key,
          nullptr,
          &Bound<kFunction>::run,
          0};
}

}  // namespace detail

// The entry of a kernel that may be called inside a delegate (RL_KERNEL_IN_DELEGATES):
// RUSHLIGHT_KERNEL_LIBRARY(in_delegates(RUSHLIGHT_OP(acme, snake_out)))
constexpr rl_kernel_v1 in_delegates(rl_kernel_v1 kernel) {
  kernel.flags |= RL_KERNEL_IN_DELEGATES;
  return kernel;
}

}  // namespace rushlight::custom

// Begins the function of the kernel `space::name`, where a closing "_out" of the name stands for
// ".out": RUSHLIGHT_KERNEL(acme, snake_out)(Context& ctx, ...) { ... } computes acme::snake.out.
#define RUSHLIGHT_KERNEL(space, name)                                                       \
  namespace {                                                                               \
  struct space##_##name##_name {                                                            \
    static constexpr auto text = ::rushlight::custom::detail::operator_name(#space, #name); \
  };                                                                                        \
  }                                                                                         \
  static ::rushlight::custom::Status space##_##name

// Kernels in a table: one that RUSHLIGHT_KERNEL began; and any function, for the operator "name",
// or for the dtypes and dim orders of "key" alone.
#define RUSHLIGHT_OP(space, name) \
  ::rushlight::custom::detail::entry<&space##_##name>(space##_##name##_name::text.data())
#define RUSHLIGHT_OP_AS(name, function) ::rushlight::custom::detail::entry<&function>(name)
#define RUSHLIGHT_OP_FOR(name, key, function) \
  ::rushlight::custom::detail::entry<&function>(name, key)

// A function that returns the kernels, to be linked: module.add_kernels(my_kernels).
#define RUSHLIGHT_KERNEL_TABLE(function, ...)                               \
  const rl_kernel_v1* function(uint32_t index) {                            \
    static constexpr rl_kernel_v1 kAll[] = {__VA_ARGS__};                   \
    return index < sizeof(kAll) / sizeof(kAll[0]) ? &kAll[index] : nullptr; \
  }

// The kernels of a shared library.
#if defined(_WIN32)
#define RUSHLIGHT_EXPORT __declspec(dllexport)
#else
#define RUSHLIGHT_EXPORT __attribute__((visibility("default")))
#endif
#define RUSHLIGHT_KERNEL_LIBRARY(...) \
  extern "C" RUSHLIGHT_EXPORT RUSHLIGHT_KERNEL_TABLE(rl_get_kernel_v1, __VA_ARGS__)
