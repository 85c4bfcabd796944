#include "session.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "failure.h"

namespace rushlight::python {

namespace {

const char* file_path(const nb::object& path) { return PyBytes_AsString(path.ptr()); }

Span<const uint8_t> bytes_of(const nb::object& data) {
  return {reinterpret_cast<const uint8_t*>(PyBytes_AsString(data.ptr())),
          static_cast<size_t>(PyBytes_Size(data.ptr()))};
}

std::string text(StringView view) { return {view.data(), view.size()}; }

}  // namespace

BackendTable& backend_table() {
  static BackendTable table;
  return table;
}

ModuleOptions Session::options(uint64_t memory_limit, bool trace, size_t threads) {
  ModuleOptions options;
  options.backends = &backend_table();
  options.memory_limit = memory_limit;
  // The traced value of a number is checked here (arguments.h), where the contract is known.
  options.any_scalar_inputs = true;
  if (trace) tracer_ = std::make_unique<TimingTracer>();
  options.tracer = tracer_.get();
  options.threads = threads;
  return options;
}

std::shared_ptr<Session> Session::open(const Source& program, const Source& external,
                                       uint64_t memory_limit, bool trace, size_t threads) {
  std::shared_ptr<Session> session(new Session);
  ModuleOptions options = session->options(memory_limit, trace, threads);
  session->module_ = std::make_unique<Module>();
  Module& module = *session->module_;
  if (!external.path.is_none()) options.data_path = file_path(external.path);
  Status status;
  if (program.path.is_none()) {
    session->program_bytes_ = program.data;
    const Span<const uint8_t> bytes = bytes_of(program.data);
    status = module.open_memory(bytes.data(), bytes.size(), options);
  } else {
    status = module.open(file_path(program.path), options);
  }
  if (status.ok() && !external.data.is_none()) {
    session->external_bytes_ = external.data;
    const Span<const uint8_t> bytes = bytes_of(external.data);
    status = module.add_data_memory(bytes.data(), bytes.size());
  }
  if (!status.ok()) fail(status.code(), module.message());
  return session;
}

std::shared_ptr<Session> Session::copy(Status (*open)(Module& from, Module& to)) {
  Turn turn(*this);
  if (tracer_ != nullptr) {
    fail(Code::NotSupported, "a module with trace=True cannot be cloned: load it twice instead");
  }
  std::shared_ptr<Session> copy(new Session);
  copy->program_bytes_ = program_bytes_;
  copy->external_bytes_ = external_bytes_;
  copy->module_ = std::make_unique<Module>();
  const Status status = open(module(), *copy->module_);
  if (!status.ok()) fail(status.code(), copy->module_->message());
  return copy;
}

std::shared_ptr<Session> Session::clone() {
  return copy([](Module& from, Module& to) { return from.clone(to); });
}

std::shared_ptr<Session> Session::fork() {
  return copy([](Module& from, Module& to) { return from.fork(to); });
}

Module& Session::module() {
  if (module_ == nullptr) fail(Code::InvalidState, "the module is closed");
  return *module_;
}

MethodRunner& Session::runner(const std::string& method) {
  Turn turn(*this);
  for (const auto& runner : runners_) {
    if (runner->name() == method) return *runner;
  }
  Result<Method*> loaded = module().method({method.data(), method.size()});
  if (!loaded.ok()) {
    if (loaded.status().code() == Code::OperatorMissing ||
        loaded.status().code() == Code::NotFound) {
      fail_load(method, loaded.status());
    }
    Failure failure;
    failure.code = loaded.status().code();
    failure.message = module().message().text();
    failure.method = method;
    throw failure;
  }
  runners_.push_back(std::make_unique<MethodRunner>(method, *loaded.value(), tracer_.get()));
  return *runners_.back();
}

void Session::fail_load(const std::string& method, Status status) {
  Failure failure;
  failure.code = status.code();
  failure.message = module().message().text();
  failure.method = method;
  if (const Method* failed = module().failed_method()) {
    uint32_t cursor = 0;
    MissingBackend backend;
    while (failed->next_missing_backend(&cursor, &backend)) {
      failure.missing.push_back({method, -1, text(backend.id), backend.registered});
    }
    cursor = 0;
    MissingOperator missing;
    // After another failure the method's operators were not looked up yet.
    const bool looked_up = status.code() == Code::OperatorMissing;
    while (looked_up && failed->next_missing_operator(&cursor, &missing)) {
      char name[256];
      const StringView joined = missing.name.join(name, sizeof name);
      failure.missing.push_back({method, missing.instruction, text(joined), missing.other_types});
    }
  }
  throw failure;
}

void Session::close() {
  if (module_ == nullptr) return;
  Turn turn(*this);
  for (const auto& runner : runners_) runner->detach();
  module_.reset();  // the lock is held: nobody is inside
}

Turn::Turn(Session& session) : session_(session) {
  if (session.holder_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
    fail(Code::InvalidState, "the module was called from within one of its own calls");
  }
  if (!session.mutex_.try_lock()) {
    nb::gil_scoped_release unlocked;
    session.mutex_.lock();
  }
  if (session.module_ == nullptr) {
    session.mutex_.unlock();
    fail(Code::InvalidState, "the module is closed");
  }
  session.holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

Turn::~Turn() {
  session_.holder_.store(std::thread::id(), std::memory_order_relaxed);
  session_.mutex_.unlock();
}

}  // namespace rushlight::python
