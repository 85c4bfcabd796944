// The graph of one delegate: the checked parts of a payload, as operators that are ready to run.
//
// Memories, by number: the inputs, the constants, then what may be written: the outputs and the
// scratch that values share.
#pragma once

#include "rushlight/delegate/backend.h"
#include "rushlight/engine/graph/sizes.h"
#include "rushlight/engine/types/graph_parts.h"

namespace rushlight::engine {

class Operator;

constexpr size_t kAlignment = 64;

class Graph {
 public:
  // Checks everything in the parts; errors go to `init`, with the node that they concern. Memory is
  // taken here, for inputs of any sizes within their bounds.
  Status load(const GraphParts& parts, BackendInit& init);
  Status run(const BackendRun& run, EValue* const* args, size_t n_args);

 private:
  // What an argument must be.
  struct Argument {
    DType dtype = DType::Float32;
    uint64_t bytes = 0;
    bool used = false;
  };

  Status prepare(const GraphParts& parts, BackendInit& init);
  Status take_memory(const GraphParts& parts, BackendInit& init);
  Status place_values(Message& message);
  int64_t id_of(size_t node) const;
  Status place_value(Value& value, Message& message);
  Status make_operators(const BackendInit* init, Message& message, DelegatePlace& place);
  Status fit(const BackendRun& run, EValue* const* args);
  Status fit_anew(const BackendRun& run, EValue* const* args);
  void release_scratch();
  Status bind(EValue& arg, size_t number, bool is_input, Message& message);
  void tell_value(Tracer& tracer, size_t node, size_t value) const;
  void tell_values(Tracer& tracer, size_t node) const;
  Status run_operators(const BackendRun& run, void* scratch, size_t scratch_size);

  size_t n_inputs_ = 0;
  size_t n_constants_ = 0;
  size_t n_outputs_ = 0;
  size_t threads_ = 1;  // for which there is scratch
  bool calls_kernels_ = false;
  Span<uint8_t> shared_;       // the memory that values share
  uint8_t* shadow_ = nullptr;  // a copy of it, if kernels are checked
  Span<Value> values_;
  Span<const Node> nodes_;
  Sizes sizes_;
  Argument* arguments_ = nullptr;   // inputs, then outputs
  Operator** operators_ = nullptr;  // of each node
  uint8_t** bases_ = nullptr;
  uint64_t* capacities_ =
      nullptr;               // bytes of each memory; for arguments, the bytes that they must have
  void* scratch_ = nullptr;  // of operators
  size_t scratch_size_ = 0;
  size_t scratch_wanted_ = 0;  // may grow: operators can need more for smaller sizes
  uint64_t touched_ =
      0;  // most bytes of scratch that values took since it was last released to the system
};

}  // namespace rushlight::engine
