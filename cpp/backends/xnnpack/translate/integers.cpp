// Nodes on integers. The engine stores int8 as uint8, with zero points 128 greater. Nodes without
// an integer operator in the engine are computed with dequantized numbers, and the results are
// quantized.
#include <algorithm>
#include <cmath>

#include "rushlight/backends/xnnpack/payload/shapes.h"
#include "rushlight/backends/xnnpack/translate/translate.h"
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/rows/quantize.h"

namespace rushlight::xnnpack {
namespace {

namespace wire = fb::xnnpack;

constexpr int32_t kMiddle = 128;
constexpr uint8_t kChannelsFirst[] = {0, 3, 1, 2};  // [N, H, W, C] as [N, C, H, W]

int32_t zero_point_of(const Value& value) { return value.quantization.zero_point + kMiddle; }

int32_t integer_of(float number, const Value& value) {
  const float scaled = number / value.quantization.scale + static_cast<float>(zero_point_of(value));
  return static_cast<int32_t>(std::lrintf(std::min(std::max(scaled, 0.0f), 255.0f)));
}

// Whether the engine can add integers with these scales.
bool are_near(float a, float b, float result) {
  const float greatest = std::max(a, b) / result;
  return greatest >= 0x1p-10f && greatest < 0x1p8f;
}

}  // namespace

bool Translator::is_integer(uint32_t value) const { return is_int8(graph_.values[value]); }

engine::Value Translator::bytes(uint32_t value) {
  if (!is_integer(value)) return view(value);
  (void)inner_bytes(value);
  State& state = states_[value];
  if (state.padded) {
    write_padding(value, static_cast<uint8_t>(integer_of(state.fill, graph_.values[value])));
  }
  return state.value;
}

engine::Value Translator::inner_bytes(uint32_t value) {
  State& state = states_[value];
  if (!state.ready) {  // a constant
    const engine::View view = dense_view(shapes_[value], Order(), DType::UInt8);
    auto* data = static_cast<uint8_t*>(allocator_->allocate(view.extent + 1));
    out_of_memory_ = out_of_memory_ || data == nullptr;
    const Span<const uint8_t> from = graph_.values[value].data;
    for (size_t i = 0; data != nullptr && i < view.extent; ++i) data[i] = from[i] ^ 0x80;
    state.value = builder_.constant(data, view);
    state.ready = true;
  }
  if (state.value.view.dtype == DType::Int8) {
    state.value = requantized(state.value, DType::UInt8, graph_.values[value]);
  }
  return state.value;
}

engine::Value Translator::moved(uint32_t from, uint32_t to) {
  const bool same = is_integer(from) && is_integer(to) &&
                    same_quantization(graph_.values[from], graph_.values[to]);
  return same ? bytes(from) : view(from);
}

// Converts between dense values in the same order of dimensions.
void Translator::convert_to(const engine::Value& from, const engine::Value& to, const Value& as) {
  builder_.emit_alike(engine::ConvertParameters{as.quantization.scale, zero_point_of(as)}, from,
                      to);
}

engine::Value Translator::requantized(const engine::Value& value, DType dtype, const Value& as) {
  const Order order = order_of(value.view);
  const engine::Value from = builder_.in_order(value, order);
  const engine::Value to = builder_.scratch(dense_view(shape_of(value.view), order, dtype));
  convert_to(from, to, as);
  return to;
}

void Translator::round_result(uint32_t value) {
  if (!is_integer(value) || states_[value].value.view.dtype == DType::UInt8) return;
  const engine::Value numbers = view(value);
  store(value, requantized(numbers, DType::UInt8, graph_.values[value]));
}

engine::Requantize Translator::requantize(const Node& node) const {
  const Value& out = graph_.values[node.outputs[0]];
  engine::Requantize to;
  to.zero_point = zero_point_of(out);
  to.low = integer_of(node.low, out);
  to.high = integer_of(node.high, out);
  return to;
}

Status Translator::integer_node(const Node& node, bool* done) {
  *done = true;
  switch (node.kind) {
    case NodeKind::FullyConnected:
      if (is_static_product(node, graph_)) return static_product(node);
      break;
    case NodeKind::Conv2d:
    case NodeKind::DepthwiseConv2d:
      if (is_static_product(node, graph_)) return static_convolution(node);
      break;
    case NodeKind::Add:
    case NodeKind::Subtract:
    case NodeKind::Multiply:
      if (integer_binary(node)) return {};
      break;
    case NodeKind::MaxPooling2d:
    case NodeKind::AvgPooling2d:
    case NodeKind::GlobalAvgPooling2d:
      if (integer_pooling(node)) return {};
      break;
    default:
      if (integer_function(node)) return {};
      break;
  }
  *done = false;
  return {};
}

template <typename T>
engine::Value Translator::column(const T* data, int64_t n, DType dtype) {
  Shape shape;
  shape.rank = 1;
  shape.sizes[0] = n;
  return builder_.constant(data, dense_view(shape, Order(), dtype));
}

Status Translator::emit_sums(const Node& node, const engine::Parameters& parameters,
                             const engine::Value& in, const engine::Value& out) {
  const IntegerWeights* weights = weights_.integers_of(node);
  if (weights == nullptr) return no_memory();
  const auto n_bytes = static_cast<int64_t>(weights->panels.size());
  const engine::Value panels = column(weights->panels.data(), n_bytes, DType::Int8);
  const engine::Value start = column(weights->sums, weights->n_columns, DType::Int32);
  const engine::Value multipliers = column(weights->scales, weights->n_columns, DType::Float32);
  builder_.emit(parameters, {&in, &panels, &start, &multipliers}, {&out});
  return {};
}

Status Translator::static_product(const Node& node) {
  const uint32_t value = node.outputs[0];
  const engine::Value a = builder_.rows(bytes(node.inputs[0]));
  const engine::Value out = target(value, Order(), DType::UInt8);
  const engine::Value rows = builder_.rows(out);
  engine::QuantizedProductParameters parameters;
  parameters.requantize = requantize(node);
  RL_TRY(emit_sums(node, parameters, a, rows));
  store(value, out);
  return {};
}

Status Translator::static_convolution(const Node& node) {
  const uint32_t value = node.outputs[0];
  engine::QuantizedConvolutionParameters parameters;
  parameters.window = window_of(node.body.as<wire::Convolution>());
  parameters.groups = node.body.as<wire::Convolution>().groups();
  if (node.kind == NodeKind::DepthwiseConv2d) parameters.kind = engine::ConvolutionKind::Depthwise;
  parameters.padding_value = static_cast<uint8_t>(zero_point_of(graph_.values[node.inputs[0]]));
  parameters.requantize = requantize(node);
  const engine::Value inner = inner_bytes(node.inputs[0]);
  const State& state = states_[node.inputs[0]];
  const bool joins =
      pads_pixels(node.inputs[0], parameters.window) &&
      integer_of(state.fill, graph_.values[node.inputs[0]]) == parameters.padding_value;
  if (joins) add_padding(state, &parameters.window);
  engine::Value image = builder_.dense(joins ? inner : bytes(node.inputs[0]));
  const engine::Value out = target(value, Order(), DType::UInt8);
  engine::Value result = out;
  image.view = permuted(image.view, kChannelsFirst);
  result.view = permuted(result.view, kChannelsFirst);
  RL_TRY(emit_sums(node, parameters, image, result));
  store(value, out);
  return {};
}

bool Translator::integer_binary(const Node& node) {
  const Value& a = graph_.values[node.inputs[0]];
  const Value& b = graph_.values[node.inputs[1]];
  const Value& out = graph_.values[node.outputs[0]];
  if (!is_int8(a) || !is_int8(b) || !is_int8(out)) return false;
  engine::QuantizedBinaryParameters parameters;
  parameters.a_scale = a.quantization.scale;
  parameters.b_scale = b.quantization.scale;
  parameters.scale = out.quantization.scale;
  parameters.a_zero_point = zero_point_of(a);
  parameters.b_zero_point = zero_point_of(b);
  parameters.requantize = requantize(node);
  if (node.kind == NodeKind::Subtract) parameters.kind = engine::QuantizedBinaryKind::Subtract;
  if (node.kind == NodeKind::Multiply) {
    parameters.kind = engine::QuantizedBinaryKind::Multiply;
    const float multiplier = parameters.a_scale * parameters.b_scale / parameters.scale;
    if (!(multiplier < __builtin_inff())) return false;
  } else if (!are_near(parameters.a_scale, parameters.b_scale, parameters.scale)) {
    return false;
  }
  const Shape& shape = shapes_[node.outputs[0]];
  engine::Value operands[3] = {bytes(node.inputs[0]), bytes(node.inputs[1]), engine::Value()};
  Order order;
  for (size_t k = 2; k-- > 0;) {
    operands[k].view = expanded(operands[k].view, shape);
    if (!engine::has_repeats(operands[k].view)) order = order_of(operands[k].view);
  }
  operands[2] = target(node.outputs[0], order, DType::UInt8);
  store(node.outputs[0], operands[2]);
  engine::View views[3] = {operands[0].view, operands[1].view, operands[2].view};
  merge(views, order);
  for (size_t k = 0; k < 3; ++k) operands[k].view = views[k];
  builder_.emit(parameters, {&operands[0], &operands[1]}, {&operands[2]});
  return true;
}

bool Translator::integer_function(const Node& node) {
  const Value& in = graph_.values[node.inputs[0]];
  const Value& out = graph_.values[node.outputs[0]];
  if (node.n_inputs != 1 || !is_elementwise(node.kind) || !is_int8(in) || !is_int8(out)) {
    return false;
  }
  const engine::Value from = bytes(node.inputs[0]);
  const bool is_limited = node.low != -__builtin_inff() || node.high != __builtin_inff();
  const bool is_same = node.kind == NodeKind::Clamp && !is_limited && same_quantization(in, out);
  store(node.outputs[0], is_same ? from : looked_up(from, in, out, &node));
  return true;
}

engine::Value Translator::looked_up(const engine::Value& from, const Value& in, const Value& out,
                                    const Node* function) {
  constexpr int64_t kIntegers = 256;
  const Order order = engine::has_repeats(from.view) ? Order() : order_of(from.view);
  const engine::Value to = builder_.scratch(dense_view(shape_of(from.view), order, DType::UInt8));
  auto* table = static_cast<uint8_t*>(allocator_->allocate(kIntegers));
  out_of_memory_ = out_of_memory_ || table == nullptr;
  if (table == nullptr) return to;
  float numbers[kIntegers];
  for (int64_t i = 0; i < kIntegers; ++i) table[i] = static_cast<uint8_t>(i);
  engine::Convert job = {engine::ByteConversion::ToFloats, 1, kIntegers, table, 0, numbers, 0};
  job.scale = in.quantization.scale;
  job.zero_point = zero_point_of(in);
  engine::convert(job, nullptr);
  if (function != nullptr) apply(*function, numbers, kIntegers);
  job = {engine::ByteConversion::ToBytes, 1, kIntegers, numbers, 0, table, 0};
  job.scale = out.quantization.scale;
  job.zero_point = zero_point_of(out);
  engine::convert(job, nullptr);
  const engine::Value entries = column(table, kIntegers, DType::UInt8);
  builder_.emit_alike(engine::LookupParameters(), from, to, &entries);
  return to;
}

bool Translator::convert_integers(const Node& node) {
  const uint32_t from = node.inputs[0];
  const uint32_t to = node.outputs[0];
  const Value& out = graph_.values[to];
  if (states_[to].home != kNone) return false;
  if (is_integer(from) && states_[from].ready && out.datatype == Datatype::FP32) {
    (void)inner_bytes(from);
    State state = states_[from];
    // The padding is a dequantized integer, too.
    const Value& in = graph_.values[from];
    const auto distance = static_cast<float>(integer_of(state.fill, in) - zero_point_of(in));
    state.fill = distance * in.quantization.scale;
    state.integers = from;
    store_padded(to, state);
    return true;
  }
  if (states_[from].integers == kNone || !is_int8(out)) return false;
  State state = states_[from];
  const Value& in = graph_.values[state.integers];
  if (!same_quantization(in, out)) state.value = looked_up(state.value, in, out, nullptr);
  state.integers = kNone;
  store_padded(to, state);
  return true;
}

bool Translator::integer_pooling(const Node& node) {
  const Value& in = graph_.values[node.inputs[0]];
  const Value& out = graph_.values[node.outputs[0]];
  if (!is_int8(in) || !is_int8(out)) return false;
  engine::QuantizedPoolingParameters parameters;
  parameters.average = node.kind != NodeKind::MaxPooling2d;
  if (!parameters.average && !same_quantization(in, out)) return false;
  const Shape& sizes = shapes_[node.inputs[0]];
  const bool is_global = node.kind == NodeKind::GlobalAvgPooling2d;
  if (is_global && (sizes.sizes[1] < 1 || sizes.sizes[2] < 1)) return false;
  if (is_global) {
    parameters.window = {{sizes.sizes[1], sizes.sizes[2]}, {1, 1}, {}, {1, 1}};
  } else {
    parameters.window = window_of(node.body.as<wire::Pooling>());
  }
  parameters.in_zero_point = zero_point_of(in);
  parameters.multiplier = in.quantization.scale / out.quantization.scale;
  parameters.adds_zero_point_first = true;
  parameters.requantize = requantize(node);
  if (!(parameters.multiplier < __builtin_inff())) return false;
  engine::Value image = builder_.dense(bytes(node.inputs[0]));
  const engine::Value whole = target(node.outputs[0], Order(), DType::UInt8);
  store(node.outputs[0], whole);
  Shape pixels = shapes_[node.outputs[0]];
  if (is_global) {
    pixels = sizes;
    pixels.sizes[1] = pixels.sizes[2] = 1;
  }
  engine::Value result = builder_.reshape(whole, pixels);
  image.view = permuted(image.view, kChannelsFirst);
  result.view = permuted(result.view, kChannelsFirst);
  builder_.emit(parameters, {&image}, {&result});
  return true;
}

void Translator::quantize_rows(uint32_t value, const engine::Value& rows) {
  State& state = states_[value];
  state.rows = builder_.scratch(dense_view(shape_of(rows.view), Order(), DType::UInt8));
  Shape shape;
  shape.rank = 2;
  shape.sizes[0] = rows.view.sizes[0];
  shape.sizes[1] = 2;
  state.scales = builder_.scratch(dense_view(shape));
  builder_.emit(engine::QuantizeRowsParameters(), {&rows}, {&state.rows, &state.scales});
  state.has_rows = true;
}

// The engine has no convolution of integers that were quantized at run time, so they are
// dequantized: (integer - zero point) * scale.
engine::Value Translator::rounded_images(uint32_t value) {
  State& state = states_[value];
  if (state.has_floats) return state.floats;
  const Shape& shape = shapes_[value];
  Shape images;
  images.rank = 2;
  images.sizes[0] = shape.sizes[0];
  images.sizes[1] = shape.sizes[1] * shape.sizes[2] * shape.sizes[3];
  quantize_rows(value, builder_.reshape(builder_.dense(view(value)), images));
  const engine::Value numbers = builder_.scratch(dense_view(images));
  builder_.emit(engine::ConvertParameters{1, 0}, {&state.rows}, {&numbers});
  engine::Value parts[2];
  for (size_t k = 0; k < 2; ++k) {
    parts[k] = state.scales;
    parts[k].view = narrowed(state.scales.view, 1, static_cast<int64_t>(k), 1);
    parts[k].view = expanded(parts[k].view, images);
  }
  Tiles tiles;
  Tiles::Term result = tiles.load(numbers);
  result = tiles.add(TileOp::SUB, result, tiles.load(parts[1]));
  result = tiles.add(TileOp::MUL, result, tiles.load(parts[0]));
  engine::ElementwiseParameters parameters;
  out_of_memory_ = !tiles.assemble(result, 0, builder_, &parameters.program) || out_of_memory_;
  builder_.emit(parameters, {}, {});
  state.floats = builder_.reshape(numbers, shape);
  state.has_floats = true;
  return state.floats;
}

Status Translator::dynamic_product(const Node& node, const engine::EpilogueParameters& epilogue,
                                   const engine::Value* bias, const engine::Value& rows) {
  State& state = states_[node.inputs[0]];
  if (!state.has_rows) quantize_rows(node.inputs[0], builder_.rows(view(node.inputs[0])));
  const IntegerWeights* weights = weights_.integers_of(node);
  if (weights == nullptr) return no_memory();
  const auto n_bytes = static_cast<int64_t>(weights->panels.size());
  const DType dtype = weights->bits == 8 ? DType::Int8 : DType::UInt8;
  const engine::Value panels = column(weights->panels.data(), n_bytes, dtype);
  const bool has_groups = weights->group_size > 0;
  const int64_t n = weights->n_columns;
  const engine::Value scales =
      has_groups ? column(weights->group_scales, weights->n_group_scales, DType::BFloat16)
                 : column(weights->scales, n, DType::Float32);
  const engine::Value shares = has_groups ? column(weights->shares, n, DType::Float32)
                                          : column(weights->sums, n, DType::Int32);
  engine::DynamicProductParameters parameters;
  parameters.bits = weights->bits;
  parameters.group_size = weights->group_size;
  parameters.epilogue = epilogue;
  builder_.emit(parameters, {&state.rows, &state.scales, &panels, &scales, &shares, bias}, {&rows});
  return {};
}

}  // namespace rushlight::xnnpack
