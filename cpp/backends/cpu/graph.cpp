#include "rushlight/backends/cpu/graph.h"

#include <variant>

#include "rushlight/backends/cpu/operator.h"
#include "rushlight/platform/platform.h"

namespace rushlight::cpu {
namespace {

Status no_memory(Message& message) {
  return message.fail(Code::DelegateMemoryAllocationFailed,
                      "the method's memory has no room for the delegate");
}

Status refuse(Message& message, const char* why) {
  return message.fail(Code::DelegateInvalidCompatibility, "%s; export the model again", why);
}

}  // namespace

Status Graph::load(const GraphParts& parts, BackendInit& init) {
  Message& message = *init.message;
  values_ = parts.values;
  n_inputs_ = parts.n_inputs;
  n_outputs_ = parts.n_outputs;
  n_constants_ = parts.constants.size();
  // Arguments without a value take nothing of the payload: their number has a bound of its own.
  constexpr size_t kMaxArguments = 1 << 16;
  if (n_inputs_ > kMaxArguments || n_outputs_ > kMaxArguments) {
    return refuse(message, "the payload has too many arguments");
  }
  const size_t n_bases = n_inputs_ + n_constants_ + n_outputs_ + 1;
  bases_ = init.allocator->allocate_array<uint8_t*>(n_bases);
  capacities_ = init.allocator->allocate_array<uint64_t>(n_bases);
  arguments_ = init.allocator->allocate_array<Argument>(n_inputs_ + n_outputs_);
  if (bases_ == nullptr || capacities_ == nullptr || arguments_ == nullptr) {
    return no_memory(message);
  }
  for (size_t i = 0; i < n_bases; ++i) {
    bases_[i] = nullptr;
    capacities_[i] = UINT64_MAX;  // of arguments: they are asked for what the values need
  }
  for (size_t i = 0; i < n_inputs_ + n_outputs_; ++i) arguments_[i] = Argument();
  for (size_t i = 0; i < n_constants_; ++i) {
    uint8_t* data = const_cast<uint8_t*>(parts.constants[i].data);  // written by nothing
    if (reinterpret_cast<uintptr_t>(data) % alignof(int64_t) != 0) {
      return refuse(message, "constants of the payload are not aligned");
    }
    bases_[n_inputs_ + i] = data;
    capacities_[n_inputs_ + i] = parts.constants[i].size;
  }
  capacities_[n_bases - 1] = parts.scratch_size;
  for (size_t i = 0; i < values_.size(); ++i) {
    const Status status = place_value(values_[i], message);
    if (status.ok()) continue;
    message.prepend("value %zu: ", i);
    return status;
  }
  if (parts.scratch_size > SIZE_MAX) return no_memory(message);
  void* scratch = init.allocator->allocate(static_cast<size_t>(parts.scratch_size), kAlignment);
  if (scratch == nullptr && parts.scratch_size > 0) return no_memory(message);
  bases_[n_bases - 1] = static_cast<uint8_t*>(scratch);
  return make_operators(parts.steps, init);
}

Status Graph::place_value(Value& value, Message& message) {
  View& view = value.view;
  const size_t element = element_size(view.dtype);
  if (element == 0) return refuse(message, "its dtype is unknown");
  const size_t limits[] = {n_inputs_, n_outputs_, 1, n_constants_};
  const size_t firsts[] = {0, n_inputs_ + n_constants_, n_inputs_ + n_constants_ + n_outputs_,
                           n_inputs_};
  const size_t place = static_cast<size_t>(value.place);
  if (value.index >= limits[place]) return refuse(message, "it lies nowhere");
  view.base = static_cast<uint32_t>(firsts[place] + value.index);
  if (!measure(view) || view.offset % element != 0 || view.extent > capacities_[view.base]) {
    return refuse(message, "it does not lie within its memory");
  }
  if (value.place != Place::Input && value.place != Place::Output) return {};
  Argument& argument =
      arguments_[value.place == Place::Input ? value.index : n_inputs_ + value.index];
  if (argument.used && argument.dtype != view.dtype) return refuse(message, "it has two dtypes");
  argument.used = true;
  argument.dtype = view.dtype;
  if (view.extent > argument.bytes) argument.bytes = view.extent;
  return {};
}

Status Graph::make_operators(Span<const Step> steps, BackendInit& init) {
  n_operators_ = steps.size();
  operators_ = init.allocator->allocate_array<const Operator*>(n_operators_);
  if (operators_ == nullptr && n_operators_ > 0) return no_memory(*init.message);
  threads_ = init.workers != nullptr ? init.workers->count() : 1;
  Setup setup(values_, n_inputs_ + n_constants_, threads_, init.allocator, init.message);
  for (size_t i = 0; i < n_operators_; ++i) {
    Status status = setup.begin(steps[i]);
    if (status.ok()) {
      const Result<const Operator*> made = std::visit(
          [&](const auto& given) { return make_operator(given, setup); }, steps[i].parameters);
      status = made.status();
      if (made.ok()) operators_[i] = made.value();
    }
    if (status.ok()) continue;
    init.place->set(static_cast<int64_t>(i));
    init.message->append("; export the model again");
    return status;
  }
  scratch_size_ = setup.scratch();
  scratch_ = init.allocator->allocate(scratch_size_, kAlignment);
  if (scratch_ == nullptr && scratch_size_ > 0) return no_memory(*init.message);
  return {};
}

Status Graph::bind(EValue& arg, size_t number, bool is_input, Message& message) {
  const Argument& wanted = arguments_[number];
  if (!wanted.used) return {};
  const char* kind = is_input ? "input" : "output";
  const size_t shown = is_input ? number : number - n_inputs_;
  if (!arg.is_tensor()) {
    return message.fail(Code::InvalidArgument, "%s %zu is no tensor", kind, shown);
  }
  const Tensor& tensor = arg.tensor();
  if (tensor.dtype != wanted.dtype || tensor.nbytes() < wanted.bytes) {
    return message.fail(Code::InvalidArgument,
                        "%s %zu is %s of %zu bytes, but the delegate was made for %s of %llu", kind,
                        shown, dtype_name(tensor.dtype), tensor.nbytes(), dtype_name(wanted.dtype),
                        static_cast<unsigned long long>(wanted.bytes));
  }
  bases_[is_input ? number : number + n_constants_] = tensor.as<uint8_t>();
  return {};
}

Status Graph::run(const BackendRun& run, EValue* const* args, size_t n_args) {
  if (n_args != n_inputs_ + n_outputs_) {
    return run.message->fail(Code::DelegateInvalidHandle,
                             "the delegate has %zu arguments, its payload %zu", n_args,
                             n_inputs_ + n_outputs_);
  }
  for (size_t i = 0; i < n_args; ++i) RL_TRY(bind(*args[i], i, i < n_inputs_, *run.message));
  Workers* workers = run.workers;
  if (workers != nullptr && workers->count() > threads_) workers = nullptr;
  const Frame frame = {bases_, scratch_, scratch_size_, workers, run.message};
  for (size_t i = 0; i < n_operators_; ++i) {
    const uint64_t start = run.tracer != nullptr ? now_ns() : 0;
    const Status status = operators_[i]->run(frame);
    if (!status.ok()) {
      run.place->set(static_cast<int64_t>(i));
      return status;
    }
    if (run.tracer != nullptr) {
      run.tracer->delegate_event(nullptr, static_cast<int64_t>(i), start, now_ns());
    }
  }
  return {};
}

}  // namespace rushlight::cpu
