#include "rushlight/llm/runner/load.h"

#include <utility>

namespace rushlight::llm {
namespace {

constexpr char kTemplate[] = "rushlight/chat_template";
constexpr char kTokenizer[] = "rushlight/tokenizer";

// The program's tokenizer; nullptr if it has none.
Result<std::unique_ptr<TextCodec>> open_codec(ModuleModel& model, Message* message) {
  const Result<Span<const uint8_t>> table = model.module().program().get(kTokenizer);
  if (!table.ok()) return std::unique_ptr<TextCodec>();
  auto codec = std::make_unique<TokenizerCodec>();
  RL_TRY(codec->open(table.value(), message));
  const size_t tokens = codec->vocabulary();
  if (tokens > model.facts().vocabulary) {
    return message->fail(Code::InvalidProgram,
                         "the tokenizer has %zu tokens, and the model %zu: they do not belong "
                         "together; export again with the model's own tokenizer",
                         tokens, model.facts().vocabulary);
  }
  return std::unique_ptr<TextCodec>(std::move(codec));
}

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
  Result<std::unique_ptr<TextCodec>> codec = open_codec(*model, message);
  if (!codec.ok()) return codec.status();
  const Result<Span<const uint8_t>> source = model->module().program().get(kTemplate);
  const JsonValue tokens = metadata.tokens;
  RL_TRY(runner->open(std::move(model), std::move(codec.value()), options.runner, message));
  if (!source.ok()) return {};
  const char* text = reinterpret_cast<const char*>(source.value().data());
  return runner->set_template({text, source.value().size()}, tokens, message);
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
