#include "backends.h"

#include <executorch/runtime/executor/pte_data_map.h>

#include <new>

#include "rushlight/module/module.h"
#include "tracers.h"
#include "values.h"

namespace executorch::runtime {
namespace internal {
namespace {

// One delegate, in memory that lives as long as its method.
struct Delegate {
  Delegate(const ::rushlight::BackendInit& init)
      : memory(init.allocator),
        named_data(init.named_data),
        payload(init.payload.data(), init.payload.size(), nullptr),
        method(init.method.data()) {}

  AllocatorView memory;
  PteDataMap named_data;
  FreeableBuffer payload;
  const char* method;
  DelegateHandle* handle = nullptr;
};

template <typename T>
T* make_array(::rushlight::Allocator& memory, size_t count) {
  T* items = memory.allocate_array<T>(count);
  for (size_t i = 0; items != nullptr && i < count; ++i) new (&items[i]) T();
  return items;
}

CompileSpec translate(const ::rushlight::CompileSpec& spec) {
  return {spec.key.data(), {const_cast<uint8_t*>(spec.value.data()), spec.value.size()}};
}

void translate(const ::rushlight::BackendOption& from, BackendOption& to) {
  std::memcpy(to.key, from.key.data(), from.key.size());
  switch (from.kind) {
    case ::rushlight::BackendOption::Kind::Bool:
      to.value = from.i != 0;
      break;
    case ::rushlight::BackendOption::Kind::Int:
      to.value = static_cast<int>(from.i);
      break;
    case ::rushlight::BackendOption::Kind::String: {
      std::array<char, kMaxOptionValueLength> text{};
      std::memcpy(text.data(), from.text.data(), from.text.size());
      to.value = text;
      break;
    }
  }
}

struct Registry {
  ::rushlight::BackendTable registered;
  AdoptedBackend adopted[::rushlight::BackendTable::kCapacity];
  ::rushlight::BackendTable table;
  bool is_current = false;
};

Registry& registry() {
  static Registry all;
  return all;
}

BackendInterface* find_registered(const char* name) {
  ::rushlight::Backend* backend = registry().registered.find(name);
  return backend != nullptr ? static_cast<AdoptedBackend*>(backend)->interface() : nullptr;
}

}  // namespace

::rushlight::Result<void*> AdoptedBackend::init(::rushlight::BackendInit& init) {
  ::rushlight::Allocator& memory = *init.allocator;
  auto* place = memory.allocate_array<Delegate>(1);
  auto* specs = make_array<CompileSpec>(memory, init.specs.size());
  auto* options = make_array<BackendOption>(memory, init.options.size());
  if (place == nullptr || (specs == nullptr && !init.specs.empty()) ||
      (options == nullptr && init.options.size() > 0)) {
    return init.message->fail(Error::DelegateMemoryAllocationFailed,
                              "there is no memory for the delegate's compile specs");
  }
  for (size_t i = 0; i < init.specs.size(); ++i) specs[i] = translate(init.specs[i]);
  for (size_t i = 0; i < init.options.size(); ++i) translate(init.options[i], options[i]);
  auto* delegate = new (place) Delegate(init);
  EventsOfTracer events(init.tracer);
  BackendInitContext context(&delegate->memory, init.tracer != nullptr ? &events : nullptr,
                             delegate->method, &delegate->named_data,
                             {options, init.options.size()});
  Result<DelegateHandle*> handle =
      backend_->init(context, &delegate->payload, {specs, init.specs.size()});
  if (!handle.ok()) {
    const Error error = handle.error();
    delegate->~Delegate();
    return init.message->fail(error, "the backend's init() returned %s; the log may say why",
                              to_string(error));
  }
  if (delegate->payload.data() == nullptr) init.keeps_payload = false;
  delegate->handle = *handle;
  return static_cast<void*>(delegate);
}

::rushlight::Status AdoptedBackend::execute(const ::rushlight::BackendRun& run, void* handle,
                                            ::rushlight::EValue* const* args, size_t n_args) {
  auto* delegate = static_cast<Delegate*>(handle);
  const size_t bytes = bytes_of_views(args, n_args);
  void* memory = run.scratch != nullptr ? run.scratch->allocate(bytes) : nullptr;
  if (memory == nullptr) {
    return run.message->fail(Error::MemoryAllocationFailed,
                             "the delegate's arguments need %zu bytes of scratch memory", bytes);
  }
  const Span<EValue*> views = make_views(args, n_args, memory);
  AllocatorView scratch(run.scratch);
  EventsOfTracer events(run.tracer);
  BackendExecutionContext context(run.tracer != nullptr ? &events : nullptr, &scratch,
                                  delegate->method);
  const Error error = backend_->execute(context, delegate->handle, views);
  if (error == Error::Ok) return {};
  return run.message->fail(error, "the backend's execute() returned %s; the log may say why",
                           to_string(error));
}

void AdoptedBackend::destroy(void* handle) {
  auto* delegate = static_cast<Delegate*>(handle);
  backend_->destroy(delegate->handle);
  delegate->~Delegate();
}

const ::rushlight::BackendTable& registered_backends() {
  Registry& all = registry();
  if (all.is_current) return all.table;
  all.table = all.registered;
  const ::rushlight::BackendTable* own = ::rushlight::default_backends();
  for (size_t i = 0; own != nullptr && i < own->size(); ++i) {
    (void)all.table.add(own->id(i), own->backend(i));  // unless the name is registered
  }
  all.is_current = true;
  return all.table;
}

size_t count_options(const LoadBackendOptionsMap& map) {
  size_t count = 0;
  for (size_t i = 0; i < map.size(); ++i) count += map.entry_at(i).options.size();
  return count;
}

Error translate_options(const LoadBackendOptionsMap& map, ::rushlight::BackendOption* options,
                        ::rushlight::BackendOptionsMap& to) {
  using Option = ::rushlight::BackendOption;
  ::rushlight::Message message;
  for (size_t i = 0; i < map.size(); ++i) {
    const auto entry = map.entry_at(i);
    Option* first = options;
    for (const BackendOption& option : entry.options) {
      if (const bool* flag = std::get_if<bool>(&option.value)) {
        *options++ = Option::of_bool(option.key, *flag);
      } else if (const int* number = std::get_if<int>(&option.value)) {
        *options++ = Option::of_int(option.key, *number);
      } else {
        const auto& text = std::get<std::array<char, kMaxOptionValueLength>>(option.value);
        *options++ = Option::of_text(option.key, text.data());
      }
    }
    const ::rushlight::Status status = to.set(
        entry.backend_id, ::rushlight::Span<const Option>(first, entry.options.size()), message);
    ET_CHECK_OR_RETURN_ERROR(status.ok(), InvalidArgument, "%s", message.text());
  }
  return Error::Ok;
}

}  // namespace internal

Error register_backend(const Backend& backend) {
  ET_CHECK_OR_RETURN_ERROR(backend.name != nullptr && backend.backend != nullptr, InvalidArgument,
                           "a backend has no name, or is null");
  internal::Registry& all = internal::registry();
  const size_t at = all.registered.size();
  ET_CHECK_OR_RETURN_ERROR(at < ::rushlight::BackendTable::kCapacity, OutOfResources,
                           "more than %zu backends are registered", at);
  const Error error = all.registered.add(backend.name, &all.adopted[at]).code();
  ET_CHECK_OK_OR_RETURN_ERROR(error, "backend %s is registered already", backend.name);
  all.adopted[at].adopt(backend.backend);
  all.is_current = false;
  return Error::Ok;
}

BackendInterface* get_backend_class(const char* name) {
  return name != nullptr ? internal::find_registered(name) : nullptr;
}

size_t get_num_registered_backends() { return internal::registered_backends().size(); }

Result<const char*> get_backend_name(size_t index) {
  const ::rushlight::BackendTable& table = internal::registered_backends();
  ET_CHECK_OR_RETURN_ERROR(index < table.size(), InvalidArgument,
                           "there is no backend %zu among %zu", index, table.size());
  return table.id(index);
}

Error set_option(const char* backend_name, const Span<BackendOption> backend_options) {
  BackendInterface* backend = get_backend_class(backend_name);
  if (backend == nullptr) return Error::NotFound;
  BackendOptionContext context;
  return backend->set_option(context, backend_options);
}

Error get_option(const char* backend_name, Span<BackendOption> backend_options) {
  BackendInterface* backend = get_backend_class(backend_name);
  if (backend == nullptr) return Error::NotFound;
  BackendOptionContext context;
  return backend->get_option(context, backend_options);
}

}  // namespace executorch::runtime
