// run_table PROGRAM.pte X...: prints the method's value at each number.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

using executorch::extension::make_tensor_ptr;
using executorch::extension::Module;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: run_table PROGRAM.pte X...\n");
    return 1;
  }
  std::vector<float> numbers;
  for (int i = 2; i < argc; ++i) numbers.push_back(std::strtof(argv[i], nullptr));
  Module module(argv[1]);
  const auto input = make_tensor_ptr({static_cast<int>(numbers.size())}, numbers);
  const auto outputs = module.forward(input);
  if (!outputs.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], executorch::runtime::to_string(outputs.error()));
    return 1;
  }
  const auto values = outputs->at(0).toTensor();
  for (ssize_t i = 0; i < values.numel(); ++i) {
    std::printf("%.5f\n", values.const_data_ptr<float>()[i]);
  }
  return 0;
}
