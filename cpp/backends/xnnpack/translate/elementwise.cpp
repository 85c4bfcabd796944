// Elementwise nodes as tile programs.
#include "rushlight/backends/xnnpack/payload/shapes.h"
#include "rushlight/backends/xnnpack/translate/translate.h"

namespace rushlight::xnnpack {
namespace {

constexpr float kInfinity = __builtin_inff();

TileOp operation_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::Add:
      return TileOp::ADD;
    case NodeKind::Subtract:
      return TileOp::SUB;
    case NodeKind::Multiply:
      return TileOp::MUL;
    case NodeKind::Div:
      return TileOp::DIV;
    case NodeKind::Minimum:
      return TileOp::MIN;
    case NodeKind::Maximum:
      return TileOp::MAX;
    case NodeKind::Sigmoid:
      return TileOp::SIGMOID;
    case NodeKind::Floor:
      return TileOp::FLOOR;
    case NodeKind::SquareRoot:
      return TileOp::SQRT;
    case NodeKind::Ceiling:
      return TileOp::CEIL;
    case NodeKind::Hardswish:
      return TileOp::HARDSWISH;
    case NodeKind::Negate:
      return TileOp::NEG;
    case NodeKind::Square:
      return TileOp::SQUARE;
    case NodeKind::ELU:
      return TileOp::ELU;
    case NodeKind::Abs:
      return TileOp::ABS;
    case NodeKind::ReciprocalSquareRoot:
      return TileOp::RSQRT;
    case NodeKind::Log:
      return TileOp::LOG;
    case NodeKind::Gelu:
      return TileOp::GELU;
    case NodeKind::Tanh:
      return TileOp::TANH;
    case NodeKind::Exp:
      return TileOp::EXP;
    case NodeKind::Sin:
      return TileOp::SIN;
    default:
      return TileOp::COS;
  }
}

// Uses an instruction with an immediate number, if there is one.
bool with_number(NodeKind kind, Tiles* tiles, Tiles::Term a, Tiles::Term b, Tiles::Term* result) {
  const bool swaps = kind != NodeKind::Subtract;
  if (!tiles->is_number(b) && (!swaps || !tiles->is_number(a))) return false;
  const Tiles::Term term = tiles->is_number(b) ? a : b;
  const float number = tiles->number_of(tiles->is_number(b) ? b : a);
  switch (kind) {
    case NodeKind::Add:
      *result = tiles->add(TileOp::ADD_VALUE, term, 0, number);
      return true;
    case NodeKind::Subtract:
      *result = tiles->add(TileOp::ADD_VALUE, term, 0, -number);
      return true;
    case NodeKind::Multiply:
      *result = tiles->add(TileOp::MUL_VALUE, term, 0, number);
      return true;
    default:
      return false;
  }
}

// x where it is positive, x * slope where it is not.
Tiles::Term leaky(Tiles* tiles, Tiles::Term x, Tiles::Term slope) {
  const Tiles::Term negative = tiles->add(TileOp::MIN_VALUE, x, 0, 0);
  Tiles::Term scaled = 0;
  if (!with_number(NodeKind::Multiply, tiles, negative, slope, &scaled)) {
    scaled = tiles->add(TileOp::MUL, negative, slope);
  }
  return tiles->add(TileOp::ADD, tiles->add(TileOp::RELU, x), scaled);
}

// Whether a kind of node uses output_min_max.
bool is_limited(NodeKind kind) {
  return kind == NodeKind::Clamp || kind == NodeKind::Add || kind == NodeKind::Subtract ||
         kind == NodeKind::Multiply || kind == NodeKind::Div;
}

Tiles::Term term_of(const Node& node, Tiles* tiles, const Tiles::Term* inputs) {
  Tiles::Term term = inputs[0];
  if (node.kind == NodeKind::PReLU) return leaky(tiles, term, inputs[1]);
  if (node.kind == NodeKind::LeakyReLU) {
    const float slope = node.body.as<fb::xnnpack::LeakyReLU>().negative_slope();
    return leaky(tiles, term, tiles->number(slope));
  }
  if (node.kind == NodeKind::ELU) {
    return tiles->add(TileOp::ELU, term, 0, node.body.as<fb::xnnpack::ELU>().alpha());
  }
  if (node.n_inputs == 1 && node.kind != NodeKind::Clamp) {
    return tiles->add(operation_of(node.kind), term);
  }
  if (node.n_inputs == 2 && !with_number(node.kind, tiles, inputs[0], inputs[1], &term)) {
    term = tiles->add(operation_of(node.kind), inputs[0], inputs[1]);
  }
  if (!is_limited(node.kind)) return term;
  if (node.low == 0 && node.high == kInfinity) return tiles->add(TileOp::RELU, term);
  if (node.low != -kInfinity) term = tiles->add(TileOp::MAX_VALUE, term, 0, node.low);
  if (node.high != kInfinity) term = tiles->add(TileOp::MIN_VALUE, term, 0, node.high);
  return term;
}

// Collects the terms of a cluster's values.
struct Known {
  uint32_t values[engine::kTileInstructions];
  Tiles::Term terms[engine::kTileInstructions];
  size_t n = 0;

  bool find(uint32_t value, Tiles::Term* term) const {
    for (size_t i = n; i-- > 0;) {
      if (values[i] != value) continue;
      *term = terms[i];
      return true;
    }
    return false;
  }
  bool add(uint32_t value, Tiles::Term term) {
    if (n == engine::kTileInstructions) return false;
    values[n] = value;
    terms[n++] = term;
    return true;
  }
};

}  // namespace

Status Translator::elementwise(uint32_t root) {
  const uint32_t anchor = clusters_.anchor(root);
  for (uint32_t i = clusters_.first(root); i != kNone; i = clusters_.next(i)) {
    const Node& node = graph_.nodes[i];
    if (node.kind != NodeKind::StaticReshape) continue;
    if (graph_.values[node.inputs[0]].producer != anchor) RL_TRY(reshape(node));
  }
  bool fits = true;
  if (anchor != kNone) {
    RL_TRY(anchored(graph_.nodes[anchor], root, &fits));
  } else {
    fits = chain({root, false});
  }
  return fits ? Status() : apart(root);
}

Status Translator::apart(uint32_t root) {
  for (uint32_t i = clusters_.first(root); i != kNone; i = clusters_.next(i)) {
    const Node& node = graph_.nodes[i];
    if (i == clusters_.anchor(root)) {
      RL_TRY(anchored(node, kNone, nullptr));
    } else if (node.kind == NodeKind::StaticReshape) {
      RL_TRY(reshape(node));
    } else if (!chain({i, true})) {
      return no_memory();  // a single node always fits
    }
  }
  return {};
}

engine::Value Translator::fitted(uint32_t value, const Shape& shape, bool as_rows) {
  engine::Value operand = view(value);
  operand.view = expanded(operand.view, shape);
  return as_rows ? builder_.rows(operand) : operand;
}

void Translator::apply(const Node& node, float* numbers, int64_t n) {
  Tiles tiles;
  const Tiles::Term inputs[2] = {tiles.load(engine::Value()), 0};
  tiles.compute(term_of(node, &tiles, inputs), numbers, n);
}

bool Translator::terms(Members members, const engine::Value* anchored, Tiles* tiles,
                       Tiles::Term* result) {
  const Shape& shape = shapes_[result_of(members.root)];
  const uint32_t anchor = anchored != nullptr ? clusters_.anchor(members.root) : kNone;
  Known known;
  bool fits = true;
  const auto term_for = [&](uint32_t value) {
    Tiles::Term term = 0;
    if (known.find(value, &term)) return term;
    const uint32_t producer = graph_.values[value].producer;
    const bool is_one =
        graph_.values[value].role == Role::Constant && numel_of(shapes_[value]) == 1;
    if (anchor != kNone &&
        (producer == anchor ||
         (producer != kNone && graph_.nodes[producer].kind == NodeKind::StaticReshape &&
          clusters_.root(producer) == members.root))) {
      // The anchor's result, also after a reshape: it is loaded once.
      value = result_of(anchor);
      if (known.find(value, &term)) return term;
      term = tiles->load(*anchored);
    } else if (is_one) {
      const float* data = weights_.plain(value);
      out_of_memory_ = out_of_memory_ || data == nullptr;
      term = tiles->number(data != nullptr ? *data : 0);
    } else {
      term = tiles->load(fitted(value, shape, anchored != nullptr));
    }
    fits = fits && known.add(value, term);
    return term;
  };
  uint32_t i = members.alone ? members.root : clusters_.first(members.root);
  for (; i != kNone && fits; i = members.alone ? kNone : clusters_.next(i)) {
    const Node& node = graph_.nodes[i];
    if (!is_elementwise(node.kind)) continue;
    Tiles::Term inputs[2] = {0, 0};
    for (size_t k = 0; k < node.n_inputs; ++k) inputs[k] = term_for(node.inputs[k]);
    *result = term_of(node, tiles, inputs);
    fits = fits && known.add(node.outputs[0], *result);
  }
  return fits;
}

bool Translator::chain(Members members) {
  const uint32_t value = result_of(members.root);
  Tiles tiles;
  Tiles::Term result = 0;
  if (!terms(members, nullptr, &tiles, &result)) return false;
  // Results take the layout of an operand that is not broadcast: images may lie channels last.
  Order order;
  for (size_t i = tiles.n_operands(); i-- > 0;) {
    const engine::View& read = tiles.operand(i).view;
    if (states_[value].home == kNone && !engine::has_repeats(read)) order = order_of(read);
  }
  const engine::Value out = target(value, order);
  const size_t n = tiles.n_operands();
  (void)tiles.load(out);
  tiles.merge_operands(order, builder_);
  engine::ElementwiseParameters parameters;
  if (!tiles.assemble(result, n, builder_, &parameters.program)) return false;
  builder_.emit(parameters, {}, {});
  store(value, out);
  return true;
}

}  // namespace rushlight::xnnpack
