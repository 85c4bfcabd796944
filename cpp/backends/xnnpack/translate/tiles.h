// Tile programs (engine/kernels/rows/tile.h) from elementwise operators: terms are added one by
// one, then registers are assigned.
#pragma once

#include "rushlight/backends/xnnpack/translate/builder.h"

namespace rushlight::xnnpack {

using engine::TileOp;

// One chain of elementwise operators with one result. If something does not fit, there is no
// program, and the operators must be taken one at a time.
class Tiles {
 public:
  using Term = uint16_t;

  // Loads a value that has the sizes of the result; strides of 0 repeat elements.
  Term load(const engine::Value& value);
  Term number(float value);
  Term add(TileOp op, Term a, Term b = 0, float value = 0);

  size_t n_operands() const { return n_operands_; }
  engine::Value& operand(size_t i) { return operands_[i]; }
  bool is_same(size_t operand, const engine::Value& value) const;
  bool is_number(Term term) const { return terms_[term].op == TileOp::CONSTANT; }
  float number_of(Term term) const { return terms_[term].value; }

  // Merges the operands' dimensions in this order as far as possible. Operands that still have more
  // than the kernel takes are copied, except the last one, which is dense.
  void merge_operands(const Order& order, Builder& builder);
  // The program that stores `result` to operand `target`. False if it needs too many registers or
  // instructions.
  bool assemble(Term result, size_t target, Builder& builder, engine::TileProgram* program);
  // Computes `result` for `n` numbers, which are the only operand; a few terms always fit.
  void compute(Term result, float* numbers, int64_t n);

 private:
  // The number of instructions; 0 if there are too many.
  size_t write(Term result, size_t target, engine::TileInstruction* code);

  struct Item {
    TileOp op;
    Term a;
    Term b;
    float value;
    Term last_use;
  };

  Item terms_[engine::kTileInstructions];
  size_t n_terms_ = 0;
  engine::Value operands_[engine::kTileOperands];
  size_t n_operands_ = 0;
  bool fits_ = true;
};

}  // namespace rushlight::xnnpack
