#include "exported_kernels.h"

#include <executorch/runtime/kernel/kernel_runtime_context.h>

#include <cstdio>
#include <cstring>
#include <new>
#if defined(__cpp_exceptions)
#include <exception>
#endif

#include "rushlight/core/evalue.h"
#include "rushlight/kernel/foreign_kernel.h"
#include "values.h"

namespace executorch::runtime::internal {
namespace {

using OurTag = ::rushlight::Tag;
using OurValue = ::rushlight::EValue;

class HostScratch final : public MemoryAllocator {
 public:
  explicit HostScratch(const rl_kernel_call_v1& call) : MemoryAllocator(0, nullptr), call_(call) {}
  void* allocate(size_t size, size_t alignment) override {
    constexpr size_t kHostAlignment = 64;
    if (!isPowerOf2(alignment)) return nullptr;
    const size_t more = alignment > kHostAlignment ? alignment : 0;
    if (size > SIZE_MAX - more) return nullptr;
    void* memory = call_.host->scratch(call_.context, size + more);
    return memory != nullptr ? alignPointer(memory, alignment) : nullptr;
  }
  void reset() override {}

 private:
  const rl_kernel_call_v1& call_;
};

// A tensor of the runtime: its sizes are given back after the call, since a kernel changes them
// without asking. There is room for what the runtime says.
struct TensorCopy {
  ::rushlight::Tensor tensor;
  int32_t sizes[::rushlight::kMaxRank];
  int32_t strides[::rushlight::kMaxRank];
  const int32_t* from;  // the runtime's sizes
  size_t index;
  size_t item;
  TensorCopy* previous;
};

// The letters of the arguments, one after the other; NUL for each if the kernel takes any.
class Letters {
 public:
  explicit Letters(const char* signature) : at_(signature) {}
  char next() {
    if (at_ == nullptr) return '\0';
    if (*at_ == '?') ++at_;
    return *at_++;
  }

 private:
  const char* at_;
};

OurTag tag_of_list(char letter, int64_t kind_of_items) {
  switch (letter) {
    case 'T':
    case 'W':
      return OurTag::TensorList;
    case 'O':
      return OurTag::OptionalTensorList;
    case 'I':
      return OurTag::IntList;
    case 'D':
      return OurTag::DoubleList;
    case 'B':
      return OurTag::BoolList;
    default:
      break;
  }
  return kind_of_items == RL_TENSOR   ? OurTag::TensorList
         : kind_of_items == RL_INT    ? OurTag::IntList
         : kind_of_items == RL_DOUBLE ? OurTag::DoubleList
         : kind_of_items == RL_BOOL   ? OurTag::BoolList
                                      : OurTag::OptionalTensorList;
}

// The arguments of one call as the runtime's values, in memory on the stack as far as they fit.
class Arguments {
 public:
  explicit Arguments(const rl_kernel_call_v1& call) : call_(call), scratch_(call) {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // RL_OK, or why they cannot be read.
  int32_t read(const char* signature) {
    count_ = call_.n_args + (signature != nullptr ? 1 : 0);  // what it returns is no argument there
    values_ = take_array<OurValue>(count_);
    pointers_ = take_array<OurValue*>(count_);
    if (values_ == nullptr || pointers_ == nullptr) return no_memory();
    Letters letters(signature);
    for (size_t i = 0; i < count_; ++i) {
      pointers_[i] = &values_[i];
      if (i < call_.n_args) read_argument(i, letters.next());
    }
    if (code_ == RL_OK && count_ > call_.n_args && count_ > 1)
      values_[count_ - 1] = values_[count_ - 2];
    return code_;
  }

  int32_t call(const Kernel& kernel) {
    void* memory = take(bytes_of_views(pointers_, count_));
    if (memory == nullptr) return no_memory();
    const Span<EValue*> views = make_views(pointers_, count_, memory);
    KernelRuntimeContext context(nullptr, &scratch_);
    kernel.op_(context, views);
    const Error error = context.failure_state();
    if (error != Error::Ok) {
      explain("the kernel failed with %s; the log may say why", to_string(error));
      return static_cast<int32_t>(error);
    }
    return count_ > 0 && returns_number(*views[count_ - 1]) ? RL_NOT_SUPPORTED : give_back();
  }

 private:
  static constexpr size_t kStackBytes = 4096;

  void* take(size_t bytes) {
    constexpr size_t kAlignment = alignof(std::max_align_t);
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded > kStackBytes - used_) return scratch_.allocate(bytes, kAlignment);
    used_ += rounded;
    return stack_ + used_ - rounded;
  }
  template <typename T>
  T* take_array(size_t count) {
    if (count > SIZE_MAX / sizeof(T)) return nullptr;
    T* items = static_cast<T*>(take(count * sizeof(T)));
    for (size_t k = 0; items != nullptr && k < count; ++k) new (&items[k]) T();
    return items;
  }

  template <typename... Args>
  void explain(const char* format, Args... args) {
    char text[256];
    const int n = std::snprintf(text, sizeof(text), format, args...);
    const size_t size = n < 0 ? 0 : static_cast<size_t>(n);
    const rl_text_v1 words = {text, size < sizeof(text) ? size : sizeof(text) - 1};
    call_.host->explain(call_.context, words);
  }
  int32_t no_memory() {
    explain("the arguments of the call need more scratch memory than there is");
    return code_ = RL_MEMORY_ALLOCATION_FAILED;
  }

  void read_argument(size_t i, char letter) {
    rl_value_v1 value = {};
    value.size = sizeof(value);
    if (code_ == RL_OK) code_ = call_.host->value(call_.context, i, &value);
    if (code_ != RL_OK) return;
    if (value.kind != RL_LIST) return set(values_[i], value, i, 0, letter);
    read_list(values_[i], value, i, letter);
  }

  void set(OurValue& to, const rl_value_v1& value, size_t i, size_t item, char letter) {
    if (value.kind == RL_INT) to.set_int(value.i);
    if (value.kind == RL_BOOL) to.set_bool(value.i != 0);
    if (value.kind == RL_DOUBLE) to.set_double(value.d);
    if (value.kind == RL_STRING) {
      to.tag = OurTag::String;
      to.list = {value.text.data, static_cast<uint32_t>(value.text.size)};
    }
    if (value.kind != RL_TENSOR) return;
    to.t = tensor_of(value, i, item, letter);
    to.tag = to.t != nullptr ? OurTag::Tensor : OurTag::None;
  }

  void read_list(OurValue& to, const rl_value_v1& list, size_t i, char letter) {
    const size_t n = list.n_items;
    const OurTag tag = tag_of_list(letter, list.i);
    auto* doubles = take_array<double>(tag == OurTag::DoubleList ? n : 0);
    auto* bools = take_array<uint8_t>(tag == OurTag::BoolList ? n : 0);
    const bool is_boxed = tag != OurTag::DoubleList && tag != OurTag::BoolList;
    auto* items = take_array<OurValue>(is_boxed ? n : 0);
    auto* boxes = take_array<OurValue*>(is_boxed ? n : 0);
    if (doubles == nullptr || bools == nullptr || items == nullptr || boxes == nullptr) {
      (void)no_memory();
      return;
    }
    for (size_t k = 0; k < n && code_ == RL_OK; ++k) {
      rl_value_v1 value = {};
      value.size = sizeof(value);
      code_ = call_.host->item(call_.context, i, k, &value);
      if (tag == OurTag::DoubleList) doubles[k] = value.d;
      if (tag == OurTag::BoolList) bools[k] = value.i != 0;
      if (!is_boxed) continue;
      set(items[k], value, i, k, letter);
      boxes[k] = &items[k];
    }
    const void* memory = tag == OurTag::DoubleList ? static_cast<const void*>(doubles)
                         : tag == OurTag::BoolList ? static_cast<const void*>(bools)
                                                   : static_cast<const void*>(boxes);
    to.list = {memory, static_cast<uint32_t>(n)};
    to.tag = tag;
  }

  // One tensor of the runtime is one here, since what a kernel returns is among its arguments.
  ::rushlight::Tensor* tensor_of(const rl_value_v1& value, size_t i, size_t item, char letter) {
    for (TensorCopy* copy = tensors_; copy != nullptr; copy = copy->previous) {
      if (copy->from == value.sizes && copy->tensor.data == value.data) return &copy->tensor;
    }
    const auto dtype = static_cast<::rushlight::DType>(value.dtype);
    const size_t bytes = ::rushlight::element_size(dtype);
    TensorCopy* copy = take_array<TensorCopy>(1);
    if (copy == nullptr || value.rank > ::rushlight::kMaxRank || bytes == 0) {
      (void)no_memory();
      return nullptr;
    }
    for (size_t d = 0; d < value.rank; ++d) {
      copy->sizes[d] = value.sizes[d];
      copy->strides[d] = value.strides[d];
    }
    ::rushlight::Tensor& tensor = copy->tensor;
    tensor.data = value.data;
    tensor.sizes = copy->sizes;
    tensor.strides = copy->strides;
    tensor.dim_order = value.dim_order;
    tensor.numel = static_cast<int64_t>(value.nbytes / bytes);
    tensor.capacity = static_cast<int64_t>(value.capacity / bytes);
    tensor.dtype = dtype;
    const bool is_read = letter == 't' || letter == 'T' || letter == 'O';
    tensor.dynamism = is_read ? ::rushlight::Dynamism::Static : ::rushlight::Dynamism::Bounded;
    tensor.rank = static_cast<uint8_t>(value.rank);
    copy->from = value.sizes;
    copy->index = i;
    copy->item = item;
    copy->previous = tensors_;
    tensors_ = copy;
    return &tensor;
  }

  // A number that a kernel over a stack of values has put where it returns.
  bool returns_number(const EValue& now) {
    const OurValue& before = values_[count_ - 1];
    const bool is_new =
        (now.isInt() && (before.tag != OurTag::Int || now.toInt() != before.i)) ||
        (now.isDouble() && before.tag != OurTag::Double) ||
        (now.isBool() && (before.tag != OurTag::Bool || now.toBool() != (before.i != 0)));
    if (!is_new) return false;
    explain(
        "the kernel returns a number, which one of a shared library cannot: link it into the "
        "application");
    return true;
  }

  int32_t give_back() {
    int32_t code = RL_OK;
    for (TensorCopy* copy = tensors_; copy != nullptr && code == RL_OK; copy = copy->previous) {
      const size_t rank = copy->tensor.rank;
      if (rank == 0 || std::memcmp(copy->sizes, copy->from, rank * sizeof(int32_t)) == 0) continue;
      code = call_.host->resize(call_.context, copy->index, copy->item, copy->sizes,
                                static_cast<uint32_t>(rank));
    }
    return code;
  }

  const rl_kernel_call_v1& call_;
  HostScratch scratch_;
  alignas(std::max_align_t) unsigned char stack_[kStackBytes];
  size_t used_ = 0;
  int32_t code_ = RL_OK;
  size_t count_ = 0;
  OurValue* values_ = nullptr;
  OurValue** pointers_ = nullptr;
  TensorCopy* tensors_ = nullptr;
};

// The letters of a kernel with types; nullptr for one that writes no argument, which letters cannot
// say.
const char* signature_of(const Kernel& kernel) {
  const char* letters = kernel.signature_;
  return letters != nullptr && std::strpbrk(letters, "wW") != nullptr ? letters : nullptr;
}

int32_t run(void* self, const rl_kernel_call_v1* call) {
  const Kernel& kernel = *static_cast<const Kernel*>(self);
#if defined(__cpp_exceptions)
  const char* what = "the kernel threw an exception that says nothing";
  try {
#endif
    Arguments arguments(*call);
    const int32_t code = arguments.read(signature_of(kernel));
    return code != RL_OK ? code : arguments.call(kernel);
#if defined(__cpp_exceptions)
  } catch (const std::exception& error) {
    call->host->explain(call->context, {error.what(), std::strlen(error.what())});
  } catch (...) {
    call->host->explain(call->context, {what, std::strlen(what)});
  }
  return RL_INTERNAL;
#endif
}

}  // namespace

rl_kernel_v1 export_kernel(const Kernel& kernel) {
  const char* signature = signature_of(kernel);
  rl_kernel_v1 plain = {};
  plain.version = RL_KERNEL_V1_VERSION;
  plain.size = sizeof(plain);
  plain.name = kernel.name_;
  plain.signature = signature != nullptr ? signature : ::rushlight::kAnyArguments;
  plain.key = kernel.kernel_key_.data();
  plain.self = const_cast<Kernel*>(&kernel);
  plain.run = run;
  return plain;
}

}  // namespace executorch::runtime::internal
