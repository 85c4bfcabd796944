// For fuzzing the CPU engine: finds the numbers of a payload (schema/cpu_engine.fbs).
#pragma once

#include <cstdint>
#include <vector>

#include "damage.h"
#include "rushlight/engine/types/cpu_engine_fb.h"

namespace rushlight {
namespace test {

namespace schema = rushlight::fb::cpu_engine;

// The numbers of a payload, collected from its tables.
class EngineSlots : public SlotList {
 public:
  explicit EngineSlots(const std::vector<uint8_t>& payload) : SlotList(payload.data()) {
    const schema::Graph graph = schema::root_Graph(payload.data());
    for (size_t i = 0; i < graph.values().size(); ++i) {
      const schema::Value value = graph.values()[i];
      add(value.sizes());
      add(value.strides());
      add(value.dynamic_sizes());
      add(value.dynamic_strides());
      add_fields(value, {{0, 1}, {3, 1}, {4, 4}, {5, 8}, {8, 4}});
    }
    for (size_t i = 0; i < graph.constants().size(); ++i) {
      add_fields(graph.constants()[i], {{1, 8}});
    }
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      add(graph.nodes()[i].inputs());
      add(graph.nodes()[i].outputs());
      add_operation(graph.nodes()[i]);
    }
    for (size_t i = 0; i < graph.expressions().size(); ++i) {
      add_fields(graph.expressions()[i], {{0, 1}, {1, 8}, {2, 8}});
    }
    add(graph.arguments());
    add_fields(graph, {{4, 4}, {5, 4}, {6, 8}});
  }

 private:
  void add_program(schema::TileProgram program) {
    add(program.code(), 1);
    add(program.code());
    add(program.operands());
  }
  template <typename Operation>
  void add_window(Operation operation) {
    add(operation.kernel());
    add(operation.stride());
    add(operation.padding());
    add(operation.dilation());
  }
  void add_binary(schema::QuantizedBinary binary) {
    add_fields(binary.requantize(), {{0, 4}, {1, 4}, {2, 4}});
    add_fields(binary, {{0, 1}, {1, 4}, {2, 4}, {3, 4}, {4, 4}, {5, 4}});
  }
  void add_residual(schema::QuantizedResidual residual) {
    add_fields(residual, {{0, 4}});
    add_binary(residual.sum());
  }
  void add_integers(schema::Node node) {
    const schema::QuantizedProduct product = node.operation_as_QuantizedProduct();
    add_program(product.epilogue().program());
    add_fields(product.epilogue(), {{0, 1}, {4, 4}, {5, 1}});
    add_fields(product.requantize(), {{0, 4}, {1, 4}, {2, 4}});
    add_residual(product.residual());
    add_program(node.operation_as_DynamicProduct().epilogue().program());
    add_fields(node.operation_as_DynamicProduct().epilogue(), {{0, 1}, {4, 4}, {5, 1}});
    add_fields(node.operation_as_DynamicProduct(), {{0, 1}, {1, 8}, {3, 8}});
    add_fields(node.operation_as_QuantizeRows(), {{0, 8}});
    add_fields(node.operation_as_Convert(), {{0, 4}, {1, 4}});
    const schema::QuantizedConvolution convolution = node.operation_as_QuantizedConvolution();
    add_window(convolution);
    add_program(convolution.epilogue().program());
    add_fields(convolution.epilogue(), {{0, 1}, {4, 4}, {5, 1}});
    add_fields(convolution.requantize(), {{0, 4}, {1, 4}, {2, 4}});
    add_fields(convolution, {{0, 1}, {5, 8}, {6, 1}});
    add_residual(convolution.residual());
    add_window(node.operation_as_QuantizedPooling());
    add_fields(node.operation_as_QuantizedPooling().requantize(), {{0, 4}, {1, 4}, {2, 4}});
    add_fields(node.operation_as_QuantizedPooling(), {{0, 1}, {5, 1}, {6, 8}, {7, 4}, {8, 4}});
    add_binary(node.operation_as_QuantizedBinary());
  }
  void add_kernel_call(schema::KernelCall call) {
    add(call.dim_orders());
    for (size_t i = 0; i < call.arguments().size(); ++i) {
      const schema::KernelArgument argument = call.arguments()[i];
      add(argument.integers());
      add(argument.expressions());
      add_fields(argument, {{0, 1}, {1, 4}});
    }
  }
  void add_operation(schema::Node node) {
    add_integers(node);
    add_window(node.operation_as_Convolution());
    add_window(node.operation_as_Pooling());
    add_program(node.operation_as_Convolution().epilogue().program());
    add_program(node.operation_as_Product().epilogue().program());
    add_program(node.operation_as_Elementwise().program());
    add_fields(node.operation_as_Convolution().epilogue(), {{0, 1}, {4, 4}, {5, 1}});
    add_fields(node.operation_as_Product().epilogue(), {{0, 1}, {4, 4}, {5, 1}});
    add_fields(node.operation_as_Gather(), {{0, 8}});
    add_fields(node, {{0, 1}});
    add_fields(node.operation_as_Convolution(), {{0, 1}, {5, 8}});
    add_fields(node.operation_as_Pooling(), {{0, 1}, {5, 1}, {6, 8}});
    add_fields(node.operation_as_Norm(), {{0, 1}, {1, 4}});
    add_fields(node.operation_as_GroupNorm(), {{0, 8}, {1, 4}});
    add_fields(node.operation_as_Softmax(), {{0, 4}, {1, 1}});
    add_fields(node.operation_as_Reduction(), {{0, 1}, {1, 4}, {2, 4}});
    add_fields(node.operation_as_Attention(), {{0, 4}, {1, 1}});
    add_fields(node.operation_as_Recurrent(), {{0, 1}, {1, 4}, {2, 1}, {3, 8}, {4, 8}});
    add_fields(node.operation_as_CachedAttention(), {{0, 4}, {1, 4}, {2, 8}, {3, 4}});
    add(node.operation_as_Adapter().sites());
    add(node.operation_as_Adapter().widths());
    add_fields(node.operation_as_Adapter(), {{2, 4}});
    add_kernel_call(node.operation_as_KernelCall());
  }
};

}  // namespace test
}  // namespace rushlight
