#include "backends/exceptions.h"

#include <nanobind/stl/string.h>

#include <string>

namespace rushlight::python {

namespace {

bool is_kind(const nb::python_error& error, PyObject* kind) { return error.matches(kind); }

// The code that fits an exception: its own, if it is one of ours.
Code code_of(const nb::python_error& error) {
  const nb::object own = nb::getattr(error.value(), "code", nb::none());
  if (PyLong_Check(own.ptr())) {
    const auto code = static_cast<Code>(PyLong_AsUnsignedLongMask(own.ptr()));
    const bool known = std::string(code_name(code)) != "?" && code != Code::Ok;
    if (known && code != Code::EndOfMethod) return code;
  }
  if (is_kind(error, PyExc_MemoryError)) return Code::DelegateMemoryAllocationFailed;
  if (is_kind(error, PyExc_NotImplementedError)) return Code::NotSupported;
  return Code::Internal;
}

// Empties the frames that an exception and those before it passed through: their variables may
// show memory of this call, and whoever catches the exception may print them much later.
void forget_frames(nb::object error) {
  constexpr int kMaxExceptions = 16;  // exceptions of a chain, which may be circular
  try {
    const nb::object clear = nb::module_::import_("traceback").attr("clear_frames");
    for (int i = 0; i < kMaxExceptions && !error.is_none(); ++i) {
      const nb::object traceback = error.attr("__traceback__");
      if (!traceback.is_none()) clear(traceback);
      const nb::object cause = error.attr("__cause__");
      error = cause.is_none() ? nb::object(error.attr("__context__")) : cause;
    }
  } catch (...) {
    PyErr_Clear();
  }
}

}  // namespace

Status take_error(const nb::python_error& error, Message& message) {
  std::string kind = "an exception";
  std::string text;
  try {
    kind = nb::cast<std::string>(nb::str(error.type().attr("__name__")));
    text = nb::cast<std::string>(nb::str(error.value()));
  } catch (...) {  // an exception whose text cannot be read
    PyErr_Clear();
  }
  keep_cause(nb::borrow(error.value()));
  forget_frames(nb::borrow(error.value()));
  const Code code = code_of(error);
  return message.fail(code, "%s%s%s", kind.c_str(), text.empty() ? "" : ": ", text.c_str());
}

}  // namespace rushlight::python
