// own_program PROGRAM: runs forward() on 0…5 in float32, of sizes (2,3), and prints all outputs,
// or the name of an error.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>

#ifdef REGISTER_BY_CALL
#include "RegisterKernels.h"
#endif

using executorch::aten::ScalarType;

int main(int argc, char** argv) {
  if (argc != 2) return 1;
#ifdef REGISTER_BY_CALL
  if (torch::executor::register_all_kernels() != executorch::runtime::Error::Ok) return 3;
#endif
  executorch::extension::Module module(argv[1]);
  float data[] = {0, 1, 2, 3, 4, 5};
  const auto outputs =
      module.forward(executorch::extension::from_blob(data, {2, 3}, ScalarType::Float));
  if (!outputs.ok()) {
    std::printf("%s\n", executorch::runtime::to_string(outputs.error()));
    return 2;
  }
  for (const auto& value : *outputs) {
    const auto& tensor = value.toTensor();
    for (ssize_t i = 0; i < tensor.numel(); ++i) {
      if (tensor.scalar_type() == ScalarType::Float) {
        std::printf("%.9g ", static_cast<double>(tensor.const_data_ptr<float>()[i]));
      } else {
        std::printf("%lld ", static_cast<long long>(tensor.const_data_ptr<int64_t>()[i]));
      }
    }
  }
  std::printf("\n");
  return 0;
}
