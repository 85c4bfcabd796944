// From a graph of XNNPACK's nodes to the parts of an engine's graph: transposes, slices and most
// reshapes are views, biases, limits and what else goes over the results of a product or
// convolution are done there, and chains of elementwise nodes are one operator.
#pragma once

#include "rushlight/backends/xnnpack/translate/builder.h"
#include "rushlight/backends/xnnpack/translate/clusters.h"
#include "rushlight/backends/xnnpack/translate/tiles.h"
#include "rushlight/backends/xnnpack/weights/weights.h"
#include "rushlight/core/message.h"

namespace rushlight::xnnpack {

class Translator {
 public:
  // `shapes` are those of all values; `inputs` and `outputs` number the arguments that are read and
  // written among themselves, by value.
  Translator(const Graph& graph, Span<const Shape> shapes, Span<const uint32_t> ordinals,
             Weights& weights, Allocator* allocator, Message* message)
      : graph_(graph),
        shapes_(shapes),
        ordinals_(ordinals),
        weights_(weights),
        allocator_(allocator),
        message_(*message),
        builder_(allocator) {}

  // DelegateMemoryAllocationFailed if memory ran out, NotSupported for what the engine has no
  // operator for; `failed` is the node then.
  Status run(size_t n_inputs, size_t n_outputs, engine::GraphParts* parts, size_t* failed);

 private:
  // What stands for a value so far.
  struct State {
    bool ready = false;
    bool has_floats = false;  // beside integers
    bool has_rows = false;
    engine::Value floats;
    engine::Value rows;     // quantised row by row
    engine::Value scales;   // of these rows
    uint32_t home = kNone;  // the output of float32 whose memory it may be computed in
    // Of numbers that lie there as integers still: the value that has their scale.
    uint32_t integers = kNone;
    engine::Value value;  // without its padding
    // Elements of `fill` around it, that nobody has written yet.
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
  // Where a value lies, paddings included.
  engine::Value view(uint32_t value);
  // Without those that nobody has written.
  engine::Value inner_view(uint32_t value);
  // Another value is that of this state, with its paddings.
  void store_padded(uint32_t value, State as);
  engine::Value constant(uint32_t value);
  engine::Value packed(Span<const float> floats);
  // Memory for what a node computes: an output of float32, or scratch.
  engine::Value target(uint32_t value, const Order& order = Order(), DType dtype = DType::Float32);
  // A view of other memory is the value: it is copied if the value is computed in an output.
  void deliver(uint32_t value, const engine::Value& source);
  // Writes what was not computed in its output.
  void write_output(uint32_t value);
  // Elements as those of another dtype.
  engine::Value converted(const engine::Value& value, DType dtype);

  // --- integers (translate_integers.cpp)
  // The integers of a value as uint8; what else it is as view() has it.
  engine::Value bytes(uint32_t value);
  // Without paddings that nobody has written.
  engine::Value inner_bytes(uint32_t value);
  // Conversions that wait for their results' reader, which may convert them again.
  bool convert_integers(const Node& node);
  // Of what a node moves: integers, if its result has the same quantisation.
  engine::Value moved(uint32_t from, uint32_t to);
  engine::Value requantized(const engine::Value& value, DType dtype, const Value& as);
  void convert_to(const engine::Value& from, const engine::Value& to, const Value& as);
  void round_result(uint32_t value);
  bool is_integer(uint32_t value) const;
  engine::Requantize requantize(const Node& node) const;
  // A node that the engine computes with integers. False if it has none such.
  Status integer_node(const Node& node, bool* done);
  // An operator on bytes and a node's integer weights, with what makes their sums results.
  Status emit_sums(const Node& node, const engine::Parameters& parameters, const engine::Value& in,
                   const engine::Value& out);
  Status static_product(const Node& node);
  Status static_convolution(const Node& node);
  bool integer_binary(const Node& node);
  bool integer_function(const Node& node);
  // What `function` gives for integers, or what they are with another scale: by a table.
  engine::Value looked_up(const engine::Value& from, const Value& in, const Value& out,
                          const Node* function);
  bool integer_pooling(const Node& node);
  // Quantises what is to be quantised row by row.
  void quantize_rows(uint32_t value, const engine::Value& rows);
  // What images that were quantised one by one stand for.
  engine::Value rounded_images(uint32_t value);
  Status dynamic_product(const Node& node, const engine::EpilogueParameters& epilogue,
                         const engine::Value* bias, const engine::Value& rows);
  template <typename T>
  engine::Value column(const T* data, int64_t n, DType dtype);
  void store(uint32_t value, const engine::Value& computed);
  // Writes what is around a value.
  template <typename T>
  void write_padding(uint32_t value, T fill);
  template <typename T>
  void fill(T number, const engine::Value& to);
  // Whether what is around images may be a convolution's padding.
  bool pads_pixels(uint32_t value, const engine::Window& window) const;
  static void add_padding(const State& state, engine::Window* window);
  // Limits results that were computed without them.
  Status limit(const Node& node);

  // --- elementwise nodes (translate_elementwise.cpp)
  Status elementwise(uint32_t root);
  // One operator for each node of a cluster that is too long for one.
  Status apart(uint32_t root);
  // One operator for a cluster, or for one node alone. False if it is too long.
  bool chain(Members members);
  // The terms of nodes. `anchored`: where the results of the anchor lie, as [rows, columns].
  bool terms(Members members, const engine::Value* anchored, Tiles* tiles, Tiles::Term* result);
  engine::Value fitted(uint32_t value, const Shape& shape, bool as_rows);
  // Makes `n` numbers what a node of one input gives for them.
  static void apply(const Node& node, float* numbers, int64_t n);

  // --- products and convolutions (translate_products.cpp)
  // With all of a cluster, or alone if `root` is kNone. *fits becomes false, and nothing is
  // computed, if the cluster is too long.
  Status anchored(const Node& node, uint32_t root, bool* fits);
  Status fully_connected(const Node& node, uint32_t root, bool* fits);
  Status convolution(const Node& node, uint32_t root, bool* fits);
  Status computed_product(const Node& node);
  Status batch_product(const Node& node);
  engine::Value padded_image(const Node& node, engine::Window* window);
  // What is done to the results of an anchor, which lie in `rows`. False if that is too long.
  bool epilogue(const Node& node, uint32_t root, const engine::Value& rows,
                engine::EpilogueParameters* to);
  bool find_residual(const Node& node, uint32_t root, uint32_t* residual,
                     engine::EpilogueParameters* to) const;

  // --- the rest (translate_movement.cpp)
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
