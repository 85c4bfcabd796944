// For fuzzing backends: records what the delegates of a file get, and runs them with damaged
// payloads. Each constant, argument and block of scratch is a separate heap block of exactly the
// requested size, so that a sanitizer sees accesses beyond it.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "damage.h"
#include "kv_pages.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/module/module.h"
#include "rushlight/module/thread_pool.h"
#include "seed.h"

namespace rushlight {
namespace test {

constexpr size_t kMemoryLimit = size_t{8} << 20;
constexpr size_t kMethodScratch = size_t{1} << 16;
constexpr size_t kAlignment = 64;

// Heap memory that ends exactly at the last byte.
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
  int64_t number = 0;  // for values that are not tensors
};

struct Constant {
  std::string key;
  std::vector<uint8_t> bytes;
};

// One delegate: what it was created from, and its arguments.
struct Recording {
  std::vector<uint8_t> payload;
  std::vector<Constant> constants;
  std::vector<Argument> args;
  size_t n_inputs = 0;
  const KernelTable* kernels = nullptr;
};

inline std::vector<uint8_t> copy_of(Span<const uint8_t> bytes) {
  return {bytes.data(), bytes.data() + bytes.size()};
}

// Named data that records which keys were requested.
class Witness : public NamedData {
 public:
  Witness(const NamedData* data, std::vector<Constant>* constants)
      : data_(data), constants_(constants) {}
  Result<Span<const uint8_t>> get(StringView key) const override {
    const Result<Span<const uint8_t>> data = data_->get(key);
    if (data.ok()) constants_->push_back({{key.data(), key.size()}, copy_of(data.value())});
    return data;
  }

 private:
  const NamedData* data_;
  std::vector<Constant>* constants_;
};

// A backend that records what it gets.
template <class Tested>
class Recorder : public Backend {
 public:
  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override {
    auto made = std::make_unique<Delegate>();
    made->recording.payload = copy_of(init.payload);
    const Witness witness(init.named_data, &made->recording.constants);
    init.named_data = &witness;
    const Result<void*> handle = tested_.init(init);
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
    return tested_.execute(run, delegate.handle, args, n);
  }
  void destroy(void* handle) override {
    const std::unique_ptr<Delegate> delegate(static_cast<Delegate*>(handle));
    tested_.destroy(delegate->handle);
  }

  std::vector<Recording> recordings;

 private:
  struct Delegate {
    Recording recording;
    void* handle = nullptr;
  };
  Tested tested_;
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

// Replaces sizes by other ones; equal sizes are replaced by equal ones.
class Sizing {
 public:
  // The original sizes if `seed` is 0.
  explicit Sizing(uint32_t seed) : seed_(seed), random_(seed) {}
  int32_t operator()(int32_t size) {
    if (seed_ == 0 || size <= 0) return size;
    const auto [entry, is_new] = sizes_.emplace(size, size);
    if (is_new && random_() % 2 == 0) {
      entry->second = static_cast<int32_t>(random_() % (static_cast<unsigned>(size) + 1));
    }
    return entry->second;
  }

 private:
  uint32_t seed_;
  std::mt19937 random_;
  std::map<int32_t, int32_t> sizes_;
};

// The arguments of one run, in separate memory.
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
  size_t ran = 0;          // with the recorded sizes
  size_t other_sizes = 0;  // runs
  double slowest = 0;      // seconds
};

inline void give_up(const Counts& counts, const char* what) {
  std::fprintf(stderr, "mutant %u: %s\n", counts.mutants, what);
  std::abort();
}

// Dynamic delegates also run with other input sizes.
template <class Tested>
void run(const Recording& recording, const std::vector<uint8_t>& payload, bool is_dynamic,
         Workers* workers, Counts* counts) {
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
  init.kernels = recording.kernels;
  Tested backend;
  const Result<void*> handle = backend.init(init);
  if (!handle.ok() && message.empty()) give_up(*counts, "was refused without a reason");
  if (!handle.ok()) return;
  ++counts->loaded;
  // The recorded sizes are used first and last.
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
    const KvPages pages;
    call.kv_cache = pages.cache();
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

// Damages the numbers at `slots`. False if the undamaged payload does not run.
template <class Tested>
bool fuzz(const char* name, const Recording& recording, const std::vector<Slot>& slots,
          bool is_dynamic, size_t rounds) {
  static PoolWorkers two(2);
  Counts whole;
  run<Tested>(recording, recording.payload, is_dynamic, nullptr, &whole);
  Counts counts;
  Damage damage(slots, seed_for(0));
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<uint8_t> payload = recording.payload;
    damage(payload);
    constexpr size_t kCount = sizeof(kernels::kIsas) / sizeof(kernels::kIsas[0]);
    (void)kernels::select_isa(kernels::kIsas[round / 2 % kCount]);  // else the previous one stays
    run<Tested>(recording, payload, is_dynamic, round % 2 == 0 ? nullptr : &two, &counts);
  }
  std::printf("%s: %u mutants, %zu loaded, %zu ran, %zu runs with other sizes, %.3f s at most\n",
              name, counts.mutants, counts.loaded, counts.ran, counts.other_sizes, counts.slowest);
  return whole.ran == 1;
}

// Records the delegates of a file, which runs with inputs of ones.
template <class Tested>
bool record(const char* path, std::vector<Recording>* recordings) {
  Recorder<Tested> recorder;
  BackendTable table;
  if (!table.add(Tested::kId, &recorder).ok()) return false;
  ModuleOptions options;
  options.backends = &table;
  Module module;
  if (!module.open(path, options).ok()) return false;
  Result<Method*> method = module.method("forward");
  if (!method.ok()) return false;
  const std::vector<float> ones(1 << 14, 1.0f);
  for (size_t i = 0; i < method.value()->n_inputs(); ++i) {
    const TensorMeta meta = method.value()->meta().input(i).tensor;
    if (meta.nbytes > ones.size() * sizeof(float)) return false;
    if (!method.value()->set_input(i, HostTensor(meta.dtype, meta.shape(), ones.data())).ok()) {
      return false;
    }
  }
  const KvPages pages;
  method.value()->set_kv_cache(pages.cache());
  if (!method.value()->execute().ok()) return false;
  *recordings = recorder.recordings;
  return !recordings->empty();
}

}  // namespace test
}  // namespace rushlight
