#include "rushlight/engine/operators/tile_program.h"

namespace rushlight::engine {
namespace {

// The index of dimension `d` among kTileRank dimensions, of which the view has the last ones.
size_t place_of(const View& view, size_t d) { return kTileRank - view.rank + d; }

}  // namespace

Status TilePlan::prepare(Setup& setup, const TileProgram& program) {
  n_operands_ = program.operands.size();
  if (n_operands_ == 0 || n_operands_ > kTileOperands) {
    return setup.refuse("its program has %zu operands, but must have 1 to %zu", n_operands_,
                        size_t{kTileOperands});
  }
  for (size_t i = 0; i < n_operands_; ++i) {
    RL_TRY(read_operand(setup, i, program.operands[i]));
  }
  program_ = program.code;
  if (program_.empty() || !tile_program_valid(program_, n_operands_)) {
    return setup.refuse("its program has no instructions, or one that this runtime does not know");
  }
  return check_stores(setup);
}

Status TilePlan::read_operand(Setup& setup, size_t i, size_t number) {
  const View* view = setup.value(number);
  if (view == nullptr) {
    return setup.refuse("its operand %zu is value %zu, which is not in the graph", i, number);
  }
  if (view->rank > kTileRank) {
    return setup.refuse("its operand %zu has %u dimensions, but at most %zu are allowed", i,
                        unsigned{view->rank}, size_t{kTileRank});
  }
  if (view->dtype != DType::Float32 && view->dtype != DType::Bool) {
    return setup.refuse("its operand %zu is %s, but must be float32 or bool", i,
                        dtype_name(view->dtype));
  }
  for (size_t d = 0; d < view->rank; ++d) {
    int64_t& size = sizes_[place_of(*view, d)];
    if (i == 0) size = view->sizes[d];
    if (size != view->sizes[d]) return refuse_sizes(setup, i, *view);
  }
  if (i > 0 && view->rank != views_[0]->rank) return refuse_sizes(setup, i, *view);
  views_[i] = view;
  return {};
}

Status TilePlan::refuse_sizes(const Setup& setup, size_t i, const View& view) const {
  return setup.refuse("its operand %zu has sizes %s and its operand 0 %s: they must be equal", i,
                      text_of(view).text(), text_of(*views_[0]).text());
}

Status TilePlan::check_stores(Setup& setup) const {
  bool stores = false;
  for (const TileInstruction& instruction : program_) {
    if (instruction.op != TileOp::STORE) continue;
    stores = true;
    const View& view = *views_[instruction.out];
    const unsigned out = instruction.out;
    if (!setup.may_write(view)) {
      return setup.refuse("its program writes operand %u, which is an input or a constant", out);
    }
    if (has_repeats(view)) {
      return setup.refuse("its program writes operand %u, whose strides %s repeat elements", out,
                          text_of(view.strides, view.rank).text());
    }
  }
  // Only stores bound the sizes: a loaded operand may repeat one element.
  if (!stores) return setup.refuse("its program stores nothing");
  return {};
}

void TilePlan::bind(const Frame& frame, BoundTiles& bound) const {
  bound.run.program = program_;
  bound.run.operands = bound.operands;
  for (size_t d = 0; d < kTileRank; ++d) bound.run.sizes[d] = sizes_[d];
  for (size_t i = 0; i < n_operands_; ++i) {
    const View& view = *views_[i];
    TileOperand& operand = bound.operands[i];
    operand.data = frame.at<void>(view);
    operand.dtype = view.dtype;
    for (size_t d = 0; d < kTileRank; ++d) operand.strides[d] = 0;
    for (size_t d = 0; d < view.rank; ++d) operand.strides[place_of(view, d)] = view.strides[d];
  }
}

}  // namespace rushlight::engine
