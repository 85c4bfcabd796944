#include "program/session.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "backends/backends.h"
#include "failure.h"
#include "kernels/python_kernel.h"

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
  options.kernels = &kernel_table();
  options.backends = &backend_table();
  options.check_backends = from.check_backends;
  options.memory_limit = from.memory_limit;
  // The traced value of a number is checked here (arguments.h), where the contract is known.
  options.any_scalar_inputs = true;
  if (from.trace.bytes > 0) {
    trace_ = std::make_unique<SessionTrace>(from.trace);
    options.tracer = trace_->tracer();
  }
  if (!from.failure_report.empty()) {
    report_ = std::make_unique<SessionReport>();
    report_->path = from.failure_report;
    options.failure.report = &report_->report;
  }
  options.threads = from.threads;
  options.map = from.map;
  options.guard = from.guard;
  return options;
}

std::shared_ptr<Session> Session::open(const Source& program, const Source& external,
                                       const SessionOptions& from) {
  sweep();
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
  for (const std::string& path : from.kernels) {
    if (status.ok()) status = module.add_kernels(path.c_str());
  }
  if (!status.ok()) fail(status.code(), module.message());
  return session;
}

std::shared_ptr<Session> Session::copy(Status (*open)(Module& from, Module& to), bool with_state) {
  Turn turn(*this);
  if (with_state) check_state();
  if (trace_ != nullptr) {
    fail(Code::NotSupported, "a module with trace=True cannot be cloned: load it twice instead");
  }
  std::shared_ptr<Session> copy(new Session);
  copy->program_bytes_ = program_bytes_;
  copy->external_bytes_ = external_bytes_;
  copy->backend_options_ = backend_options_;
  copy->module_ = std::make_unique<Module>();
  if (report_ != nullptr) {
    copy->report_ = std::make_unique<SessionReport>();
    copy->report_->path = report_->path;
    copy->module_->set_failure_hook({&copy->report_->report});
  }
  const Status status = open(module(), *copy->module_);
  if (!status.ok()) fail_load(*copy->module_, status, copy->report_.get());
  return copy;
}

std::shared_ptr<Session> Session::clone() {
  return copy([](Module& from, Module& to) { return from.clone(to); }, false);
}

std::shared_ptr<Session> Session::fork() {
  return copy([](Module& from, Module& to) { return from.fork(to); }, true);
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
  if (!loaded.ok()) fail_load(module(), loaded.status(), report(), method);
  runners_.push_back(std::make_unique<MethodRunner>(method, *loaded.value()));
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

void SessionReport::take(Failure& failure) {
  if (!report.has_failure()) return;
  const Span<const uint8_t> content = report.content();
  failure.report_path = path;
  failure.report.assign(reinterpret_cast<const char*>(content.data()), content.size());
  report.clear();
}

void Session::fail_load(const Module& module, Status status, SessionReport* report,
                        std::string method) {
  const Method* failed = module.failed_method();
  if (failed != nullptr) method = text(failed->name());
  Failure failure;
  failure.code = status.code();
  failure.message = module.message().text();
  failure.method = method;
  if (report != nullptr) report->take(failure);
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
  Turn turn(*this, Turn::For::Closing);
  for (const auto& runner : runners_) hold(runner->detach());
  if (lock_.was_cut_off()) (void)module_.release();
  if (is_lent()) return bury();
  module_.reset();  // the lock is held: nobody is inside
  held_.clear();
}

Session::~Session() {
  if (lock_.was_cut_off()) (void)module_.release();
  for (const auto& runner : runners_) hold(runner->detach());
  if (is_lent()) bury();
}

// Takes the place of a module that a fork cut off. That one is left as it is for ever: a thread was
// at work in it, and in what its backends made.
void Session::make_anew() {
  auto fresh = std::make_unique<Module>();
  fresh->set_failure_hook(module_->options().failure);
  const Status opened = module_->clone(*fresh);
  if (!opened.ok()) fail(opened.code(), fresh->message());
  (void)module_.release();
  module_ = std::move(fresh);
  if (trace_ != nullptr) trace_->clear();
  for (const auto& runner : runners_) {
    const std::string& name = runner->name();
    Result<Method*> loaded = module_->method({name.data(), name.size()});
    if (!loaded.ok()) fail_load(*module_, loaded.status(), report(), name);
    runner->attach(*loaded.value());
  }
  Result<Span<const StateEntry>> entries = module_->state();
  if (!entries.ok()) fail(entries.status().code(), module_->message());
  is_state_lost_ = entries->size() > 0;
  lock_.clear_cut_off();
}

std::shared_ptr<const void> Session::program_memory() {
  struct Held {
    nb::object program, external;
    Module module;
  };
  if (program_memory_ == nullptr) {
    auto held = std::make_shared<Held>();
    held->program = program_bytes_;
    held->external = external_bytes_;
    if (!module().clone(held->module).ok()) throw std::bad_alloc();
    program_memory_ = std::move(held);
  }
  return program_memory_;
}

void Session::hold(std::vector<Argument>& arguments) {
  if (!arguments.empty() && is_lent()) held_.push_back(std::move(arguments));
  arguments.clear();
}

bool Session::is_lent() {
  const auto is_back = [](const Loan& loan) { return loan.array.is_back(); };
  loans_.erase(std::remove_if(loans_.begin(), loans_.end(), is_back), loans_.end());
  if (loans_.empty()) held_.clear();
  return !loans_.empty();
}

void Session::check_state() const {
  if (!is_state_lost_) return;
  fail(Code::InvalidState,
       "this process was forked while another thread ran the module, so its state is lost here: "
       "give it one with state.reset() or state.restore(snapshot), or take a clone()");
}

void Session::check_ready() {
  check_state();
  if (!is_lent()) return;
  fail(Code::InvalidState, "the backend " + loans_[0].backend + " still has " + loans_[0].what +
                               " of an earlier execute(): the module runs again when it has let "
                               "go of it");
}

// Modules that were closed while backends still used them. The list itself is never destroyed.
std::vector<std::unique_ptr<Session>>& Session::graves() {
  static auto* const all = new std::vector<std::unique_ptr<Session>>;
  return *all;
}

// Frees what they have let go of meanwhile. That may run any code, which may come here again.
void Session::sweep() {
  if (graves().empty()) return;
  std::vector<std::unique_ptr<Session>> all = std::exchange(graves(), {});
  for (auto& grave : all) {
    if (grave->is_lent()) graves().push_back(std::move(grave));
  }
}

void Session::bury() {
  std::unique_ptr<Session> grave(new Session);
  grave->program_bytes_ = std::move(program_bytes_);
  grave->external_bytes_ = std::move(external_bytes_);
  grave->backend_options_ = std::move(backend_options_);
  grave->trace_ = std::move(trace_);
  grave->report_ = std::move(report_);
  grave->module_ = std::move(module_);
  grave->held_ = std::move(held_);
  grave->loans_ = std::move(loans_);
  graves().push_back(std::move(grave));
}

Turn::Turn(Session& session, For purpose) : session_(session) {
  if (!session.lock_.acquire()) {
    fail(Code::InvalidState, "the module was called from within one of its own calls");
  }
  try {
    if (session.module_ == nullptr) fail(Code::InvalidState, "the module is closed");
    if (purpose == For::Use && session.lock_.was_cut_off()) session.make_anew();
  } catch (...) {
    session.lock_.release();
    throw;
  }
}

Turn::~Turn() { session_.lock_.release(); }

}  // namespace rushlight::python
