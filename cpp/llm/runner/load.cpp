#include "rushlight/llm/runner/load.h"

#include <utility>

namespace rushlight::llm {
namespace {

template <class Open>
Status load_with(const Open& open, const LoadOptions& options, Runner* runner, Message* message) {
  auto model = std::make_unique<ModuleModel>();
  const Status status = open(model->module());
  if (!status.ok()) {
    *message = model->module().message();
    return status;
  }
  RL_TRY(model->open(options.cache, message));
  const Metadata& metadata = model->metadata();
  runner->set_ends(metadata.ends);
  runner->set_defaults(metadata.defaults);
  return runner->open(std::move(model), nullptr, options.runner, message);
}

}  // namespace

Status load(const char* path, const LoadOptions& options, Runner* runner, Message* message) {
  const auto open = [&](Module& module) { return module.open(path, options.module); };
  return load_with(open, options, runner, message);
}

Status load_memory(Span<const uint8_t> program, const LoadOptions& options, Runner* runner,
                   Message* message) {
  const auto open = [&](Module& module) {
    return module.open_memory(program.data(), program.size(), options.module);
  };
  return load_with(open, options, runner, message);
}

}  // namespace rushlight::llm
