// Backends that are written in Python, in the same table as those written in C++.
//
// The runtime calls them without the GIL, so each call takes it. What a backend raises is caught
// here: its text becomes the message of the failure, and the exception itself is kept for the
// Python face (failure.h), which raises its error from it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "arrays/call_loans.h"
#include "rushlight/delegate/backend.h"

namespace rushlight::python {

namespace nb = nanobind;

// `_core.BackendContext`: what one delegate is told and may ask. The Python backend gets the same
// object in init and in every execute.
class BackendContext {
 public:
  explicit BackendContext(const BackendInit& init);
  BackendContext(BackendContext&&) noexcept;
  ~BackendContext();

  std::string method;
  nb::object payload;  // memoryview
  nb::dict specs;      // str -> bytes
  nb::dict options;    // str -> bool | int | str

  nb::object named_data(const std::string& key) const;
  void release_payload();
  void fail_at(nb::handle id);
  nb::object resize(size_t index, nb::handle shape);
  void event(nb::handle id, uint64_t start_ns, uint64_t stop_ns, nb::bytes metadata);
  bool wants_value(nb::handle id) const;
  void value(nb::handle id, nb::handle array);
  bool is_traced() const;

  // Between the two, the context belongs to a call.
  void begin(BackendInit* init) { init_ = init; }
  void begin(const BackendRun* run, EValue* const* args, size_t n_args);
  void end();
  // The delegate is gone.
  void close();

  // The arguments of a call as Python objects, and then what the backend kept of them.
  nb::object arguments();
  std::vector<Loan> take_kept(const std::string& backend);

 private:
  nb::object plain_argument(size_t k);
  bool is_output(size_t k) const { return k >= run_->n_inputs; }

  std::shared_ptr<const void> program_;
  std::unique_ptr<CallLoans> lent_;
  const NamedData* named_data_;
  BackendInit* init_ = nullptr;
  const BackendRun* run_ = nullptr;
  EValue* const* args_ = nullptr;
  size_t n_args_ = 0;
};

class PythonBackend final : public Backend {
 public:
  PythonBackend(std::string id, nb::object backend);

  const char* id() const { return id_.c_str(); }
  // It is not in the table any more: lets go of the object once no delegate uses it.
  void retire();

  bool available() const override;
  Result<void*> init(BackendInit& init) override;
  Status execute(const BackendRun& run, void* handle, EValue* const* args, size_t n_args) override;
  void destroy(void* handle) override;

 private:
  struct Delegate;

  Result<void*> make(BackendInit& init);
  void leave();  // one delegate less
  void let_go();

  std::string id_;
  nb::object backend_;
  size_t users_ = 0;  // delegates
  bool is_retired_ = false;
};

// Defines `_core.BackendContext`.
void init_backend_context(nb::module_& m);

}  // namespace rushlight::python
