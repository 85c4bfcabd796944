// The desktop face of the runtime: opens a file, owns the memory, loads methods when they are first
// asked for. Memory is taken when a program is opened and when a method is loaded, never when one
// runs. No exceptions; whatever fails leaves its explanation in message().
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
// Arenas of memory id 2 and more that all methods of a program plan with the same size are shared
// between its methods (that is where exporters put state that methods share); memory id 1 is each
// method's own. A module is used by one thread at a time; clone() gives another thread its own. One
// that another thread ran when the process was forked is of no use to the child, which clones it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "rushlight/method/method.h"
#include "rushlight/module/memory.h"
#include "rushlight/module/thread_pool.h"
#include "rushlight/program/external_data.h"
#include "rushlight/program/program.h"

namespace rushlight {

// True in a runtime that was built with assertions.
bool checks_backends_by_default();

struct ModuleOptions {
  const KernelTable* kernels = nullptr;    // nullptr: the portable kernels, if they are linked in
  const BackendTable* backends = nullptr;  // nullptr: the default_backends(), if there are any
  // Options of the backends. Like the table, they must live as long as the module and its clones
  // load methods.
  const BackendOptionsMap* backend_options = nullptr;
  // See MethodOptions.
  bool check_backends = checks_backends_by_default();
  const char* data_path = nullptr;  // a .ptd that holds what the program leaves out
  // How the files are opened. They must not change while they are mapped, unless by renaming others
  // over them. false: they are read into memory.
  bool map = true;
  // Before every run, and every other use of mapped files, ask the system whether they have
  // changed: AccessFailed if so. What changes them while a method runs is not noticed.
  bool guard = false;
  // Bytes that arenas, structures, scratch and outputs of all loaded methods may take together,
  // and with them the tensors without bound when a method runs; 0: no limit. The program's own
  // bytes are mapped, not counted.
  uint64_t memory_limit = 0;
  size_t scratch_bytes = size_t{1} << 20;  // per method
  uint64_t max_instructions = 10'000'000;
  bool any_scalar_inputs = false;  // see MethodOptions
  Tracer* tracer = nullptr;
  // How many threads kernels may use, the caller's among them; 0: as many as usable_cores().
  // See threads_for().
  size_t threads = 0;
};

struct SharedProgram;  // module/shared_program.h
struct DataFile;
struct MethodSlot;  // module/method_slot.h
struct SharedArena;

// What a method takes, or would take, in bytes.
struct MemoryUse {
  uint64_t arenas = 0;         // the method's own
  uint64_t shared_arenas = 0;  // taken once for all methods
  uint64_t structures = 0;     // beside what backends take
  uint64_t outputs = 0;        // outputs that the program does not plan
  uint64_t scratch = 0;
  uint64_t total() const { return arenas + shared_arenas + structures + outputs + scratch; }
};

// A buffer that a method writes: what a module keeps from one call to the next.
struct StateEntry {
  StringView name;    // fully qualified; empty if the program does not tell
  StringView method;  // the first loaded method, in the program's order, that has it
  size_t value = 0;   // its index there
  TensorMeta tensor;
  uint8_t* data = nullptr;  // tensor.nbytes bytes, in the tensor's dim order
};

class Module {
 public:
  Module() = default;
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Opens and verifies a file. AccessFailed if it cannot be read.
  Status open(const char* path, const ModuleOptions& options = {});
  // A program that lies in memory, which must live as long as the module and its clones.
  Status open_memory(const void* data, size_t size, const ModuleOptions& options = {});
  // Adds a data file (.ptd), also beside others: before any method is loaded and before clone().
  // InvalidArgument for a key that another data file has; InvalidExternalData for one that is not
  // the program's (program/data_pair.h).
  Status add_data(const char* path);
  // One that lies in memory, which must live as long as the module and its clones.
  Status add_data_memory(const void* data, size_t size);

  // For the methods that are loaded from now on; in the place of ModuleOptions::backend_options.
  void set_backend_options(const BackendOptionsMap* options) { options_.backend_options = options; }

  bool is_open() const { return shared_ != nullptr; }
  const Message& message() const { return message_; }
  const Program& program() const;  // of an open module
  const ModuleOptions& options() const { return options_; }
  // How many threads kernels may use.
  size_t threads() const { return workers_.count(); }

  // AccessFailed if a guarded file has changed: see ModuleOptions::guard.
  Status check_files();

  // What a method takes; does not load it.
  Result<MemoryUse> memory_use(StringView method);
  // Bytes that the loaded methods and the shared arenas take at most, and what tensors without
  // bound take now.
  uint64_t memory_in_use() const { return in_use_ + blocks_.taken(); }
  // The part of memory_in_use() that was touched and not released since. Asks the system.
  uint64_t memory_resident() const;

  // Loads a method if it is not. OutOfResources if the memory limit does not allow it.
  Status load(StringView method);
  bool is_loaded(StringView method) const;
  // The method, loaded if it was not.
  Result<Method*> method(StringView name);
  // The method whose load() failed last, to ask it what is missing; nullptr if none did.
  const Method* failed_method() const;
  // Frees a method and what it owns; its state is lost, shared arenas stay.
  void unload(StringView method);

  // The random operators of all methods draw as after torch.manual_seed(seed). A module that was
  // opened or cloned starts from Generator::kDefaultSeed.
  void manual_seed(uint64_t seed) { generator_.manual_seed(seed); }

  // Opens `copy` on the same program with arenas and state of its own. The program's bytes are
  // shared; both modules may be destroyed in any order.
  Status clone(Module& copy) const;
  // A clone with the same methods loaded, and the state and generator that this module has now.
  // InvalidState while a method runs in steps.
  Status fork(Module& copy);

  // The state of the loaded methods, in the order of the program: tensors in planned memory that
  // have a name or a first content in the file; in a method without such names also what operators
  // write in place. State that methods share is there once, under the name that the first of them
  // has for it. The bytes may be read and, between runs, written; all is valid until a method is
  // loaded or unloaded.
  Result<Span<const StateEntry>> state();
  // NotFound; InvalidArgument if methods have different entries of that name.
  Result<const StateEntry*> find_state(StringView name);
  // All state and the generator as bytes, for restore() in this module or another of the same
  // program in which the same methods are loaded. InvalidState while a method runs in steps;
  // InvalidArgument for too little memory, or for bytes that are no snapshot of this state: nothing
  // is changed then.
  Result<size_t> snapshot_bytes();
  Status snapshot(void* to, size_t bytes);
  Status restore(const void* from, size_t bytes);
  // Back to the first content that the program gives its state; manual_seed() sets the generator.
  Status reset_state();

 private:
  Status open_shared(SharedProgram* shared, const ModuleOptions& options);
  Status adopt(SharedProgram* shared, const ModuleOptions& options);
  Status add_data_file(DataFile* file);
  Status out_of_memory();
  size_t find(StringView name) const;  // index of the method, or n_methods
  Status check_limit(const MethodMeta& meta, const MemoryUse& use);
  Status load_slot(MethodSlot& slot, const MethodMeta& meta);
  Status prepare_shared_arenas(const MethodMeta& meta);
  void count(uint64_t in_use);
  Status write_shared_state(const SharedArena& arena);
  Status list_state();
  void forget_state();
  Status check_not_in_steps();
  void close();

  SharedProgram* shared_ = nullptr;
  MethodSlot** slots_ = nullptr;  // one per method of the program; nullptr if it is not loaded
  size_t n_slots_ = 0;
  MethodSlot* failed_ = nullptr;
  SharedArena* arenas_ = nullptr;  // a list, one per arena that methods share
  ModuleOptions options_;
  PoolWorkers workers_{1};
  HeapBlocks blocks_;  // for tensors without bound
  Generator generator_;
  StateEntry* state_ = nullptr;  // of list_state(); nullptr if it must be computed again
  size_t n_state_ = 0;
  uint64_t in_use_ = 0;
  Message message_;
};

// The table that modules use by default: all portable kernels, filled at the first call. nullptr
// in a library that was built without kernels.
const KernelTable* default_kernels();
// Likewise of backends: the engine of the backend `cpu`, and with it what was made for XNNPACK.
// nullptr in the library rushlight_module, which leaves them out.
const BackendTable* default_backends();
// Adds those to a table of the caller's, which has others besides; none in rushlight_module.
Status register_default_backends(BackendTable& table);

// A tensor over the caller's memory, for inputs: carries its own arrays of sizes and strides.
class HostTensor {
 public:
  HostTensor(DType dtype, Span<const int32_t> sizes, const void* data,
             const uint8_t* dim_order = nullptr);
  HostTensor(DType dtype, std::initializer_list<int32_t> sizes, const void* data)
      : HostTensor(dtype, Span<const int32_t>(sizes.begin(), sizes.size()), data) {}
  HostTensor(const HostTensor& other) { *this = other; }
  HostTensor& operator=(const HostTensor& other);

  // False if the sizes or the dim order were not such; the tensor then has no elements.
  bool valid() const { return valid_; }
  const Tensor& tensor() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }

 private:
  Tensor tensor_;
  int32_t sizes_[kMaxRank] = {};
  int32_t strides_[kMaxRank] = {};
  uint8_t dim_order_[kMaxRank] = {};
  bool valid_ = false;
};

}  // namespace rushlight
