// The delegates' part of MethodLoader: finds which arguments of their calls are outputs, and gives
// each backend its payload.
#include <new>

#include "rushlight/method/method_loader.h"
#include "rushlight/program/plan_check.h"

namespace rushlight {

bool MethodLoader::is_given(const EValue& value) const {
  return parts_.is_given[&value - parts_.values] != 0;
}

void MethodLoader::mark_given(const EValue& value) {
  if (is_given(value)) return;  // then its items are marked as well
  parts_.is_given[&value - parts_.values] = 1;
  if (value.tag != Tag::TensorList && value.tag != Tag::OptionalTensorList) return;
  const auto* items = static_cast<const EValue* const*>(value.list.items);
  for (size_t k = 0; k < value.size(); ++k) {
    if (items[k] != nullptr) parts_.is_given[items[k] - parts_.values] = 1;
  }
}

// A plan does not say which arguments of a delegate are outputs. They are the last arguments that
// are tensors without a value so far: not an input of the method, without content in the file,
// without a name (a buffer), and not an argument of an instruction that is earlier in the file. If
// there is none, the output is the last argument if that is a tensor; the delegate writes it in
// place. Lists are inputs.
void MethodLoader::count_delegate_inputs() {
  const fb::Tables<fb::EValue> values = plan_.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const fb::Tensor tensor = values[i].val_as_Tensor();
    const Tag tag = parts_.values[i].tag;
    if (tag == Tag::TensorList || tag == Tag::OptionalTensorList) continue;  // depends on its items
    const bool is_fresh = tensor.present() && !has_file_data(tensor) &&
                          tensor.extra_tensor_info().fully_qualified_name().empty();
    if (!is_fresh) mark_given(parts_.values[i]);
  }
  for (size_t k = 0; k < method_.n_inputs_; ++k) mark_given(*parts_.inputs[k].value);
  for (uint32_t i = 0; i < method_.n_instructions_; ++i) {
    Instruction& instruction = parts_.instructions[i];
    if (instruction.kind == InstructionKind::Delegate) {
      uint32_t n = instruction.n_args;
      const auto is_output = [&](bool given_too) {
        const EValue& last = *instruction.args[n - 1];
        return last.is_tensor() && (given_too || !is_given(last));
      };
      while (n > 0 && is_output(false)) --n;
      if (n > 0 && n == instruction.n_args && is_output(true)) --n;
      instruction.n_inputs = n;
    }
    for (uint32_t k = 0; k < instruction.n_args; ++k) mark_given(*instruction.args[k]);
  }
}

Status MethodLoader::init_delegates() {
  count_delegate_inputs();
  new (method_.named_data_) MergedData(&method_.meta_.program(), method_.options_.external_data);
  size_t next_spec = 0;
  for (size_t i = 0; i < plan_.delegates().size(); ++i) {
    message_.clear();
    method_.place_.clear();
    method_.failed_delegate_ = static_cast<uint32_t>(i);  // now, since it may crash
    const Status status = init_delegate(i, &next_spec);
    if (status.ok()) continue;
    const StringView id = plan_.delegates()[i].id();
    method_.tell_place(status);
    message_.prepend("delegate %zu (%.*s): ", i, id.len(), id.data());
    return status;
  }
  for (size_t i = 0; i < plan_.delegates().size(); ++i) {
    method_.failed_delegate_ = static_cast<uint32_t>(i);
    parts_.delegates[i].backend->loaded(parts_.delegates[i].handle);
  }
  method_.failed_delegate_ = Method::kNoDelegate;
  return {};
}

Status MethodLoader::init_delegate(size_t i, size_t* next_spec) {
  const fb::BackendDelegate delegate = plan_.delegates()[i];
  const Program& program = method_.meta_.program();
  const fb::BackendDelegateDataReference place = delegate.processed();
  const Span<const uint8_t> payload =
      place.location() == fb::DataLocation::INLINE
          ? fb::as_span(program.root().backend_delegate_data()[place.index()].data())
          : program.segment(place.index());

  CompileSpec* specs = parts_.specs + *next_spec;
  const size_t n_specs = delegate.compile_specs().size();
  for (size_t k = 0; k < n_specs; ++k) {
    const fb::CompileSpec spec = delegate.compile_specs()[k];
    specs[k] = {spec.key(), fb::as_span(spec.value())};
  }
  *next_spec += n_specs;

  BackendInit init = {};
  init.method = method_.meta_.name();
  init.payload = payload;
  init.specs = {specs, n_specs};
  if (method_.options_.backend_options != nullptr) {
    init.options = method_.options_.backend_options->of(delegate.id(), init.method);
  }
  init.named_data = reinterpret_cast<const MergedData*>(method_.named_data_);
  init.allocator = memory_.structures;
  init.tracer = method_.tracer();
  init.message = &message_;
  init.place = &method_.place_;
  init.workers = method_.options_.workers;
  init.kernels = method_.options_.kernels;
  init.check_kernels = method_.options_.check_backends;
  DelegateSlot& slot = parts_.delegates[i];
  slot.backend = method_.options_.backends.find(delegate.id());
  // Asking whether a backend is available may have removed it.
  if (slot.backend == nullptr) return message_.fail(Code::NotFound, "it has just been removed");
  Result<void*> handle = slot.backend->init(init);
  if (!handle.ok()) return handle.status();
  slot.handle = handle.value();
  slot.is_ready = true;
  if (!init.keeps_payload) program.release(payload);
  return {};
}

const DelegateCode DelegateCode::kCode = {
    [](MethodLoader& loader) { return loader.init_delegates(); },
    [](Method& method, const Instruction& instruction) { return method.run_delegate(instruction); },
    [](Method& method) { method.destroy_delegates(); },
};

}  // namespace rushlight
