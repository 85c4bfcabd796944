// What `_core.LlmRunner` holds.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "program/session_trace.h"
#include "rushlight/llm/runner/load.h"
#include "rushlight/module/files/failure_file.h"

namespace rushlight::python {

// The runner is destroyed before what it reads and writes.
struct RunnerHandle {
  nanobind::object program;
  nanobind::object tokenizer;
  std::string chat_template;
  std::unique_ptr<FailureFile> failures;
  std::unique_ptr<SessionTrace> trace;  // nullptr if nothing is traced
  llm::Runner runner;
};

// Its methods about the trace.
void init_runner_trace(nanobind::class_<RunnerHandle>& runner);

}  // namespace rushlight::python
