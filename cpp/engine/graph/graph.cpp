#include "rushlight/engine/graph/graph.h"

#include "rushlight/engine/graph/selected_nodes.h"
#include "rushlight/engine/operators/operator.h"
#include "rushlight/kernel/arena_shadow.h"
#include "rushlight/kernel/schema.h"
#include "rushlight/platform/platform.h"

namespace rushlight::engine {
namespace {

Status no_memory(Message& message) {
  return message.fail(Code::DelegateMemoryAllocationFailed,
                      "the method's memory has no room for the delegate");
}

Status refuse(Message& message, const char* why) {
  return message.fail(Code::DelegateInvalidCompatibility, "%s", why);
}

// Of operators that are no kernel's of the runtime; empty for files from elsewhere.
Span<const uint8_t> schemas_of(const BackendInit& init) {
  if (init.named_data == nullptr) return {};
  const auto schemas = init.named_data->get(StringView(kSchemasKey));
  return schemas.ok() ? schemas.value() : Span<const uint8_t>();
}

}  // namespace

Status Graph::load(const GraphParts& parts, BackendInit& init) {
  const Status status = prepare(parts, init);
  if (status.code() == Code::DelegateInvalidCompatibility) {
    init.message->append("; export the model again");
  }
  return status;
}

Status Graph::prepare(const GraphParts& parts, BackendInit& init) {
  values_ = parts.values;
  nodes_ = parts.nodes;
  n_inputs_ = parts.n_inputs;
  n_outputs_ = parts.n_outputs;
  n_constants_ = parts.constants.size();
  if constexpr (!kHasAllNodes) RL_TRY(check_selected(nodes_, *init.message));
  RL_TRY(take_memory(parts, init));
  RL_TRY(place_values(*init.message));
  RL_TRY(sizes_.load(parts, *init.allocator, *init.message));
  threads_ = init.workers != nullptr ? init.workers->count() : 1;
  RL_TRY(make_operators(&init, *init.message, *init.place));
  scratch_size_ = scratch_wanted_;
  scratch_ = init.allocator->allocate(scratch_size_, kAlignment);
  if (scratch_ == nullptr && scratch_size_ > 0) return no_memory(*init.message);
  return {};
}

Status Graph::take_memory(const GraphParts& parts, BackendInit& init) {
  Message& message = *init.message;
  // Arguments without a value take no bytes in the payload, so their number needs a limit of its
  // own.
  constexpr size_t kMaxArguments = static_cast<size_t>(fb::cpu_engine::Limit::ARGUMENTS);
  if (n_inputs_ > kMaxArguments || n_outputs_ > kMaxArguments) {
    return refuse(message, "the payload has too many arguments");
  }
  const size_t n_bases = n_inputs_ + n_constants_ + n_outputs_ + 1;
  bases_ = init.allocator->allocate_array<uint8_t*>(n_bases);
  capacities_ = init.allocator->allocate_array<uint64_t>(n_bases);
  arguments_ = init.allocator->allocate_array<Argument>(n_inputs_ + n_outputs_);
  operators_ = init.allocator->allocate_array<Operator*>(nodes_.size());
  if (bases_ == nullptr || capacities_ == nullptr || arguments_ == nullptr ||
      (operators_ == nullptr && !nodes_.empty()) || parts.scratch_size > SIZE_MAX) {
    return no_memory(message);
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    operators_[i] = nullptr;
    calls_kernels_ |= std::holds_alternative<KernelCallParameters>(nodes_[i].parameters);
  }
  for (size_t i = 0; i < n_bases; ++i) {
    bases_[i] = nullptr;
    capacities_[i] = UINT64_MAX;  // arguments are checked against what the values need
  }
  for (size_t i = 0; i < n_constants_; ++i) {
    uint8_t* data = const_cast<uint8_t*>(parts.constants[i].data);  // never written
    if (reinterpret_cast<uintptr_t>(data) % alignof(int64_t) != 0) {
      return refuse(message, "constants of the payload are not aligned");
    }
    bases_[n_inputs_ + i] = data;
    capacities_[n_inputs_ + i] = parts.constants[i].size;
  }
  capacities_[n_bases - 1] = parts.scratch_size;
  void* scratch = init.allocator->allocate(static_cast<size_t>(parts.scratch_size), kAlignment);
  if (scratch == nullptr && parts.scratch_size > 0) return no_memory(message);
  bases_[n_bases - 1] = static_cast<uint8_t*>(scratch);
  if (calls_kernels_ && init.check_kernels) {
    shared_ = {static_cast<uint8_t*>(scratch), static_cast<size_t>(parts.scratch_size)};
    shadow_ = init.allocator->allocate_array<uint8_t>(shared_.size());
    if (shadow_ == nullptr && !shared_.empty()) return no_memory(message);
  }
  return {};
}

Status Graph::place_values(Message& message) {
  for (size_t i = 0; i < n_inputs_ + n_outputs_; ++i) arguments_[i] = Argument();
  for (size_t i = 0; i < values_.size(); ++i) {
    const Status status = place_value(values_[i], message);
    if (status.ok()) continue;
    message.prepend("value %zu: ", i);
    return status;
  }
  return {};
}

Status Graph::place_value(Value& value, Message& message) {
  View& view = value.view;
  const size_t element = element_size(view.dtype);
  if (element == 0) return refuse(message, "its dtype is unknown");
  const size_t limits[] = {n_inputs_, n_outputs_, 1, n_constants_};
  const size_t firsts[] = {0, n_inputs_ + n_constants_, n_inputs_ + n_constants_ + n_outputs_,
                           n_inputs_};
  const size_t place = static_cast<size_t>(value.place);
  if (value.index >= limits[place])
    return refuse(message, "it names an input, output or constant that is not there");
  view.base = static_cast<uint32_t>(firsts[place] + value.index);
  const uint64_t capacity = capacities_[view.base];
  const bool is_valid = measure(view) && (view.numel == 0 || view.offset % element == 0);
  if (!is_valid || view.extent > capacity) {
    Status status = message.fail(Code::DelegateInvalidCompatibility,
                                 "its sizes %s with strides %s from byte %llu on",
                                 text_of(view).text(), text_of(view.strides, view.rank).text(),
                                 static_cast<unsigned long long>(view.offset));
    if (is_valid) {
      message.append(" do not lie within the %llu bytes of its memory",
                     static_cast<unsigned long long>(capacity));
    } else {
      message.append(" are not valid");
    }
    return status;
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

int64_t Graph::id_of(size_t node) const {
  return nodes_[node].id < 0 ? static_cast<int64_t>(node) : nodes_[node].id;
}

// Prepares the operators for the values' current sizes. Allocates only at load, with `init`. The
// message names all kernels that are missing.
Status Graph::make_operators(const BackendInit* init, Message& message, DelegatePlace& place) {
  Allocator* allocator = init != nullptr ? init->allocator : nullptr;
  Setup setup(values_, n_inputs_ + n_constants_, threads_, allocator, &message);
  setup.numbers = sizes_.numbers();
  if (init != nullptr) {
    setup.kernels = init->kernels;
    setup.schemas = schemas_of(*init);
    message.clear();
  }
  Status missing;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    place.enter(id_of(i));
    Status status = setup.begin(nodes_[i], operators_[i]);
    if (status.ok()) {
      const Result<Operator*> made = make_selected(nodes_[i].parameters, setup);
      status = made.status();
      if (made.ok()) operators_[i] = made.value();
    }
    if (status.ok()) continue;
    if (missing.ok() || status.code() != Code::OperatorMissing) place.set(id_of(i));
    if (status.code() != Code::OperatorMissing) return status;
    missing = status;
  }
  scratch_wanted_ = setup.scratch();
  return missing;
}

// Prepares the graph for the inputs' sizes, and sets the outputs' sizes.
Status Graph::fit(const BackendRun& run, EValue* const* args) {
  if (!sizes_.same(args)) {
    const Status status = fit_anew(run, args);
    if (!status.ok()) {
      sizes_.forget();
      sizes_.name_inputs(args, *run.message);
      return Code::InvalidArgument;
    }
  }
  for (size_t i = n_inputs_; i < n_inputs_ + n_outputs_; ++i) {
    const Value* own = sizes_.own(i);
    if (own == nullptr || !args[i]->is_tensor()) continue;
    const View& view = own->view;
    int32_t sizes[kMaxViewRank];
    for (size_t d = 0; d < view.rank; ++d) {
      if (view.sizes[d] > INT32_MAX) {
        return run.message->fail(Code::InvalidArgument,
                                 "output %zu has sizes %s, too large a tensor", i - n_inputs_,
                                 text_of(view).text());
      }
      sizes[d] = static_cast<int32_t>(view.sizes[d]);
    }
    RL_TRY(run.resize(args[i]->tensor(), {sizes, view.rank}));
  }
  return {};
}

Status Graph::fit_anew(const BackendRun& run, EValue* const* args) {
  RL_TRY(sizes_.take(args, *run.message));
  for (size_t i = 0; i < values_.size(); ++i) {
    if (sizes_.set(values_[i])) continue;
    return run.message->fail(Code::InvalidArgument, "value %zu starts before its memory", i);
  }
  RL_TRY(place_values(*run.message));
  release_scratch();
  return make_operators(nullptr, *run.message, *run.place);
}

// Releases scratch memory to the system if this run needs far less of it than an earlier one.
void Graph::release_scratch() {
  constexpr uint64_t kWorthwhile =
      uint64_t{2} << 20;  // releasing less does not pay for touching the pages again
  uint64_t needed = 0;
  for (const Value& value : values_) {
    if (value.place == Place::Scratch && value.view.numel > 0) {
      needed += value.view.extent - value.view.offset;
    }
  }
  if (touched_ < kWorthwhile + needed || needed > touched_ / 4) {
    touched_ = needed > touched_ ? needed : touched_;
    return;
  }
  const size_t last = n_inputs_ + n_constants_ + n_outputs_;
  release_pages(bases_[last], bases_[last] + static_cast<size_t>(capacities_[last]));
  uint8_t* const scratch = static_cast<uint8_t*>(scratch_);
  release_pages(scratch, scratch + scratch_size_);
  touched_ = needed;
}

Status Graph::bind(EValue& arg, size_t number, bool is_input, Message& message) {
  const Argument& wanted = arguments_[number];
  if (!wanted.used) return {};
  const char* kind = is_input ? "input" : "output";
  const size_t shown = is_input ? number : number - n_inputs_;
  if (!arg.is_tensor()) {
    return message.fail(Code::InvalidArgument, "%s %zu is not a tensor", kind, shown);
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
  if (!sizes_.fixed()) RL_TRY(fit(run, args));
  for (size_t i = 0; i < n_args; ++i) RL_TRY(bind(*args[i], i, i < n_inputs_, *run.message));
  if (scratch_wanted_ <= scratch_size_) return run_operators(run, scratch_, scratch_size_);
  void* scratch =
      run.scratch != nullptr ? run.scratch->allocate(scratch_wanted_, kAlignment) : nullptr;
  if (scratch != nullptr) return run_operators(run, scratch, scratch_wanted_);
  return run.message->fail(Code::MemoryAllocationFailed,
                           "the delegate needs %zu bytes of scratch for these sizes, more than for "
                           "their bounds, and the method's scratch has no room for them",
                           scratch_wanted_);
}

void Graph::tell_value(Tracer& tracer, size_t node, size_t value) const {
  const View& view = values_[value].view;
  tracer.delegate_value({nullptr, id_of(node)}, {bases_[view.base] + view.offset,
                                                 view.dtype,
                                                 {view.sizes, view.rank},
                                                 {view.strides, view.rank}});
}

// The node's outputs; of an elementwise operator, what its program stores.
void Graph::tell_values(Tracer& tracer, size_t node) const {
  const auto* elementwise = std::get_if<ElementwiseParameters>(&nodes_[node].parameters);
  if (elementwise != nullptr) {
    for (const TileInstruction& instruction : elementwise->program.code) {
      if (instruction.op != TileOp::STORE) continue;
      tell_value(tracer, node, elementwise->program.operands[instruction.out]);
    }
    return;
  }
  for (const int32_t output : nodes_[node].outputs) {
    if (output >= 0) tell_value(tracer, node, static_cast<size_t>(output));
  }
}

Status Graph::run_operators(const BackendRun& run, void* scratch, size_t scratch_size) {
  Workers* workers = run.workers;
  if (workers != nullptr && workers->count() > threads_) workers = nullptr;
  KernelScratch memory(calls_kernels_ ? run.scratch : nullptr);
  const ArenaShadow shadow({&shared_, 1}, shadow_);
  const Frame frame = {bases_,      scratch,      scratch_size, workers,
                       run.message, run.kv_cache, &memory,      shadow.is_on() ? &shadow : nullptr};
  for (size_t i = 0; i < nodes_.size(); ++i) {
    run.place->enter(id_of(i));
    const uint64_t start = run.tracer != nullptr ? now_ns() : 0;
    const Status status =
        run.is_cancelled() ? run.message->fail(Code::Cancelled, "the run was cancelled before it")
                           : operators_[i]->run(frame);
    if (!status.ok()) {
      run.place->set(id_of(i));
      return status;
    }
    if (run.tracer != nullptr) {
      run.tracer->delegate_event({nullptr, id_of(i)}, start, now_ns(), {});
      if (run.wants_value({nullptr, id_of(i)})) tell_values(*run.tracer, i);
    }
  }
  memory.count();
  return {};
}

}  // namespace rushlight::engine
