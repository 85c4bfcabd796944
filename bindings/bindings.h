// The parts of the extension module `rushlight._core`: one init function per bound class or group
// of functions, each in a file of its own.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace rushlight::python {

namespace nb = nanobind;

class Session;
class MethodRunner;

// What `_core.Program` and `_core.Method` hold.
struct ProgramHandle {
  std::shared_ptr<Session> session;
};

struct MethodHandle {
  std::shared_ptr<Session> session;
  MethodRunner* runner;  // the session's
};

void init_failure(nb::module_& m);
void init_method(nb::module_& m);
void init_program(nb::module_& m);
void init_state(nb::class_<ProgramHandle>& program);
void init_arrays(nb::module_& m);
void init_peaks(nb::module_& m);
void init_log(nb::module_& m);
void init_llm_options(nb::module_& m);
void init_llm_runner(nb::module_& m);
void init_llm_sampling(nb::module_& m);
void init_kv_cache(nb::module_& m);
void init_tokenizer(nb::module_& m);
void init_grammar(nb::module_& m);
void init_llm_template(nb::module_& m);
void init_llm_reply(nb::module_& m);

}  // namespace rushlight::python
