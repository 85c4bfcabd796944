// The model of a program: its methods `step` and `embed`, with the cache that the scheduler lends
// them.
#pragma once

#include "rushlight/llm/runner/metadata.h"
#include "rushlight/llm/runner/step_model.h"
#include "rushlight/module/module.h"

namespace rushlight::llm {

// What the cache holds. Automatic is the smallest that keeps the quality.
enum class CacheType : uint8_t { Automatic, Float32, Float16, Int8 };

const char* cache_type_name(CacheType type);

// Of a program and of the data files that it was opened with.
uint64_t digest_of(const Module& module);

class ModuleModel final : public StepModel {
 public:
  // `module` is open; its program has a `step`, or is an encoder with `embed` alone.
  Status open(CacheType cache, Message* message);

  const ModelFacts& facts() const override { return metadata_.facts; }
  Result<Span<float>> step(const StepRows& rows, Message* message) override;
  Result<Span<float>> embed(const StepRows& rows, Message* message) override;
  uint64_t digest() override;

  Module& module() { return module_; }
  const Metadata& metadata() const { return metadata_; }

 private:
  // One of the methods, and what it gives for each wanted row.
  struct Rows {
    const char* name;
    size_t width;
    size_t wanted;  // rows at most
    Method* method = nullptr;
  };
  Status load(Rows* rows, Message* message);
  Status check_method(const Rows& rows, Message* message) const;
  Result<Span<float>> run(const Rows& method, const StepRows& rows, Message* message);

  Module module_;
  Metadata metadata_;
  Rows step_{"step", 0, 0};
  Rows embed_{"embed", 0, 0};  // loaded when it is first used, unless it is the only one
  KvCache cache_;
  uint64_t digest_ = 0;
};

}  // namespace rushlight::llm
