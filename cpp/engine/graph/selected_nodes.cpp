#include "rushlight/engine/graph/selected_nodes.h"

namespace rushlight::engine {
namespace {

// The name of a node's kind, as in schema/cpu_engine.fbs where payloads have it.
const char* kind_name(const Parameters& parameters) {
  // clang-format off
  constexpr const char* kNames[] = {
      "Product", "BatchProduct", "Convolution", "Pooling", "ArgMax", "Resize", "Elementwise",
      "Norm", "GroupNorm", "Softmax", "Reduction", "Gather", "Copy", "Attention", "QuantizedBinary",
      "Lookup", "QuantizedPooling", "Convert", "QuantizeRows", "QuantizedProduct",
      "DynamicProduct", "QuantizedConvolution", "Recurrent", "CachedAttention", "Adapter",
      "KernelCall"};
  // clang-format on
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == std::variant_size_v<Parameters>,
                "a name for each kind of node");
  return kNames[parameters.index()];
}

#define RL_OP_NAME(op, loop) #op,
constexpr const char* kOpNames[] = {"LOAD", "STORE", "CONSTANT", RL_TILE_OPS(RL_OP_NAME)};
static_assert(sizeof(kOpNames) / sizeof(kOpNames[0]) == kTileOps, "a name for each operation");

bool has_node(const Parameters& parameters) {
  return std::visit([](const auto& p) { return kHasNode<std::decay_t<decltype(p)>>; }, parameters);
}

// The tile program of a node, or of its epilogue; nullptr if its kind has none.
template <typename P>
auto find_program(const P& p, int) -> decltype(&p.program) {
  return &p.program;
}
template <typename P>
auto find_program(const P& p, long) -> decltype(&p.epilogue.program) {
  return &p.epilogue.program;
}
template <typename P>
const TileProgram* find_program(const P&, ...) {
  return nullptr;
}

// What products of rows that are quantised at run time lack: " of …", or nullptr.
const char* lacking_weights(const Parameters& parameters) {
  const auto* product = std::get_if<DynamicProductParameters>(&parameters);
  if (product == nullptr) return nullptr;
  if (product->row_group_size != 0) {
    return selection::kWeights.row_groups ? nullptr : " of rows in groups";
  }
  return product->bits == 8 || selection::kWeights.nibbles ? nullptr : " with weights of 4 bits";
}

// What is lacking, each named once.
class Lacking {
 public:
  explicit Lacking(Message& message) : message_(message) {}

  void add(uint64_t* named, size_t number, const char* name, const char* kind) {
    const uint64_t bit = uint64_t{1} << number;
    if ((*named & bit) != 0) return;
    message_.append("%s %s%s", any_ ? "," : "this build was made without the engine's", name, kind);
    *named |= bit;
    any_ = true;
  }
  bool any() const { return any_; }

 private:
  Message& message_;
  bool any_ = false;
};

}  // namespace

Status check_selected(Span<const Node> nodes, Message& message) {
  static_assert(kTileOps <= 64 && std::variant_size_v<Parameters> <= 64, "a bit for each");
  Lacking lacking(message);
  uint64_t kinds = 0;
  uint64_t weights[2] = {};
  uint64_t ops = 0;
  for (const Node& node : nodes) {
    const Parameters& parameters = node.parameters;
    if (!has_node(parameters)) {
      lacking.add(&kinds, parameters.index(), kind_name(parameters), "");
    } else if (const char* kind = lacking_weights(parameters)) {
      const bool groups = std::get<DynamicProductParameters>(parameters).row_group_size != 0;
      lacking.add(&weights[groups ? 1 : 0], 0, kind_name(parameters), kind);
    }
    const TileProgram* program = std::visit(
        [](const auto& p) -> const TileProgram* { return find_program(p, 0); }, parameters);
    if (program == nullptr) continue;
    for (const TileInstruction& instruction : program->code) {
      const size_t op = static_cast<size_t>(instruction.op);
      if (op < kTileOps && !has_tile_op(instruction.op)) {
        lacking.add(&ops, op, kOpNames[op], " of tile programs");
      }
    }
  }
  if (!lacking.any()) return {};
  message.append("; build the library for this program, too");
  return Code::NotSupported;
}

}  // namespace rushlight::engine
