// Calls of one loaded method from Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "arrays/arguments.h"
#include "llm/kv_cache.h"
#include "rushlight/method/method.h"
#include "rushlight/module/bundle.h"

namespace rushlight::python {

class Session;

// What a call returns for several outputs.
enum class OutputStructure : uint8_t { List, Tuple, Single };

// An array of the caller's that a result is written to.
struct Target {
  ArrayRef array;
  bool wanted = false;
};

class MethodRunner {
 public:
  MethodRunner(std::string name, Method& method)
      : name_(std::move(name)),
        method_(&method),
        guard_(method.guard()),
        expectation_(method.meta()) {
    method.set_guard(nullptr);  // asked here, once for a whole call
  }

  const std::string& name() const { return name_; }
  Expectation& expectation() { return expectation_; }
  void set_structure(OutputStructure structure) { structure_ = structure; }
  // The session was closed: the method is gone. Returns what set_inputs() kept.
  std::vector<Argument>& detach();
  // The same method of a new module, whose inputs were not set.
  void attach(Method& method);
  // The names of inputs and outputs in messages, and each output's dtype and shape as text.
  void describe(std::vector<std::string> inputs, std::vector<std::string> outputs,
                std::vector<std::string> specs);

  // One whole call: reads `values`, runs, returns new results. An invalid object if the values are
  // not what the method expects: nothing was changed then. Throws a Failure if the run fails.
  nb::object call(Session& session, nb::handle values);
  // Likewise, but results are written into `outputs`: a writable array of the right dtype and
  // shape, or None, per output.
  bool call_into(Session& session, nb::handle values, nb::handle outputs);

  // Runs a test case of the bundled program that the session opened, of the method `name`. Throws a
  // Failure if it cannot be run or read.
  CaseReport verify(Session& session, const std::string& name, size_t index,
                    const ToleranceOverride& tolerance);

  // Reports a call that was refused before it came here. The path and the report's bytes; None if
  // nothing is reported.
  nb::object report_refusal(Session& session, Code code, const std::string& text);

  // For tools, one operation at a time. The arguments are kept until they are set again.
  bool set_inputs(Session& session, nb::handle values);
  void execute(Session& session);
  // Runs one instruction and returns its index over all chains; -1 if none was left.
  int64_t step(Session& session);
  nb::object outputs(Session& session);
  nb::object value(Session& session, size_t index);

  // The cache of all later runs, which is kept until there is another; nullptr for none.
  void set_kv_cache(Session& session, std::shared_ptr<const OwnKvCache> cache);

  // Needs the session's lock.
  const Method& method() const { return *method_; }

 private:
  void run(Session& session, std::vector<Argument>& arguments);
  void borrow_targets(nb::handle outputs, std::vector<Target>& targets) const;
  void check_overlaps(const std::vector<Argument>& arguments,
                      const std::vector<Target>& targets) const;
  std::string output_name(size_t index) const;
  std::string output_spec(size_t index) const;
  void check_target(const ValueMeta& meta, const Target& target, size_t index) const;
  void check_result(const EValue& value, const Target& target, size_t index) const;
  [[noreturn]] void wrong_target(const Layout& array, size_t index) const;
  void check_inputs_alive();
  void check_files();
  [[noreturn]] void fail_run(Session& session, Status status, bool in_instruction);
  nb::object results(bool as_torch);

  std::string name_;
  Method* method_;
  const FileGuard* guard_;
  Expectation expectation_;
  OutputStructure structure_ = OutputStructure::List;
  std::vector<std::string> input_names_;
  std::vector<std::string> output_names_;
  std::vector<std::string> output_specs_;
  std::vector<Argument> kept_;  // of set_inputs
  bool kept_torch_ = false;
  std::shared_ptr<const OwnKvCache> kv_cache_;
  bool inputs_gone_ = false;  // a call borrowed its inputs' memory, which is gone
};

}  // namespace rushlight::python
