#include "rushlight/llm/runner/load.h"

#include <utility>

#include "rushlight/llm/memory/guard.h"
#include "rushlight/llm/runner/executorch_model.h"
#include "rushlight/llm/runner/module_model.h"

namespace rushlight::llm {
namespace {

constexpr char kTemplate[] = "rushlight/chat_template";
constexpr char kTokenizer[] = "rushlight/tokenizer";

// An encoder has no cache, and its texts are not read in by pieces.
Status check_encoder(const SchedulerOptions& options, Message* message) {
  if (options.cache_limit == 0 && options.texts == 0 && options.prefill_rows == 0) return {};
  return message->fail(Code::NotSupported,
                       "the program is an encoder, which computes texts whole and has no cache: "
                       "leave cache_limit, texts and prefill_rows out");
}

// The model of an open program.
Result<std::unique_ptr<ProgramModel>> model_of(std::unique_ptr<Module> module,
                                               const LoadOptions& options, Message* message) {
  const Program& program = module->program();
  for (size_t i = 0; i < program.n_methods(); ++i) {
    const StringView name = program.method_name(i);
    if (name != ModuleModel::kStep && name != ModuleModel::kEmbed) continue;
    auto model = std::make_unique<ModuleModel>(std::move(module));
    RL_TRY(model->open(options.cache, message));
    if (model->facts().is_encoder) RL_TRY(check_encoder(options.runner.scheduler, message));
    return std::unique_ptr<ProgramModel>(std::move(model));
  }
  auto model = std::make_unique<ExecutorchModel>(std::move(module));
  RL_TRY(model->open(message));
  const bool has_cache_options =
      options.cache != CacheType::Automatic || options.runner.scheduler.cache_limit > 0;
  if (has_cache_options) {
    return message->fail(Code::NotSupported,
                         "the program has its keys and values in state of its own, as ExecuTorch's "
                         "runner wants it, so its type and size are fixed: leave kv and "
                         "cache_limit out");
  }
  return std::unique_ptr<ProgramModel>(std::move(model));
}

// The tokenizer, which is `external` unless that is empty; nullptr if there is none.
Result<std::unique_ptr<TextCodec>> open_codec(ProgramModel& model, Span<const uint8_t> external,
                                              Message* message) {
  Span<const uint8_t> table = external;
  if (table.empty()) {
    const Result<Span<const uint8_t>> own = model.module().program().get(kTokenizer);
    if (!own.ok()) return std::unique_ptr<TextCodec>();
    table = own.value();
  }
  auto codec = std::make_unique<TokenizerCodec>();
  const Status status = codec->open(table, message);
  if (!status.ok() && !external.empty()) {
    message->prepend("the tokenizer that was given: ");
    return recoded(status, Code::InvalidArgument);
  }
  RL_TRY(status);
  const size_t tokens = codec->vocabulary();
  if (tokens > model.facts().vocabulary) {
    return message->fail(external.empty() ? Code::InvalidProgram : Code::InvalidArgument,
                         "the tokenizer has %zu tokens, and the model %zu: they do not belong "
                         "together; %s the model's own tokenizer",
                         tokens, model.facts().vocabulary,
                         external.empty() ? "export again with" : "give");
  }
  return std::unique_ptr<TextCodec>(std::move(codec));
}

// The texts of special tokens that templates name, of a program that does not say them.
JsonValue special_tokens(const Metadata& metadata, const TextCodec* codec) {
  if (!metadata.tokens.members().empty() || codec == nullptr) return metadata.tokens;
  JsonValue tokens;
  const auto add = [&](const char* name, int32_t token) {
    if (token >= 0 && static_cast<size_t>(token) < codec->vocabulary()) {
      tokens.set(name, JsonValue(codec->piece(token)));
    }
  };
  add("bos_token", metadata.bos);
  if (!metadata.ends.empty()) add("eos_token", metadata.ends[0]);
  return tokens;
}

template <class Open>
Status load_with(const Open& open, const LoadOptions& options, Runner* runner, Message* message) {
  auto module = std::make_unique<Module>();
  Status status = open(*module);
  for (size_t i = 0; status.ok() && i < options.data.size(); ++i) {
    status = module->add_data(options.data[i]);
  }
  if (status.ok() && !options.kernels.empty()) status = module->add_kernels(options.kernels);
  for (size_t i = 0; status.ok() && i < options.kernel_libraries.size(); ++i) {
    status = module->add_kernels(options.kernel_libraries[i]);
  }
  if (!status.ok()) {
    *message = module->message();
    return status;
  }
  Result<std::unique_ptr<ProgramModel>> opened = model_of(std::move(module), options, message);
  if (!opened.ok()) return opened.status();
  std::unique_ptr<ProgramModel> model = std::move(opened.value());
  const Metadata& metadata = model->metadata();
  runner->set_ends(metadata.ends);
  runner->set_defaults(metadata.defaults);
  Result<std::unique_ptr<TextCodec>> codec = open_codec(*model, options.tokenizer, message);
  if (!codec.ok()) return codec.status();
  const Result<Span<const uint8_t>> own = model->module().program().get(kTemplate);
  StringView source = options.chat_template;
  if (source.empty() && own.ok()) {
    source = {reinterpret_cast<const char*>(own.value().data()), own.value().size()};
  }
  const JsonValue tokens = special_tokens(metadata, codec.value().get());
  RL_TRY(runner->open(std::move(model), std::move(codec.value()), options.runner, message));
  return source.empty() ? Status() : runner->set_template(source, tokens, message);
}

}  // namespace

Module& module_of(Runner& runner) { return static_cast<ProgramModel&>(runner.model()).module(); }

Status load(const char* path, const LoadOptions& options, Runner* runner, Message* message) {
  const auto open = [&](Module& module) { return module.open(path, options.module); };
  return guard("load the model", message,
               [&] { return load_with(open, options, runner, message); });
}

Status load_memory(Span<const uint8_t> program, const LoadOptions& options, Runner* runner,
                   Message* message) {
  const auto open = [&](Module& module) {
    return module.open_memory(program.data(), program.size(), options.module);
  };
  return guard("load the model", message,
               [&] { return load_with(open, options, runner, message); });
}

}  // namespace rushlight::llm
