// The state of a module.
#include "rushlight/c_api/module_object.h"

namespace rushlight::c_api {
namespace {

// Calls `body(Module&)`, whose Status is explained by the module.
template <class Body>
rl_status with_module(rl_module* module, rl_error* error, const Body& body) {
  return enter<ModuleObject>(module, Use::Alone, error,
                             [&](ModuleObject& object, Failing& failing) -> Status {
                               const Status status = body(object.module);
                               if (!status.ok()) failing.message = object.module.message();
                               return status;
                             });
}

rl_state_info describe(const StateEntry& entry) {
  rl_state_info info = {};
  info.dtype = static_cast<int32_t>(entry.tensor.dtype);
  info.name = text_of(entry.name);
  info.method = text_of(entry.method);
  info.rank = entry.tensor.rank;
  for (size_t k = 0; k < entry.tensor.rank; ++k) {
    info.sizes[k] = entry.tensor.sizes[k];
    info.dim_order[k] = entry.tensor.dim_order[k];
  }
  info.data = entry.data;
  info.nbytes = entry.tensor.nbytes;
  return info;
}

}  // namespace
}  // namespace rushlight::c_api

using namespace rushlight;
using namespace rushlight::c_api;

rl_status rl_module_state_count(rl_module* module, uint32_t* count, rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error,
                             [&](ModuleObject& object, Failing& failing) -> Status {
                               RL_TRY(check_given(count, "count", &failing.message));
                               Result<Span<const StateEntry>> state = object.module.state();
                               if (state.ok()) *count = static_cast<uint32_t>(state->size());
                               if (!state.ok()) failing.message = object.module.message();
                               return state.status();
                             });
}

rl_status rl_module_state(rl_module* module, uint32_t index, rl_state_info* info, rl_error* error) {
  return enter<ModuleObject>(
      module, Use::Alone, error, [&](ModuleObject& object, Failing& failing) -> Status {
        Result<Span<const StateEntry>> state = object.module.state();
        if (!state.ok()) {
          failing.message = object.module.message();
          return state.status();
        }
        if (index < state->size()) {
          return write_struct(describe(state.value()[index]), info, "rl_state_info",
                              &failing.message);
        }
        return failing.message.fail(Code::InvalidArgument,
                                    "there is no state %u: the methods that are loaded have %zu",
                                    static_cast<unsigned>(index), state->size());
      });
}

rl_status rl_module_snapshot(rl_module* module, void* to, size_t capacity, size_t* bytes,
                             rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error,
                             [&](ModuleObject& object, Failing& failing) -> Status {
                               const Result<size_t> needed = object.module.snapshot_bytes();
                               Status status = needed.status();
                               if (status.ok() && bytes != nullptr) *bytes = needed.value();
                               if (status.ok() && to != nullptr)
                                 status = object.module.snapshot(to, capacity);
                               if (!status.ok()) failing.message = object.module.message();
                               return status;
                             });
}

rl_status rl_module_restore(rl_module* module, const void* from, size_t bytes, rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error,
                             [&](ModuleObject& object, Failing& failing) -> Status {
                               RL_TRY(check_given(from, "from", &failing.message));
                               const Status status = object.module.restore(from, bytes);
                               if (!status.ok()) failing.message = object.module.message();
                               return status;
                             });
}

rl_status rl_module_reset_state(rl_module* module, rl_error* error) {
  return with_module(module, error, [](Module& opened) { return opened.reset_state(); });
}
