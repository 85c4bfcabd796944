#include "method/runner.h"

#include "arrays/overlap.h"
#include "arrays/values.h"
#include "failure.h"
#include "gil.h"
#include "program/session.h"

namespace rushlight::python {

namespace {

bool any_torch(const std::vector<Argument>& arguments) {
  for (const Argument& a : arguments) {
    if (a.array.is_torch()) return true;
  }
  return false;
}

// "float32[2, 3]"
std::string spec_of(const Layout& array) {
  std::string text = std::string(dtype_name(array.dtype)) + "[";
  for (size_t d = 0; d < array.rank; ++d) {
    text += (d == 0 ? "" : ", ") + std::to_string(array.sizes[d]);
  }
  return text + "]";
}

std::string name_of(const std::vector<std::string>& names, const char* kind, size_t index) {
  return index < names.size() ? names[index] : kind + std::string(" ") + std::to_string(index);
}

std::string type_of(PyObject* object) { return Py_TYPE(object)->tp_name; }

}  // namespace

std::string MethodRunner::output_name(size_t index) const {
  return name_of(output_names_, "output", index);
}

std::string MethodRunner::output_spec(size_t index) const {
  return index < output_specs_.size() ? output_specs_[index] : "a tensor";
}

void MethodRunner::wrong_target(const Layout& array, size_t index) const {
  fail(Code::InvalidArgument, output_name(index) + " is " + output_spec(index) +
                                  ", but the array given for it is " + spec_of(array) +
                                  ", of another dtype or shape");
}

void MethodRunner::check_result(const EValue& value, const Target& target, size_t index) const {
  if (!target.wanted) return;
  const Layout from = layout_of(value.tensor());
  const Layout& to = target.array.layout();
  bool same = from.dtype == to.dtype && from.rank == to.rank;
  for (size_t d = 0; same && d < from.rank; ++d) same = from.sizes[d] == to.sizes[d];
  if (same) return;
  fail(Code::InvalidArgument, output_name(index) + " came out as " + spec_of(from) +
                                  ", but the array given for it is " + spec_of(to) +
                                  ", of another dtype or shape");
}

// What can be checked before the run, which may write the method's state: everything but the sizes
// that vary.
void MethodRunner::check_target(const ValueMeta& meta, const Target& target, size_t index) const {
  if (meta.tag != Tag::Tensor) {
    fail(Code::InvalidType, output_name(index) + " is not a tensor: pass None in its place");
  }
  const Layout& to = target.array.layout();
  bool fits = meta.tensor.dtype == to.dtype && meta.tensor.rank == to.rank;
  for (size_t d = 0; fits && d < to.rank && meta.tensor.dynamism == Dynamism::Static; ++d) {
    fits = meta.tensor.sizes[d] == to.sizes[d];
  }
  if (!fits) wrong_target(to, index);
}

void MethodRunner::borrow_targets(nb::handle outputs, std::vector<Target>& targets) const {
  for (size_t k = 0; k < targets.size(); ++k) {
    PyObject* object = PySequence_Fast_GET_ITEM(outputs.ptr(), static_cast<Py_ssize_t>(k));
    if (object == Py_None) continue;
    const auto name = [&] { return output_name(k); };
    std::string why;
    switch (targets[k].array.borrow(object, &why)) {
      case Borrowed::Yes:
        break;
      case Borrowed::NotAnArray:
        fail(Code::InvalidType, name() + ": got an object of type " + type_of(object) +
                                    ", expected a writable array to write " + output_spec(k) +
                                    " to, or None");
      case Borrowed::Unsupported:
        fail(Code::InvalidType, "the array for " + name() + ": " + why);
    }
    if (targets[k].array.layout().read_only) {
      fail(Code::InvalidArgument, "the array for " + name() + " is read-only");
    }
    targets[k].wanted = true;
    check_target(method_->meta().output(k), targets[k], k);
  }
}

// If two elements share memory, one of them would be lost.
void MethodRunner::check_overlaps(const std::vector<Argument>& arguments,
                                  const std::vector<Target>& targets) const {
  for (size_t k = 0; k < targets.size(); ++k) {
    if (!targets[k].wanted) continue;
    const Layout& to = targets[k].array.layout();
    const auto name = [&] { return "the array for " + output_name(k); };
    if (overlaps_itself(to)) {
      fail(Code::InvalidArgument, name() + " overlaps itself: two of its elements share memory");
    }
    for (size_t i = 0; i < k; ++i) {
      if (!targets[i].wanted || !overlap(targets[i].array.layout(), to)) continue;
      fail(Code::InvalidArgument, name() + " shares memory with that for " + output_name(i) +
                                      ": pass arrays that do not overlap");
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ArrayRef& from = arguments[i].array;
      if (!from.is_borrowed() || !overlap(from.layout(), to)) continue;
      fail(Code::InvalidArgument, name() + " shares memory with " +
                                      name_of(input_names_, "input", i) +
                                      ": pass arrays that do not overlap");
    }
  }
}

std::vector<Argument>& MethodRunner::detach() {
  method_ = nullptr;
  return kept_;
}

void MethodRunner::attach(Method& method) {
  method_ = &method;
  method.set_guard(nullptr);  // the files are the same, and asked here
  method.set_kv_cache(kv_cache_ != nullptr ? &kv_cache_->cache() : nullptr);
  kept_.clear();
  inputs_gone_ = false;
}

void MethodRunner::set_kv_cache(Session& session, std::shared_ptr<const OwnKvCache> cache) {
  Turn turn(session);
  method_->set_kv_cache(cache != nullptr ? &cache->cache() : nullptr);
  kv_cache_ = std::move(cache);
}

void MethodRunner::describe(std::vector<std::string> inputs, std::vector<std::string> outputs,
                            std::vector<std::string> specs) {
  input_names_ = std::move(inputs);
  output_names_ = std::move(outputs);
  output_specs_ = std::move(specs);
}

void MethodRunner::fail_run(Session& session, Status status, bool in_instruction) {
  Failure failure;
  failure.code = status.code();
  failure.message =
      method_->message().empty() ? code_name(status.code()) : method_->message().text();
  failure.method = name_;
  if (in_instruction && method_->failed_instruction() != Method::kNoInstruction) {
    failure.instruction = method_->failed_instruction();
    if (failure.instruction < static_cast<int64_t>(method_->n_instructions())) {
      const StringView text = method_->instruction_name(method_->failed_instruction());
      failure.name.assign(text.data(), text.size());
    }
    if (method_->failed_delegate() != Method::kNoDelegate) {
      failure.delegate = method_->failed_delegate();
      failure.place = method_->failed_place();
    }
    failure.cause = take_cause();
  }
  if (session.report() != nullptr) session.report()->take(failure);
  throw failure;
}

nb::object MethodRunner::report_refusal(Session& session, Code code, const std::string& text) {
  Turn turn(session);
  if (session.report() == nullptr) return nb::none();
  Failure failure;
  method_->report_refusal(code, text.c_str());
  session.report()->take(failure);
  return report_to_python(failure);
}

void MethodRunner::check_files() {
  if (guard_ == nullptr) return;
  Message message;
  const Status status = guard_->check(message);
  if (status.ok()) return;
  Failure failure;
  failure.code = status.code();
  failure.message = message.text();
  failure.method = name_;
  throw failure;
}

void MethodRunner::run(Session& session, std::vector<Argument>& arguments) {
  inputs_gone_ = expectation_.borrows();
  Status set, ran;
  {
    const GilRelease unlocked;
    set = expectation_.set(*method_, arguments);
    if (set.ok()) ran = method_->execute();
  }
  if (!set.ok()) fail_run(session, set, false);
  if (ran.ok()) return;
  session.hold(arguments);
  fail_run(session, ran, true);
}

nb::object MethodRunner::results(bool as_torch) {
  const size_t n = method_->n_outputs();
  const bool is_single = structure_ == OutputStructure::Single && n == 1;
  if (is_single) return to_python(method_->output(0), as_torch);
  const auto length = static_cast<Py_ssize_t>(n);
  nb::object all =
      nb::steal(structure_ == OutputStructure::Tuple ? PyTuple_New(length) : PyList_New(length));
  if (!all.is_valid()) throw nb::python_error();
  for (size_t k = 0; k < n; ++k) {
    PyObject* item = to_python(method_->output(k), as_torch).release().ptr();
    if (structure_ == OutputStructure::Tuple) {
      PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(k), item);
    } else {
      PyList_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(k), item);
    }
  }
  return all;
}

nb::object MethodRunner::call(Session& session, nb::handle values) {
  std::vector<Argument> arguments(expectation_.size());
  if (!expectation_.read(values, arguments)) return {};
  Turn turn(session);
  session.check_ready();
  check_files();
  run(session, arguments);
  return results(any_torch(arguments));
}

bool MethodRunner::call_into(Session& session, nb::handle values, nb::handle outputs) {
  std::vector<Argument> arguments(expectation_.size());
  if (!expectation_.read(values, arguments)) return false;
  Turn turn(session);
  session.check_ready();
  check_files();
  const auto n = static_cast<size_t>(PySequence_Fast_GET_SIZE(outputs.ptr()));
  if (n != method_->n_outputs()) {
    fail(Code::InvalidArgument, name_ + " has " + std::to_string(method_->n_outputs()) +
                                    " outputs, but arrays for " + std::to_string(n) +
                                    " were given: pass one per output, or None");
  }
  std::vector<Target> targets(n);
  borrow_targets(outputs, targets);
  check_overlaps(arguments, targets);
  run(session, arguments);
  for (size_t k = 0; k < n; ++k) check_result(method_->output(k), targets[k], k);
  for (size_t k = 0; k < n; ++k) {
    if (!targets[k].wanted) continue;
    copy_elements(layout_of(method_->output(k).tensor()), targets[k].array.layout());
  }
  return true;
}

CaseReport MethodRunner::verify(Session& session, const std::string& name, size_t index,
                                const ToleranceOverride& tolerance) {
  Turn turn(session);
  session.check_ready();
  check_files();
  inputs_gone_ = true;
  Module& module = session.module();
  VerifyOptions options;
  options.tolerance = tolerance;
  options.plan = {name_.data(), name_.size()};
  CaseReport report;
  Status status;
  {
    const GilRelease unlocked;
    status = rushlight::verify(module, {name.data(), name.size()}, index, report, options);
  }
  if (status.ok()) return report;
  if (!report.started || report.compared) fail(status.code(), report.message);
  fail_run(session, status, true);
}

bool MethodRunner::set_inputs(Session& session, nb::handle values) {
  std::vector<Argument> arguments(expectation_.size());
  if (!expectation_.read(values, arguments)) return false;
  Turn turn(session);
  session.check_ready();
  check_files();
  inputs_gone_ = expectation_.borrows();
  const Status status = expectation_.set(*method_, arguments);
  if (!status.ok()) fail_run(session, status, false);
  kept_torch_ = any_torch(arguments);
  kept_.swap(arguments);
  inputs_gone_ = false;
  return true;
}

void MethodRunner::check_inputs_alive() {
  if (inputs_gone_) {
    fail(Code::InvalidState, "the inputs of the last call are gone: set_inputs() first");
  }
}

void MethodRunner::execute(Session& session) {
  Turn turn(session);
  session.check_ready();
  check_files();
  check_inputs_alive();
  Status status;
  {
    const GilRelease unlocked;
    status = method_->execute();
  }
  if (!status.ok()) fail_run(session, status, true);
}

int64_t MethodRunner::step(Session& session) {
  Turn turn(session);
  session.check_ready();
  check_files();
  check_inputs_alive();
  const uint32_t index = method_->program_counter();
  Status status;
  {
    const GilRelease unlocked;
    status = method_->step();
  }
  if (status.code() == Code::EndOfMethod) {
    const Status reset = method_->reset();
    if (!reset.ok()) fail_run(session, reset, false);
    return -1;
  }
  if (!status.ok()) fail_run(session, status, true);
  return index;
}

nb::object MethodRunner::outputs(Session& session) {
  Turn turn(session);
  check_files();
  return results(kept_torch_);
}

nb::object MethodRunner::value(Session& session, size_t index) {
  Turn turn(session);
  check_files();
  if (index >= method_->n_values()) throw nb::index_error("value index out of range");
  const EValue& value = method_->value(index);
  if (value.is_tensor() && value.tensor().data == nullptr) return nb::none();
  return to_python(value, false);
}

}  // namespace rushlight::python
