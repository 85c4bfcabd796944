// A program of the form that ExecuTorch's runner for language models takes: a method `forward` of
// tokens [1, n] and a position, which keeps keys and values in state of its own, and methods
// without inputs that describe it (get_max_seq_len and others).
//
// The program has the cache of one text. The pages that the scheduler lends to texts hold their
// tokens here, so that sessions, forks and shared prefixes work as for other models: a step
// compares the tokens before its rows with those that the program's cache was filled with, and
// computes what differs anew. Texts are computed one after the other (ModelFacts::texts), so that
// this happens when another text goes on, not at every step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rushlight/llm/runner/program_model.h"

namespace rushlight::llm {

class ExecutorchModel final : public ProgramModel {
 public:
  using ProgramModel::ProgramModel;

  // Returns NotSupported if the program is not of this form.
  Status open(Message* message);

  Result<Span<float>> step(const StepRows& rows, Message* message) override;
  Result<Span<float>> embed(const StepRows& rows, Message* message) override;
  size_t kept(const KvSequence& table, size_t count) const override;

 private:
  struct Text;

  Status read_state(const MethodMeta& meta, Message* message);
  Status read_metadata_methods(Message* message);
  Status read_inputs(const MethodMeta& meta, Message* message);
  Status read_logits(const MethodMeta& meta, Message* message);
  Status read_rows(const StepRows& rows, Text* text, Message* message);
  Status run_text(const StepRows& rows, const Text& text, Message* message);
  Status run(size_t begin, size_t end, Message* message);
  Status take_logits(size_t row, size_t wanted, Message* message);

  Method* method_ = nullptr;
  bool has_all_logits_ = false;  // of all rows of a run; otherwise of the last one
  bool has_positions_ = false;   // an input for the position of each row, not of the first alone
  bool can_rewind_ = true;
  std::vector<int32_t> held_;  // the tokens whose keys and values are in the program's cache
  std::vector<int32_t> text_;  // the tokens of a step's text
  std::vector<int64_t> tokens_, positions_;
  std::vector<float> logits_;
};

}  // namespace rushlight::llm
