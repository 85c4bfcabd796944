#include "rushlight/delegate/plugin.h"

#include <cstddef>
#include <cstring>

#include "rushlight/kernel/c_values.h"
#include "rushlight/platform/platform.h"

namespace rushlight {
namespace {

using namespace c_values;

// What `context` points to: one call of init or execute. Fields that only the other call has are
// nullptr.
struct Context {
  Allocator* memory;
  Tracer* tracer;
  Message* message;
  DelegatePlace* place;
  BackendInit* init;
  const BackendRun* run;
  EValue* const* args;
  size_t n_args;
};

Context& context_of(void* context) { return *static_cast<Context*>(context); }

void explain(void* context, rl_text_v1 text) {
  const StringView words = view(text);
  context_of(context).message->clear();
  context_of(context).message->append("%.*s", words.len(), words.data());
}

void fail_at_number(void* context, int64_t id) { context_of(context).place->set(id); }

void fail_at_text(void* context, rl_text_v1 id) { context_of(context).place->set(view(id)); }

void* allocate(void* context, size_t bytes, size_t alignment) {
  const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
  Allocator* memory = context_of(context).memory;
  return is_power && memory != nullptr ? memory->allocate(bytes, alignment) : nullptr;
}

// The id of a place as tracers take it: texts have a closing NUL.
class PlaceId {
 public:
  PlaceId(rl_text_v1 text, int64_t number) : number_(number) { text_.set(view(text)); }
  operator DelegateId() const { return {text_.empty() ? nullptr : text_.text(), number_}; }

 private:
  DelegatePlace text_;
  int64_t number_;
};

void event_with(void* context, rl_text_v1 id, int64_t number, uint64_t start, uint64_t stop,
                rl_bytes_v1 metadata) {
  Tracer* tracer = context_of(context).tracer;
  if (tracer == nullptr) return;
  tracer->delegate_event(
      PlaceId(id, number), start, stop,
      {static_cast<const uint8_t*>(metadata.data), metadata.data != nullptr ? metadata.size : 0});
}

void event(void* context, rl_text_v1 id, int64_t number, uint64_t start, uint64_t stop) {
  event_with(context, id, number, start, stop, {nullptr, 0});
}

uint64_t clock_ns() { return now_ns(); }

int32_t named_data(void* context, rl_text_v1 key, rl_bytes_v1* data) {
  const BackendInit* init = context_of(context).init;
  if (init == nullptr || data == nullptr) return RL_INVALID_ARGUMENT;
  const Result<Span<const uint8_t>> bytes = init->named_data->get(view(key));
  if (!bytes.ok()) return static_cast<int32_t>(bytes.status().code());
  *data = {bytes.value().data(), bytes.value().size()};
  return RL_OK;
}

int32_t option(void* context, rl_text_v1 key, rl_option_v1* to) {
  const BackendInit* init = context_of(context).init;
  if (init == nullptr || to == nullptr || !is_struct(to, to->size)) return RL_INVALID_ARGUMENT;
  const BackendOption* option = init->options.find(view(key));
  if (option == nullptr) return RL_NOT_FOUND;
  rl_option_v1 from = {};
  from.kind = option->kind == BackendOption::Kind::Bool  ? RL_BOOL
              : option->kind == BackendOption::Kind::Int ? RL_INT
                                                         : RL_STRING;
  from.i = option->i;
  from.text = text_of(option->text);
  hand_over(from, to);
  return RL_OK;
}

void release_payload(void* context) {
  if (context_of(context).init != nullptr) context_of(context).init->keeps_payload = false;
}

int32_t value(void* context, size_t index, rl_value_v1* to) {
  const Context& call = context_of(context);
  if (call.run == nullptr || to == nullptr || !is_struct(to, to->size)) return RL_INVALID_ARGUMENT;
  if (index >= call.n_args) return RL_INVALID_ARGUMENT;
  hand_over(value_of(*call.args[index]), to);
  return RL_OK;
}

int32_t fail_sizes(void* context) {
  explain(context, text_of("sizes are NULL, or more than the 16 that a tensor can have"));
  return RL_INVALID_ARGUMENT;
}

int32_t resize(void* context, size_t index, const int32_t* sizes, uint32_t rank) {
  const Context& call = context_of(context);
  if (call.run == nullptr) return RL_INVALID_ARGUMENT;
  if (!are_sizes(sizes, rank)) return fail_sizes(context);
  if (index < call.run->n_inputs || index >= call.n_args || !call.args[index]->is_tensor()) {
    explain(context, text_of("resize() is for outputs"));
    return RL_INVALID_ARGUMENT;
  }
  const Status status = call.run->resize(call.args[index]->tensor(), {sizes, rank});
  return static_cast<int32_t>(status.code());
}

int32_t wants_value(void* context, rl_text_v1 id, int64_t number) {
  const Context& call = context_of(context);
  if (call.run == nullptr || call.tracer == nullptr) return 0;
  return call.run->wants_value(PlaceId(id, number)) ? 1 : 0;
}

int32_t tell_value(void* context, rl_text_v1 id, int64_t number, int32_t dtype,
                   const int32_t* sizes, uint32_t rank, rl_bytes_v1 data) {
  const Context& call = context_of(context);
  if (call.run == nullptr) return RL_INVALID_ARGUMENT;
  if (wants_value(context, id, number) == 0) return RL_OK;
  if (!are_sizes(sizes, rank)) return fail_sizes(context);
  if (dtype < 0 || dtype > INT8_MAX) {
    explain(context, text_of("the dtype of a value is none of ExecuTorch's numbers"));
    return RL_INVALID_ARGUMENT;
  }
  const Status status =
      call.run->tell_value(PlaceId(id, number), static_cast<DType>(dtype), {sizes, rank},
                           {static_cast<const uint8_t*>(data.data), data.size});
  return static_cast<int32_t>(status.code());
}

// What every maker of a backend knows of the struct: fields that are added later lie behind.
constexpr size_t kMinStruct = offsetof(rl_backend_v1, destroy) + sizeof(rl_backend_v1::destroy);

constexpr rl_host_v1 kHost = {RL_BACKEND_V1_VERSION,
                              sizeof(rl_host_v1),
                              explain,
                              fail_at_number,
                              fail_at_text,
                              allocate,
                              event,
                              clock_ns,
                              named_data,
                              option,
                              release_payload,
                              value,
                              resize,
                              event_with,
                              wants_value,
                              tell_value};

Status fail_struct(Message& message, const char* what) {
  return message.fail(Code::DelegateInvalidCompatibility,
                      "the library's rl_backend_v1 cannot be used: %s; build it with this "
                      "runtime's rl_backend_v1.h",
                      what);
}

bool is_id(const char* id) {
  if (id == nullptr) return false;
  size_t n = 0;
  while (n <= BackendOptionsMap::kMaxId && id[n] != '\0') ++n;
  return n > 0 && n <= BackendOptionsMap::kMaxId;
}

}  // namespace

Status PluginBackend::adopt(const rl_backend_v1* backend, Message& message) {
  if (backend == nullptr) return fail_struct(message, "it is NULL");
  if (backend->version != RL_BACKEND_V1_VERSION) {
    return message.fail(Code::DelegateInvalidCompatibility,
                        "the library's backend is of version %lu of the interface; this runtime "
                        "knows version %lu: install a build of the library for that",
                        static_cast<unsigned long>(backend->version),
                        static_cast<unsigned long>(RL_BACKEND_V1_VERSION));
  }
  if (backend->size < kMinStruct || backend->size > kMaxStruct) {
    return message.fail(Code::DelegateInvalidCompatibility,
                        "the library's rl_backend_v1 has %lu bytes, where %zu and more (at most "
                        "%lu) are allowed",
                        static_cast<unsigned long>(backend->size), kMinStruct,
                        static_cast<unsigned long>(kMaxStruct));
  }
  if (!is_id(backend->id)) return fail_struct(message, "its id must have 1 to 63 bytes");
  if (backend->init == nullptr) return fail_struct(message, "it has no init");
  if (backend->execute == nullptr) return fail_struct(message, "it has no execute");
  const size_t known = backend->size < sizeof(backend_) ? backend->size : sizeof(backend_);
  std::memcpy(&backend_, backend, known);
  return {};
}

bool PluginBackend::available() const {
  return backend_.is_available == nullptr || backend_.is_available(backend_.self) != 0;
}

Result<void*> PluginBackend::init(BackendInit& init) {
  static_assert(sizeof(rl_spec_v1) >= sizeof(CompileSpec), "specs are handed over as a copy");
  rl_spec_v1* specs = init.allocator->allocate_array<rl_spec_v1>(init.specs.size());
  if (specs == nullptr && !init.specs.empty()) {
    return init.message->fail(Code::DelegateMemoryAllocationFailed,
                              "there is no memory for its %zu compile specs", init.specs.size());
  }
  for (size_t i = 0; i < init.specs.size(); ++i) {
    const CompileSpec& spec = init.specs[i];
    specs[i] = {text_of(spec.key), {spec.value.data(), spec.value.size()}};
  }
  Context context = {init.allocator, init.tracer, init.message, init.place,
                     &init,          nullptr,     nullptr,      0};
  rl_init_v1 from = {};
  from.size = sizeof(from);
  from.n_specs = static_cast<uint32_t>(init.specs.size());
  from.host = &kHost;
  from.context = &context;
  from.method = text_of(init.method);
  from.payload = {init.payload.data(), init.payload.size()};
  from.specs = specs;
  void* handle = nullptr;
  const Status status =
      status_of(backend_.init(backend_.self, &from, &handle), *init.message, "backend");
  if (!status.ok()) return status;
  return handle;
}

Status PluginBackend::execute(const BackendRun& run, void* handle, EValue* const* args,
                              size_t n_args) {
  Context context = {run.scratch, run.tracer, run.message, run.place, nullptr, &run, args, n_args};
  rl_call_v1 call = {};
  call.size = sizeof(call);
  call.is_traced = run.tracer != nullptr ? 1 : 0;
  call.host = &kHost;
  call.context = &context;
  call.n_args = n_args;
  call.n_inputs = run.n_inputs;
  return status_of(backend_.execute(backend_.self, handle, &call), *run.message, "backend");
}

void PluginBackend::destroy(void* handle) {
  if (backend_.destroy != nullptr) backend_.destroy(backend_.self, handle);
}

}  // namespace rushlight
