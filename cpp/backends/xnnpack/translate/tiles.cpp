#include "rushlight/backends/xnnpack/translate/tiles.h"

#include <algorithm>

#include "rushlight/engine/kernels/rows/tile.h"

namespace rushlight::xnnpack {
namespace {

using engine::TileInstruction;

// How many terms an instruction reads; immediate numbers come after them.
size_t inputs_of(TileOp op) {
  if (op == TileOp::LOAD || op == TileOp::CONSTANT) return 0;
  return op >= TileOp::ADD && op <= TileOp::REMAINDER ? 2 : 1;
}

}  // namespace

Tiles::Term Tiles::load(const engine::Value& value) {
  if (n_operands_ == engine::kTileOperands) {
    fits_ = false;
    return 0;
  }
  operands_[n_operands_] = value;
  return add(TileOp::LOAD, static_cast<Term>(n_operands_++));
}

Tiles::Term Tiles::number(float value) { return add(TileOp::CONSTANT, 0, 0, value); }

Tiles::Term Tiles::add(TileOp op, Term a, Term b, float value) {
  if (n_terms_ == engine::kTileInstructions) {
    fits_ = false;
    return 0;
  }
  const Term term = static_cast<Term>(n_terms_++);
  terms_[term] = {op, a, b, value, term};
  if (inputs_of(op) > 0) terms_[a].last_use = term;
  if (inputs_of(op) > 1) terms_[b].last_use = term;
  return term;
}

bool Tiles::is_same(size_t operand, const engine::Value& value) const {
  const engine::Value& loaded = operands_[operand];
  return loaded.place == value.place && loaded.index == value.index &&
         loaded.view.offset == value.view.offset && same_strides(loaded.view, value.view);
}

void Tiles::merge_operands(const Order& order, Builder& builder) {
  engine::View views[engine::kTileOperands];
  for (size_t i = 0; i < n_operands_; ++i) views[i] = operands_[i].view;
  merge(Span<engine::View>(views, n_operands_), order);
  if (views[0].rank > engine::kTileRank) {
    for (size_t i = 0; i < n_operands_; ++i) {
      if (i + 1 < n_operands_) operands_[i] = builder.in_order(operands_[i], order);
      views[i] = operands_[i].view;
    }
    merge(Span<engine::View>(views, n_operands_), order);
  }
  for (size_t i = 0; i < n_operands_; ++i) operands_[i].view = views[i];
}

size_t Tiles::write(Term result, size_t target, TileInstruction* code) {
  if (!fits_ || n_terms_ >= engine::kTileInstructions) return 0;
  uint8_t registers[engine::kTileInstructions];
  uint32_t taken = 0;  // a bit for each register
  terms_[result].last_use = static_cast<Term>(n_terms_);
  for (size_t term = 0; term < n_terms_; ++term) {
    const Item& item = terms_[term];
    TileInstruction& instruction = code[term];
    instruction = {item.op, 0, 0, 0, 0, item.value};
    if (item.op == TileOp::LOAD) instruction.a = static_cast<uint8_t>(item.a);
    const Term inputs[2] = {item.a, item.b};
    for (size_t i = 0; i < inputs_of(item.op); ++i) {
      (i == 0 ? instruction.a : instruction.b) = registers[inputs[i]];
    }
    for (size_t i = 0; i < inputs_of(item.op); ++i) {
      if (terms_[inputs[i]].last_use == term) taken &= ~(1u << registers[inputs[i]]);
    }
    uint8_t free = 0;
    while ((taken >> free & 1u) != 0) ++free;
    if (free >= engine::kTileRegisters) return 0;
    registers[term] = instruction.out = free;
    if (item.last_use != term) taken |= 1u << free;
  }
  code[n_terms_] = {TileOp::STORE, static_cast<uint8_t>(target), registers[result], 0, 0, 0};
  return n_terms_ + 1;
}

bool Tiles::assemble(Term result, size_t target, Builder& builder, engine::TileProgram* program) {
  TileInstruction code[engine::kTileInstructions];
  const size_t n = write(result, target, code);
  if (n == 0) return false;
  program->code = builder.keep(Span<const TileInstruction>(code, n));
  uint32_t numbers[engine::kTileOperands];
  for (size_t i = 0; i < n_operands_; ++i) numbers[i] = builder.number(operands_[i]);
  program->operands = builder.keep(Span<const uint32_t>(numbers, n_operands_));
  return true;
}

void Tiles::compute(Term result, float* numbers, int64_t n) {
  TileInstruction code[engine::kTileInstructions];
  engine::TileOperand operand;
  operand.data = numbers;
  operand.strides[engine::kTileRank - 1] = 1;
  engine::TileRun run;
  run.program = {code, write(result, 0, code)};
  run.operands = &operand;
  run.sizes[engine::kTileRank - 1] = n;
  engine::run_tiles(run, nullptr);
}

}  // namespace rushlight::xnnpack
