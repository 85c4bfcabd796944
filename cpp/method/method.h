// A loaded method: values, instructions, delegates, and the loop that runs them.
//
// All memory that a method needs is taken from the caller's when the method is loaded; running it
// allocates nothing. A method may be used by one thread at a time.
//
//   Method method;
//   RL_TRY(method.load(program, "forward", memory, options));
//   RL_TRY(method.set_input(0, x));
//   RL_TRY(method.execute());
//   const Tensor& y = method.output(0).tensor();
//
// After any failure message() has the explanation. A set_input that fails changes nothing.
#pragma once

#include <atomic>

#include "rushlight/core/allocator.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/features.h"
#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/core/tensor_blocks.h"
#include "rushlight/delegate/backend.h"
#include "rushlight/events/tracer.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/method/structures.h"
#include "rushlight/program/program.h"
#include "rushlight/trace/failure_report.h"

namespace rushlight {

struct MethodMemory {
  Allocator* structures;             // values, tensors, instructions: lives as long as the method
  Span<const Span<uint8_t>> arenas;  // arena k-1 is for memory id k; sizes as in MethodMeta
  Allocator* scratch = nullptr;      // reset after every instruction; optional
  // If bit k is set, arena k is all zero already (fresh pages), so loading does not clear it.
  uint64_t zeroed_arenas = 0;
  // If bit k is set, arena k holds state that is shared with another method and is initialised.
  // Loading neither clears it nor writes initial values to it.
  uint64_t shared_arenas = 0;
};

// Called after the first run, and after every run that ended with other sizes of tensors than the
// run before: memory of the method beyond these sizes is not needed any more.
class SizesObserver {
 public:
  virtual void sizes_changed() = 0;

 protected:
  ~SizesObserver() = default;
};

// Called to check that the files of a program and its data have not changed, before a method reads
// anything from them: whenever an input is set, and at every run and step.
class FileGuard {
 public:
  virtual Status check(Message& message) const = 0;

 protected:
  ~FileGuard() = default;
};

class Method;
class MethodLoader;

// The code by which a method loads, calls and destroys delegates.
struct DelegateCode {
  Status (*load)(MethodLoader& loader);
  Status (*run)(Method& method, const Instruction& instruction);
  void (*destroy)(Method& method);

  static const DelegateCode kCode;
};

// The backends of a method: a table, and the code that calls them. A program in which no method is
// given a table does not link that code.
class Backends {
 public:
  Backends() = default;
  Backends(std::nullptr_t) {}
  Backends(const BackendTable* table) : table_(table), code_(&DelegateCode::kCode) {}

  // nullptr if there is no such backend.
  Backend* find(StringView id) const { return table_ != nullptr ? table_->find(id) : nullptr; }
  const DelegateCode* code() const { return code_; }

 private:
  const BackendTable* table_ = nullptr;
  const DelegateCode* code_ = nullptr;
};

struct MethodOptions {
  const KernelTable* kernels;
  Backends backends;
  const BackendOptionsMap* backend_options = nullptr;
  const NamedData* external_data = nullptr;  // a .ptd, or several merged
  Tracer* tracer = nullptr;
  // What is told of a load, an input or a run that fails. With a report, a run also notes when each
  // of its instructions begins.
  FailureHook failure;
  Workers* workers = nullptr;  // threads for kernels; if nullptr, only the caller's
  // Memory for tensors without bounds. If nullptr, programs that have such tensors are refused.
  BlockAllocator* blocks = nullptr;
  SizesObserver* sizes_observer = nullptr;
  const FileGuard* guard = nullptr;
  // The generator of random operators, shared by all methods that get the same one. If nullptr,
  // these operators fail.
  Generator* generator = nullptr;
  uint64_t max_instructions = 10'000'000;  // per execute; more instructions are InvalidProgram
  // While it is true, runs and steps end with Cancelled before their next kernel with tensors,
  // delegate or jump, and delegates may end within. nullptr: runs cannot be cancelled.
  const std::atomic<bool>* cancelled = nullptr;
  // Inputs that are numbers may have any value, not only the traced one. Only for programs whose
  // contract says that the method computes with them.
  bool any_scalar_inputs = false;
  // After every call of a delegate, or of a kernel that is not the runtime's own, compares the
  // arenas with their earlier content: if it wrote anything but its outputs, the error names the
  // byte. This needs as much memory as the arenas, from MethodMemory::structures, and the time of
  // two copies.
  bool check_backends = false;
};

// An instruction whose kernel is not in the table.
struct MissingOperator {
  uint32_t instruction;  // index in its chain
  OperatorName name;
  bool other_types;  // the table has the operator, but no kernel for these dtypes
};

// A delegate whose backend is not in the table, or is not available on this system.
struct MissingBackend {
  uint32_t delegate;  // index among the plan's
  StringView id;
  bool registered;
};

class Method {
 public:
  Method() = default;
  ~Method();  // destroys the delegates and frees blocks
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  // The bytes that load() takes from MethodMemory::structures for a method, without what its
  // backends take.
  static size_t structure_bytes(const MethodMeta& meta);

  // May be called once for each object. `program`, the memory and everything that `options` points
  // to must outlive the method. For OperatorMissing and NotFound (backends), message() lists all
  // missing ones, as far as there is room; the functions below return every one.
  // MemoryAllocationFailed means that the memory for structures or an arena is too small; the
  // message has the numbers.
  Status load(const Program& program, StringView name, const MethodMemory& memory,
              const MethodOptions& options);
  bool loaded() const { return state_ == State::Ready; }
  const Message& message() const { return message_; }
  const MethodMeta& meta() const { return meta_; }
  StringView name() const { return meta_.name(); }

  // After load() failed: iterate over the instructions without kernel, and the backends that are
  // missing. Start with *cursor = 0; they return false after the last one.
  bool next_missing_operator(uint32_t* cursor, MissingOperator* missing) const;
  bool next_missing_backend(uint32_t* cursor, MissingBackend* missing) const;

  size_t n_inputs() const { return n_inputs_; }
  size_t n_outputs() const { return n_outputs_; }
  size_t n_values() const { return n_values_; }
  // Indices must be in range. Outputs are valid until the next execute or step.
  const EValue& input(size_t i) const { return *parts_.inputs[i].value; }
  const EValue& output(size_t i) const { return *parts_.outputs[i].value; }
  const EValue& value(size_t i) const { return parts_.values[i]; }

  // Sets one input. Inputs stay set, but the program may plan other tensors into the memory of an
  // input that it does not need any more, so callers that run a method again must set tensors
  // again.
  //
  // For a planned input, the tensor is copied into it, in the dim order of `tensor`. Otherwise the
  // method reads `tensor` in place when it runs, so it must live until then. Returns
  // InvalidArgument for a wrong index, kind, dtype or traced value, NotSupported for a wrong rank
  // or sizes, and InvalidState in the middle of a sequence of steps.
  Status set_input(size_t i, const Tensor& tensor);
  Status set_input_int(size_t i, int64_t value);
  Status set_input_double(size_t i, double value);
  Status set_input_bool(size_t i, bool value);
  Status set_input_string(size_t i, StringView value);
  Status set_input_none(size_t i);
  bool input_is_set(size_t i) const { return parts_.inputs[i].is_set; }

  // True for an output tensor without memory. set_output_data() must give it memory before a run.
  bool output_needs_data(size_t i) const { return parts_.outputs[i].needs_data; }
  // Returns InvalidState if the output has memory, InvalidArgument if there are too few `bytes`. A
  // bounded tensor may get less than its bound; a run whose result is greater then fails. A run is
  // refused while the memory of two outputs overlaps. It must not overlap the memory of inputs
  // either.
  Status set_output_data(size_t i, void* data, size_t bytes);

  // Runs the method from the start. Returns InvalidState if an input was never set, or in the
  // middle of a sequence of steps. After a failure, the next run or step begins at the start.
  Status execute();
  // Runs one instruction; returns EndOfMethod if none is left. After a failure the position is
  // unchanged.
  Status step();
  // Goes back to the start at the end of a sequence of steps. Returns InvalidState in the middle of
  // one.
  Status reset();
  // True between the first step and reset().
  bool in_steps() const { return stepping_; }

  size_t n_instructions() const { return n_instructions_; }
  // The instruction that step() runs next, as an index over all chains; n_instructions() at the
  // end.
  uint32_t program_counter() const { return pc_; }
  static constexpr uint32_t kNoInstruction = UINT32_MAX;
  // The instruction at which the last execute or step failed, as an index in its chain, or
  // kNoInstruction.
  uint32_t failed_instruction() const { return failed_instruction_; }
  // The delegate in which the last load, execute or step failed, as an index among the plan's, or
  // kNoDelegate; and the backend's own id for the place inside of it, or "" if it gave none.
  static constexpr uint32_t kNoDelegate = UINT32_MAX;
  uint32_t failed_delegate() const { return failed_delegate_; }
  const char* failed_place() const { return place_.text(); }
  // The name of what instruction `pc` runs: an operator's name, a backend's id, or the kind.
  StringView instruction_name(uint32_t pc) const;
  // The same by its chain and its index in the chain; "?" if there is no such instruction.
  StringView instruction_name(uint32_t chain, uint32_t instruction) const;
  // The delegate that an instruction calls, as an index among the plan's, or kNoDelegate. The
  // instruction is given as tracers get it: by its chain and its index in the chain.
  uint32_t delegate_of(uint32_t chain, uint32_t instruction) const;

  // The keys and values that operators of language models attend to, in all runs from now on. The
  // cache, its sequences and their pages must live until a run ends, and may change between runs.
  // nullptr: none; such operators then fail.
  void set_kv_cache(const KvCache* cache) { kv_cache_ = cache; }
  void set_tracer(Tracer* tracer) { tracer_ = tracer; }
  // For callers that check inputs by themselves, before they set them: reports why they refuse a
  // call. Does nothing if the method has no report.
  void report_refusal(Code code, const char* text);
  // For a handler of signals: fills the report of the instruction that runs, without calling the
  // hook. nullptr if the method has no report. Names are read from the program and arguments where
  // they lie, which crashes again if just these are damaged: so the report is best kept without
  // such details first.
  const FailureReport* report_crash(uint32_t signal, uint64_t address, bool has_details) const;
  // For callers that query the guard once for several inputs and a run. With nullptr the method
  // queries none.
  const FileGuard* guard() const { return options_.guard; }
  void set_guard(const FileGuard* guard) { options_.guard = guard; }

 private:
  friend class MethodLoader;
  friend struct DelegateCode;
  enum class State : uint8_t { Empty, Failed, Ready };

  struct Place {  // position of an instruction in its chain
    uint32_t chain;
    uint32_t instruction;
  };

  Place place_of(uint32_t pc) const;
  Status check_files() {
    return options_.guard != nullptr ? options_.guard->check(message_) : Status();
  }
  Status check_input(size_t i, Tag tag);
  // These take the status of a failure whose text is in message_, and say what it is about.
  Status named(Status status);
  Status refused(size_t i, Status status, const Tensor* tensor = nullptr);
  Status check_tensor(size_t i, const Tensor& tensor);
  Status take_input(size_t i, const Tensor& tensor);
  void mark_set(size_t i);
  Status check_ready();
  Status check_outputs();
  Status check_outputs_apart();
  void restore_views();
  Status execute_all();
  Status execute_one();
  // Both are nullptr also in builds that leave them out, which removes the code that uses them.
  Tracer* tracer() const { return kHasTracing ? tracer_ : nullptr; }
  FailureReport* report() const { return kHasFailureReports ? options_.failure.report : nullptr; }
  bool is_observed() const { return tracer() != nullptr || report() != nullptr; }
  Status check_features();
  template <bool kObserved>
  Status run();
  template <bool kObserved>
  Status run_one(KernelContext& context, uint32_t* pc);
  void begin_instruction(uint32_t pc);
  void free_tensor(const EValue& value);
  Status run_kernel(KernelContext& context, uint32_t pc);
  Status run_delegate(const Instruction& instruction);
  Status check_delegate_outputs(const Instruction& instruction);
  void tell_place(Status status);
  void destroy_delegates();
  Status run_jump(const Instruction& instruction, uint32_t* pc);
  void end_instruction(uint32_t pc, bool is_ok);
  void trace_outputs();
  void trace_memory();
  template <bool kObserved>
  void reset_scratch();
  Status check_call(const Instruction& instruction, const Kernel* kernel);
  Status check_cancelled();
  Status check_memory(const Instruction& instruction, const Kernel* kernel);
  void start();
  Status finish();
  Status fail_limit(uint32_t pc);
  Status fail_at(uint32_t pc, Status status);
  Status load_all(const Program& program, StringView name, const MethodMemory& memory);
  void report_load(const MethodMemory& memory, Status status) const;
  void report_input(size_t i, const Tensor* tensor, Status status) const;
  void report_run(Status status) const;
  void tell_failure(FailurePhase phase, Status status) const;
  void describe(uint32_t pc, uint32_t delegate, FailureReport& report) const;
  void describe_details(uint32_t pc, FailureReport& report) const;
  void describe_value(const EValue* value, uint8_t flags, FailureReport& report) const;
  uint32_t first_missing() const;
  size_t first_written(uint32_t pc) const;

  MethodMeta meta_;
  Structures parts_ = {};
  size_t n_values_ = 0;
  size_t n_inputs_ = 0;
  size_t n_outputs_ = 0;
  size_t n_unset_inputs_ = 0;
  size_t n_views_ = 0;
  uint32_t n_instructions_ = 0;
  uint32_t pc_ = 0;
  uint32_t failed_instruction_ = kNoInstruction;
  uint32_t failed_delegate_ = kNoDelegate;
  uint32_t failed_pc_ = kNoInstruction;  // over all chains; of a load, too
  // For reports: the instruction that runs and the input that is set now, how many runs have begun,
  // and which program and method this is.
  uint32_t running_pc_ = kNoInstruction;
  uint32_t running_input_ = UINT32_MAX;
  uint16_t run_ = 0;
  uint16_t index_ = UINT16_MAX;
  uint64_t identity_ = 0;
  uint64_t program_bytes_ = 0;
  bool stepping_ = false;
  bool has_new_output_data_ = false;
  bool failed_step_ = false;
  bool has_bare_tensors_ = false;  // some tensors may have no memory when the method runs
  bool resized_ = true;            // the size of a tensor differs from the last run
  uint64_t steps_ = 0;
  MethodOptions options_{};
  Allocator* scratch_ = nullptr;
  size_t scratch_peak_ = 0;  // of a traced run
  Tracer* tracer_ = nullptr;
  const KvCache* kv_cache_ = nullptr;
  State state_ = State::Empty;
  TensorBlocks blocks_;
  // Of methods with delegates: the program's and the external data, made by their loader.
  alignas(MergedData) unsigned char named_data_[sizeof(MergedData)] = {};
  Span<const Span<uint8_t>> arenas_;
  uint8_t* shadow_ = nullptr;  // see MethodOptions::check_backends
  DelegatePlace place_;
  Message message_;
};

}  // namespace rushlight
