// Runs partner.pte on input.bin, prints the result, and writes the trace run.etdp.
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

using executorch::etdump::ETDumpGen;
using executorch::extension::Module;

int main() {
  std::vector<float> input(8);
  FILE* file = std::fopen("input.bin", "rb");
  if (file == nullptr || std::fread(input.data(), sizeof(float), 8, file) != 8) return 2;
  std::fclose(file);
  Module module("partner.pte", Module::LoadMode::Mmap, std::make_unique<ETDumpGen>());
  const auto result =
      module.forward(executorch::extension::make_tensor_ptr({1, 2, 2, 2}, std::move(input)));
  if (!result.ok()) {
    std::printf("error %d\n", static_cast<int>(result.error()));
    return 1;
  }
  const auto& tensor = result->at(0).toTensor();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    std::printf("%.7f ", tensor.const_data_ptr<float>()[i]);
  }
  const auto trace = static_cast<ETDumpGen*>(module.event_tracer())->get_etdump_data();
  if (trace.buf == nullptr || trace.size == 0) return 3;
  file = std::fopen("run.etdp", "wb");
  std::fwrite(trace.buf, 1, trace.size, file);
  std::fclose(file);
  std::free(trace.buf);
  return 0;
}
