// The model of a program: its method `step`, with the cache that the scheduler lends it.
#pragma once

#include "rushlight/llm/runner/program_model.h"

namespace rushlight::llm {

// What the cache holds. Automatic is the smallest that keeps the quality.
enum class CacheType : uint8_t { Automatic, Float32, Float16, Int8 };

const char* cache_type_name(CacheType type);

class ModuleModel final : public ProgramModel {
 public:
  static constexpr char kMethod[] = "step";

  using ProgramModel::ProgramModel;

  // The program has this method.
  Status open(CacheType cache, Message* message);

  Result<Span<float>> step(const StepRows& rows, Message* message) override;

 private:
  Status check_method(Message* message) const;
  Status set_rows(size_t input, Span<const int64_t> rows);

  Method* method_ = nullptr;
  KvCache cache_;
};

}  // namespace rushlight::llm
