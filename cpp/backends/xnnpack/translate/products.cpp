// Products and convolutions, and their epilogues.
#include <algorithm>

#include "rushlight/backends/xnnpack/payload/shapes.h"
#include "rushlight/backends/xnnpack/translate/translate.h"
#include "rushlight/engine/kernels/images/convolution.h"

namespace rushlight::xnnpack {
namespace {

namespace wire = fb::xnnpack;

constexpr float kInfinity = __builtin_inff();
constexpr uint8_t kChannelsFirst[] = {0, 3, 1, 2};  // [N, H, W, C] as [N, C, H, W]

bool has_limits(const Node& node) { return node.low != -kInfinity || node.high != kInfinity; }

// Applies the limits of `node` after those of `to`.
void add_limits(const Node& node, engine::EpilogueParameters* to) {
  if (!has_limits(node)) return;
  if (!to->clamped) {
    to->low = -kInfinity;
    to->high = kInfinity;
  }
  to->clamped = true;
  to->low = std::min(std::max(to->low, node.low), node.high);
  to->high = std::min(std::max(to->high, node.low), node.high);
}

// Whether Winograd's algorithm is faster and its weights are not much larger; the limits are those
// of the cpu backend's compiler (src/rushlight/backends/cpu/operators/images.py).
bool suits_winograd(const engine::Window& s, const Shape& filter, const Shape& out,
                    int64_t groups) {
  constexpr int64_t kMaxExtraBytes = 2 << 20;
  constexpr int64_t kLeastTiles = 14;
  for (size_t d = 0; d < 2; ++d) {
    if (s.kernel[d] != 3 || s.stride[d] != 1 || s.dilation[d] != 1) return false;
  }
  const int64_t outputs = filter.sizes[0];
  const int64_t inputs = filter.sizes[3];
  if (groups != 1 || outputs % engine::kPanel != 0 || inputs % engine::kPanel != 0) return false;
  const int64_t more = engine::bounded_product({outputs, inputs, engine::kWinogradProducts - 9, 4});
  if (more < 0 || more > kMaxExtraBytes) return false;
  // Up to a third of a tile's results may lie outside the image.
  const int64_t tiles = (out.sizes[1] + 3) / 4 * ((out.sizes[2] + 3) / 4);
  return tiles * 12 <= out.sizes[1] * out.sizes[2] && tiles * out.sizes[0] >= kLeastTiles;
}

// The shape of a batch of matrices, whose rank is at least 2.
Shape shape_of_batches(const Shape& shape) {
  Shape batches;
  batches.rank = 3;
  batches.sizes[0] = 1;
  const size_t rows = shape.rank >= 2 ? shape.rank - 2 : 0;
  for (size_t d = 0; d < rows; ++d) batches.sizes[0] *= shape.sizes[d];
  batches.sizes[1] = shape.sizes[rows];
  batches.sizes[2] = shape.last();
  return batches;
}

}  // namespace

Status Translator::anchored(const Node& node, uint32_t root, bool* fits) {
  if (node.kind != NodeKind::FullyConnected) return convolution(node, root, fits);
  const bool is_packed =
      graph_.values[node.inputs[1]].role == Role::Constant &&
      (node.inputs[2] == kNone || graph_.values[node.inputs[2]].role == Role::Constant);
  return is_packed ? fully_connected(node, root, fits) : computed_product(node);
}

Status Translator::fully_connected(const Node& node, uint32_t root, bool* fits) {
  const uint32_t value = root == kNone ? node.outputs[0] : result_of(root);
  const engine::Value out = target(value);
  const engine::Value rows = builder_.rows(out);
  engine::ProductParameters parameters;
  if (!epilogue(node, root, rows, &parameters.epilogue)) {
    *fits = false;
    return {};
  }
  const bool has_bias = node.inputs[2] != kNone;
  const engine::Value bias = has_bias ? packed(weights_.bias_of(node)) : engine::Value();
  if (is_dynamic_product(node, graph_)) {
    RL_TRY(dynamic_product(node, parameters.epilogue, has_bias ? &bias : nullptr, rows));
    store(value, out);
    return {};
  }
  const engine::Value a = builder_.rows(view(node.inputs[0]));
  const engine::Value panels = packed(weights_.filter_of(node));
  builder_.emit(parameters, {&a, &panels, has_bias ? &bias : nullptr}, {&rows});
  store(value, out);
  return {};
}

Status Translator::convolution(const Node& node, uint32_t root, bool* fits) {
  const engine::Window window = window_of(node.body.as<wire::Convolution>());
  const uint32_t value = root == kNone ? node.outputs[0] : result_of(root);
  engine::ConvolutionParameters parameters;
  parameters.window = window;
  engine::Value image = padded_image(node, &parameters.window);
  parameters.groups = node.body.as<wire::Convolution>().groups();
  if (node.kind == NodeKind::DepthwiseConv2d) {
    parameters.kind = engine::ConvolutionKind::Depthwise;
  } else if (node.kind == NodeKind::ConvTranspose2d) {
    parameters.kind = engine::ConvolutionKind::Transposed;
  } else if (weights_.is_winograd(
                 node, suits_winograd(window, shapes_[node.inputs[1]], shapes_[node.outputs[0]],
                                      parameters.groups))) {
    parameters.kind = engine::ConvolutionKind::Winograd;
  }
  if (parameters.kind != engine::ConvolutionKind::Dense) image = builder_.dense(image);
  image.view = permuted(image.view, kChannelsFirst);
  const engine::Value out = target(value);
  engine::Value result = builder_.reshape(out, shapes_[node.outputs[0]]);
  if (!epilogue(node, root, builder_.rows(out), &parameters.epilogue)) {
    *fits = false;
    return {};
  }
  result.view = permuted(result.view, kChannelsFirst);
  const engine::Value filter = packed(weights_.filter_of(node));
  const bool has_bias = node.inputs[2] != kNone;
  const engine::Value bias = has_bias ? packed(weights_.bias_of(node)) : engine::Value();
  builder_.emit(parameters, {&image, &filter, has_bias ? &bias : nullptr}, {&result});
  store(value, out);
  return {};
}

bool Translator::pads_pixels(uint32_t value, const engine::Window& window) const {
  const State& state = states_[value];
  constexpr int64_t kMaxNumber = static_cast<int64_t>(fb::cpu_engine::Limit::WINDOW);
  for (size_t d = 0; d < 2; ++d) {
    if (window.padding[d] + state.before[1 + d] > kMaxNumber) return false;
    if (window.padding[2 + d] + state.after[1 + d] > kMaxNumber) return false;
  }
  return state.padded && state.before[0] == 0 && state.after[0] == 0 && state.before[3] == 0 &&
         state.after[3] == 0;
}

void Translator::add_padding(const State& state, engine::Window* window) {
  for (size_t d = 0; d < 2; ++d) {
    window->padding[d] += state.before[1 + d];
    window->padding[2 + d] += state.after[1 + d];
  }
}

// The input of a convolution. Zeros around it that are not written yet become the convolution's
// padding.
engine::Value Translator::padded_image(const Node& node, engine::Window* window) {
  const uint32_t value = node.inputs[0];
  if (graph_.values[value].datatype == Datatype::QDINT8) return rounded_images(value);
  if (is_integer(value)) return view(value);
  (void)inner_view(value);
  const State& state = states_[value];
  const bool joins = state.fill == 0 && node.kind != NodeKind::ConvTranspose2d;
  if (!joins || !pads_pixels(value, *window)) return view(value);
  add_padding(state, window);
  return state.value;
}

bool Translator::epilogue(const Node& node, uint32_t root, const engine::Value& rows,
                          engine::EpilogueParameters* to) {
  add_limits(node, to);
  if (root == kNone) return true;
  uint32_t residual = kNone;
  engine::EpilogueParameters simple = *to;
  if (find_residual(node, root, &residual, &simple)) {
    *to = simple;
    if (residual == kNone) return true;
    const engine::Value added = fitted(residual, shapes_[result_of(root)], true);
    to->residual = builder_.number(added);
    return true;
  }
  Tiles tiles;
  Tiles::Term result = 0;
  if (!terms({root, false}, &rows, &tiles, &result)) return false;
  size_t target = 0;  // the anchor's result takes the place of the cluster's result
  while (target < tiles.n_operands() && !tiles.is_same(target, rows)) ++target;
  return target < tiles.n_operands() && tiles.assemble(result, target, builder_, &to->program);
}

// Whether a cluster is one addition and limits, which need no tile program.
bool Translator::find_residual(const Node& node, uint32_t root, uint32_t* residual,
                               engine::EpilogueParameters* to) const {
  const bool adds = node.kind == NodeKind::FullyConnected || node.kind == NodeKind::Conv2d;
  uint32_t last = node.outputs[0];
  for (uint32_t i = clusters_.first(root); i != kNone; i = clusters_.next(i)) {
    const Node& member = graph_.nodes[i];
    if (i == clusters_.anchor(root)) continue;
    const bool is_first = to->residual < 0 && *residual == kNone && !has_limits(node);
    if (member.kind == NodeKind::Add && adds && is_first && !to->clamped) {
      const uint32_t other = member.inputs[member.inputs[0] == last ? 1 : 0];
      if (other == last || (member.inputs[0] != last && member.inputs[1] != last)) return false;
      if (!same_shape(shapes_[other], shapes_[member.outputs[0]])) return false;
      *residual = other;
    } else if (member.kind != NodeKind::StaticReshape && member.kind != NodeKind::Clamp) {
      return false;
    }
    if (member.inputs[0] != last && member.kind != NodeKind::Add) return false;
    add_limits(member, to);
    last = member.outputs[0];
  }
  return true;
}

// A fully connected layer whose filter or bias is not constant.
Status Translator::computed_product(const Node& node) {
  const engine::Value out = target(node.outputs[0]);
  engine::Value a = builder_.rows(view(node.inputs[0]));
  engine::Value b = view(node.inputs[1]);
  engine::Value rows = builder_.rows(out);
  constexpr uint8_t kSwapped[] = {1, 0};
  if ((node.flags & kTransposeWeights) == 0) b.view = permuted(b.view, kSwapped);
  for (engine::Value* matrix : {&a, &b, &rows}) {
    matrix->view = expanded(matrix->view, shape_of_batches(shape_of(matrix->view)));
  }
  builder_.emit(engine::BatchProductParameters(), {&a, &b}, {&rows});
  store(node.outputs[0], out);
  if (node.inputs[2] == kNone) return limit(node);
  Tiles tiles;
  Tiles::Term term = tiles.load(builder_.rows(out));
  engine::Value bias = view(node.inputs[2]);
  Shape one;
  one.rank = 1;
  one.sizes[0] = bias.view.numel;
  bias = builder_.reshape(bias, one);
  bias.view = expanded(bias.view, shape_of(tiles.operand(0).view));
  term = tiles.add(TileOp::ADD, term, tiles.load(bias));
  engine::ElementwiseParameters parameters;
  if (!tiles.assemble(term, 0, builder_, &parameters.program)) return no_memory();
  builder_.emit(parameters, {}, {});
  return limit(node);
}

Status Translator::batch_product(const Node& node) {
  const Shape& shape = shapes_[node.outputs[0]];
  const engine::Value out = target(node.outputs[0]);
  engine::Value operands[2];
  for (size_t k = 0; k < 2; ++k) {
    Shape whole = shape;
    const Shape& own = shapes_[node.inputs[k]];
    for (size_t d = shape.rank - 2; d < shape.rank; ++d) whole.sizes[d] = own.sizes[d];
    operands[k] = view(node.inputs[k]);
    operands[k].view = expanded(operands[k].view, whole);
    const engine::View& view = operands[k].view;
    const bool has_rows =
        k == 1 || view.sizes[view.rank - 1] <= 1 || view.strides[view.rank - 1] == 1;
    if (engine::has_repeats(view) || !has_rows) operands[k] = builder_.dense(operands[k]);
    operands[k] = builder_.reshape(operands[k], shape_of_batches(whole));
  }
  const engine::Value batches = builder_.reshape(out, shape_of_batches(shape));
  builder_.emit(engine::BatchProductParameters(), {&operands[0], &operands[1]}, {&batches});
  store(node.outputs[0], out);
  return {};
}

}  // namespace rushlight::xnnpack
