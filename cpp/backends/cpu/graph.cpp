#include "rushlight/backends/cpu/graph.h"

#include "rushlight/platform/platform.h"

namespace rushlight::cpu {
namespace {

using fb::cpu_engine::Operation;

using Make = Result<const Operator*> (*)(Setup&);

Make maker_of(Operation operation) {
  switch (operation) {
    case Operation::Product:
      return make_product;
    case Operation::BatchProduct:
      return make_batch_product;
    case Operation::Convolution:
      return make_convolution;
    case Operation::Pooling:
      return make_pooling;
    case Operation::Elementwise:
      return make_elementwise;
    case Operation::Norm:
      return make_norm;
    case Operation::GroupNorm:
      return make_group_norm;
    case Operation::Softmax:
      return make_softmax;
    case Operation::Reduction:
      return make_reduction;
    case Operation::Gather:
      return make_gather;
    case Operation::Copy:
      return make_copy;
    case Operation::Attention:
      return make_attention;
    case Operation::NONE:
      break;
  }
  return nullptr;
}

Status no_memory(Message& message) {
  return message.fail(Code::DelegateMemoryAllocationFailed,
                      "the method's memory has no room for the delegate");
}

Status refuse(Message& message, const char* why) {
  return message.fail(Code::DelegateInvalidCompatibility, "%s; export the model again", why);
}

}  // namespace

Status Graph::load(BackendInit& init) {
  Message& message = *init.message;
  const uint8_t* data = init.payload.data();
  if (!fb::cpu_engine::verify_Graph(data, init.payload.size())) {
    return refuse(message, "the payload is cut or damaged");
  }
  const fb::cpu_engine::Graph graph = fb::cpu_engine::root_Graph(data);
  if (graph.version() == 0 || graph.version() > kVersion) {
    return message.fail(
        Code::DelegateInvalidCompatibility,
        "the payload has version %u, this runtime reads 1 to %u; update the runtime",
        graph.version(), kVersion);
  }
  n_inputs_ = graph.n_inputs();
  n_outputs_ = graph.n_outputs();
  n_constants_ = graph.constants().size();
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
  RL_TRY(read_constants(graph, init));
  capacities_[n_bases - 1] = graph.scratch_size();
  RL_TRY(read_values(graph, init));
  if (graph.scratch_size() > SIZE_MAX) return no_memory(message);
  void* scratch = init.allocator->allocate(static_cast<size_t>(graph.scratch_size()), kAlignment);
  if (scratch == nullptr && graph.scratch_size() > 0) return no_memory(message);
  bases_[n_bases - 1] = static_cast<uint8_t*>(scratch);
  return read_steps(graph, init);
}

Status Graph::read_constants(fb::cpu_engine::Graph graph, BackendInit& init) {
  for (size_t i = 0; i < n_constants_; ++i) {
    const fb::cpu_engine::Constant constant = graph.constants()[i];
    const StringView key = constant.key();
    const auto found = init.named_data != nullptr ? init.named_data->get(key)
                                                  : Result<Span<const uint8_t>>(Code::NotFound);
    if (!found.ok() || found.value().size() < constant.size()) {
      return init.message->fail(Code::DelegateInvalidCompatibility,
                                "the file's named data has no %llu bytes under '%.*s'; if weights "
                                "lie in a file beside the program, load it as well",
                                static_cast<unsigned long long>(constant.size()), key.len(),
                                key.data());
    }
    uint8_t* data = const_cast<uint8_t*>(found.value().data());  // written by nothing
    if (reinterpret_cast<uintptr_t>(data) % alignof(int64_t) != 0) {
      return refuse(*init.message, "constants of the payload are not aligned");
    }
    bases_[n_inputs_ + i] = data;
    capacities_[n_inputs_ + i] = constant.size();
  }
  return {};
}

Status Graph::read_values(fb::cpu_engine::Graph graph, BackendInit& init) {
  n_values_ = graph.values().size();
  values_ = init.allocator->allocate_array<View>(n_values_);
  if (values_ == nullptr && n_values_ > 0) return no_memory(*init.message);
  for (size_t i = 0; i < n_values_; ++i) {
    values_[i] = View();
    const Status status = read_value(graph.values()[i], graph, &values_[i], *init.message);
    if (status.ok()) continue;
    init.message->prepend("value %zu: ", i);
    return status;
  }
  return {};
}

Status Graph::read_value(fb::cpu_engine::Value value, fb::cpu_engine::Graph graph, View* view,
                         Message& message) {
  const size_t rank = value.sizes().size();
  if (rank > kMaxViewRank || value.steps().size() != rank) {
    return refuse(message, "its rank is wrong");
  }
  view->dtype = static_cast<DType>(value.dtype());
  const size_t element = element_size(view->dtype);
  if (element == 0) return refuse(message, "its dtype is unknown");
  view->rank = static_cast<uint8_t>(rank);
  for (size_t d = 0; d < rank; ++d) {
    view->sizes[d] = value.sizes()[d];
    view->steps[d] = value.steps()[d];
  }
  view->offset = value.offset();
  const size_t limits[] = {n_inputs_, n_outputs_, 1, graph.constants().size()};
  const size_t firsts[] = {0, n_inputs_ + n_constants_, n_inputs_ + n_constants_ + n_outputs_,
                           n_inputs_};
  const size_t place = static_cast<size_t>(value.place());
  if (place > 3 || value.index() >= limits[place]) return refuse(message, "it lies nowhere");
  view->base = static_cast<uint32_t>(firsts[place] + value.index());
  if (!measure(*view) || view->offset % element != 0 || view->extent > capacities_[view->base]) {
    return refuse(message, "it does not lie within its memory");
  }
  if (place > 1) return {};
  Argument& argument = arguments_[place == 0 ? value.index() : n_inputs_ + value.index()];
  if (argument.used && argument.dtype != view->dtype) return refuse(message, "it has two dtypes");
  argument.used = true;
  argument.dtype = view->dtype;
  if (view->extent > argument.bytes) argument.bytes = view->extent;
  return {};
}

Status Graph::read_steps(fb::cpu_engine::Graph graph, BackendInit& init) {
  n_steps_ = graph.steps().size();
  steps_ = init.allocator->allocate_array<const Operator*>(n_steps_);
  if (steps_ == nullptr && n_steps_ > 0) return no_memory(*init.message);
  threads_ = init.workers != nullptr ? init.workers->count() : 1;
  Setup setup({values_, n_values_}, n_inputs_ + n_constants_, threads_, init.allocator,
              init.message);
  for (size_t i = 0; i < n_steps_; ++i) {
    Status status = setup.begin(graph.steps()[i]);
    if (status.ok()) {
      const Make make = maker_of(graph.steps()[i].operation_type());
      if (make == nullptr) {
        status = setup.refuse("it is of a kind that this runtime does not know");
      } else {
        const Result<const Operator*> made = make(setup);
        status = made.status();
        if (made.ok()) steps_[i] = made.value();
      }
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
  for (size_t i = 0; i < n_steps_; ++i) {
    const uint64_t start = run.tracer != nullptr ? now_ns() : 0;
    const Status status = steps_[i]->run(frame);
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
