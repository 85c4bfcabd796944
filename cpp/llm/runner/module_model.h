// The model of a program: its method `step`, with the cache that the scheduler lends it.
#pragma once

#include "rushlight/llm/runner/metadata.h"
#include "rushlight/llm/runner/step_model.h"
#include "rushlight/module/module.h"

namespace rushlight::llm {

// What the cache holds. Automatic is int8.
enum class CacheType : uint8_t { Automatic, Float32, Float16, Int8 };

const char* cache_type_name(CacheType type);

// Of a program and of the data files that it was opened with.
uint64_t digest_of(const Module& module);

class ModuleModel final : public StepModel {
 public:
  // `module` is open; its program has a `step`.
  Status open(CacheType cache, Message* message);

  const ModelFacts& facts() const override { return metadata_.facts; }
  Result<Span<float>> step(const StepRows& rows, Message* message) override;
  uint64_t digest() override;

  Module& module() { return module_; }
  const Metadata& metadata() const { return metadata_; }

 private:
  Status check_method(Message* message) const;
  Status set_rows(size_t input, Span<const int64_t> rows);

  Module module_;
  Metadata metadata_;
  Method* method_ = nullptr;
  KvCache cache_;
  uint64_t digest_ = 0;
};

}  // namespace rushlight::llm
