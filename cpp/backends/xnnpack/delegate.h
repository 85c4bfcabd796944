// One delegate: its graph, and the engine's graph that it was translated to for the sizes of its
// inputs. Other sizes are translated anew, into memory that was set aside for the greatest ones.
#pragma once

#include "rushlight/backends/xnnpack/payload/graph.h"
#include "rushlight/backends/xnnpack/plan_memory.h"
#include "rushlight/backends/xnnpack/weights/weights.h"
#include "rushlight/delegate/backend.h"
#include "rushlight/engine/graph/graph.h"

namespace rushlight::xnnpack {

class Delegate {
 public:
  // `workspace` is that of its method, and is left to whoever made the delegate.
  explicit Delegate(Workspace* workspace) : workspace_(workspace) {}
  Workspace* workspace() const { return workspace_; }

  // Everything that the payload says is checked, and its weights are packed.
  Status load(BackendInit& init);
  Status run(const BackendRun& run, EValue* const* args, size_t n_args);
  // Writes what the delegates of the method have packed, if a file of it is wanted.
  void save() { workspace_->cache().save(workers_); }

 private:
  // Numbers the inputs and outputs among themselves, in the order of their arguments.
  Status number_arguments(Allocator* allocator, Message* message);
  // Reads the sizes of inputs; *changed if they are not those of the plan.
  Status read_sizes(EValue* const* args, Message& message, bool* changed);
  // From the shapes of inputs to operators that are ready to run.
  Status plan(BackendInit& init);
  Status resize_outputs(const BackendRun& run, EValue* const* args);

  Workspace* workspace_;
  Graph graph_;
  Weights weights_;
  Span<Shape> shapes_;        // of values
  Span<uint32_t> ordinals_;   // of values that are inputs or outputs
  Span<uint32_t> arguments_;  // values: the inputs, then the outputs
  size_t n_inputs_ = 0;
  EValue** args_ = nullptr;  // of a run, in the order of `arguments_`
  Workers* workers_ = nullptr;
  PlanMemory memory_;
  engine::Graph engine_;
  bool is_planned_ = false;
};

}  // namespace rushlight::xnnpack
