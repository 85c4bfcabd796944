// A module in memory of the application's, traced by a tracer of the application's; and data files.
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/named_data_map/merged_data_map.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::FileDataLoader;
using executorch::extension::FlatTensorDataMap;
using executorch::extension::from_blob;
using executorch::extension::MallocMemoryAllocator;
using executorch::extension::Module;
using executorch::extension::merged_data_map::MergedDataMap;
using executorch::runtime::AllocatorID;
using executorch::runtime::ChainID;
using executorch::runtime::DebugHandle;
using executorch::runtime::DelegateDebugIntId;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::EventTracer;
using executorch::runtime::EventTracerDebugLogLevel;
using executorch::runtime::EventTracerEntry;
using executorch::runtime::EventTracerFilterBase;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::LoggedEValueType;
using executorch::runtime::NamedDataMap;
using executorch::runtime::Result;
using executorch::runtime::Span;

int print_outputs(const Tensor& output);
int print_error(Error error);

namespace {

// Counts what is asked of it.
class CountingAllocator final : public MallocMemoryAllocator {
 public:
  explicit CountingAllocator(size_t* bytes) : bytes_(bytes) {}
  void* allocate(size_t size, size_t alignment) override {
    *bytes_ += size;
    return MallocMemoryAllocator::allocate(size, alignment);
  }

 private:
  size_t* bytes_;
};

// Counts events and sums values.
class OwnTracer final : public EventTracer {
 public:
  explicit OwnTracer(std::string* names, double* outputs) : names_(names), outputs_(outputs) {
    set_event_tracer_debug_level(EventTracerDebugLogLevel::kIntermediateOutputs);
  }
  void create_event_block(const char*) override {}
  EventTracerEntry start_profiling(const char* name, ChainID, DebugHandle) override {
    *names_ += std::string(" ") + name;
    ++open_;
    return {open_, current_chain_id(), current_debug_handle(), 0, {}};
  }
  void end_profiling(EventTracerEntry entry) override {
    if (entry.event_id != open_) *names_ += " mismatch";
    --open_;
  }
  EventTracerEntry start_profiling_delegate(const char*, DelegateDebugIntId) override { return {}; }
  void end_profiling_delegate(EventTracerEntry, const void*, size_t) override {}
  void log_profiling_delegate(const char*, DelegateDebugIntId, et_timestamp_t, et_timestamp_t,
                              const void*, size_t) override {}
  void track_allocation(AllocatorID, size_t) override {}
  AllocatorID track_allocator(const char*) override { return 0; }
  Result<bool> log_evalue(const EValue& value, LoggedEValueType type) override {
    if (type != LoggedEValueType::kProgramOutput || !value.isTensor()) return false;
    const Tensor tensor = value.toTensor();
    for (ssize_t i = 0; i < tensor.numel(); ++i) *outputs_ += tensor.const_data_ptr<float>()[i];
    return true;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const Tensor&) override {
    return false;
  }
  Result<bool> log_intermediate_output_delegate(
      const char*, DelegateDebugIntId, const executorch::runtime::ArrayRef<Tensor>) override {
    return false;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const int&) override {
    return false;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const bool&) override {
    return false;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const double&) override {
    return false;
  }
  void set_delegation_intermediate_output_filter(EventTracerFilterBase*) override {}

 private:
  std::string* names_;
  double* outputs_;
  int64_t open_ = 0;
};

}  // namespace

// Loads by every way to give memory, and prints the outputs if all are equal.
int run_in_memory(const char* path, std::vector<float>& input, const std::vector<int>& sizes) {
  size_t structures = 0, temporary = 0;
  std::string names;
  double traced = 0;
  Module module(path, Module::LoadMode::File, std::make_unique<OwnTracer>(&names, &traced),
                std::make_unique<CountingAllocator>(&structures),
                std::make_unique<CountingAllocator>(&temporary));
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) return print_error(meta.error());
  std::vector<std::vector<uint8_t>> arenas;
  std::vector<Span<uint8_t>> spans;
  for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
    arenas.emplace_back(static_cast<size_t>(meta->memory_planned_buffer_size(i).get()));
  }
  for (auto& arena : arenas) spans.push_back({arena.data(), arena.size()});
  HierarchicalAllocator planned({spans.data(), spans.size()});
  const Error loaded = module.load_forward(&planned);
  if (loaded != Error::Ok) return print_error(loaded);
  auto tensor = from_blob(input.data(), {sizes.begin(), sizes.end()}, ScalarType::Float);
  const auto outputs = module.forward(tensor);
  if (!outputs.ok()) return print_error(outputs.error());
  const Tensor output = outputs.get()[0].toTensor();
  const auto* data = static_cast<const uint8_t*>(output.const_data_ptr());
  bool is_planned = false;
  for (const auto& arena : arenas) {
    is_planned = is_planned || (data >= arena.data() && data < arena.data() + arena.size());
  }
  if (!is_planned || structures == 0 || temporary == 0) return 30;
  std::fprintf(stderr, "events:%s\n", names.c_str());
  double sum = 0;
  for (ssize_t i = 0; i < output.numel(); ++i) sum += output.const_data_ptr<float>()[i];
  if (sum != traced) return 31;

  // Arenas of the module's own, of one method or of all.
  for (const bool shares : {false, true}) {
    size_t bytes = 0;
    Module other(path, Module::LoadMode::Mmap, nullptr, std::make_unique<CountingAllocator>(&bytes),
                 nullptr, shares);
    const auto again = other.forward(tensor);
    if (!again.ok()) return print_error(again.error());
    if (bytes == 0) return 32;
    const Tensor same = again.get()[0].toTensor();
    if (std::memcmp(same.const_data_ptr(), output.const_data_ptr(), output.nbytes()) != 0) {
      return 33;
    }
    if (!other.unload_forward() || other.is_method_loaded("forward")) return 34;
  }
  return print_outputs(output);
}

// The keys and tensors of data files, each by itself and merged.
int print_data(const std::vector<const char*>& paths) {
  std::vector<std::unique_ptr<FileDataLoader>> loaders;
  std::vector<std::unique_ptr<FlatTensorDataMap>> files;
  std::vector<const NamedDataMap*> maps;
  for (const char* path : paths) {
    Result<FileDataLoader> loader = FileDataLoader::from(path);
    if (!loader.ok()) return print_error(loader.error());
    loaders.push_back(std::make_unique<FileDataLoader>(std::move(*loader)));
    Result<FlatTensorDataMap> map = FlatTensorDataMap::load(loaders.back().get());
    if (!map.ok()) return print_error(map.error());
    files.push_back(std::make_unique<FlatTensorDataMap>(std::move(*map)));
    maps.push_back(files.back().get());
  }
  const Result<MergedDataMap> merged = MergedDataMap::load({maps.data(), maps.size()});
  if (!merged.ok()) return print_error(merged.error());
  for (uint32_t i = 0; i < merged->get_num_keys().get(); ++i) {
    const char* key = merged->get_key(i).get();
    const auto layout = merged->get_tensor_layout(key);
    const auto bytes = merged->get_data(key);
    if (!layout.ok() || !bytes.ok() || bytes->size() != layout->nbytes()) return 35;
    std::vector<float> copy(bytes->size() / sizeof(float));
    if (merged->load_data_into(key, copy.data(), bytes->size()) != Error::Ok) return 36;
    if (std::memcmp(copy.data(), bytes->data(), bytes->size()) != 0) return 37;
    std::printf("%s", key);
    for (const int size : layout->sizes()) std::printf(" %d", size);
    std::printf(":");
    for (const float value : copy) std::printf(" %.9g", static_cast<double>(value));
    std::printf("\n");
  }
  if (merged->get_data("no such key").error() != Error::NotFound) return 38;
  return merged->get_key(1000).error() == Error::InvalidArgument ? 0 : 39;
}
