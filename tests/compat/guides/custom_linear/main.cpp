// Runs linear.pte on the numbers 1 to 6 as [2, 3], and prints the numbers of its result.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>

int main() {
  executorch::extension::Module module("linear.pte");
  const auto input = executorch::extension::make_tensor_ptr({2, 3}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f});
  const auto result = module.forward(input);
  if (!result.ok()) {
    std::printf("error %d\n", static_cast<int>(result.error()));
    return 1;
  }
  const auto& tensor = result->at(0).toTensor();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    std::printf("%.5f ", tensor.const_data_ptr<float>()[i]);
  }
  std::printf("\n");
}
