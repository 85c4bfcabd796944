#include "rushlight/backends/xnnpack/translate/builder.h"

#include <algorithm>

namespace rushlight::xnnpack {
namespace {

constexpr uint64_t kBlockAlignment = 64;

const engine::TileProgram* program_of(const engine::Parameters& parameters) {
  if (const auto* p = std::get_if<engine::ElementwiseParameters>(&parameters)) return &p->program;
  if (const auto* p = std::get_if<engine::ProductParameters>(&parameters))
    return &p->epilogue.program;
  if (const auto* p = std::get_if<engine::DynamicProductParameters>(&parameters)) {
    return &p->epilogue.program;
  }
  if (const auto* p = std::get_if<engine::ConvolutionParameters>(&parameters)) {
    return &p->epilogue.program;
  }
  return nullptr;
}

int64_t residual_of(const engine::Parameters& parameters) {
  if (const auto* p = std::get_if<engine::ProductParameters>(&parameters))
    return p->epilogue.residual;
  if (const auto* p = std::get_if<engine::DynamicProductParameters>(&parameters)) {
    return p->epilogue.residual;
  }
  if (const auto* p = std::get_if<engine::ConvolutionParameters>(&parameters)) {
    return p->epilogue.residual;
  }
  return -1;
}

}  // namespace

engine::Value Builder::scratch(const engine::View& view) {
  engine::Value value;
  value.view = view;
  value.view.offset = 0;
  engine::measure(value.view);
  value.place = engine::Place::Scratch;
  value.index = static_cast<uint32_t>(blocks_.size());
  Block block;
  block.size = (value.view.extent + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  blocks_.push(block);
  return value;
}

engine::Value Builder::constant(const void* data, const engine::View& view) {
  engine::Value value;
  value.view = view;
  value.place = engine::Place::Constant;
  value.index = static_cast<uint32_t>(constants_.size());
  constants_.push({static_cast<const uint8_t*>(data), view.extent});
  return value;
}

uint32_t Builder::number(const engine::Value& value) {
  values_.push(value);
  return static_cast<uint32_t>(values_.size() - 1);
}

void Builder::emit(const engine::Parameters& parameters,
                   std::initializer_list<const engine::Value*> inputs,
                   std::initializer_list<const engine::Value*> outputs) {
  constexpr size_t kMaxValues = 6;
  int32_t numbers[2][kMaxValues];
  size_t counts[2] = {0, 0};
  for (const engine::Value* value : inputs) {
    numbers[0][counts[0]++] = value == nullptr ? -1 : static_cast<int32_t>(number(*value));
  }
  for (const engine::Value* value : outputs) {
    numbers[1][counts[1]++] = static_cast<int32_t>(number(*value));
  }
  engine::Node node;
  node.parameters = parameters;
  node.id = node_;
  node.inputs = keep(Span<const int32_t>(numbers[0], counts[0]));
  node.outputs = keep(Span<const int32_t>(numbers[1], counts[1]));
  nodes_.push(node);
}

void Builder::emit_alike(const engine::Parameters& parameters, const engine::Value& from,
                         const engine::Value& to, const engine::Value* table) {
  engine::View views[2] = {from.view, to.view};
  merge(views, order_of(to.view));
  engine::Value source = from;
  engine::Value target = to;
  source.view = views[0];
  target.view = views[1];
  if (table == nullptr) {
    emit(parameters, {&source}, {&target});
  } else {
    emit(parameters, {&source, table}, {&target});
  }
}

void Builder::copy(const engine::Value& from, const engine::Value& to) {
  emit_alike(engine::CopyParameters(), from, to);
}

engine::Value Builder::in_order(const engine::Value& value, const Order& order) {
  const engine::View wanted = dense_view(shape_of(value.view), order, value.view.dtype);
  if (same_strides(value.view, wanted)) return value;
  const engine::Value target = scratch(wanted);
  copy(value, target);
  return target;
}

engine::Value Builder::reshape(const engine::Value& value, const Shape& shape) {
  engine::Value out = value;
  if (reshaped(value.view, shape, &out.view)) return out;
  out = dense(value);
  const engine::View view = out.view;
  (void)reshaped(view, shape, &out.view);  // a dense view can have any shape
  return out;
}

engine::Value Builder::rows(const engine::Value& value) {
  Shape shape;
  shape.rank = 2;
  shape.sizes[1] = shape_of(value.view).last();
  shape.sizes[0] = shape.sizes[1] > 0 ? value.view.numel / shape.sizes[1] : 1;
  for (size_t d = 0; shape.sizes[1] == 0 && d + 1 < value.view.rank; ++d) {
    shape.sizes[0] *= value.view.sizes[d];
  }
  engine::Value out = value;
  const bool is_view = reshaped(value.view, shape, &out.view);
  if (is_view && (shape.sizes[1] <= 1 || out.view.strides[1] == 1)) return out;
  return reshape(dense(value), shape);
}

void Builder::use(uint32_t number, size_t node) {
  const engine::Value& value = values_[number];
  if (value.place != engine::Place::Scratch) return;
  Block& block = blocks_[value.index];
  block.first = std::min(block.first, node);
  block.last = std::max(block.last, node);
}

void Builder::measure_lives() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const engine::Node& node = nodes_[i];
    for (const int32_t number : node.inputs) {
      if (number >= 0) use(static_cast<uint32_t>(number), i);
    }
    for (const int32_t number : node.outputs) use(static_cast<uint32_t>(number), i);
    const engine::TileProgram* program = program_of(node.parameters);
    if (program != nullptr) {
      for (const uint32_t number : program->operands) use(number, i);
    }
    const int64_t residual = residual_of(node.parameters);
    if (residual >= 0) use(static_cast<uint32_t>(residual), i);
  }
}

// Places the largest blocks first, each at the lowest offset that is free while it lives. Returns
// the total bytes.
uint64_t Builder::place_blocks() {
  const size_t n = blocks_.size();
  uint32_t* order = allocator_->allocate_array<uint32_t>(2 * n);
  if (order == nullptr && n > 0) {
    ok_ = false;
    return 0;
  }
  for (uint32_t i = 0; i < n; ++i) order[i] = i;
  std::sort(order, order + n, [&](uint32_t a, uint32_t b) {
    return blocks_[a].size != blocks_[b].size ? blocks_[a].size > blocks_[b].size : a < b;
  });
  uint32_t* placed = order + n;  // sorted by offset
  size_t n_placed = 0;
  uint64_t total = 0;
  for (size_t k = 0; k < n; ++k) {
    Block& block = blocks_[order[k]];
    if (block.first == SIZE_MAX) continue;
    uint64_t offset = 0;
    for (size_t i = 0; i < n_placed; ++i) {
      const Block& other = blocks_[placed[i]];
      if (other.last < block.first || block.last < other.first) continue;
      if (other.offset >= offset && other.offset - offset >= block.size) break;
      offset = std::max(offset, other.offset + other.size);
    }
    block.offset = offset;
    total = std::max(total, offset + block.size);
    size_t at = n_placed++;
    for (; at > 0 && blocks_[placed[at - 1]].offset > offset; --at) placed[at] = placed[at - 1];
    placed[at] = order[k];
  }
  return total;
}

bool Builder::build(size_t n_inputs, size_t n_outputs, engine::GraphParts* parts) {
  if (!values_.ok() || !constants_.ok() || !nodes_.ok() || !blocks_.ok() || !ok_) return false;
  measure_lives();
  parts->scratch_size = place_blocks();
  for (engine::Value& value : values_.span()) {
    if (value.place != engine::Place::Scratch) continue;
    value.view.offset += blocks_[value.index].offset;
    value.index = 0;
  }
  parts->values = values_.span();
  parts->constants = constants_.span();
  parts->nodes = nodes_.span();
  parts->n_inputs = n_inputs;
  parts->n_outputs = n_outputs;
  return ok_;
}

}  // namespace rushlight::xnnpack
