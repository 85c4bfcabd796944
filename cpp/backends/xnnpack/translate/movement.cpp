// Nodes that move elements, and others that are neither elementwise nor products.
#include "rushlight/backends/xnnpack/payload/shapes.h"
#include "rushlight/backends/xnnpack/translate/translate.h"

namespace rushlight::xnnpack {
namespace {

namespace wire = fb::xnnpack;

constexpr uint8_t kChannelsFirst[] = {0, 3, 1, 2};  // [N, H, W, C] as [N, C, H, W]

}  // namespace

Status Translator::pooling(const Node& node) {
  engine::Value image = builder_.dense(view(node.inputs[0]));
  engine::Value out = target(node.outputs[0]);
  store(node.outputs[0], out);
  image.view = permuted(image.view, kChannelsFirst);
  out.view = permuted(out.view, kChannelsFirst);
  engine::PoolingParameters parameters;
  parameters.average = node.kind == NodeKind::AvgPooling2d;
  parameters.window = window_of(node.body.as<wire::Pooling>());
  builder_.emit(parameters, {&image}, {&out});
  return limit(node);
}

Status Translator::global_pooling(const Node& node) {
  const engine::Value image = builder_.dense(view(node.inputs[0]));
  const engine::Value out = target(node.outputs[0]);
  store(node.outputs[0], out);
  builder_.emit(engine::ReductionParameters{engine::Reduction::Mean, 1, 3}, {&image}, {&out});
  return limit(node);
}

// The positions are int64, as in the program; only nodes that move elements accept them.
Status Translator::arg_max(const Node& node) {
  const auto table = node.body.as<wire::ArgMaxPooling2d>();
  engine::Value image = builder_.dense(view(node.inputs[0]));
  engine::Value out = target(node.outputs[0]);
  engine::Value places = target(node.outputs[1], Order(), DType::Int64);
  store(node.outputs[0], out);
  store(node.outputs[1], places);
  for (engine::Value* value : {&image, &out, &places}) {
    value->view = permuted(value->view, kChannelsFirst);
  }
  engine::ArgMaxParameters parameters;
  parameters.kernel[0] = table.pooling_height();
  parameters.kernel[1] = table.pooling_width();
  builder_.emit(parameters, {&image}, {&out, &places});
  return {};
}

Status Translator::resize(const Node& node) {
  engine::Value image = builder_.dense(view(node.inputs[0]));
  engine::Value out = target(node.outputs[0]);
  store(node.outputs[0], out);
  image.view = permuted(image.view, kChannelsFirst);
  out.view = permuted(out.view, kChannelsFirst);
  builder_.emit(engine::ResizeParameters{(node.flags & kAlignCorners) != 0}, {&image}, {&out});
  return {};
}

Status Translator::softmax(const Node& node) {
  const engine::Value in = builder_.dense(view(node.inputs[0]));
  const engine::Value out = target(node.outputs[0]);
  store(node.outputs[0], out);
  builder_.emit(engine::SoftmaxParameters{in.view.rank - size_t{1}, false}, {&in}, {&out});
  return {};
}

Status Translator::concatenate(const Node& node) {
  const size_t axis = node.body.as<wire::Concatenate>().axis();
  bool moves = true;
  for (size_t i = 0; i < node.n_inputs; ++i) {
    moves = moves && is_integer(node.inputs[i]) && is_integer(node.outputs[0]) &&
            same_quantization(graph_.values[node.inputs[i]], graph_.values[node.outputs[0]]);
  }
  const engine::Value out = target(node.outputs[0], Order(), moves ? DType::UInt8 : DType::Float32);
  int64_t start = 0;
  for (size_t i = 0; i < node.n_inputs; ++i) {
    const engine::Value in = moves ? bytes(node.inputs[i]) : view(node.inputs[i]);
    engine::Value part = out;
    part.view = narrowed(out.view, axis, start, in.view.sizes[axis]);
    builder_.copy(in, part);
    start += in.view.sizes[axis];
  }
  store(node.outputs[0], out);
  return {};
}

// Everything is float32 here, so a conversion only rounds to the half type at its input or output.
void Translator::convert(const Node& node) {
  if (convert_integers(node)) return;
  const Value& in = graph_.values[node.inputs[0]];
  const DType from = dtype_of(in.datatype);
  const DType to = dtype_of(graph_.values[node.outputs[0]].datatype);
  engine::Value value = view(node.inputs[0]);
  const bool rounds = is_half(to) || (is_half(from) && in.producer != kNone);
  if (from != to && rounds && value.view.dtype == DType::Float32) {
    value = converted(converted(value, is_half(to) ? to : from), DType::Float32);
  }
  deliver(node.outputs[0], value);
}

// Paddings that are not written yet stay unwritten.
Status Translator::transpose(const Node& node) {
  const auto table = node.body.as<wire::StaticTranspose>();
  uint8_t perm[kMaxRank] = {};
  for (size_t d = 0; d < table.perm().size(); ++d) perm[d] = static_cast<uint8_t>(table.perm()[d]);
  const State& from = states_[node.inputs[0]];
  const Value& in = graph_.values[node.inputs[0]];
  const bool stays = is_integer(node.inputs[0])
                         ? same_quantization(in, graph_.values[node.outputs[0]])
                         : !is_integer(node.outputs[0]);
  if (!from.padded || !stays || graph_.values[node.outputs[0]].role == Role::Output) {
    engine::Value value = moved(node.inputs[0], node.outputs[0]);
    value.view = permuted(value.view, perm);
    deliver(node.outputs[0], value);
    return {};
  }
  State to = from;
  to.value.view = permuted(from.value.view, perm);
  for (size_t d = 0; d < from.value.view.rank; ++d) {
    to.before[d] = from.before[perm[d]];
    to.after[d] = from.after[perm[d]];
  }
  store_padded(node.outputs[0], to);
  return {};
}

Status Translator::reshape(const Node& node) {
  const engine::Value value = moved(node.inputs[0], node.outputs[0]);
  deliver(node.outputs[0], builder_.reshape(value, shapes_[node.outputs[0]]));
  return {};
}

// The padding is not written yet, since a convolution can pad by itself.
Status Translator::pad(const Node& node) {
  const auto table = node.body.as<wire::StaticConstantPad>();
  const State& from = states_[node.inputs[0]];
  State padded;
  padded.ready = true;
  padded.integers = from.padded ? kNone : from.integers;
  padded.value = padded.integers == kNone ? moved(node.inputs[0], node.outputs[0]) : from.value;
  padded.fill = table.padding_value();
  for (size_t d = 0; d < padded.value.view.rank; ++d) {
    padded.before[d] = table.pre_paddings()[d];
    padded.after[d] = table.post_paddings()[d];
    padded.padded = padded.padded || padded.before[d] > 0 || padded.after[d] > 0;
  }
  if (!padded.padded && padded.integers == kNone) {
    deliver(node.outputs[0], padded.value);
    return {};
  }
  store_padded(node.outputs[0], padded);
  if (graph_.values[node.outputs[0]].role == Role::Output) {
    const engine::Value whole = view(node.outputs[0]);
    deliver(node.outputs[0], whole);
  }
  return {};
}

Status Translator::slice(const Node& node) {
  const auto table = node.body.as<wire::StaticSlice>();
  const Shape& shape = shapes_[node.outputs[0]];
  engine::Value value = moved(node.inputs[0], node.outputs[0]);
  for (size_t d = 0; d < shape.rank; ++d) {
    value.view = narrowed(value.view, d, table.offsets()[d], shape.sizes[d]);
  }
  deliver(node.outputs[0], value);
  return {};
}

}  // namespace rushlight::xnnpack
