// Every test case of a bundled program, as ExecuTorch's documents run one.
#include <executorch/devtools/bundled_program/bundled_program.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/module/bundled_module.h>
#include <executorch/extension/threadpool/threadpool_guard.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/kernel/thread_parallel_interface.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <vector>

using executorch::bundled_program::compute_method_output_error_stats;
using executorch::bundled_program::ErrorStats;
using executorch::bundled_program::get_program_data;
using executorch::bundled_program::is_bundled_program;
using executorch::bundled_program::load_bundled_input;
using executorch::bundled_program::verify_method_outputs;
using executorch::extension::BufferDataLoader;
using executorch::extension::BundledModule;
using executorch::extension::FileDataLoader;
using executorch::extension::get_thread_count;
using executorch::extension::MallocMemoryAllocator;
using executorch::extension::parallel_for;
using executorch::extension::threadpool::NoThreadPoolGuard;
using executorch::runtime::DataLoader;
using executorch::runtime::Error;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::MemoryManager;
using executorch::runtime::Method;
using executorch::runtime::Program;
using executorch::runtime::Result;
using executorch::runtime::Span;

int print_error(Error error);

namespace {

// One case: the names of what load, run and verification return, and the errors of its outputs.
Error run_case(Method& method, const void* bundle, size_t index) {
  Error error = load_bundled_input(method, bundle, index);
  if (error != Error::Ok) return error;
  error = method.execute();
  if (error != Error::Ok) return error;
  const ErrorStats stats = compute_method_output_error_stats(method, bundle, index);
  if (stats.status != Error::Ok) return stats.status;
  const Error verified = verify_method_outputs(method, bundle, index, 1e-4, 1e-6);
  std::printf("%s %.9g %.9g %.9g %.9g\n", executorch::runtime::to_string(verified),
              stats.mean_abs_error, stats.max_abs_error, stats.mean_relative_error,
              stats.max_relative_error);
  return Error::Ok;
}

// Sums 0 to 999 in parts, on the threads that there are.
int check_threads(int64_t threads) {
  std::atomic<int64_t> sum{0};
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
  };
  if (get_thread_count() != threads && threads != 0) return 20;
  if (!parallel_for(0, 1000, 10, add) || sum != 499500) return 21;
  return parallel_for(10, 0, 10, add) ? 22 : 0;
}

// The first case by a BundledModule.
int check_module(const void* bundle) {
  BundledModule module(bundle);
  const auto outputs = module.execute("forward", 0);
  if (!outputs.ok() || outputs->size() != 1) return 25;
  if (module.verify_method_outputs("forward", 0, 1e-4, 1e-6) != Error::Ok) return 26;
  if (module.verify_method_outputs("forward", 2, 1e-4, 1e-6) != Error::NotFound) return 27;
  const char text[256] = "no bundled program";
  return BundledModule(text).execute("forward", 0).ok() ? 28 : 0;
}

}  // namespace

int run_bundled(const char* path) {
  Result<FileDataLoader> file = FileDataLoader::from(path);
  if (!file.ok()) return print_error(file.error());
  const DataLoader::SegmentInfo info(DataLoader::SegmentInfo::Type::Program);
  auto bytes = file->load(0, file->size().get(), info);
  if (!bytes.ok()) return print_error(bytes.error());
  void* bundle = const_cast<void*>(bytes->data());
  const void* program_data = nullptr;
  size_t program_size = 0;
  const Error found = get_program_data(bundle, bytes->size(), &program_data, &program_size);
  if (found != Error::Ok) return print_error(found);
  if (!is_bundled_program(bundle, bytes->size())) return 23;
  if (is_bundled_program(const_cast<void*>(program_data), program_size)) return 24;

  if (const int wrong = check_module(bundle)) return wrong;

  BufferDataLoader loader(program_data, program_size);
  Result<Program> program = Program::load(&loader);
  if (!program.ok()) return print_error(program.error());
  const auto meta = program->method_meta("forward");
  std::vector<std::vector<uint8_t>> buffers;
  std::vector<Span<uint8_t>> spans;
  for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
    buffers.emplace_back(static_cast<size_t>(meta->memory_planned_buffer_size(i).get()));
  }
  for (auto& buffer : buffers) spans.push_back({buffer.data(), buffer.size()});
  HierarchicalAllocator planned({spans.data(), spans.size()});
  MallocMemoryAllocator method_allocator;
  MemoryManager memory(&method_allocator, &planned);
  Result<Method> method = program->load_method("forward", &memory);
  if (!method.ok()) return print_error(method.error());

  if (const int wrong = check_threads(0)) return wrong;
  NoThreadPoolGuard guard;
  if (const int wrong = check_threads(1)) return wrong;
  for (size_t index = 0;; ++index) {
    const Error error = run_case(*method, bundle, index);
    if (error != Error::Ok) return print_error(error);  // after the last one
  }
}
