#include "rushlight/backends/xnnpack/translate/translate.h"

#include <new>

#include "rushlight/backends/xnnpack/payload/shapes.h"

namespace rushlight::xnnpack {
namespace {

constexpr size_t kAlignment = 16;  // of constants

}  // namespace

Status Translator::run(size_t n_inputs, size_t n_outputs, engine::GraphParts* parts,
                       size_t* failed) {
  RL_TRY(prepare());
  for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
    if (clusters_.root(i) != i) continue;
    *failed = i;
    builder_.begin(i);
    RL_TRY(translate(i));
    const Node& node = graph_.nodes[i];
    for (size_t k = 0; k < node.n_outputs; ++k) {
      round_result(node.outputs[k]);
      write_output(node.outputs[k]);
    }
    if (out_of_memory_) return no_memory();
  }
  if (!builder_.build(n_inputs, n_outputs, parts)) return no_memory();
  return {};
}

Status Translator::prepare() {
  const size_t n = graph_.values.size();
  State* states = allocator_->allocate_array<State>(n);
  if ((states == nullptr && n > 0) || !clusters_.find(graph_, shapes_, allocator_)) {
    return no_memory();
  }
  for (size_t i = 0; i < n; ++i) new (states + i) State();
  states_ = {states, n};
  for (uint32_t i = 0; i < n; ++i) {
    if (graph_.values[i].role != Role::Input) continue;
    states_[i].ready = true;
    states_[i].value.view = dense_view(shapes_[i], Order(), dtype_of(graph_.values[i].datatype));
    states_[i].value.place = engine::Place::Input;
    states_[i].value.index = ordinals_[i];
  }
  find_homes();
  return {};
}

// A value may be computed in an output's memory if only reshapes that end in that output read it.
void Translator::find_homes() {
  for (uint32_t i = 0; i < states_.size(); ++i) {
    const Value& value = graph_.values[i];
    if (value.role == Role::Output && value.datatype == Datatype::FP32) states_[i].home = i;
  }
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    const Node& node = graph_.nodes[i];
    const uint32_t home = states_[node.outputs[0]].home;
    if (node.kind != NodeKind::StaticReshape || home == kNone) continue;
    const Value& input = graph_.values[node.inputs[0]];
    if (input.role == Role::Internal && input.uses == 1) states_[node.inputs[0]].home = home;
  }
}

Status Translator::translate(uint32_t i) {
  const Node& node = graph_.nodes[i];
  bool done = false;
  RL_TRY(integer_node(node, &done));
  if (done) return {};
  if (is_elementwise(node.kind)) return elementwise(i);
  switch (node.kind) {
    case NodeKind::FullyConnected:
    case NodeKind::Conv2d:
    case NodeKind::DepthwiseConv2d:
    case NodeKind::ConvTranspose2d:
      return anchored(node, kNone, nullptr);
    case NodeKind::BatchMatrixMultiply:
      return batch_product(node);
    case NodeKind::AvgPooling2d:
    case NodeKind::MaxPooling2d:
      return pooling(node);
    case NodeKind::GlobalAvgPooling2d:
      return global_pooling(node);
    case NodeKind::ArgMaxPooling2d:
      return arg_max(node);
    case NodeKind::StaticResizeBilinear2D:
      return resize(node);
    case NodeKind::Softmax:
      return softmax(node);
    case NodeKind::Concatenate2:
    case NodeKind::Concatenate3:
    case NodeKind::Concatenate4:
    case NodeKind::Concatenate5:
      return concatenate(node);
    case NodeKind::StaticTranspose:
      return transpose(node);
    case NodeKind::StaticReshape:
      return reshape(node);
    case NodeKind::StaticConstantPad:
      return pad(node);
    case NodeKind::StaticSlice:
      return slice(node);
    case NodeKind::Copy:
    case NodeKind::Convert:
      convert(node);
      return {};
    default:
      return message_.fail(Code::NotSupported, "this runtime has no kernel for it");
  }
}

engine::Value Translator::constant(uint32_t value) {
  const float* data = weights_.plain(value);
  out_of_memory_ = out_of_memory_ || data == nullptr;
  return builder_.constant(data, dense_view(shapes_[value]));
}

engine::Value Translator::packed(Span<const float> floats) {
  out_of_memory_ = out_of_memory_ || floats.data() == nullptr;
  Shape shape;
  shape.rank = 1;
  shape.sizes[0] = static_cast<int64_t>(floats.size());
  return builder_.constant(floats.data(), dense_view(shape));
}

engine::Value Translator::inner_view(uint32_t value) {
  State& state = states_[value];
  if (!state.ready) {
    state.value = constant(value);
    state.ready = true;
  }
  if (state.integers != kNone) {
    state.value = requantized(state.value, DType::Float32, graph_.values[state.integers]);
    state.integers = kNone;
  }
  // Inputs in half precision are widened when they are first read.
  if (is_half(state.value.view.dtype)) state.value = converted(state.value, DType::Float32);
  return state.value;
}

engine::Value Translator::view(uint32_t value) {
  State& state = states_[value];
  const bool rounds =
      state.ready && state.value.view.dtype == DType::Float32;  // it is rounded to integers later
  if (is_integer(value) && !rounds) {
    if (!state.has_floats) {
      state.floats = state.ready ? requantized(bytes(value), DType::Float32, graph_.values[value])
                                 : constant(value);
    }
    state.has_floats = true;
    return state.floats;
  }
  (void)inner_view(value);
  if (state.padded) write_padding(value, state.fill);
  return state.value;
}

void Translator::store_padded(uint32_t value, State as) {
  as.home = states_[value].home;
  as.has_floats = as.has_rows = false;
  states_[value] = as;
}

template <typename T>
void Translator::write_padding(uint32_t value, T fill) {
  State& state = states_[value];
  const engine::Value whole =
      builder_.scratch(dense_view(shapes_[value], Order(), state.value.view.dtype));
  engine::Value inner = whole;
  for (size_t d = 0; d < whole.view.rank; ++d) {
    inner.view = narrowed(inner.view, d, state.before[d], state.value.view.sizes[d]);
  }
  this->fill(fill, whole);
  builder_.copy(state.value, inner);
  state.value = whole;
  state.padded = false;
}

template <typename T>
void Translator::fill(T number, const engine::Value& to) {
  struct alignas(kAlignment) Number {
    T value;
  };
  const Number numbers[] = {{number}};
  const Span<const Number> kept = builder_.keep(Span<const Number>(numbers));
  if (kept.empty()) return;  // the builder reports it at the end
  engine::Value one =
      builder_.constant(&kept[0].value, dense_view(Shape(), Order(), to.view.dtype));
  one.view = expanded(one.view, shape_of(to.view));
  builder_.copy(one, to);
}
template void Translator::fill(float number, const engine::Value& to);
template void Translator::write_padding(uint32_t value, uint8_t fill);

engine::Value Translator::target(uint32_t value, const Order& order, DType dtype) {
  const uint32_t home = states_[value].home;
  engine::Value output;
  output.view = dense_view(shapes_[value], home == kNone ? order : Order(), dtype);
  if (home == kNone) return builder_.scratch(output.view);
  output.place = engine::Place::Output;
  output.index = ordinals_[home];
  return output;
}

void Translator::store(uint32_t value, const engine::Value& computed) {
  states_[value].value = computed;
  states_[value].ready = true;
}

void Translator::deliver(uint32_t value, const engine::Value& source) {
  if (states_[value].home != value) return store(value, source);
  const engine::Value output = target(value, Order(), source.view.dtype);
  const bool is_there = source.place == engine::Place::Output && source.index == output.index &&
                        source.view.offset == 0 && same_strides(source.view, output.view);
  if (!is_there) builder_.copy(source, output);
  store(value, output);
}

void Translator::write_output(uint32_t value) {
  if (graph_.values[value].role != Role::Output || states_[value].home == value) return;
  if (is_integer(value)) {
    engine::Value output;
    output.view = dense_view(shapes_[value], Order(), DType::Int8);
    output.place = engine::Place::Output;
    output.index = ordinals_[value];
    return convert_to(builder_.dense(bytes(value)), output, graph_.values[value]);
  }
  const engine::Value source = view(value);
  const bool is_place = source.view.dtype == DType::Int64;  // the positions of maxima
  engine::Value output;
  output.view = dense_view(shapes_[value], Order(),
                           is_place ? DType::Int64 : dtype_of(graph_.values[value].datatype));
  output.place = engine::Place::Output;
  output.index = ordinals_[value];
  builder_.copy(source, output);
}

engine::Value Translator::converted(const engine::Value& value, DType dtype) {
  const engine::Value to =
      builder_.scratch(dense_view(shape_of(value.view), order_of(value.view), dtype));
  builder_.copy(value, to);
  return to;
}

Status Translator::limit(const Node& node) {
  const bool is_limited = node.low != -__builtin_inff() || node.high != __builtin_inff();
  if (!is_limited) return {};
  const engine::Value value = states_[node.outputs[0]].value;
  engine::View views[1] = {value.view};
  merge(views, order_of(value.view));
  engine::Value flat = value;
  flat.view = views[0];
  Tiles tiles;
  Tiles::Term term = tiles.load(flat);
  term = tiles.add(TileOp::MAX_VALUE, term, 0, node.low);
  term = tiles.add(TileOp::MIN_VALUE, term, 0, node.high);
  engine::ElementwiseParameters parameters;
  if (!tiles.assemble(term, 0, builder_, &parameters.program)) return no_memory();
  builder_.emit(parameters, {}, {});
  return {};
}

}  // namespace rushlight::xnnpack
