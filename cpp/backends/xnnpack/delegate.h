// One delegate: its graph, and the engine's graph into which it was translated for the sizes of its
// inputs. For other sizes it is translated again, into memory that was reserved for the greatest
// sizes.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/backends/xnnpack/plan_memory.h"
#include "rushlight/backends/xnnpack/weights/weights.h"
#include "rushlight/delegate/backend.h"
#include "rushlight/engine/graph/graph.h"

namespace rushlight::xnnpack {

class Delegate {
 public:
  // `workspace` is its method's; the caller releases it.
  explicit Delegate(Workspace* workspace) : workspace_(workspace) {}
  Workspace* workspace() const { return workspace_; }

  // Checks the whole payload and packs its weights.
  Status load(BackendInit& init);
  Status run(const BackendRun& run, EValue* const* args, size_t n_args);
  // Writes the weights that the method's delegates packed to a file, if an option asks for one.
  void save() { workspace_->cache().save(workers_); }

 private:
  // Numbers inputs and outputs separately, in the order of their arguments.
  Status number_arguments(Allocator* allocator, Message* message);
  // Reads the sizes of inputs; *changed if they are not those of the plan.
  Status read_sizes(EValue* const* args, Message& message, bool* changed);
  // Makes operators for the shapes of the inputs.
  Status plan(BackendInit& init);
  Status resize_outputs(const BackendRun& run, EValue* const* args);

  Workspace* workspace_;
  Graph graph_;
  Weights weights_;
  Span<Shape> shapes_;        // of values
  Span<uint32_t> ordinals_;   // of values that are inputs or outputs
  Span<uint32_t> arguments_;  // values: the inputs, then the outputs
  size_t n_inputs_ = 0;
  EValue** args_ = nullptr;  // in a run, in the order of `arguments_`
  Workers* workers_ = nullptr;
  PlanMemory memory_;
  engine::Graph engine_;
  bool is_planned_ = false;
};

}  // namespace rushlight::xnnpack
