// The model of a program. There are two forms: that of rushlight.llm.export, whose cache is the
// runner's (runner/module_model.h), and that of ExecuTorch's runner for language models, whose
// cache is state of the program (runner/executorch_model.h).
#pragma once

#include <memory>
#include <utility>

#include "rushlight/core/digest.h"
#include "rushlight/llm/runner/metadata.h"
#include "rushlight/llm/runner/step_model.h"
#include "rushlight/module/module.h"

namespace rushlight::llm {

// The key of what rushlight.llm.export says of a model.
inline constexpr char kMetadataKey[] = "rushlight/llm";

// Of a program and of the data files that it was opened with.
uint64_t digest_of(const Module& module);

class ProgramModel : public StepModel {
 public:
  // `module` is open.
  explicit ProgramModel(std::unique_ptr<Module> module) : module_(std::move(module)) {}

  const ModelFacts& facts() const override { return metadata_.facts; }
  uint64_t digest() override {
    if (digest_ == 0) digest_ = digest_of(*module_);
    return digest_;
  }
  Module& module() { return *module_; }
  const Metadata& metadata() const { return metadata_; }

 protected:
  std::unique_ptr<Module> module_;
  Metadata metadata_;

 private:
  uint64_t digest_ = 0;
};

}  // namespace rushlight::llm
