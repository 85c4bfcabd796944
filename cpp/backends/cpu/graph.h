// The graph of one delegate: its payload, read and checked, as operators that are ready to run.
//
// Memories, by number: the inputs, the constants, then what may be written: the outputs and the
// scratch that values share.
#pragma once

#include "rushlight/backends/cpu/operator.h"
#include "rushlight/delegate/backend.h"

namespace rushlight::cpu {

constexpr uint32_t kVersion = 1;  // the newest payload that is read
constexpr size_t kAlignment = 64;

class Graph {
 public:
  // Everything that the payload says is checked here; `init` says what is wrong, and at which step.
  Status load(BackendInit& init);
  Status run(const BackendRun& run, EValue* const* args, size_t n_args);

 private:
  // What an argument must be.
  struct Argument {
    DType dtype = DType::Float32;
    uint64_t bytes = 0;
    bool used = false;
  };

  Status read_values(fb::cpu_engine::Graph graph, BackendInit& init);
  Status read_value(fb::cpu_engine::Value value, fb::cpu_engine::Graph graph, View* view,
                    Message& message);
  Status read_constants(fb::cpu_engine::Graph graph, BackendInit& init);
  Status read_steps(fb::cpu_engine::Graph graph, BackendInit& init);
  Status bind(EValue& arg, size_t number, bool is_input, Message& message);

  size_t n_inputs_ = 0;
  size_t n_constants_ = 0;
  size_t n_outputs_ = 0;
  size_t n_values_ = 0;
  size_t n_steps_ = 0;
  size_t threads_ = 1;  // that scratch is there for
  View* values_ = nullptr;
  Argument* arguments_ = nullptr;  // inputs, then outputs
  const Operator** steps_ = nullptr;
  uint8_t** bases_ = nullptr;
  uint64_t* capacities_ = nullptr;  // bytes of each memory; of arguments what they must have
  void* scratch_ = nullptr;         // of operators
  size_t scratch_size_ = 0;
};

}  // namespace rushlight::cpu
