// The backend "Nothing" for real ExecuTorch, registered when the library is loaded.
#include <executorch/runtime/backend/interface.h>

namespace {

namespace et = executorch::runtime;

class Nothing final : public et::BackendInterface {
 public:
  bool is_available() const override { return true; }
  et::Result<et::DelegateHandle*> init(et::BackendInitContext&, et::FreeableBuffer*,
                                       et::ArrayRef<et::CompileSpec>) const override {
    return reinterpret_cast<et::DelegateHandle*>(const_cast<Nothing*>(this));
  }
  et::Error execute(et::BackendExecutionContext&, et::DelegateHandle*,
                    et::Span<et::EValue*> args) const override {
    if (args.size() != 2) return et::Error::InvalidArgument;
    const bool same = args[0]->toTensor().numel() == args[1]->toTensor().numel();
    return same ? et::Error::Ok : et::Error::InvalidArgument;
  }
};

Nothing nothing;
const et::Backend kBackend{"Nothing", &nothing};
const et::Error kRegistered = et::register_backend(kBackend);

}  // namespace

extern "C" int nothing_is_registered() { return kRegistered == et::Error::Ok ? 1 : 0; }
