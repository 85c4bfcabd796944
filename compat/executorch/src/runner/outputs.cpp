#include "outputs.h"

#include <executorch/extension/evalue_util/print_evalue.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <cinttypes>
#include <cstdio>
#include <iostream>

namespace runner {
namespace {

using executorch::aten::ScalarType;
using executorch::aten::Tensor;

void print_element(size_t output, size_t index, const Tensor& tensor) {
  std::printf("Output[%zu][%zu]: ", output, index);
  switch (tensor.scalar_type()) {
    case ScalarType::Int:
      std::printf("(int) %" PRId32 "\n", tensor.const_data_ptr<int32_t>()[index]);
      break;
    case ScalarType::Long:
      std::printf("(long) %" PRId64 "\n", tensor.const_data_ptr<int64_t>()[index]);
      break;
    case ScalarType::Float:
      std::printf("(float) %f\n", static_cast<double>(tensor.const_data_ptr<float>()[index]));
      break;
    case ScalarType::Double:
      std::printf("(double) %f\n", tensor.const_data_ptr<double>()[index]);
      break;
    case ScalarType::Char:
      std::printf("(char) %d\n", tensor.const_data_ptr<int8_t>()[index]);
      break;
    case ScalarType::Byte:
      std::printf("(byte) %d\n", tensor.const_data_ptr<uint8_t>()[index]);
      break;
    case ScalarType::Bool: {
      const bool value = tensor.const_data_ptr<bool>()[index];
      std::printf("(bool) %s (0x%x)\n", value ? "true " : "false", value ? 1U : 0U);
      break;
    }
    default:
      std::printf("(%s)\n", executorch::runtime::toString(tensor.scalar_type()));
  }
}

}  // namespace

bool write_outputs(const Values& outputs, const std::string& name) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].isTensor()) continue;
    const Tensor& tensor = outputs[i].toTensor();
    const std::string path = name + "-" + std::to_string(i) + ".bin";
    std::FILE* file = std::fopen(path.c_str(), "wb");
    const bool is_written =
        file != nullptr &&
        std::fwrite(tensor.const_data_ptr(), 1, tensor.nbytes(), file) == tensor.nbytes();
    if (file == nullptr || (std::fclose(file) != 0) || !is_written) {
      ET_LOG(Error, "output %zu cannot be written to %s", i, path.c_str());
      return false;
    }
  }
  return true;
}

void print_all(const Values& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].isTensor()) {
      std::printf("Output[%zu]: Not Tensor\n", i);
      continue;
    }
    const Tensor& tensor = outputs[i].toTensor();
    for (size_t j = 0; j < static_cast<size_t>(tensor.numel()); ++j) print_element(i, j, tensor);
  }
}

void print_summary(const Values& outputs) {
  std::cout << executorch::extension::evalue_edge_items(100);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::cout << "OutputX " << i << ": " << outputs[i] << std::endl;
  }
}

}  // namespace runner
