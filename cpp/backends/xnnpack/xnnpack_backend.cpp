#include "rushlight/backends/xnnpack/xnnpack_backend.h"

#include <new>

#include "rushlight/backends/xnnpack/delegate.h"

namespace rushlight {

Result<void*> XnnpackBackend::init(BackendInit& init) {
  xnnpack::Delegate* delegate = init.allocator->allocate_array<xnnpack::Delegate>(1);
  xnnpack::Workspace* workspace = delegate != nullptr ? workspaces_.acquire(init) : nullptr;
  if (workspace == nullptr) {
    return init.message->fail(Code::DelegateMemoryAllocationFailed,
                              "the method's memory has no room for the delegate");
  }
  new (delegate) xnnpack::Delegate(workspace);
  Status status = workspace->cache().open(init, files_);
  if (status.ok()) status = delegate->load(init);
  if (status.ok()) return static_cast<void*>(delegate);
  workspaces_.release(workspace);
  return status;
}

void XnnpackBackend::loaded(void* handle) { static_cast<xnnpack::Delegate*>(handle)->save(); }

void XnnpackBackend::destroy(void* handle) {
  workspaces_.release(static_cast<xnnpack::Delegate*>(handle)->workspace());
}

Status XnnpackBackend::execute(const BackendRun& run, void* handle, EValue* const* args,
                               size_t n_args) {
  return static_cast<xnnpack::Delegate*>(handle)->run(run, args, n_args);
}

}  // namespace rushlight
