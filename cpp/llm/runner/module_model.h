// The model of a program: its methods `step` and `embed`, with the cache that the scheduler lends
// them.
#pragma once

#include "rushlight/llm/runner/program_model.h"

namespace rushlight::llm {

// What the cache holds. Automatic is int8.
enum class CacheType : uint8_t { Automatic, Float32, Float16, Int8 };

const char* cache_type_name(CacheType type);

class ModuleModel final : public ProgramModel {
 public:
  static constexpr char kStep[] = "step", kEmbed[] = "embed";

  using ProgramModel::ProgramModel;

  // The program has a `step`, or is an encoder with `embed` alone.
  Status open(CacheType cache, Message* message);

  Result<Span<float>> step(const StepRows& rows, Message* message) override;
  Result<Span<float>> embed(const StepRows& rows, Message* message) override;

 private:
  // One of the methods, and what it gives for each wanted row.
  struct Rows {
    const char* name;
    size_t width;
    size_t wanted;  // rows at most
    Method* method = nullptr;
  };
  Status load(Rows* rows, Message* message);
  Status check_method(const Rows& rows, const MethodMeta& meta, Message* message) const;
  Result<Span<float>> run(const Rows& method, const StepRows& rows, Message* message);

  Rows step_{kStep, 0, 0};
  Rows embed_{kEmbed, 0, 0};  // loaded when it is first used, unless it is the only one
  KvCache cache_;
};

}  // namespace rushlight::llm
