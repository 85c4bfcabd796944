// What a backend is, and the table of those that are registered.
#pragma once

#include <executorch/runtime/backend/backend_execution_context.h>
#include <executorch/runtime/backend/backend_init_context.h>
#include <executorch/runtime/backend/backend_option_context.h>
#include <executorch/runtime/backend/options.h>
#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

namespace executorch::runtime {

struct SizedBuffer {
  void* buffer;
  size_t nbytes;
};

struct CompileSpec {
  const char* key;
  SizedBuffer value;
};

using DelegateHandle = void;

class BackendInterface {
 public:
  virtual ~BackendInterface() = 0;
  ET_NODISCARD virtual bool is_available() const = 0;
  // The payload may be freed by the backend; else it lives as long as the delegate.
  ET_NODISCARD virtual Result<DelegateHandle*> init(BackendInitContext& context,
                                                    FreeableBuffer* processed,
                                                    ArrayRef<CompileSpec> compile_specs) const = 0;
  // Inputs first, then outputs, which the backend resizes and writes.
  ET_NODISCARD virtual Error execute(BackendExecutionContext& context, DelegateHandle* handle,
                                     Span<EValue*> args) const = 0;
  ET_NODISCARD virtual Error set_option(ET_UNUSED BackendOptionContext& context,
                                        ET_UNUSED const Span<BackendOption>& backend_options) {
    return Error::Ok;
  }
  ET_NODISCARD virtual Error get_option(ET_UNUSED BackendOptionContext& context,
                                        ET_UNUSED Span<BackendOption>& backend_options) {
    return Error::Ok;
  }
  virtual void destroy(ET_UNUSED DelegateHandle* handle) const {}
};

inline BackendInterface::~BackendInterface() {}

struct Backend {
  const char* name;
  BackendInterface* backend;
};

// RegistrationAlreadyRegistered for a name that is there, OutOfResources if the table is full. A
// backend of the runtime's own with this name is hidden.
ET_NODISCARD Error register_backend(const Backend& backend);
// nullptr for a name that nobody registered, and for backends of the runtime's own.
BackendInterface* get_backend_class(const char* name);
// All backends: those that were registered, and those of the runtime's own.
size_t get_num_registered_backends();
Result<const char*> get_backend_name(size_t index);
// NotFound for a name that nobody registered.
Error set_option(const char* backend_name, const Span<BackendOption> backend_options);
Error get_option(const char* backend_name, Span<BackendOption> backend_options);

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Backend;
using ::executorch::runtime::CompileSpec;
using ::executorch::runtime::DelegateHandle;
using ::executorch::runtime::get_backend_class;
using ::executorch::runtime::register_backend;
using ::executorch::runtime::SizedBuffer;
using PyTorchBackendInterface = ::executorch::runtime::BackendInterface;
}  // namespace torch::executor
