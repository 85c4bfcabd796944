// Damages payloads of the cpu backend and runs what still loads: nothing may crash, hang, or touch
// memory that is not its own. Worth most with RUSHLIGHT_SANITIZE=ON: each constant, argument and
// block of scratch is a heap block of its own, of exactly the size asked for.
//
// Usage: fuzz_cpu_engine ROUNDS FILE...: the payloads of each file's delegates are damaged ROUNDS
// times each, always in the same way; they run on one thread or two, on each instruction set. What
// has dynamic sizes runs with inputs of several.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine_damage.h"
#include "engine_payload.h"
#include "rushlight/backends/cpu/cpu_backend.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/module.h"
#include "rushlight/module/thread_pool.h"

namespace {

using namespace rushlight;
using namespace rushlight::test;

constexpr size_t kMemoryLimit = size_t{8} << 20;
constexpr size_t kMethodScratch = size_t{1} << 16;
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
  DType dtype = DType::Float32;
  std::vector<int32_t> sizes;
  std::vector<uint8_t> dim_order;
  std::vector<uint8_t> bytes;
  int64_t number = 0;  // of what is no tensor
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
        const Tensor& tensor = args[i]->tensor();
        argument.dtype = tensor.dtype;
        argument.sizes.assign(tensor.sizes, tensor.sizes + tensor.rank);
        argument.dim_order.assign(tensor.dim_order, tensor.dim_order + tensor.rank);
        argument.bytes = copy_of({tensor.as<uint8_t>(), tensor.nbytes()});
      } else {
        argument.number = args[i]->to_int();
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

// Gives sizes other ones, the same for equal ones.
class Sizing {
 public:
  // Those that there were if `seed` is 0.
  explicit Sizing(uint32_t seed) : seed_(seed), random_(seed) {}
  int32_t operator()(int32_t size) {
    if (seed_ == 0 || size <= 0) return size;
    const auto [found, is_new] = sizes_.emplace(size, size);
    if (is_new && random_() % 2 == 0) {
      found->second = static_cast<int32_t>(random_() % (static_cast<unsigned>(size) + 1));
    }
    return found->second;
  }

 private:
  uint32_t seed_;
  std::mt19937 random_;
  std::map<int32_t, int32_t> sizes_;
};

// Arguments of one run, in memory of their own.
class Arguments {
 public:
  Arguments(const Recording& recording, uint32_t seed)
      : n_inputs_(recording.n_inputs), args_(recording.args), values_(args_.size()) {
    Sizing sizing(seed);
    tensors_.resize(args_.size());
    strides_.resize(args_.size());
    for (size_t i = 0; i < args_.size(); ++i) {
      values_[i].set_int(args_[i].number);
      if (args_[i].is_tensor) make_tensor(i, sizing);
      blocks_.push_back(std::make_unique<Block>(
          Span<const uint8_t>(args_[i].bytes.data(), args_[i].bytes.size())));
      tensors_[i].data = blocks_[i]->data();
      pointers_.push_back(&values_[i]);
    }
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  EValue* const* data() const { return pointers_.data(); }
  size_t size() const { return pointers_.size(); }
  bool inputs_unchanged() const {
    for (size_t i = 0; i < n_inputs_; ++i) {
      if (!blocks_[i]->holds(args_[i].bytes)) return false;
    }
    return true;
  }

 private:
  void make_tensor(size_t i, Sizing& sizing) {
    Argument& arg = args_[i];
    Tensor& tensor = tensors_[i];
    if (i < n_inputs_)
      for (int32_t& size : arg.sizes) size = sizing(size);
    strides_[i].resize(arg.sizes.size());
    tensor.dtype = arg.dtype;
    tensor.rank = static_cast<uint8_t>(arg.sizes.size());
    tensor.sizes = arg.sizes.data();
    tensor.dim_order = arg.dim_order.data();
    tensor.strides = strides_[i].data();
    tensor.dynamism = Dynamism::Bounded;
    const size_t element = element_size(arg.dtype);
    const int64_t most = static_cast<int64_t>(arg.bytes.size() / element);
    if (!count_elements(tensor.shape(), &tensor.numel) || tensor.numel > most) std::abort();
    if (!strides_of(tensor.shape(), tensor.dim_order, tensor.strides)) std::abort();
    tensor.capacity = i < n_inputs_ ? tensor.numel : most;
    arg.bytes.resize(static_cast<size_t>(tensor.capacity) * element);
    values_[i].tag = Tag::Tensor;
    values_[i].t = &tensor;
  }

  size_t n_inputs_;
  std::vector<Argument> args_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::vector<int32_t>> strides_;
  std::vector<Tensor> tensors_;
  std::vector<EValue> values_;
  std::vector<EValue*> pointers_;
};

// --- runs ---------------------------------------------------------------------------------------

struct Counts {
  uint32_t mutants = 0;
  size_t loaded = 0;
  size_t ran = 0;          // with the sizes of the recording
  size_t other_sizes = 0;  // runs
  double slowest = 0;      // seconds
};

void give_up(const Counts& counts, const char* what) {
  std::fprintf(stderr, "mutant %u: %s\n", counts.mutants, what);
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
  // The sizes of the recording come first and last.
  const bool is_dynamic = engine::root_Graph(recording.payload.data()).expressions().size() > 0;
  const std::vector<uint32_t> seeds =
      is_dynamic ? std::vector<uint32_t>{0, counts->mutants * 2 + 1, counts->mutants * 2 + 2, 0}
                 : std::vector<uint32_t>{0};
  bool all_ran = true;
  for (const uint32_t seed : seeds) {
    std::vector<uint8_t> memory(kMethodScratch);
    Allocator scratch(memory.data(), memory.size());
    BackendRun call = {};
    call.scratch = &scratch;
    call.message = &message;
    call.place = &place;
    call.workers = workers;
    const Arguments args(recording, seed);
    const Status status = backend.execute(call, handle.value(), args.data(), args.size());
    all_ran = all_ran && (seed != 0 || status.ok());
    if (seed != 0 && status.ok()) ++counts->other_sizes;
    if (!args.inputs_unchanged()) give_up(*counts, "wrote to an input");
  }
  if (all_ran) ++counts->ran;
  backend.destroy(handle.value());
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
  std::printf("%s: %u mutants, %zu loaded, %zu ran, %zu runs with other sizes, %.3f s at most\n",
              name, counts.mutants, counts.loaded, counts.ran, counts.other_sizes, counts.slowest);
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
  return !recordings->empty();
}

// A graph without constants, with these inputs and outputs, all of ones.
Recording recording_of(const EngineGraph& graph, const std::vector<std::vector<int32_t>>& shapes) {
  Recording recording;
  recording.payload = graph.bytes();
  recording.n_inputs = graph.n_inputs;
  for (const std::vector<int32_t>& shape : shapes) {
    Argument argument;
    argument.is_tensor = true;
    argument.sizes = shape;
    size_t numel = 1;
    for (size_t d = 0; d < shape.size(); ++d) {
      argument.dim_order.push_back(static_cast<uint8_t>(d));
      numel *= static_cast<size_t>(shape[d]);
    }
    const std::vector<float> ones(numel, 1.0f);
    argument.bytes = copy_of({reinterpret_cast<const uint8_t*>(ones.data()), numel * 4});
    recording.args.push_back(argument);
  }
  return recording;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: fuzz_cpu_engine ROUNDS FILE...\n");
    return 2;
  }
  const size_t rounds = std::strtoul(argv[1], nullptr, 10);
  const Recording join = recording_of(join_graph(), {{6, 4}, {5, 4}, {11, 4}, {6}});
  const Recording attention =
      recording_of(attention_graph(), {{1, 1, 10, 8}, {1, 1, 10, 8}, {1, 1, 10, 8}});
  if (!fuzz("join", join, rounds) || !fuzz("attention", attention, rounds)) {
    std::fprintf(stderr, "a graph made here does not run undamaged\n");
    return 1;
  }
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
