#include "session.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "backends.h"
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

StringView OptionStore::keep(const std::string& text) {
  texts_.push_back(text);
  return {texts_.back().data(), texts_.back().size()};
}

std::shared_ptr<const OptionStore> OptionStore::of(nb::list options) {
  auto store = std::make_shared<OptionStore>();
  for (nb::handle entry : options) {
    std::vector<BackendOption>& list = store->lists_.emplace_back();
    for (nb::handle pair : nb::object(entry[2])) {
      const StringView key = store->keep(nb::cast<std::string>(pair[0]));
      const nb::object value = pair[1];
      if (PyBool_Check(value.ptr())) {
        list.push_back(BackendOption::of_bool(key, value.ptr() == Py_True));
      } else if (PyLong_Check(value.ptr())) {
        list.push_back(BackendOption::of_int(key, nb::cast<int64_t>(value)));
      } else {
        list.push_back(BackendOption::of_text(key, store->keep(nb::cast<std::string>(value))));
      }
    }
    Message message;
    const Status status =
        store->map_.set(store->keep(nb::cast<std::string>(entry[0])), {list.data(), list.size()},
                        message, store->keep(nb::cast<std::string>(entry[1])));
    if (!status.ok()) fail(status.code(), message);
  }
  return store;
}

ModuleOptions Session::options(const SessionOptions& from) {
  ModuleOptions options;
  options.backends = &backend_table();
  options.check_backends = from.check_backends;
  options.memory_limit = from.memory_limit;
  // The traced value of a number is checked here (arguments.h), where the contract is known.
  options.any_scalar_inputs = true;
  if (from.trace) tracer_ = std::make_unique<TimingTracer>();
  options.tracer = tracer_.get();
  options.threads = from.threads;
  options.map = from.map;
  options.guard = from.guard;
  return options;
}

std::shared_ptr<Session> Session::open(const Source& program, const Source& external,
                                       const SessionOptions& from) {
  std::shared_ptr<Session> session(new Session);
  ModuleOptions options = session->options(from);
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
  copy->backend_options_ = backend_options_;
  copy->module_ = std::make_unique<Module>();
  const Status status = open(module(), *copy->module_);
  if (!status.ok()) fail_load(*copy->module_, status);
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
  const Status status = module_->check_files();
  if (!status.ok()) fail(status.code(), module_->message());
  return *module_;
}

MethodRunner& Session::runner(const std::string& method) {
  Turn turn(*this);
  for (const auto& runner : runners_) {
    if (runner->name() == method) return *runner;
  }
  Result<Method*> loaded = module().method({method.data(), method.size()});
  if (!loaded.ok()) fail_load(module(), loaded.status(), method);
  runners_.push_back(std::make_unique<MethodRunner>(method, *loaded.value(), tracer_.get()));
  return *runners_.back();
}

void Session::set_backend_options(std::shared_ptr<const OptionStore> options) {
  module().set_backend_options(&options->map());
  backend_options_.push_back(std::move(options));
}

const Method* Session::loaded_method(const std::string& method) const {
  for (const auto& runner : runners_) {
    if (runner->name() == method) return &runner->method();
  }
  return nullptr;
}

void Session::fail_load(const Module& module, Status status, std::string method) {
  const Method* failed = module.failed_method();
  if (failed != nullptr) method = text(failed->name());
  Failure failure;
  failure.code = status.code();
  failure.message = module.message().text();
  failure.method = method;
  if (failed == nullptr) throw failure;
  if (failed->failed_delegate() != Method::kNoDelegate) {
    failure.delegate = failed->failed_delegate();
    failure.place = failed->failed_place();
    failure.name = text(failed->meta().delegate_id(failed->failed_delegate()));
    failure.cause = take_cause();
    throw failure;
  }
  // After another failure the method's operators were not looked up yet.
  const bool operators = status.code() == Code::OperatorMissing;
  uint32_t cursor = 0;
  MissingBackend backend;
  while ((operators || status.code() == Code::NotFound) &&
         failed->next_missing_backend(&cursor, &backend)) {
    failure.missing.push_back(
        {method, -1, text(backend.id), backend.registered, int64_t{backend.delegate}});
  }
  cursor = 0;
  MissingOperator missing;
  while (operators && failed->next_missing_operator(&cursor, &missing)) {
    char name[256];
    const StringView joined = missing.name.join(name, sizeof name);
    failure.missing.push_back({method, missing.instruction, text(joined), missing.other_types, -1});
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
