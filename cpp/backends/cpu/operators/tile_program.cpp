#include "rushlight/backends/cpu/operators/tile_program.h"

#include <cstring>

namespace rushlight::cpu {
namespace {

constexpr size_t kWords = 3;  // of an instruction

TileInstruction instruction_of(fb::Vector<uint32_t> code, size_t i) {
  TileInstruction instruction = {};
  const uint32_t first = code[i * kWords];
  instruction.op = static_cast<TileOp>(first & 0xff);
  instruction.out = static_cast<uint8_t>(first >> 8);
  instruction.a = static_cast<uint8_t>(first >> 16);
  instruction.b = static_cast<uint8_t>(first >> 24);
  instruction.c = static_cast<uint8_t>(code[i * kWords + 1]);
  const uint32_t bits = code[i * kWords + 2];
  std::memcpy(&instruction.value, &bits, sizeof(bits));
  return instruction;
}

// Where dimension `d` of a view of this rank lies among kTileRank: at the end.
size_t place_of(const View& view, size_t d) { return kTileRank - view.rank + d; }

}  // namespace

Status TilePlan::prepare(Setup& setup, fb::cpu_engine::TileProgram program) {
  n_operands_ = program.operands().size();
  if (n_operands_ == 0 || n_operands_ > kTileOperands) {
    return setup.refuse("its program has too many operands, or none");
  }
  for (size_t i = 0; i < n_operands_; ++i) {
    RL_TRY(read_operand(setup, i, program.operands()[i]));
  }
  RL_TRY(read_code(setup, program.code()));
  return check_stores(setup);
}

Status TilePlan::read_operand(Setup& setup, size_t i, size_t number) {
  const View* view = setup.value(number);
  if (view == nullptr) return setup.refuse("its program names a value that is not there");
  if (view->rank > kTileRank) return setup.refuse("an operand has more than 4 dimensions");
  if (view->dtype != DType::Float32 && view->dtype != DType::Bool) {
    return setup.refuse("an operand is neither float32 nor bool");
  }
  for (size_t d = 0; d < view->rank; ++d) {
    int64_t& size = sizes_[place_of(*view, d)];
    if (i == 0) size = view->sizes[d];
    if (size != view->sizes[d]) return setup.refuse("its operands differ in sizes");
  }
  if (i > 0 && view->rank != views_[0]->rank) return setup.refuse("its operands differ in rank");
  views_[i] = view;
  return {};
}

Status TilePlan::read_code(Setup& setup, fb::Vector<uint32_t> code) {
  if (code.size() % kWords != 0) return setup.refuse("its program is cut");
  const size_t n = code.size() / kWords;
  TileInstruction* instructions = setup.allocate<TileInstruction>(n);
  if (instructions == nullptr && n > 0) return setup.out_of_memory();
  for (size_t i = 0; i < n; ++i) instructions[i] = instruction_of(code, i);
  program_ = {instructions, n};
  if (n == 0 || !tile_program_valid(program_, n_operands_)) {
    return setup.refuse("its program is not valid");
  }
  return {};
}

Status TilePlan::check_stores(Setup& setup) const {
  bool stores = false;
  for (const TileInstruction& instruction : program_) {
    if (instruction.op != TileOp::Store) continue;
    stores = true;
    const View& view = *views_[instruction.out];
    if (!setup.may_write(view)) return setup.refuse("its program writes an input or a constant");
    if (has_repeats(view)) return setup.refuse("its program writes elements many times");
  }
  // Only what is stored bounds the sizes of the others, whose elements may all be one.
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
    for (size_t d = 0; d < kTileRank; ++d) operand.steps[d] = 0;
    for (size_t d = 0; d < view.rank; ++d) operand.steps[place_of(view, d)] = view.steps[d];
  }
}

}  // namespace rushlight::cpu
