#include "failure.h"

#include "rushlight/module/debug/crash_report.h"

namespace rushlight::python {

namespace {

PyObject* failure_type = nullptr;
thread_local PyObject* kept_cause = nullptr;

// Text from a program may be anything: what is not UTF-8 is replaced.
nb::object text(const std::string& s) {
  return nb::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}

nb::object missing_to_python(const std::vector<Missing>& missing) {
  nb::list list;
  for (const Missing& m : missing) {
    list.append(
        nb::make_tuple(text(m.method), m.instruction, text(m.name), m.is_there, m.delegate));
  }
  return list;
}

}  // namespace

nb::object report_to_python(const Failure& f) {
  if (f.report.empty()) return nb::none();
  return nb::make_tuple(nb::bytes(f.report_path.data(), f.report_path.size()),
                        nb::bytes(f.report.data(), f.report.size()));
}

namespace {

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure& f) {
    if (f.cause.is_valid() && !PyErr_GivenExceptionMatches(f.cause.ptr(), PyExc_Exception)) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(f.cause.ptr())), f.cause.ptr());
      return;  // KeyboardInterrupt and the like are no error of a backend
    }
    nb::object args = nb::make_tuple(static_cast<uint32_t>(f.code), text(f.message), text(f.method),
                                     f.instruction, text(f.name), missing_to_python(f.missing),
                                     f.delegate, text(f.place), report_to_python(f));
    nb::object failure = nb::steal(PyObject_CallObject(failure_type, args.ptr()));
    if (!failure.is_valid()) return;
    if (f.cause.is_valid())
      PyException_SetCause(failure.ptr(), nb::object(f.cause).release().ptr());
    PyErr_SetObject(failure_type, failure.ptr());
  }
}

}  // namespace

void keep_cause(nb::object exception) {
  Py_XDECREF(kept_cause);
  kept_cause = exception.release().ptr();
}

nb::object take_cause() {
  nb::object cause = nb::steal(kept_cause);
  kept_cause = nullptr;
  return cause;
}

void fail(Code code, const Message& message) {
  fail(code, std::string(message.empty() ? code_name(code) : message.text()));
}

void fail(Code code, std::string message) {
  Failure failure;
  failure.code = code;
  failure.message = std::move(message);
  throw failure;
}

void init_failure(nb::module_& m) {
  failure_type = PyErr_NewException("rushlight._core.Failure", PyExc_Exception, nullptr);
  if (failure_type == nullptr) throw nb::python_error();
  m.attr("Failure") = nb::borrow(failure_type);
  nb::register_exception_translator(translate);
  m.def(
      "install_crash_report",
      [](const nb::bytes& path) {
        Message message;
        const Status status = install_crash_report(path.c_str(), message);
        if (!status.ok()) fail(status.code(), message);
      },
      nb::arg("path"));
}

}  // namespace rushlight::python
