#include "backends/python_backend.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <memory>
#include <utility>

#include "arrays/arrays.h"
#include "arrays/values.h"
#include "backends/exceptions.h"
#include "failure.h"
#include "gil.h"
#include "program/session.h"
#include "rushlight/core/host_tensor.h"

namespace rushlight::python {

namespace {

nb::object option_value(const BackendOption& option) {
  switch (option.kind) {
    case BackendOption::Kind::Bool:
      return nb::bool_(option.i != 0);
    case BackendOption::Kind::Int:
      return nb::int_(option.i);
    case BackendOption::Kind::String:
      return to_str(option.text);
  }
  return nb::none();
}

// Raises rushlight.RunError in a backend that asks for something impossible.
[[noreturn]] void refuse(Code code, const std::string& text) {
  const nb::module_ errors = nb::module_::import_("rushlight.errors");
  const nb::object kind = errors.attr("Code")(static_cast<uint32_t>(code));
  const nb::object error = errors.attr("RunError")(text, nb::arg("code") = kind);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

[[noreturn]] void refuse_id(nb::handle id) {
  refuse(Code::InvalidArgument, std::string("the id of a place inside a delegate is a text or a "
                                            "number of 64 bits, not ") +
                                    nb::repr(id).c_str());
}

std::string text_of_id(nb::handle id) {
  std::string text;
  if (!nb::try_cast(id, text)) refuse_id(id);
  return text;
}

// The id of a place inside a delegate, as tracers take it.
class PlaceId {
 public:
  explicit PlaceId(nb::handle id) : is_number_(PyLong_Check(id.ptr())) {
    if (!is_number_) text_ = text_of_id(id);
    if (is_number_ ? !nb::try_cast(id, number_) : text_.empty()) refuse_id(id);
  }
  operator DelegateId() const { return {is_number_ ? nullptr : text_.c_str(), number_}; }

 private:
  bool is_number_;
  std::string text_;
  int64_t number_ = 0;
};

constexpr int64_t kMaxElements = INT64_MAX / 16;  // of any dtype: their bytes can be counted
constexpr uint8_t kRowMajor[kMaxRank] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Reads a shape; returns its rank, or kMaxRank + 1 for a greater one.
size_t read_sizes(nb::handle shape, int32_t (&sizes)[kMaxRank + 1]) {
  const bool is_shape = PySequence_Check(shape.ptr()) != 0;
  const size_t length = is_shape ? nb::len(shape) : 0;
  const size_t rank = length <= kMaxRank ? length : kMaxRank + 1;
  bool fits = is_shape;
  for (size_t i = 0; i < rank && fits; ++i) fits = nb::try_cast(nb::object(shape[i]), sizes[i]);
  if (fits) return rank;
  refuse(Code::InvalidArgument, std::string("a shape is a sequence of numbers of 32 bits, not ") +
                                    nb::repr(shape).c_str());
}

}  // namespace

BackendContext::BackendContext(const BackendInit& init)
    : method(init.method.data(), init.method.size()),
      program_(SessionLock::innermost()->program_memory()),
      lent_(std::make_unique<CallLoans>()),
      named_data_(init.named_data) {
  payload = lend_bytes(init.payload, program_);
  for (const CompileSpec& spec : init.specs) {
    specs[to_str(spec.key)] = nb::bytes(spec.value.data(), spec.value.size());
  }
  for (size_t i = init.options.size(); i-- > 0;) {  // the first option of a key hides the others
    const BackendOption& option = init.options[i];
    options[to_str(option.key)] = option_value(option);
  }
}

nb::object BackendContext::named_data(const std::string& key) const {
  if (named_data_ == nullptr) refuse(Code::InvalidState, "the delegate is gone");
  const Result<Span<const uint8_t>> bytes = named_data_->get({key.data(), key.size()});
  return bytes.ok() ? lend_bytes(bytes.value(), program_) : nb::none();
}

void BackendContext::release_payload() {
  if (init_ == nullptr) refuse(Code::InvalidState, "release_payload() is for init()");
  init_->keeps_payload = false;
}

void BackendContext::fail_at(nb::handle id) {
  DelegatePlace* place = init_ != nullptr ? init_->place : run_ != nullptr ? run_->place : nullptr;
  if (place == nullptr) refuse(Code::InvalidState, "fail_at() is for init() and execute()");
  const std::string text = text_of_id(nb::str(id));  // of a number: its digits
  place->set(StringView(text.data(), text.size()));
}

nb::object BackendContext::resize(size_t index, nb::handle shape) {
  if (run_ == nullptr) refuse(Code::InvalidState, "resize() is for execute()");
  if (index >= n_args_ || index < run_->n_inputs || !args_[index]->is_tensor()) {
    refuse(Code::InvalidArgument, "resize(" + std::to_string(index) +
                                      "): the outputs are arguments " +
                                      std::to_string(run_->n_inputs) + " to " +
                                      std::to_string(n_args_) + ", the last left out");
  }
  int32_t sizes[kMaxRank + 1];  // one more than fits any output
  const size_t rank = read_sizes(shape, sizes);
  Tensor& tensor = args_[index]->tensor();
  const Status status = run_->resize(tensor, {sizes, rank});
  if (!status.ok()) refuse(status.code(), run_->message->text());
  return lent_->lend(name_of_argument(index), tensor, true);
}

BackendContext::~BackendContext() = default;
BackendContext::BackendContext(BackendContext&&) noexcept = default;

// An argument that is no tensor, as the backend sees it.
nb::object BackendContext::plain_argument(size_t k) {
  const EValue& value = *args_[k];
  if (value.tag != Tag::TensorList && value.tag != Tag::OptionalTensorList) {
    return to_python(value, false);
  }
  nb::list items;
  for (size_t i = 0; i < value.size(); ++i) {
    const Tensor* tensor = value.tensor_at(i);
    items.append(tensor == nullptr ? nb::none()
                                   : lent_->lend(name_of_argument(k), *tensor, is_output(k)));
  }
  return items;
}

nb::object BackendContext::arguments() {
  nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(n_args_)));
  if (!all.is_valid()) throw nb::python_error();
  for (size_t k = 0; k < n_args_; ++k) {
    nb::object item = args_[k]->is_tensor() ? lent_->view(k, args_[k]->tensor(), is_output(k))
                                            : plain_argument(k);
    PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(k), item.release().ptr());
  }
  return all;
}

std::vector<Loan> BackendContext::take_kept(const std::string& backend) {
  return lent_->take_kept(backend);
}

bool BackendContext::is_traced() const { return run_ != nullptr && run_->tracer != nullptr; }

void BackendContext::event(nb::handle id, uint64_t start_ns, uint64_t stop_ns, nb::bytes metadata) {
  if (!is_traced()) return;
  run_->tracer->delegate_event(PlaceId(id), start_ns, stop_ns,
                               {static_cast<const uint8_t*>(metadata.data()), metadata.size()});
}

bool BackendContext::wants_value(nb::handle id) const {
  return is_traced() && run_->wants_value(PlaceId(id));
}

void BackendContext::value(nb::handle id, nb::handle array) {
  if (run_ == nullptr) refuse(Code::InvalidState, "value() is for execute()");
  if (!wants_value(id)) return;
  ArrayRef values;
  std::string why;
  const Borrowed borrowed = values.borrow(array.ptr(), &why);
  if (borrowed == Borrowed::NotAnArray) {
    why = std::string("an array is expected, not ") + Py_TYPE(array.ptr())->tp_name;
  }
  if (borrowed != Borrowed::Yes) {
    refuse(Code::InvalidArgument, std::string("the value of ") + nb::repr(id).c_str() + ": " + why);
  }
  const Layout& layout = values.layout();
  const HostTensor shape(layout.dtype, layout.shape(), nullptr);
  if (!shape.valid() || shape.tensor().numel > kMaxElements) {
    refuse(Code::InvalidArgument, std::string("the value of ") + nb::repr(id).c_str() +
                                      " has more elements than memory can hold");
  }
  const auto* data = static_cast<const uint8_t*>(values.dense(kRowMajor));
  const Status status =
      run_->tell_value(PlaceId(id), layout.dtype, layout.shape(), {data, layout.nbytes()});
  if (!status.ok()) refuse(status.code(), run_->message->text());
}

void BackendContext::begin(const BackendRun* run, EValue* const* args, size_t n_args) {
  run_ = run;
  args_ = args;
  n_args_ = n_args;
}

void BackendContext::end() {
  init_ = nullptr;
  run_ = nullptr;
  args_ = nullptr;
  n_args_ = 0;
}

void BackendContext::close() {
  end();
  named_data_ = nullptr;
  payload = nb::none();
  program_.reset();
}

struct PythonBackend::Delegate {
  nb::object context;
  BackendContext* of_context = nullptr;
  nb::object handle;
  nb::object execute;
};

PythonBackend::PythonBackend(std::string id, nb::object backend)
    : id_(std::move(id)), backend_(std::move(backend)) {}

bool PythonBackend::available() const {
  const GilAcquire locked;
  if (!nb::hasattr(backend_, "is_available")) return true;
  try {
    return nb::cast<bool>(nb::bool_(backend_.attr("is_available")()));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("is_available() of a backend");
    return false;
  }
}

Result<void*> PythonBackend::make(BackendInit& init) {
  auto delegate = std::make_unique<Delegate>();
  nb::object context = nb::cast(BackendContext(init));
  delegate->of_context = nb::inst_ptr<BackendContext>(context);
  delegate->context = context;
  delegate->execute = backend_.attr("execute");
  delegate->of_context->begin(&init);
  ++users_;  // while init runs too: it, or another thread, may take the backend out of the table
  try {
    const nb::object init_method = backend_.attr("init");
    PyObject* call[] = {nullptr, context.ptr()};
    delegate->handle = call_python(init_method, call, 1);
  } catch (...) {
    delegate->of_context->close();
    leave();
    throw;
  }
  delegate->of_context->end();
  return static_cast<void*>(delegate.release());
}

Result<void*> PythonBackend::init(BackendInit& init) {
  const GilAcquire locked;
  if (SessionLock::innermost() == nullptr) {  // what is lent to it is held by a session
    return init.message->fail(Code::NotSupported,
                              "a backend in Python runs in modules alone, not in the runner of "
                              "language models: export with another backend, or write it in C");
  }
  Result<void*> made = Code::Internal;
  const Status status = guarded(*init.message, [&] { made = make(init); });
  if (!status.ok()) return status;
  return made;
}

Status PythonBackend::execute(const BackendRun& run, void* handle, EValue* const* args,
                              size_t n_args) {
  const GilAcquire locked;
  auto& delegate = *static_cast<Delegate*>(handle);
  delegate.of_context->begin(&run, args, n_args);
  Status status = guarded(*run.message, [&] {
    const nb::object views = delegate.of_context->arguments();
    PyObject* call[] = {nullptr, delegate.context.ptr(), delegate.handle.ptr(), views.ptr()};
    const nb::object result = call_python(delegate.execute, call, 3);
    if (result.is_none()) return;
    throw nb::type_error(
        "execute() returned something: it must write its results into the last "
        "arguments (out[...] = result) and return None");
  });
  std::vector<Loan> kept = delegate.of_context->take_kept(id_);
  if (!kept.empty() && status.ok()) {
    status = run.message->fail(Code::InvalidState,
                               "it kept %s, which is lent to execute() for the call alone, and is "
                               "read-only from now on: keep a copy (%s.copy()) instead",
                               kept[0].what.c_str(), kept[0].what.c_str());
  }
  for (Loan& loan : kept) SessionLock::innermost()->lend(std::move(loan));
  delegate.of_context->end();
  return status;
}

void PythonBackend::destroy(void* handle) {
  const GilAcquire locked;
  const nb::error_scope kept;  // a module may go while an exception is on its way
  const std::unique_ptr<Delegate> delegate(static_cast<Delegate*>(handle));
  try {
    if (nb::hasattr(backend_, "destroy")) {
      const nb::object method = backend_.attr("destroy");
      PyObject* call[] = {nullptr, delegate->handle.ptr()};
      (void)call_python(method, call, 1);
    }
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("destroy() of a backend");
  }
  delegate->of_context->close();
  leave();
}

void PythonBackend::leave() {
  --users_;
  if (is_retired_) let_go();
}

void PythonBackend::retire() {
  is_retired_ = true;
  let_go();
}

void PythonBackend::let_go() {
  if (users_ == 0) backend_ = nb::none();
}

void init_backend_context(nb::module_& m) {
  nb::class_<BackendContext>(m, "BackendContext")
      .def_ro("method", &BackendContext::method)
      .def_ro("payload", &BackendContext::payload)
      .def_ro("compile_specs", &BackendContext::specs)
      .def_ro("options", &BackendContext::options)
      .def_prop_ro("is_traced", &BackendContext::is_traced)
      .def("named_data", &BackendContext::named_data, nb::arg("key"))
      .def("release_payload", &BackendContext::release_payload)
      .def("fail_at", &BackendContext::fail_at, nb::arg("id"))
      .def("resize", &BackendContext::resize, nb::arg("index"), nb::arg("shape"))
      .def("event", &BackendContext::event, nb::arg("id"), nb::arg("start_ns"), nb::arg("stop_ns"),
           nb::arg("metadata") = nb::bytes("", 0))
      .def("wants_value", &BackendContext::wants_value, nb::arg("id"))
      .def("value", &BackendContext::value, nb::arg("id"), nb::arg("array"));
}

}  // namespace rushlight::python
