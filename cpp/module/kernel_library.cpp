#include "rushlight/module/kernel_library.h"

#include <cstring>
#include <new>

namespace rushlight {
namespace {

// The kernel of a table that has the name and the key of another; nullptr if there is none.
const Kernel* find_twin(const KernelTable& table, const Kernel& kernel) {
  const auto equal = [](const char* a, const char* b) {
    return a == b || (a != nullptr && b != nullptr && std::strcmp(a, b) == 0);
  };
  for (size_t i = 0; i < table.size(); ++i) {
    if (equal(table[i].name, kernel.name) && equal(table[i].key, kernel.key)) return &table[i];
  }
  return nullptr;
}

}  // namespace

KernelLibrary::~KernelLibrary() { delete[] kernels_; }

Status KernelLibrary::open(const char* path, Message& message, const char* symbol) {
  RL_TRY(library_.open(path, symbol, "kernels", message));
  return adopt(reinterpret_cast<rl_get_kernel_v1_fn>(library_.symbol()), path, message);
}

Status KernelLibrary::adopt(rl_get_kernel_v1_fn get, const char* name, Message& message) {
  size_t n = 0;
  while (n <= KernelTable::kCapacity && get(static_cast<uint32_t>(n)) != nullptr) ++n;
  const auto at = [get](size_t i) { return get(static_cast<uint32_t>(i)); };
  return adopt_all(n, at, name, message);
}

Status KernelLibrary::adopt(Span<const rl_kernel_v1* const> kernels, const char* name,
                            Message& message) {
  const auto at = [kernels](size_t i) { return kernels[i]; };
  return adopt_all(kernels.size(), at, name, message);
}

template <typename At>
Status KernelLibrary::adopt_all(size_t n, At at, const char* name, Message& message) {
  if (n == 0) return message.fail(Code::NotFound, "%s has no kernel", name);
  if (n > KernelTable::kCapacity) {
    return message.fail(Code::OutOfResources, "%s has more than %zu kernels", name,
                        KernelTable::kCapacity);
  }
  kernels_ = new (std::nothrow) PluginKernel[n];
  if (kernels_ == nullptr) {
    return message.fail(Code::MemoryAllocationFailed, "the system has no memory left");
  }
  for (size_t i = 0; i < n; ++i) {
    const Status status = kernels_[i].adopt(at(i), message);
    if (status.ok()) continue;
    message.prepend("%s: ", name);
    return status;
  }
  size_ = n;
  return {};
}

Status KernelLibrary::add_to(KernelTable& table, Message& message) const {
  for (size_t i = 0; i < size_; ++i) {
    const Status status = table.add({&kernel(i), 1});
    if (status.ok()) continue;
    const Kernel* twin = find_twin(table, kernel(i));
    bool is_known = twin != nullptr && kernels_[i].is_same(*twin);
    for (size_t k = 0; k < i; ++k) is_known = is_known && twin != &kernel(k);
    if (is_known) continue;
    remove_from(table);
    const bool is_full = status.code() == Code::RegistrationExceedingMaxKernels;
    return message.fail(status.code(), "the kernel %s cannot be added: %s", kernel(i).name,
                        is_full ? "the table is full" : "there is one of that name");
  }
  return {};
}

void KernelLibrary::remove_from(KernelTable& table) const {
  for (size_t i = 0; i < size_; ++i) table.remove({&kernel(i), 1});
}

}  // namespace rushlight
