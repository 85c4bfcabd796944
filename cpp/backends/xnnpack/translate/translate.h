// From a graph of XNNPACK's nodes to the parts of an engine's graph: transposes, slices and most
// reshapes become views; biases, limits and elementwise nodes after a product or convolution become
// its epilogue; and chains of elementwise nodes become one operator.
#pragma once

#include "rushlight/backends/xnnpack/translate/builder.h"
#include "rushlight/backends/xnnpack/translate/clusters.h"
#include "rushlight/backends/xnnpack/translate/tiles.h"
#include "rushlight/backends/xnnpack/weights/weights.h"
#include "rushlight/core/message.h"

namespace rushlight::xnnpack {

class Translator {
 public:
  // `shapes` has one for each value. `ordinals` numbers inputs and outputs separately.
  Translator(const Graph& graph, Span<const Shape> shapes, Span<const uint32_t> ordinals,
             Weights& weights, Allocator* allocator, Message* message)
      : graph_(graph),
        shapes_(shapes),
        ordinals_(ordinals),
        weights_(weights),
        allocator_(allocator),
        message_(*message),
        builder_(allocator) {}

  // DelegateMemoryAllocationFailed if memory ran out, NotSupported if the engine has no operator
  // for a node; `failed` is that node.
  Status run(size_t n_inputs, size_t n_outputs, engine::GraphParts* parts, size_t* failed);

 private:
  // The state of a value during translation.
  struct State {
    bool ready = false;
    bool has_floats = false;  // a float32 copy exists beside the integers
    bool has_rows = false;
    engine::Value floats;
    engine::Value rows;     // quantised row by row
    engine::Value scales;   // of these rows
    uint32_t home = kNone;  // the float32 output in whose memory it may be computed
    // If floats are still stored as integers: the value that has their scale.
    uint32_t integers = kNone;
    engine::Value value;  // without its padding
    // Padding with `fill` that is not written yet.
    bool padded = false;
    int64_t before[kMaxRank] = {};
    int64_t after[kMaxRank] = {};
    float fill = 0;
  };
  // Nodes of one engine operator: a cluster, or one of its nodes.
  struct Members {
    uint32_t root;
    bool alone;
  };

  // --- values (translate.cpp)
  Status prepare();
  void find_homes();
  Status translate(uint32_t i);
  // A value with its padding written.
  engine::Value view(uint32_t value);
  // A value without unwritten padding.
  engine::Value inner_view(uint32_t value);
  // Makes another value the same as this one, with its padding.
  void store_padded(uint32_t value, State as);
  engine::Value constant(uint32_t value);
  engine::Value packed(Span<const float> floats);
  // Memory for a node's result: a float32 output, or scratch.
  engine::Value target(uint32_t value, const Order& order = Order(), DType dtype = DType::Float32);
  // Makes the value a view of other memory; it is copied if the value is an output.
  void deliver(uint32_t value, const engine::Value& source);
  // Copies a value to its output, if it was computed elsewhere.
  void write_output(uint32_t value);
  // The elements converted to another dtype.
  engine::Value converted(const engine::Value& value, DType dtype);

  // --- integers (integers.cpp)
  // The integers of a value as uint8; other values as view() gives them.
  engine::Value bytes(uint32_t value);
  // The same without unwritten padding.
  engine::Value inner_bytes(uint32_t value);
  // Delays a conversion until its result is read, because the reader may convert it again.
  bool convert_integers(const Node& node);
  // The input of a node that moves elements: integers, if its result has the same quantization.
  engine::Value moved(uint32_t from, uint32_t to);
  engine::Value requantized(const engine::Value& value, DType dtype, const Value& as);
  void convert_to(const engine::Value& from, const engine::Value& to, const Value& as);
  void round_result(uint32_t value);
  bool is_integer(uint32_t value) const;
  engine::Requantize requantize(const Node& node) const;
  // Translates a node to an integer operator. False if the engine has none for it.
  Status integer_node(const Node& node, bool* done);
  // Adds a product of uint8 rows with a node's integer weights, and its requantization.
  Status emit_sums(const Node& node, const engine::Parameters& parameters, const engine::Value& in,
                   const engine::Value& out);
  Status static_product(const Node& node);
  Status static_convolution(const Node& node);
  bool integer_binary(const Node& node);
  bool integer_function(const Node& node);
  // Applies `function` to integers, or changes their scale, by a table.
  engine::Value looked_up(const engine::Value& from, const Value& in, const Value& out,
                          const Node* function);
  bool integer_pooling(const Node& node);
  // Quantizes a value row by row at run time.
  void quantize_rows(uint32_t value, const engine::Value& rows);
  // Dequantizes images that were quantized one by one.
  engine::Value rounded_images(uint32_t value);
  Status dynamic_product(const Node& node, const engine::EpilogueParameters& epilogue,
                         const engine::Value* bias, const engine::Value& rows);
  template <typename T>
  engine::Value column(const T* data, int64_t n, DType dtype);
  void store(uint32_t value, const engine::Value& computed);
  // Writes the padding of a value.
  template <typename T>
  void write_padding(uint32_t value, T fill);
  template <typename T>
  void fill(T number, const engine::Value& to);
  // Whether the padding of images can be a convolution's padding.
  bool pads_pixels(uint32_t value, const engine::Window& window) const;
  static void add_padding(const State& state, engine::Window* window);
  // Applies a node's limits to results that were computed without them.
  Status limit(const Node& node);

  // --- elementwise nodes (elementwise.cpp)
  Status elementwise(uint32_t root);
  // One operator for each node of a cluster that is too long for one.
  Status apart(uint32_t root);
  // One operator for a cluster, or for one node alone. False if it is too long.
  bool chain(Members members);
  // The terms of a cluster's nodes. `anchored` holds the anchor's results as [rows, columns].
  bool terms(Members members, const engine::Value* anchored, Tiles* tiles, Tiles::Term* result);
  engine::Value fitted(uint32_t value, const Shape& shape, bool as_rows);
  // Applies a node of one input to `n` numbers.
  static void apply(const Node& node, float* numbers, int64_t n);

  // --- products and convolutions (products.cpp)
  // Translates a product with its whole cluster, or alone if `root` is kNone. If the cluster is too
  // long, sets *fits to false and adds nothing.
  Status anchored(const Node& node, uint32_t root, bool* fits);
  Status fully_connected(const Node& node, uint32_t root, bool* fits);
  Status convolution(const Node& node, uint32_t root, bool* fits);
  Status computed_product(const Node& node);
  Status batch_product(const Node& node);
  engine::Value padded_image(const Node& node, engine::Window* window);
  // The epilogue of an anchor, whose results are `rows`. False if the cluster is too long.
  bool epilogue(const Node& node, uint32_t root, const engine::Value& rows,
                engine::EpilogueParameters* to);
  bool find_residual(const Node& node, uint32_t root, uint32_t* residual,
                     engine::EpilogueParameters* to) const;

  // --- the rest (movement.cpp)
  Status pooling(const Node& node);
  Status global_pooling(const Node& node);
  Status arg_max(const Node& node);
  Status resize(const Node& node);
  Status softmax(const Node& node);
  Status concatenate(const Node& node);
  void convert(const Node& node);
  Status transpose(const Node& node);
  Status reshape(const Node& node);
  Status pad(const Node& node);
  Status slice(const Node& node);

  Status no_memory() {
    return message_.fail(Code::DelegateMemoryAllocationFailed,
                         "the method's memory has no room for the delegate");
  }
  uint32_t result_of(uint32_t node) const { return graph_.nodes[node].outputs[0]; }

  const Graph& graph_;
  Span<const Shape> shapes_;
  Span<const uint32_t> ordinals_;
  Weights& weights_;
  Allocator* allocator_;
  Message& message_;
  Builder builder_;
  Clusters clusters_;
  Span<State> states_;
  bool out_of_memory_ = false;
};

}  // namespace rushlight::xnnpack
