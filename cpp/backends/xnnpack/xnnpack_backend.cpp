#include "rushlight/backends/xnnpack/xnnpack_backend.h"

#include <new>

#include "rushlight/backends/xnnpack/delegate.h"

namespace rushlight {

Result<void*> XnnpackBackend::init(BackendInit& init) {
  xnnpack::Delegate* delegate = init.allocator->allocate_array<xnnpack::Delegate>(1);
  if (delegate == nullptr) {
    return init.message->fail(Code::DelegateMemoryAllocationFailed,
                              "the method's memory has no room for the delegate");
  }
  new (delegate) xnnpack::Delegate();
  RL_TRY(delegate->load(init));
  return static_cast<void*>(delegate);
}

Status XnnpackBackend::execute(const BackendRun& run, void* handle, EValue* const* args,
                               size_t n_args) {
  return static_cast<xnnpack::Delegate*>(handle)->run(run, args, n_args);
}

}  // namespace rushlight
