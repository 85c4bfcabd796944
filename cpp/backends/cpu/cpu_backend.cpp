#include "rushlight/backends/cpu/cpu_backend.h"

#include <new>

#include "rushlight/backends/cpu/payload.h"
#include "rushlight/engine/graph/graph.h"

namespace rushlight {

Result<void*> CpuBackend::init(BackendInit& init) {
  void* memory = init.allocator->allocate(sizeof(engine::Graph), alignof(engine::Graph));
  if (memory == nullptr) {
    return init.message->fail(Code::DelegateMemoryAllocationFailed,
                              "the method's memory has no room for the delegate");
  }
  engine::Graph* graph = new (memory) engine::Graph();
  engine::GraphParts parts;
  RL_TRY(cpu::read_payload(init, &parts));
  RL_TRY(graph->load(parts, init));
  init.keeps_payload = false;  // all of it is read now; weights lie in named data
  return static_cast<void*>(graph);
}

Status CpuBackend::execute(const BackendRun& run, void* handle, EValue* const* args,
                           size_t n_args) {
  return static_cast<engine::Graph*>(handle)->run(run, args, n_args);
}

}  // namespace rushlight
