// guide module PROGRAM SIZE...     the Module API: forward() on 0, 1, 2, … in these sizes
// guide low PROGRAM SIZE...        the same by Program, MemoryManager and Method
// guide trace PROGRAM SIZE...      the Module API, which writes trace.etdp and trace.bin
// guide bundle PROGRAM             the test cases of a bundled program
// guide memory PROGRAM SIZE...     the Module API in memory of the application's
// guide data FILE...               the tensors of data files
// Prints the elements of the first output, or the name of an error.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::from_blob;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Result;

int print_data(const std::vector<const char*>& paths);
int run_in_memory(const char* path, std::vector<float>& input, const std::vector<int>& sizes);
int run_bundled(const char* path);
int run_traced(const char* path, std::vector<float>& input, const std::vector<int>& sizes);
int run_low_level(const char* path, std::vector<float>& input, const std::vector<int>& sizes);

int print_outputs(const Tensor& output) {
  for (ssize_t i = 0; i < output.numel(); ++i) {
    std::printf("%.9g ", static_cast<double>(output.const_data_ptr<float>()[i]));
  }
  std::printf("\n");
  return 0;
}

int print_error(Error error) {
  std::printf("%s\n", executorch::runtime::to_string(error));
  return 2;
}

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  if (std::strcmp(argv[1], "bundle") == 0) return run_bundled(argv[2]);
  if (std::strcmp(argv[1], "data") == 0) return print_data({argv + 2, argv + argc});
  std::vector<int> sizes;
  size_t count = 1;
  for (int i = 3; i < argc; ++i) {
    sizes.push_back(std::atoi(argv[i]));
    count *= static_cast<size_t>(sizes.back());
  }
  std::vector<float> input(count);
  for (size_t i = 0; i < count; ++i) input[i] = static_cast<float>(i);
  if (std::strcmp(argv[1], "memory") == 0) return run_in_memory(argv[2], input, sizes);
  if (std::strcmp(argv[1], "low") == 0) return run_low_level(argv[2], input, sizes);

  if (std::strcmp(argv[1], "trace") == 0) return run_traced(argv[2], input, sizes);

  Module module(argv[2], Module::LoadMode::MmapUseMlockIgnoreErrors);
  auto tensor = from_blob(input.data(), {sizes.begin(), sizes.end()}, ScalarType::Float);
  const auto outputs = module.forward(tensor);
  if (!outputs.ok()) return print_error(outputs.error());
  ET_LOG(Info, "%zu outputs", outputs->size());
  return print_outputs(outputs.get()[0].toTensor());
}
