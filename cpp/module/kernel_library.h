// Kernels of your own (abi/rl_kernel_v1.h): checks those of a separately built shared library, or
// of one that is linked, and adds them to a table.
//
//   rushlight::KernelLibrary library;
//   rushlight::Message message;
//   if (!library.open("libacme.so", message).ok()) return complain(message.text());
//   if (!library.add_to(table, message).ok()) return complain(message.text());
//
// Module::add_kernels() does all of this for one module.
#pragma once

#include <cstddef>

#include "rushlight/kernel/plugin_kernel.h"
#include "rushlight/module/shared_library.h"

namespace rushlight {

class KernelLibrary {
 public:
  KernelLibrary() = default;
  // Unloads the library. Tables and methods that use its kernels must be destroyed before.
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  // One of these may be called, once for each object. `name` is for messages. Returns what
  // SharedLibrary::open() returns, InvalidArgument for a kernel that cannot be used here, and
  // NotFound without kernels; the message says why. After a failure there are no kernels. `symbol`
  // is the function that a library exports.
  Status open(const char* path, Message& message, const char* symbol = RL_KERNEL_V1_SYMBOL);
  Status adopt(rl_get_kernel_v1_fn get, const char* name, Message& message);
  Status adopt(Span<const rl_kernel_v1* const> kernels, const char* name, Message& message);
  size_t size() const { return size_; }
  const Kernel& kernel(size_t i) const { return kernels_[i].kernel(); }
  // Adds all kernels, or none on failure: RegistrationAlreadyRegistered for a name that the table
  // has already, RegistrationExceedingMaxKernels if the table is full. A kernel that the table has
  // from the same library stays as it is.
  Status add_to(KernelTable& table, Message& message) const;
  // Takes out what add_to() added.
  void remove_from(KernelTable& table) const;

 private:
  template <typename At>
  Status adopt_all(size_t n, At at, const char* name, Message& message);

  SharedLibrary library_;
  PluginKernel* kernels_ = nullptr;
  size_t size_ = 0;
};

}  // namespace rushlight
