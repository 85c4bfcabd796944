// Damages payloads of the cpu backend and runs what still loads: nothing may crash, hang, or touch
// memory that is not its own. Worth most with RUSHLIGHT_SANITIZE=ON: each constant, argument and
// block of scratch is a heap block of its own, of exactly the size asked for.
//
// Usage: fuzz_cpu_engine ROUNDS FILE...: the payloads of each file's delegates are damaged ROUNDS
// times each, always in the same way; they run on one thread or two, on each instruction set.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "rushlight/backends/cpu/cpu_backend.h"
#include "rushlight/backends/cpu/cpu_engine_fb.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/module.h"
#include "rushlight/module/thread_pool.h"

namespace {

using namespace rushlight;
namespace engine = rushlight::fb::cpu_engine;

constexpr size_t kMemoryLimit = size_t{8} << 20;
constexpr size_t kAlignment = 64;

// Bytes of the heap without one more behind them.
class Block {
 public:
  explicit Block(size_t size, size_t alignment = kAlignment) : size_(size) {
    if (posix_memalign(&data_, alignment, size) != 0) std::abort();
  }
  explicit Block(Span<const uint8_t> bytes) : Block(bytes.size()) {
    if (size_ > 0) std::memcpy(data_, bytes.data(), size_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { std::free(data_); }
  uint8_t* data() const { return static_cast<uint8_t*>(data_); }
  Span<const uint8_t> bytes() const { return {data(), size_}; }
  bool holds(const std::vector<uint8_t>& bytes) const {
    return size_ == bytes.size() && (size_ == 0 || std::memcmp(data_, bytes.data(), size_) == 0);
  }

 private:
  void* data_ = nullptr;
  size_t size_;
};

class ExactAllocator : public Allocator {
 public:
  void* allocate(size_t bytes, size_t alignment = Allocator::kAlignment) override {
    if (bytes > kMemoryLimit - used_) return nullptr;
    used_ += bytes;
    blocks_.push_back(std::make_unique<Block>(bytes, alignment < 8 ? 8 : alignment));
    return blocks_.back()->data();
  }

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
};

struct Argument {
  bool is_tensor = false;
  Tensor tensor;
  std::vector<uint8_t> bytes;
};

struct Constant {
  std::string key;
  std::vector<uint8_t> bytes;
};

// One delegate: what it was made from, and what it was called with.
struct Recording {
  std::vector<uint8_t> payload;
  std::vector<Constant> constants;
  std::vector<Argument> args;
  size_t n_inputs = 0;
};

std::vector<uint8_t> copy_of(Span<const uint8_t> bytes) {
  return {bytes.data(), bytes.data() + bytes.size()};
}

// The cpu backend, and a witness of what it is given.
class Recorder : public Backend {
 public:
  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override {
    auto made = std::make_unique<Delegate>();
    Recording& recording = made->recording;
    recording.payload = copy_of(init.payload);
    const engine::Graph graph = engine::root_Graph(recording.payload.data());
    for (size_t i = 0; i < graph.constants().size(); ++i) {
      const StringView key = graph.constants()[i].key();
      const Result<Span<const uint8_t>> found = init.named_data->get(key);
      if (!found.ok()) return found.status();
      const Span<const uint8_t> bytes = {found.value().data(),
                                         static_cast<size_t>(graph.constants()[i].size())};
      recording.constants.push_back({{key.data(), key.size()}, copy_of(bytes)});
    }
    const Result<void*> handle = cpu_.init(init);
    if (!handle.ok()) return handle;
    made->handle = handle.value();
    return static_cast<void*>(made.release());
  }
  Status execute(const BackendRun& run, void* handle, EValue* const* args, size_t n) override {
    Delegate& delegate = *static_cast<Delegate*>(handle);
    Recording& recording = delegate.recording;
    for (size_t i = 0; i < n; ++i) {
      Argument argument;
      argument.is_tensor = args[i]->is_tensor();
      if (argument.is_tensor) {
        argument.tensor = args[i]->tensor();
        argument.bytes = copy_of({argument.tensor.as<uint8_t>(), argument.tensor.nbytes()});
      }
      recording.args.push_back(argument);
    }
    recording.n_inputs = run.n_inputs;
    recordings.push_back(recording);
    return cpu_.execute(run, delegate.handle, args, n);
  }
  void destroy(void* handle) override {
    const std::unique_ptr<Delegate> delegate(static_cast<Delegate*>(handle));
    cpu_.destroy(delegate->handle);
  }

  std::vector<Recording> recordings;

 private:
  struct Delegate {
    Recording recording;
    void* handle = nullptr;
  };
  CpuBackend cpu_;
};

class Constants : public NamedData {
 public:
  explicit Constants(const Recording& recording) : recording_(recording) {
    for (const Constant& constant : recording.constants) {
      blocks_.push_back(std::make_unique<Block>(
          Span<const uint8_t>(constant.bytes.data(), constant.bytes.size())));
    }
  }
  Result<Span<const uint8_t>> get(StringView key) const override {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const std::string& name = recording_.constants[i].key;
      if (key == StringView(name.data(), name.size())) return blocks_[i]->bytes();
    }
    return Code::NotFound;
  }
  bool unchanged() const {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (!blocks_[i]->holds(recording_.constants[i].bytes)) return false;
    }
    return true;
  }

 private:
  const Recording& recording_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

// Arguments of one run, in memory of their own.
class Arguments {
 public:
  explicit Arguments(const Recording& recording)
      : recording_(recording), tensors_(recording.args.size()), values_(recording.args.size()) {
    for (size_t i = 0; i < values_.size(); ++i) {
      const Argument& from = recording.args[i];
      blocks_.push_back(
          std::make_unique<Block>(Span<const uint8_t>(from.bytes.data(), from.bytes.size())));
      tensors_[i] = from.tensor;
      tensors_[i].data = blocks_[i]->data();
      values_[i].tag = from.is_tensor ? Tag::Tensor : Tag::None;
      values_[i].t = &tensors_[i];
      pointers_.push_back(&values_[i]);
    }
  }
  EValue* const* data() const { return pointers_.data(); }
  size_t size() const { return pointers_.size(); }
  bool inputs_unchanged() const {
    for (size_t i = 0; i < recording_.n_inputs; ++i) {
      if (!blocks_[i]->holds(recording_.args[i].bytes)) return false;
    }
    return true;
  }
  bool equals(const Arguments& other) const {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (!other.blocks_[i]->holds(copy_of(blocks_[i]->bytes()))) return false;
    }
    return true;
  }

 private:
  const Recording& recording_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Tensor> tensors_;
  std::vector<EValue> values_;
  std::vector<EValue*> pointers_;
};

// --- damage -------------------------------------------------------------------------------------

// Where a number lies in a payload.
struct Slot {
  size_t at;
  size_t width;
};

// The numbers of a payload, found through its tables.
class Slots {
 public:
  explicit Slots(const std::vector<uint8_t>& payload) : base_(payload.data()) {
    const engine::Graph graph = engine::root_Graph(base_);
    for (size_t i = 0; i < graph.values().size(); ++i) {
      const engine::Value value = graph.values()[i];
      add(value.sizes());
      add(value.steps());
      add_fields(value, {{0, 1}, {3, 1}, {4, 4}, {5, 8}});
    }
    for (size_t i = 0; i < graph.constants().size(); ++i) {
      add_fields(graph.constants()[i], {{1, 8}});
    }
    for (size_t i = 0; i < graph.steps().size(); ++i) {
      add(graph.steps()[i].inputs());
      add(graph.steps()[i].outputs());
      add_operation(graph.steps()[i]);
    }
    add_fields(graph, {{4, 4}, {5, 4}, {6, 8}});
  }
  const Slot& operator[](size_t i) const { return slots_[i]; }
  size_t size() const { return slots_.size(); }

 private:
  struct Fields : fb::Table {
    explicit Fields(const fb::Table& table) : Table(table) {}
    using fb::Table::field;
  };
  struct Field {
    unsigned id;
    size_t width;
  };

  template <typename T>
  void add(fb::Vector<T> numbers, size_t width = sizeof(T)) {
    for (size_t i = 0; i < numbers.size() * sizeof(T); i += width) {
      slots_.push_back({static_cast<size_t>(numbers.bytes() - base_) + i, width});
    }
  }
  void add_fields(const fb::Table& table, std::initializer_list<Field> fields) {
    for (const Field& field : fields) {
      const uint8_t* at = Fields(table).field(field.id);
      if (at != nullptr) slots_.push_back({static_cast<size_t>(at - base_), field.width});
    }
  }
  void add_program(engine::TileProgram program) {
    add(program.code(), 1);
    add(program.code());
    add(program.operands());
  }
  template <typename Operation>
  void add_window(Operation operation) {
    add(operation.kernel());
    add(operation.stride());
    add(operation.padding());
    add(operation.dilation());
  }
  void add_operation(engine::Step step) {
    add_window(step.operation_as_Convolution());
    add_window(step.operation_as_Pooling());
    add_program(step.operation_as_Convolution().finish().program());
    add_program(step.operation_as_Product().finish().program());
    add_program(step.operation_as_Elementwise().program());
    add_fields(step.operation_as_Convolution().finish(), {{0, 1}, {4, 4}, {5, 1}});
    add_fields(step.operation_as_Product().finish(), {{0, 1}, {4, 4}, {5, 1}});
    add_fields(step.operation_as_Gather(), {{0, 8}});
    add_fields(step, {{0, 1}});
    add_fields(step.operation_as_Convolution(), {{0, 1}, {5, 8}});
    add_fields(step.operation_as_Pooling(), {{0, 1}, {5, 1}, {6, 8}});
    add_fields(step.operation_as_Norm(), {{0, 1}, {1, 4}});
    add_fields(step.operation_as_GroupNorm(), {{0, 8}, {1, 4}});
    add_fields(step.operation_as_Softmax(), {{0, 4}, {1, 1}});
    add_fields(step.operation_as_Reduction(), {{0, 1}, {1, 4}, {2, 4}});
    add_fields(step.operation_as_Attention(), {{0, 4}, {1, 1}});
  }

  const uint8_t* base_;
  std::vector<Slot> slots_;
};

class Damage {
 public:
  Damage(const std::vector<uint8_t>& payload, uint32_t seed) : slots_(payload), random_(seed) {}

  void operator()(std::vector<uint8_t>& payload) {
    const unsigned n = random_() % 3 == 0 ? 2 : 1;
    for (unsigned i = 0; i < n; ++i) {
      const unsigned way = random_() % 20;
      if (way == 0) payload.resize(1 + random_() % payload.size());
      if (way == 1) payload[random_() % payload.size()] ^= static_cast<uint8_t>(random_());
      if (way == 2) put(payload, {random_() % payload.size(), 4}, number());
      if (way > 2) change_numbers(payload, way < 8);
    }
  }

 private:
  int64_t number() {
    static constexpr int64_t kNumbers[] = {
        0, 1, -1, 2, 3, 5, 7, 15, 16, 17, 64, 1000, 1 << 14, 1 << 16, 1 << 20, 1 << 24, 0x7fffffff};
    static constexpr int kShifts[] = {10, 30, 31, 32, 33, 39, 40, 41, 48, 59, 60, 61, 62, 63};
    const unsigned way = random_() % 3;
    if (way == 0) return static_cast<int64_t>(random_() % 40);
    if (way == 1) return kNumbers[random_() % (sizeof kNumbers / sizeof kNumbers[0])];
    const int shift = kShifts[random_() % (sizeof kShifts / sizeof kShifts[0])];
    return static_cast<int64_t>((uint64_t{1} << shift) - random_() % 2);
  }

  // One number, or all of this width that are equal to it, so that sizes still fit each other.
  void change_numbers(std::vector<uint8_t>& payload, bool all) {
    const Slot& slot = slots_[random_() % slots_.size()];
    const int64_t old = get(payload, slot);
    int64_t to = number();
    const unsigned way = random_() % 4;
    if (way == 0) {  // a neighbour, that of the greatest too
      to = static_cast<int64_t>(static_cast<uint64_t>(old) +
                                (random_() % 2 != 0 ? 1u : ~uint64_t{0}));
    }
    if (way == 1) to = get(payload, slots_[random_() % slots_.size()]);
    if (!all) return put(payload, slot, to);
    for (size_t i = 0; i < slots_.size(); ++i) {
      const Slot& other = slots_[i];
      if (other.width == slot.width && get(payload, other) == old) put(payload, other, to);
    }
  }

  static int64_t get(const std::vector<uint8_t>& payload, const Slot& slot) {
    int64_t number = 0;
    if (slot.at + slot.width > payload.size()) return 0;
    std::memcpy(&number, &payload[slot.at], slot.width);
    return number;
  }
  static void put(std::vector<uint8_t>& payload, const Slot& slot, int64_t number) {
    if (slot.at + slot.width > payload.size()) return;
    std::memcpy(&payload[slot.at], &number, slot.width);
  }

  Slots slots_;
  std::mt19937 random_;
};

// --- runs ---------------------------------------------------------------------------------------

struct Counts {
  size_t mutants = 0;
  size_t loaded = 0;
  size_t ran = 0;
  double slowest = 0;  // seconds
};

void give_up(const Counts& counts, const char* what) {
  std::fprintf(stderr, "mutant %zu: %s\n", counts.mutants, what);
  std::abort();
}

void run(const Recording& recording, const std::vector<uint8_t>& payload, Workers* workers,
         Counts* counts) {
  ++counts->mutants;
  const auto start = std::chrono::steady_clock::now();
  const Block exact(Span<const uint8_t>(payload.data(), payload.size()));
  const Constants constants(recording);
  ExactAllocator allocator;
  Message message;
  DelegatePlace place;
  BackendInit init = {};
  init.payload = exact.bytes();
  init.named_data = &constants;
  init.allocator = &allocator;
  init.message = &message;
  init.place = &place;
  init.workers = workers;
  CpuBackend backend;
  const Result<void*> handle = backend.init(init);
  if (!handle.ok() && message.empty()) give_up(*counts, "was refused without a reason");
  if (!handle.ok()) return;
  ++counts->loaded;
  BackendRun call = {};
  call.message = &message;
  call.place = &place;
  call.workers = workers;
  const Arguments args(recording);
  const Status status = backend.execute(call, handle.value(), args.data(), args.size());
  if (status.ok()) ++counts->ran;
  backend.destroy(handle.value());
  if (!args.inputs_unchanged()) give_up(*counts, "wrote to an input");
  if (!constants.unchanged()) give_up(*counts, "wrote to a constant");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (taken.count() > counts->slowest) counts->slowest = taken.count();
}

bool fuzz(const char* name, const Recording& recording, size_t rounds) {
  static PoolWorkers two(2);
  Counts whole;
  run(recording, recording.payload, nullptr, &whole);
  Counts counts;
  Damage damage(recording.payload, 12345);
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<uint8_t> payload = recording.payload;
    damage(payload);
    using kernels::Isa;
    static constexpr Isa kIsas[] = {Isa::Avx512, Isa::Avx2, Isa::Plain};
    (void)kernels::select_isa(kIsas[round % 3]);  // where there is none, the former stays
    run(recording, payload, round % 2 == 0 ? nullptr : &two, &counts);
  }
  std::printf("%s: %zu mutants, %zu loaded, %zu ran, %.3f s at most\n", name, counts.mutants,
              counts.loaded, counts.ran, counts.slowest);
  return whole.ran == 1;
}

// The delegates of a file, called with ones.
bool record(const char* path, std::vector<Recording>* recordings) {
  Recorder recorder;
  BackendTable table;
  if (!table.add(CpuBackend::kId, &recorder).ok()) return false;
  ModuleOptions options;
  options.backends = &table;
  Module module;
  if (!module.open(path, options).ok()) return false;
  Result<Method*> method = module.method("forward");
  if (!method.ok()) return false;
  const std::vector<float> ones(1 << 12, 1.0f);
  for (size_t i = 0; i < method.value()->n_inputs(); ++i) {
    const TensorMeta meta = method.value()->meta().input(i).tensor;
    if (meta.nbytes > ones.size() * sizeof(float)) return false;
    if (!method.value()->set_input(i, HostTensor(meta.dtype, meta.shape(), ones.data())).ok()) {
      return false;
    }
  }
  if (!method.value()->execute().ok()) return false;
  *recordings = recorder.recordings;
  // Only data, dtype and size of arguments are used; their shapes end with the method.
  for (Recording& recording : *recordings) {
    for (Argument& argument : recording.args) {
      argument.tensor.sizes = argument.tensor.strides = nullptr;
      argument.tensor.dim_order = nullptr;
    }
  }
  return !recordings->empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: fuzz_cpu_engine ROUNDS FILE...\n");
    return 2;
  }
  const size_t rounds = std::strtoul(argv[1], nullptr, 10);
  for (int i = 2; i < argc; ++i) {
    std::vector<Recording> recordings;
    if (!record(argv[i], &recordings)) {
      std::fprintf(stderr, "%s: does not run undamaged\n", argv[i]);
      return 1;
    }
    for (const Recording& recording : recordings) {
      if (fuzz(argv[i], recording, rounds)) continue;
      std::fprintf(stderr, "%s: a delegate does not run undamaged\n", argv[i]);
      return 1;
    }
  }
  return 0;
}
