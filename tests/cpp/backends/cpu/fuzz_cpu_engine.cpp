// Damages payloads of the cpu backend and runs those that still load: nothing may crash, hang, or
// access memory outside of its blocks. Most useful with RUSHLIGHT_SANITIZE=ON: each constant,
// argument and block of scratch is a separate heap block of exactly the requested size.
//
// Usage: fuzz_cpu_engine ROUNDS FILE...: damages the payloads of each file's delegates ROUNDS times
// each, with the same damage in every run of the test. They run with one or two threads, on each
// instruction set. Programs with dynamic sizes run with several input sizes.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "engine_damage.h"
#include "engine_images.h"
#include "engine_kernels.h"
#include "engine_payload.h"
#include "fuzz_delegates.h"
#include "rushlight/backends/cpu/cpu_backend.h"

namespace {

using namespace rushlight;
using namespace rushlight::test;

// A graph without constants, with these inputs and outputs, all filled with ones.
Recording recording_of(const EngineGraph& graph, const std::vector<std::vector<int32_t>>& shapes) {
  Recording recording;
  recording.payload = graph.bytes();
  recording.n_inputs = graph.n_inputs;
  for (const std::vector<int32_t>& shape : shapes) {
    Argument argument;
    argument.is_tensor = true;
    argument.sizes = shape;
    size_t numel = 1;
    for (size_t d = 0; d < shape.size(); ++d) {
      argument.dim_order.push_back(static_cast<uint8_t>(d));
      numel *= static_cast<size_t>(shape[d]);
    }
    const std::vector<float> ones(numel, 1.0f);
    argument.bytes = copy_of({reinterpret_cast<const uint8_t*>(ones.data()), numel * 4});
    recording.args.push_back(argument);
  }
  return recording;
}

bool fuzz_engine(const char* name, const Recording& recording, size_t rounds) {
  const bool is_dynamic = schema::root_Graph(recording.payload.data()).expressions().size() > 0;
  const EngineSlots slots(recording.payload);
  return fuzz<CpuBackend>(name, recording, slots.slots(), is_dynamic, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: fuzz_cpu_engine ROUNDS FILE...\n");
    return 2;
  }
  const size_t rounds = std::strtoul(argv[1], nullptr, 10);
  const Recording join = recording_of(join_graph(), {{6, 4}, {5, 4}, {11, 4}, {6}});
  const Recording attention =
      recording_of(attention_graph(), {{1, 1, 10, 8}, {1, 1, 10, 8}, {1, 1, 10, 8}});
  std::vector<std::vector<int32_t>> sizes = {{9, 40}, {1280}};
  sizes.resize(2 + QuantizedGraph().n_outputs, {9, 20});
  const Recording quantized = recording_of(QuantizedGraph(), sizes);
  const Recording groups = recording_of(RowGroupsGraph(), {{9, 64}, {2048}, {9, 20}, {9, 20}});
  const Recording images = recording_of(ImageGraph(), {{1, 9, 7, 20}, {5760}, {1, 5, 4, 24}});
  const MixTable table;
  Recording kernels = recording_of(KernelGraph(), {{6, 4}, {6, 4}, {1}});
  kernels.kernels = table.table();
  if (!fuzz_engine("join", join, rounds) || !fuzz_engine("attention", attention, rounds) ||
      !fuzz_engine("quantized", quantized, rounds) || !fuzz_engine("groups", groups, rounds) ||
      !fuzz_engine("images", images, rounds) || !fuzz_engine("kernels", kernels, rounds)) {
    std::fprintf(stderr, "a graph made here does not run undamaged\n");
    return 1;
  }
  for (int i = 2; i < argc; ++i) {
    std::vector<Recording> recordings;
    if (!record<CpuBackend>(argv[i], &recordings)) {
      std::fprintf(stderr, "%s: does not run undamaged\n", argv[i]);
      return 1;
    }
    for (const Recording& recording : recordings) {
      if (fuzz_engine(argv[i], recording, rounds)) continue;
      std::fprintf(stderr, "%s: a delegate does not run undamaged\n", argv[i]);
      return 1;
    }
  }
  return 0;
}
