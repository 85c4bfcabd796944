// What a backend in Python raises, as the Status of its call.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>

#include "failure.h"
#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::python {

namespace nb = nanobind;

// The message becomes "ValueError: text"; the exception itself is kept for the Python face.
Status take_error(const nb::python_error& error, Message& message);

// Runs `body` with the GIL; whatever it throws becomes a Status.
template <typename Body>
Status guarded(Message& message, Body body) {
  try {
    body();
    return {};
  } catch (const nb::python_error& error) {
    return take_error(error, message);
  } catch (const Failure& failure) {
    return message.fail(failure.code, "%s", failure.message.c_str());
  } catch (const std::exception& error) {
    return message.fail(Code::Internal, "%s", error.what());
  }
}

}  // namespace rushlight::python
