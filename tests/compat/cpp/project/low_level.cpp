// A program by its parts: loaders, metadata, memory of the caller's, a method.
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/executor/program.h>

#include <cstdio>
#include <memory>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::FileDataLoader;
using executorch::extension::MallocMemoryAllocator;
using executorch::runtime::Error;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::MemoryManager;
using executorch::runtime::Method;
using executorch::runtime::MethodMeta;
using executorch::runtime::Program;
using executorch::runtime::Result;
using executorch::runtime::Span;

int print_outputs(const Tensor& output);
int print_error(Error error);

int run_low_level(const char* path, std::vector<float>& input, const std::vector<int>& sizes) {
  Result<FileDataLoader> loader = FileDataLoader::from(path);
  if (!loader.ok()) return print_error(loader.error());
  Result<Program> program = Program::load(&*loader, Program::Verification::InternalConsistency);
  if (!program.ok()) return print_error(program.error());
  Result<MethodMeta> meta = program->method_meta("forward");
  if (!meta.ok()) return print_error(meta.error());
  const auto sizes_of_input = meta->input_tensor_meta(0)->sizes();
  std::fprintf(stderr, "%s: %zu dimensions\n", meta->name(), sizes_of_input.size());

  std::vector<std::unique_ptr<uint8_t[]>> buffers;
  std::vector<Span<uint8_t>> spans;
  for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
    const auto bytes = static_cast<size_t>(meta->memory_planned_buffer_size(i).get());
    buffers.push_back(std::make_unique<uint8_t[]>(bytes));
    spans.push_back({buffers.back().get(), bytes});
  }
  HierarchicalAllocator planned({spans.data(), spans.size()});
  MallocMemoryAllocator method_allocator;
  MallocMemoryAllocator temp_allocator;
  MemoryManager memory(&method_allocator, &planned, &temp_allocator);
  Result<Method> method = program->load_method("forward", &memory);
  if (!method.ok()) return print_error(method.error());

  auto tensor = executorch::extension::make_tensor_ptr({sizes.begin(), sizes.end()}, input);
  Error error = method->set_input(tensor, 0);
  if (error != Error::Ok) return print_error(error);
  error = method->execute();
  if (error != Error::Ok) return print_error(error);
  return print_outputs(method->get_output(0).toTensor());
}
