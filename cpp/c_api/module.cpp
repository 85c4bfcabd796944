// Modules: opening, closing and copying them.
#include "rushlight/c_api/kernels.h"
#include "rushlight/c_api/module_object.h"

namespace rushlight::c_api {
namespace {

// Kernels are a module's own, which its clones share.
Status add_kernels(const rl_module_options& options, Module* module) {
  if (options.n_kernels > 0) RL_TRY(module->add_kernels({options.kernels, options.n_kernels}));
  for (uint32_t i = 0; i < options.n_kernel_libraries; ++i) {
    RL_TRY(module->add_kernels(options.kernel_libraries[i]));
  }
  return {};
}

// Opens a module by `open(Module&, const ModuleOptions&)`.
template <class Open>
Status open_module(const rl_module_options* asked, const Open& open, rl_module** handle,
                   Failing& failing) {
  Message& message = failing.message;
  RL_TRY(check_given(handle, "module", &message));
  rl_module_options options = {};
  RL_TRY(read_struct(asked, &options, "rl_module_options", &message));
  RL_TRY(check_kernels(options, &message));
  auto object = std::make_unique<ModuleObject>();
  object->origin = std::make_shared<Origin>();
  RL_TRY(object->origin->backends.add(options, &message));
  ModuleOptions wanted;
  wanted.backends = &object->origin->backends.table;
  wanted.data_path = options.data_path;
  wanted.map = options.reads_file == 0;
  wanted.guard = options.guards_file != 0;
  wanted.memory_limit = options.memory_limit;
  if (options.scratch_bytes != 0) {
    wanted.scratch_bytes = static_cast<size_t>(options.scratch_bytes);
  }
  if (options.max_instructions != 0) wanted.max_instructions = options.max_instructions;
  wanted.any_scalar_inputs = true;  // the contract says which may vary: see run.cpp
  wanted.threads = options.threads;
  wanted.cancelled = &object->cancelled;
  if (options.reports_failures != 0) {
    object->report = std::make_unique<FailureReport>();
    wanted.failure.report = object->report.get();
  }
  Status status = open(*object, wanted, &message);
  if (status.ok()) status = add_kernels(options, &object->module);
  if (!status.ok()) {
    if (message.empty()) message = object->module.message();
    return status;
  }
  object->faces.resize(object->module.program().n_methods());
  std::atomic<bool>* stop = &object->cancelled;
  return hand_over(std::move(object), stop, handle, &message);
}

// Reads a whole file into memory of the module.
Status read_source(const rl_source& source, Origin* origin, Message* message) {
  if (source.bytes > SIZE_MAX / 2) {
    return message->fail(Code::MemoryAllocationFailed, "the program is too large for this system");
  }
  const auto bytes = static_cast<size_t>(source.bytes);
  origin->image.resize(bytes / sizeof(uint64_t) + 1);
  if (source.read(source.userdata, 0, origin->image.data(), bytes) == 0) return {};
  return message->fail(Code::AccessFailed, "rl_source: read() failed for %zu bytes", bytes);
}

// `open(Module& from, Module& copy)`.
template <class Open>
rl_status copy_module(rl_module* module, const Open& open, rl_module** handle, rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error, [&](ModuleObject& from, Failing& failing) {
    Message& message = failing.message;
    RL_TRY(check_given(handle, "copy", &message));
    auto copy = std::make_unique<ModuleObject>();
    copy->origin = from.origin;
    copy->module.set_cancelled(&copy->cancelled);
    if (from.report != nullptr) {
      copy->report = std::make_unique<FailureReport>();
      copy->module.set_failure_hook({copy->report.get()});
    }
    copy->faces.resize(from.faces.size());
    Tracer* tracer = from.module.options().tracer;
    from.module.set_tracer(nullptr);  // a trace belongs to one module
    const Status status = open(from.module, copy->module);
    from.module.set_tracer(tracer);
    if (!status.ok()) {
      message = copy->module.message().empty() ? from.module.message() : copy->module.message();
      return status;
    }
    std::atomic<bool>* stop = &copy->cancelled;
    return hand_over(std::move(copy), stop, handle, &message);
  });
}

}  // namespace

Result<size_t> ModuleObject::find(const char* method, Message* message) const {
  RL_TRY(check_given(method, "method", message));
  const Program& program = module.program();
  for (size_t i = 0; i < program.n_methods(); ++i) {
    if (program.method_name(i) == StringView(method)) return i;
  }
  const Result<MethodMeta> meta = program.method_meta(method, message);
  return meta.ok() ? Status(Code::Internal) : meta.status();
}

Result<MethodFace*> ModuleObject::face(size_t method, Message* message) {
  if (faces[method] != nullptr) return faces[method].get();
  const Program& program = module.program();
  Result<MethodMeta> meta = program.method_meta(program.method_name(method), message);
  if (!meta.ok()) return meta.status();
  Result<Contract> contract = read_contract(meta.value(), message);
  if (!contract.ok()) return contract.status();
  auto face = std::make_unique<MethodFace>();
  face->contract = std::move(contract.value());
  face->known.resize(face->contract.n_values());
  face->copies.resize(meta->n_inputs());
  face->outputs.resize(meta->n_outputs());
  faces[method] = std::move(face);
  return faces[method].get();
}

Result<Method*> ModuleObject::load(size_t method, Failing& failing) {
  const Result<Method*> loaded = module.method(module.program().method_name(method));
  if (loaded.ok()) return loaded;
  failing.message = module.message();
  const Method* failed = module.failed_method();
  if (failed != nullptr) failing.delegate = failed->failed_delegate();
  return loaded.status();
}

}  // namespace rushlight::c_api

using namespace rushlight;
using namespace rushlight::c_api;

rl_status rl_module_open(const char* path, const rl_module_options* options, rl_module** module,
                         rl_error* error) {
  return enter(error, [&](Failing& failing) -> Status {
    RL_TRY(check_given(path, "path", &failing.message));
    const auto open = [&](ModuleObject& object, const ModuleOptions& wanted, Message*) {
      return object.module.open(path, wanted);
    };
    return open_module(options, open, module, failing);
  });
}

rl_status rl_module_open_memory(const void* data, size_t bytes, const rl_module_options* options,
                                rl_module** module, rl_error* error) {
  return enter(error, [&](Failing& failing) -> Status {
    RL_TRY(check_given(data, "data", &failing.message));
    const auto open = [&](ModuleObject& object, const ModuleOptions& wanted, Message*) {
      return object.module.open_memory(data, bytes, wanted);
    };
    return open_module(options, open, module, failing);
  });
}

rl_status rl_module_open_source(const rl_source* source, const rl_module_options* options,
                                rl_module** module, rl_error* error) {
  return enter(error, [&](Failing& failing) -> Status {
    RL_TRY(check_given(source, "source", &failing.message));
    rl_source reader = {};
    RL_TRY(read_struct(source, &reader, "rl_source", &failing.message));
    if (reader.read == nullptr) {
      return failing.message.fail(Code::InvalidArgument, "rl_source: it lacks read");
    }
    const auto open = [&](ModuleObject& object, const ModuleOptions& wanted, Message* message) {
      RL_TRY(read_source(reader, object.origin.get(), message));
      return object.module.open_memory(object.origin->image.data(),
                                       static_cast<size_t>(reader.bytes), wanted);
    };
    return open_module(options, open, module, failing);
  });
}

rl_status rl_module_close(rl_module* module, rl_error* error) {
  return close<ModuleObject>(module, error);
}

rl_status rl_module_clone(rl_module* module, rl_module** copy, rl_error* error) {
  return copy_module(module, [](Module& from, Module& to) { return from.clone(to); }, copy, error);
}

rl_status rl_module_fork(rl_module* module, rl_module** copy, rl_error* error) {
  return copy_module(module, [](Module& from, Module& to) { return from.fork(to); }, copy, error);
}

rl_status rl_module_cancel(rl_module* module, rl_error* error) {
  return enter(error, [&](Failing& failing) {
    return stop_use(reinterpret_cast<uintptr_t>(module), Kind::Module, &failing.message);
  });
}

rl_status rl_module_seed(rl_module* module, uint64_t seed, rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error, [&](ModuleObject& object, Failing&) {
    object.module.manual_seed(seed);
    return Status();
  });
}
