// A module that is traced by ETDumpGen, with the values of its outputs.
#include <executorch/devtools/etdump/data_sinks/file_data_sink.h>
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::etdump::ETDumpGen;
using executorch::etdump::FileDataSink;
using executorch::extension::from_blob;
using executorch::extension::Module;
using executorch::runtime::EventTracerDebugLogLevel;
using torch::executor::etdump_result;

int print_outputs(const Tensor& output);

int run_traced(const char* path, std::vector<float>& input, const std::vector<int>& sizes) {
  auto sink = FileDataSink::create("trace.bin");
  if (!sink.ok()) return 3;
  auto generator = std::make_unique<ETDumpGen>();
  generator->set_data_sink(&sink.get());
  Module module(path, Module::LoadMode::MmapUseMlockIgnoreErrors, std::move(generator));
  auto* tracer = static_cast<ETDumpGen*>(module.event_tracer());
  if (tracer->get_etdump_data().buf != nullptr) return 4;  // nothing has run
  auto tensor = from_blob(input.data(), {sizes.begin(), sizes.end()}, ScalarType::Float);
  if (!module.forward(tensor).ok()) return 5;
  tracer->set_event_tracer_debug_level(EventTracerDebugLogLevel::kIntermediateOutputs);
  const auto outputs = module.forward(tensor);
  if (!outputs.ok()) return 6;
  const size_t blocks = tracer->get_num_blocks();
  etdump_result result = tracer->get_etdump_data();
  if (result.buf == nullptr || blocks < 2 || tracer->is_static_etdump()) return 7;
  FILE* file = std::fopen("trace.etdp", "wb");
  if (file == nullptr) return 8;
  std::fwrite(result.buf, 1, result.size, file);
  std::fclose(file);
  std::free(result.buf);
  sink->close();
  tracer->reset();
  if (tracer->get_num_blocks() != 0) return 9;
  return print_outputs(outputs.get()[0].toTensor());
}
