#include "kernels.h"

#include <executorch/runtime/kernel/kernel_runtime_context.h>

#include <cstdio>
#include <cstring>

#include "exported_kernels.h"
#include "rushlight/module/module.h"
#include "values.h"

namespace executorch::runtime {
namespace internal {
namespace {

// Arguments of a common call fit here; others take scratch memory.
constexpr size_t kStackBytes = 1024;

size_t count_letters(const char* signature) {
  size_t count = 0;
  for (; *signature != '\0'; ++signature) count += *signature != '?' ? 1 : 0;
  return count;
}

// A tensor that the kernel writes may be a constant of a hostile program.
bool writes_constant(const ::rushlight::Kernel& kernel, ::rushlight::EValue* const* args,
                     size_t n_args) {
  const auto is_constant = [](const ::rushlight::EValue& value) {
    if (value.is_tensor()) return value.tensor().read_only;
    const bool is_list = value.tag == ::rushlight::Tag::TensorList;
    for (size_t k = 0; is_list && k < value.size(); ++k) {
      if (value.tensor_at(k)->read_only) return true;
    }
    return false;
  };
  const char* at = kernel.signature;
  if (::rushlight::takes_any(kernel)) return n_args > 0 && is_constant(*args[n_args - 1]);
  for (size_t i = 0; i < n_args; ++i, ++at) {
    if (*at == '?') ++at;
    if ((*at == 'w' || *at == 'W') && is_constant(*args[i])) return true;
  }
  return false;
}

// A number that the kernel returned.
void take_result(const EValue& from, ::rushlight::EValue& to) {
  if (!to.is_scalar() && !to.is_none()) return;
  if (from.isInt()) to.set_int(from.toInt());
  if (from.isDouble()) to.set_double(from.toDouble());
  if (from.isBool()) to.set_bool(from.toBool());
}

struct Registry {
  static constexpr size_t kCapacity = 512;

  Kernel kernels[kCapacity];
  AdoptedKernel adopted[kCapacity];
  rl_kernel_v1 exported[kCapacity];
  size_t size = 0;
  size_t in_table = SIZE_MAX;  // how many the table has
  ::rushlight::KernelTable table;
};

Registry& registry() {
  static Registry all;
  return all;
}

void add_unless_known(::rushlight::KernelTable& table, const ::rushlight::Kernel& kernel,
                      Error* error) {
  const Error code = table.add({&kernel, 1}).code();
  if (code != Error::Ok && code != Error::RegistrationAlreadyRegistered) *error = code;
}

}  // namespace

const ::rushlight::Kernel& AdoptedKernel::adopt(const Kernel& kernel) {
  op_ = kernel.op_;
  const bool is_typed = kernel.signature_ != nullptr;
  n_letters_ = is_typed ? count_letters(kernel.signature_) : 0;
  entry_ = {kernel.name_, is_typed ? kernel.signature_ : ::rushlight::kAnyArguments, run,
            kernel.kernel_key_.data(), this};
  return entry_;
}

::rushlight::Status AdoptedKernel::run(::rushlight::KernelContext& context,
                                       ::rushlight::EValue* const* args) {
  const ::rushlight::Kernel& kernel = *context.kernel();
  const auto& self = *static_cast<const AdoptedKernel*>(kernel.self);
  const size_t n_args = ::rushlight::takes_any(kernel) ? self.n_args() : self.n_letters_;
  if (writes_constant(kernel, args, n_args)) {
    return context.fail(Error::InvalidProgram,
                        "an argument that the operator writes is a constant of the program");
  }
  alignas(std::max_align_t) unsigned char stack[kStackBytes];
  const size_t bytes = bytes_of_views(args, n_args);
  void* memory = bytes <= kStackBytes ? stack : context.scratch(bytes);
  if (memory == nullptr) {
    return context.fail(Error::MemoryAllocationFailed,
                        "the lists of the operator's arguments need %zu bytes of scratch memory",
                        bytes);
  }
  const Span<EValue*> views = make_views(args, n_args, memory);
  ScratchView scratch(context);
  KernelRuntimeContext kernel_context(nullptr, &scratch);
  self.op_(kernel_context, views);
  if (n_args > 0) take_result(*views[n_args - 1], *args[n_args - 1]);
  const Error error = kernel_context.failure_state();
  if (error == Error::Ok) return {};
  return context.fail(error, "the kernel failed with %s; the log may say why", to_string(error));
}

Error fill_table(Span<const Kernel> kernels, AdoptedKernel* adopted,
                 ::rushlight::KernelTable& table) {
  Error error = Error::Ok;
  for (size_t i = 0; i < kernels.size(); ++i) {
    add_unless_known(table, adopted[i].adopt(kernels[i]), &error);
  }
  const ::rushlight::KernelTable& registered = registered_table();
  for (size_t i = 0; i < registered.size(); ++i) add_unless_known(table, registered[i], &error);
  return error;
}

const ::rushlight::KernelTable& registered_table() {
  Registry& all = registry();
  if (all.in_table != all.size) {
    Error error = Error::Ok;
    const size_t first = all.in_table != SIZE_MAX ? all.in_table : 0;
    all.table = {};
    all.in_table = all.size;
    for (size_t i = first; i < all.size; ++i) (void)all.adopted[i].adopt(all.kernels[i]);
    for (size_t i = 0; i < all.size; ++i) {
      add_unless_known(all.table, all.adopted[i].entry(), &error);
    }
    const ::rushlight::KernelTable* own = ::rushlight::default_kernels();
    for (size_t i = 0; own != nullptr && i < own->size(); ++i) {
      add_unless_known(all.table, (*own)[i], &error);
    }
    if (error != Error::Ok) {
      ET_LOG(Error, "some kernels are left out: a table holds %zu",
             ::rushlight::KernelTable::kCapacity);
    }
  }
  return all.table;
}

}  // namespace internal

namespace {

bool same_kernel(const Kernel& kernel, const char* name, const KernelKey& key) {
  return std::strcmp(kernel.name_, name) == 0 && kernel.kernel_key_ == key;
}

// "v1/6;0,1|…" of tensors. False if it does not fit.
bool write_key(Span<const TensorMeta> tensors, char* key, size_t size) {
  size_t at = 0;
  const auto write = [&](const char* format, int value) {
    const int n = std::snprintf(key + at, size - at, format, value);
    at += n > 0 ? static_cast<size_t>(n) : 0;
    return at < size;
  };
  bool fits = write("v%d/", 1);
  for (size_t i = 0; fits && i < tensors.size(); ++i) {
    fits = (i == 0 || write("%c", '|')) && write("%d;", static_cast<int>(tensors[i].dtype_));
    for (size_t k = 0; fits && k < tensors[i].dim_order_.size(); ++k) {
      fits = write(k == 0 ? "%d" : ",%d", tensors[i].dim_order_[k]);
    }
  }
  return fits;
}

}  // namespace

Error register_kernels(const Span<const Kernel> kernels) {
  internal::Registry& all = internal::registry();
  for (const Kernel& kernel : kernels) {
    ET_CHECK_MSG(kernel.name_ != nullptr && kernel.op_ != nullptr, "a kernel has no name");
    ET_CHECK_MSG(all.size < internal::Registry::kCapacity, "more than %zu kernels are registered",
                 internal::Registry::kCapacity);
    for (size_t i = 0; i < all.size; ++i) {
      ET_CHECK_MSG(!same_kernel(all.kernels[i], kernel.name_, kernel.kernel_key_),
                   "kernel %s is registered twice", kernel.name_);
    }
    all.kernels[all.size] = kernel;
    all.exported[all.size] = internal::export_kernel(all.kernels[all.size]);
    ++all.size;
  }
  return Error::Ok;
}

Span<const Kernel> get_registered_kernels() {
  const internal::Registry& all = internal::registry();
  return {all.kernels, all.size};
}

bool registry_has_op_function(const char* name, Span<const TensorMeta> meta_list) {
  if (get_op_function_from_registry(name, meta_list).ok()) return true;
  const ::rushlight::KernelTable* own = ::rushlight::default_kernels();
  return own != nullptr && own->has(name);
}

Result<OpFunction> get_op_function_from_registry(const char* name,
                                                 Span<const TensorMeta> meta_list) {
  return get_op_function_from_registry(name, meta_list, get_registered_kernels());
}

Result<OpFunction> get_op_function_from_registry(const char* name, Span<const TensorMeta> meta_list,
                                                 Span<const Kernel> kernels) {
  constexpr size_t kKeyBytes = 700;  // of 16 tensors of 16 dimensions
  char key[kKeyBytes];
  if (!write_key(meta_list, key, sizeof(key))) return Error::InvalidArgument;
  OpFunction found = nullptr;
  for (const Kernel& kernel : kernels) {
    if (same_kernel(kernel, name, KernelKey(key))) return kernel.op_;
    if (same_kernel(kernel, name, KernelKey())) found = kernel.op_;
  }
  if (found == nullptr) return Error::OperatorMissing;
  return found;
}

}  // namespace executorch::runtime

// What a shared library of kernels exports. Weak, since the library may have a table of its own.
#if defined(_WIN32)
#define RUSHLIGHT_EXPORT_WEAK
#else
#define RUSHLIGHT_EXPORT_WEAK __attribute__((weak, visibility("default")))
#endif

extern "C" RUSHLIGHT_EXPORT_WEAK const rl_kernel_v1* rl_get_loaded_kernel_v1(uint32_t index) {
  const auto& all = executorch::runtime::internal::registry();
  return index < all.size ? &all.exported[index] : nullptr;
}
extern "C" RUSHLIGHT_EXPORT_WEAK const rl_kernel_v1* rl_get_kernel_v1(uint32_t index) {
  return rl_get_loaded_kernel_v1(index);
}
