// The runtime's interface for desktops: opens a file, owns the memory, and loads methods when they
// are first requested. Memory is allocated when a program is opened and when a method is loaded,
// never when one runs. There are no exceptions; after any failure message() has the explanation.
//
//   rushlight::Module module;
//   if (!module.open("model.pte").ok()) return complain(module.message().text());
//   auto forward = module.method("forward");
//   if (!forward.ok()) return complain(module.message().text());
//   rushlight::Method& method = *forward.value();
//   float x[6] = {1, 2, 3, 4, 5, 6};
//   rushlight::HostTensor input(rushlight::DType::Float32, {2, 3}, x);
//   if (!method.set_input(0, input).ok() || !method.execute().ok())
//     return complain(method.message().text());
//   const rushlight::Tensor& y = method.output(0).tensor();
//
// Arenas of memory id 2 and more are shared between the methods of a program if all of them plan
// the arena with the same size (exporters put state that methods share there). Memory id 1 is
// separate for each method. A module may be used by one thread at a time; clone() creates another
// one for another thread. After a fork, the child cannot use a module that another thread of the
// parent was running, but it can clone it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rushlight/abi/rl_kernel_v1.h"
#include "rushlight/core/host_tensor.h"
#include "rushlight/method/method.h"
#include "rushlight/module/memory.h"
#include "rushlight/module/thread_pool.h"
#include "rushlight/program/bundle.h"
#include "rushlight/program/external_data.h"
#include "rushlight/program/program.h"

namespace rushlight {

// True if the runtime was built with assertions.
bool checks_backends_by_default();

struct ModuleOptions {
  const KernelTable* kernels = nullptr;    // nullptr: the portable kernels, if linked
  const BackendTable* backends = nullptr;  // nullptr: default_backends(), if there are any
  // Options of the backends. Like the table, they must live as long as the module or its clones
  // load methods.
  const BackendOptionsMap* backend_options = nullptr;
  // See MethodOptions.
  bool check_backends = checks_backends_by_default();
  const char* data_path = nullptr;  // a .ptd with the data that the program omits
  // If true, files are mapped, and must not change while they are mapped, except that other files
  // may be renamed over them. If false, files are read into memory.
  bool map = true;
  // If true, queries the system before every run, and every other use of mapped files, whether the
  // files have changed, and returns AccessFailed if so. A change while a method runs is not
  // detected.
  bool guard = false;
  // Maximum number of bytes for arenas, structures, scratch and outputs of all loaded methods
  // together, and for tensors without bounds when a method runs; 0 is no limit. The program's own
  // bytes are mapped and not counted.
  uint64_t memory_limit = 0;
  size_t scratch_bytes = size_t{1} << 20;  // for each method
  uint64_t max_instructions = 10'000'000;
  bool any_scalar_inputs = false;  // see MethodOptions
  Tracer* tracer = nullptr;
  // See MethodOptions. Clones do not have it: see set_failure_hook().
  FailureHook failure;
  // See MethodOptions. Clones do not have it: see set_cancelled().
  const std::atomic<bool>* cancelled = nullptr;
  // The number of threads that kernels may use, including the caller's; 0 is usable_cores(). See
  // threads_for().
  size_t threads = 0;
};

struct SharedProgram;  // module/shared_program.h
struct DataFile;
struct MethodSlot;  // module/method_slot.h
struct SharedArena;

// The memory that a method uses, or would use, in bytes.
struct MemoryUse {
  uint64_t arenas = 0;         // the method's own
  uint64_t shared_arenas = 0;  // allocated once for all methods
  uint64_t structures = 0;     // without what backends allocate
  uint64_t outputs = 0;        // outputs that the program does not plan
  uint64_t scratch = 0;
  uint64_t total() const { return arenas + shared_arenas + structures + outputs + scratch; }
};

// A buffer that a method writes, which keeps its content from one call to the next.
struct StateEntry {
  StringView name;    // fully qualified; empty if the program has no name
  StringView method;  // the first loaded method, in the program's order, that has it
  size_t value = 0;   // its index in that method
  TensorMeta tensor;
  uint8_t* data = nullptr;  // tensor.nbytes bytes, in the tensor's dim order
};

class Module {
 public:
  Module() = default;
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Opens and verifies a program (.pte), or the program in a bundled one (.bpte), in place. Returns
  // AccessFailed if the file cannot be read.
  Status open(const char* path, const ModuleOptions& options = {});
  // Opens a program in memory, which must live as long as the module and its clones.
  Status open_memory(const void* data, size_t size, const ModuleOptions& options = {});
  // Adds a data file (.ptd), which may be one of several. Must be called before any method is
  // loaded and before clone(). Returns InvalidArgument for a key that another data file has,
  // InvalidExternalData for a file that does not belong to the program (program/data_pair.h).
  Status add_data(const char* path);
  // Adds a data file in memory, which must live as long as the module and its clones.
  Status add_data_memory(const void* data, size_t size);

  // Adds kernels (abi/rl_kernel_v1.h) of a shared library, of one that is linked, or one by one, to
  // those of ModuleOptions::kernels, for this module and its clones. Must be called before any
  // method is loaded and before clone(). Returns RegistrationAlreadyRegistered for a kernel of a
  // name that there is already.
  Status add_kernels(const char* path);
  Status add_kernels(rl_get_kernel_v1_fn get);
  Status add_kernels(Span<const rl_kernel_v1* const> kernels);

  // Replaces ModuleOptions::backend_options for methods that are loaded later.
  void set_backend_options(const BackendOptionsMap* options) { options_.backend_options = options; }

  // Replaces ModuleOptions::failure for methods that are loaded later. A clone has the hook that it
  // was given before clone() or fork().
  void set_failure_hook(const FailureHook& hook) { options_.failure = hook; }

  // Replaces ModuleOptions::cancelled for methods that are loaded later. A clone has the flag that
  // it was given before clone() or fork().
  void set_cancelled(const std::atomic<bool>* flag) { options_.cancelled = flag; }

  // What loads and runs are told to from now on; nullptr: nobody. Clones made before it was set do
  // not have it.
  void set_tracer(Tracer* tracer);

  bool is_open() const { return shared_ != nullptr; }
  const Message& message() const { return message_; }
  const Program& program() const;  // the module must be open
  // The data files that were added, as one; nullptr if there are none.
  const NamedData* external_data() const;
  // The test cases of a bundled program, for verify() (module/bundle.h); nullptr if the file is
  // none.
  const Bundle* bundle() const;
  const ModuleOptions& options() const { return options_; }
  // The number of threads that kernels may use.
  size_t threads() const { return workers_.count(); }

  // Returns AccessFailed if a guarded file has changed: see ModuleOptions::guard.
  Status check_files();

  // The memory that a method would use; does not load it.
  Result<MemoryUse> memory_use(StringView method);
  // The maximum number of bytes that the loaded methods and the shared arenas use, and the bytes
  // that tensors without bounds use now.
  uint64_t memory_in_use() const { return in_use_ + blocks_.taken(); }
  // The part of memory_in_use() that is in physical memory. Queries the system.
  uint64_t memory_resident() const;

  // Loads a method unless it is loaded. Returns OutOfResources if that exceeds the memory limit.
  Status load(StringView method);
  bool is_loaded(StringView method) const;
  // Returns the method, after loading it if necessary.
  Result<Method*> method(StringView name);
  // The method whose load() failed last, for querying what is missing; nullptr if there is none.
  const Method* failed_method() const;
  // Frees a method and its memory. Its own state is lost; shared arenas stay.
  void unload(StringView method);

  // Makes the random operators of all methods draw as after torch.manual_seed(seed). A module that
  // was opened or cloned starts from Generator::kDefaultSeed.
  void manual_seed(uint64_t seed) { generator_.manual_seed(seed); }

  // Opens `copy` on the same program, with its own arenas and state. The program's bytes are
  // shared; both modules may be destroyed in any order.
  Status clone(Module& copy) const;
  // A clone with the same methods loaded, and with this module's current state and generator.
  // Returns InvalidState while a method runs in steps.
  Status fork(Module& copy);

  // The state of the loaded methods, in the order of the program: tensors in planned memory that
  // have a name or initial content in the file, and, in a method without such names, the tensors
  // that operators write in place. State that methods share is listed once, under the first
  // method's name for it. The bytes may be read and, between runs, written. The result is valid
  // until a method is loaded or unloaded.
  Result<Span<const StateEntry>> state();
  // Returns NotFound, or InvalidArgument if methods have different entries of that name.
  Result<const StateEntry*> find_state(StringView name);
  // All state and the generator as bytes, for restore() in this module, or in another one of the
  // same program with the same methods loaded. Returns InvalidState while a method runs in steps,
  // and InvalidArgument for too little memory or for bytes that are not a snapshot of this state;
  // nothing is changed then.
  Result<size_t> snapshot_bytes();
  Status snapshot(void* to, size_t bytes);
  Status restore(const void* from, size_t bytes);
  // Restores the initial content of the state from the program; manual_seed() resets the generator.
  Status reset_state();

 private:
  Status open_shared(SharedProgram* shared, const ModuleOptions& options);
  Status find_program(SharedProgram& shared);
  Status adopt(SharedProgram* shared, const ModuleOptions& options);
  Status add_data_file(DataFile* file);
  bool is_unused() const;
  template <typename Open>
  Status add_kernel_file(const char* name, Open open);
  Status out_of_memory();
  size_t find(StringView name) const;  // index of the method, or n_methods if there is none
  Status check_limit(const MethodMeta& meta, const MemoryUse& use);
  Status load_unreported(StringView method);
  void report_load(StringView method, Status status) const;
  Status load_slot(MethodSlot& slot, const MethodMeta& meta);
  Status prepare_shared_arenas(const MethodMeta& meta);
  void count(uint64_t in_use);
  Status write_shared_state(const SharedArena& arena);
  Status list_state();
  void forget_state();
  Status check_not_in_steps();
  void close();

  SharedProgram* shared_ = nullptr;
  MethodSlot** slots_ = nullptr;  // one for each method of the program; nullptr if not loaded
  size_t n_slots_ = 0;
  MethodSlot* failed_ = nullptr;
  SharedArena* arenas_ = nullptr;  // a list, one for each arena that methods share
  ModuleOptions options_;
  PoolWorkers workers_{1};
  HeapBlocks blocks_;  // for tensors without bounds
  Generator generator_;
  StateEntry* state_ = nullptr;  // cached by list_state(); nullptr if outdated
  size_t n_state_ = 0;
  uint64_t in_use_ = 0;
  Message message_;
};

// The table that modules use by default: all portable kernels, added at the first call. nullptr in
// a library that was built without kernels.
const KernelTable* default_kernels();
// The same for backends: `cpu`, and the one for payloads of ExecuTorch's XNNPACK delegate. nullptr
// in the library rushlight_module, which has no backends.
const BackendTable* default_backends();
// Adds the default backends to a table of the caller, which may have others; adds none in
// rushlight_module.
Status register_default_backends(BackendTable& table);

}  // namespace rushlight
