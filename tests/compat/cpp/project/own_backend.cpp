// A backend as it is written for ExecuTorch. Its payload is a text: the number that is added to
// every element of the input.
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <cstdlib>
#include <string>

using executorch::runtime::ArrayRef;
using executorch::runtime::Backend;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using executorch::runtime::Span;

namespace {

class AddBackend final : public executorch::runtime::BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                               ArrayRef<CompileSpec> compile_specs) const override {
    auto* number = context.get_runtime_allocator()->allocateInstance<double>();
    ET_CHECK_OR_RETURN_ERROR(number != nullptr, MemoryAllocationFailed, "no memory");
    const std::string text(static_cast<const char*>(processed->data()), processed->size());
    *number = std::atof(text.c_str());
    for (const CompileSpec& spec : compile_specs) {
      const std::string value(static_cast<const char*>(spec.value.buffer), spec.value.nbytes);
      if (std::string(spec.key) == "times") *number *= std::atof(value.c_str());
    }
    processed->Free();
    return static_cast<DelegateHandle*>(number);
  }

  Error execute(BackendExecutionContext&, DelegateHandle* handle,
                Span<EValue*> args) const override {
    const auto& x = args[0]->toTensor();
    auto& out = args[args.size() - 1]->toTensor();
    ET_CHECK_OK_OR_RETURN_ERROR(executorch::runtime::resize_tensor(out, x.sizes()));
    for (ssize_t i = 0; i < x.numel(); ++i) {
      out.mutable_data_ptr<float>()[i] =
          x.const_data_ptr<float>()[i] + static_cast<float>(*static_cast<double*>(handle));
    }
    return Error::Ok;
  }
};

AddBackend backend;
[[maybe_unused]] const auto registered =
    executorch::runtime::register_backend(Backend{"CompatAddBackend", &backend});

}  // namespace
