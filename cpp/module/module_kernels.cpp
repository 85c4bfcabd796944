// Kernels that a module has besides those of its options.
#include <new>

#include "rushlight/module/module.h"
#include "rushlight/module/shared_program.h"

namespace rushlight {

template <typename Open>
Status Module::add_kernel_file(const char* name, Open open) {
  if (!is_unused()) {
    return message_.fail(Code::InvalidState,
                         "kernels are added after a program was opened, before a method is loaded "
                         "and before the module is cloned");
  }
  if (shared_->kernels == nullptr) {
    shared_->kernels = new (std::nothrow) KernelTable(*options_.kernels);
    if (shared_->kernels == nullptr) return out_of_memory();
    options_.kernels = shared_->kernels;
  }
  KernelFile* file = new (std::nothrow) KernelFile;
  if (file == nullptr) return out_of_memory();
  Status status = open(file->library);
  if (status.ok()) {
    status = file->library.add_to(*shared_->kernels, message_);
    if (!status.ok()) message_.prepend("%s: ", name);
  }
  if (!status.ok()) {
    delete file;
    return status;
  }
  file->previous = shared_->kernel_files;
  shared_->kernel_files = file;
  return {};
}

Status Module::add_kernels(const char* path) {
  return add_kernel_file(path, [&](KernelLibrary& library) {  //
    return library.open(path, message_);
  });
}

Status Module::add_kernels(rl_get_kernel_v1_fn get) {
  return add_kernel_file("the linked library", [&](KernelLibrary& library) {
    return library.adopt(get, "the linked library", message_);
  });
}

Status Module::add_kernels(Span<const rl_kernel_v1* const> kernels) {
  return add_kernel_file("the list of kernels", [&](KernelLibrary& library) {
    return library.adopt(kernels, "the list of kernels", message_);
  });
}

}  // namespace rushlight
