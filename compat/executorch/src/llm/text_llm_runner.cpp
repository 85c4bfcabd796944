// TextLLMRunner: a session of rushlight::llm::Runner.
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <executorch/runtime/platform/runtime.h>
#include <pytorch/tokenizers/compiled_tokenizer.h>

#include <atomic>
#include <random>

#include "../backends.h"
#include "../kernels.h"
#include "../tracers.h"
#include "rushlight/llm/runner/load.h"
#include "rushlight/llm/runner/runner.h"

namespace executorch::extension::llm {
namespace {

using runtime::Error;
using ::rushlight::Message;
using ::rushlight::Status;
namespace own = ::rushlight::llm;

Error logged(const Status& status, const Message& message) {
  if (!status.ok()) ET_LOG(Error, "%s", message.text());
  return status.code();
}

// A runner that is made of parts.
struct Parts {
  Error load();
  Error prefill(std::vector<uint64_t> tokens, uint64_t* next);
  Error generate(std::vector<uint64_t> tokens, const GenerationConfig& config, float temperature,
                 const std::function<void(const std::string&)>& give);
  bool is_loaded() const { return prefiller->is_loaded() && generator->is_loaded(); }

  std::unordered_map<std::string, int64_t> metadata;
  std::unique_ptr<Module> module;
  std::unique_ptr<IOManager> io_manager;
  std::unique_ptr<TextDecoderRunner> decoder;
  std::unique_ptr<TextPrefiller> prefiller;
  std::unique_ptr<Stats> stats;
  std::unique_ptr<TextTokenGenerator> generator;
  int64_t position = 0;  // of the next token
};

Error Parts::load() {
  if (is_loaded()) return Error::Ok;
  ET_CHECK_OK_OR_RETURN_ERROR(prefiller->load());
  ET_CHECK_OK_OR_RETURN_ERROR(io_manager->load());
  return generator->load();
}

Error Parts::prefill(std::vector<uint64_t> tokens, uint64_t* next) {
  const auto found = metadata.find(kMaxContextLen);
  const int64_t context = found != metadata.end() ? found->second : 0;
  ET_CHECK_OR_RETURN_ERROR(
      position + static_cast<int64_t>(tokens.size()) < context, InvalidArgument,
      "the text has %lld tokens, the prompt %zu, and the context, as the "
      "metadata has it, %lld",
      static_cast<long long>(position), tokens.size(), static_cast<long long>(context));
  ET_ASSIGN_OR_RETURN(token, prefiller->prefill(tokens, position));
  *next = token;
  return Error::Ok;
}

Error Parts::generate(std::vector<uint64_t> tokens, const GenerationConfig& config,
                      float temperature, const std::function<void(const std::string&)>& give) {
  stats->num_prompt_tokens = static_cast<int64_t>(tokens.size());
  uint64_t next = 0;
  ET_CHECK_OK_OR_RETURN_ERROR(prefill(tokens, &next));
  stats->first_token_ms = stats->prompt_eval_end_ms = time_in_ms();
  const int32_t most = config.resolve_max_new_tokens(
      static_cast<int32_t>(metadata.at(kMaxContextLen)), static_cast<int32_t>(position));
  ET_CHECK_OR_RETURN_ERROR(most > 0, InvalidArgument, "no token can follow the prompt");
  generator->set_ignore_eos(config.ignore_eos);
  stats->num_generated_tokens = 1;
  if (generator->ends(next)) return Error::Ok;
  ET_ASSIGN_OR_RETURN(first, generator->text_of(tokens.back(), next));
  if (!first.empty()) give(first);
  tokens.push_back(next);
  ET_ASSIGN_OR_RETURN(
      count, generator->generate(std::move(tokens), position, most - 1, temperature, give));
  position += count;
  stats->num_generated_tokens += count;
  return Error::Ok;
}

}  // namespace

struct TextLLMRunner::Impl {
  Error check_program();
  Error load();
  Error encode(const std::string& prompt, const GenerationConfig& config,
               std::vector<int32_t>* tokens) const;
  Error options_of(const GenerationConfig& config, size_t occupied,
                   own::GenerateOptions* options) const;
  Error generate(const std::vector<int32_t>& tokens, const std::string& prompt,
                 const GenerationConfig& config,
                 const std::function<void(const std::string&)>& give);
  Error read(own::Generation& generation, const std::function<void(const std::string&)>& give);
  std::string text_of(const own::Piece& piece);
  bool ends(int32_t token) const;

  std::string path;
  std::vector<std::string> data_files;
  bool map = true;
  std::unique_ptr<tokenizers::Tokenizer> tokenizer;
  float temperature = -1.0f;
  std::unique_ptr<runtime::EventTracer> tracer;

  runtime::internal::TracerOfEvents events;
  std::vector<int32_t> end_tokens;
  uint64_t last_token = 0;
  std::atomic<bool> is_stopped{false};
  Stats stats;
  std::unique_ptr<own::Runner> runner;
  std::unique_ptr<own::Session> session;  // destroyed before its runner
  std::unique_ptr<Parts> parts;           // in the place of both
};

// Whether there is a language model, without loading it.
Error TextLLMRunner::Impl::check_program() {
  ::rushlight::Module module;
  const Error error = module.open(path.c_str()).code();
  ET_CHECK_OK_OR_RETURN_ERROR(error, "%s", module.message().text());
  bool is_model = false;
  for (size_t i = 0; i < module.program().n_methods(); ++i) {
    const ::rushlight::StringView name = module.program().method_name(i);
    is_model |= name == own::ModuleModel::kStep || name == "forward";
  }
  ET_CHECK_OR_RETURN_ERROR(is_model, InvalidProgram,
                           "%s is no language model: it has no method `forward`, nor what "
                           "rushlight.llm.export writes",
                           path.c_str());
  return Error::Ok;
}

Error TextLLMRunner::Impl::load() {
  if (runner != nullptr) return Error::Ok;
  stats.model_load_start_ms = time_in_ms();
  own::LoadOptions options;
  events = runtime::internal::TracerOfEvents(tracer.get());
  options.module.map = map;
  options.module.kernels = &runtime::internal::registered_table();
  options.module.backends = &runtime::internal::registered_backends();
  options.module.tracer = events.rushlight();
  std::vector<const char*> data;
  for (const std::string& file : data_files) data.push_back(file.c_str());
  options.data = {data.data(), data.size()};
  if (const tokenizers::CompiledTokenizer* table = tokenizer->rushlight_tokenizer()) {
    options.tokenizer = {static_cast<const uint8_t*>(table->table_data()), table->table_size()};
  }
  auto loaded = std::make_unique<own::Runner>();
  Message message;
  ET_CHECK_OK_OR_RETURN_ERROR(
      logged(own::load(path.c_str(), options, loaded.get(), &message), message));
  end_tokens = static_cast<own::ProgramModel&>(loaded->model()).metadata().ends;
  if (end_tokens.empty()) end_tokens.push_back(static_cast<int32_t>(tokenizer->eos_tok()));
  session = loaded->new_session();
  ET_CHECK_OR_RETURN_ERROR(session != nullptr, MemoryAllocationFailed,
                           "there is no memory for a text");
  runner = std::move(loaded);
  stats.model_load_end_ms = time_in_ms();
  return Error::Ok;
}

Error TextLLMRunner::Impl::encode(const std::string& prompt, const GenerationConfig& config,
                                  std::vector<int32_t>* tokens) const {
  ET_CHECK_OR_RETURN_ERROR(
      config.num_bos >= 0 && config.num_bos < 128 && config.num_eos >= 0 && config.num_eos < 128,
      InvalidArgument, "num_bos is %d and num_eos %d: give 0 to 127",
      static_cast<int>(config.num_bos), static_cast<int>(config.num_eos));
  const auto encoded = tokenizer->encode(prompt, static_cast<int8_t>(config.num_bos),
                                         static_cast<int8_t>(config.num_eos));
  ET_CHECK_OR_RETURN_ERROR(encoded.ok(), InvalidArgument,
                           "the prompt of %zu bytes cannot be made tokens of: the tokenizer fails "
                           "with error %u",
                           prompt.size(), static_cast<unsigned>(encoded.error()));
  for (const uint64_t token : encoded.get()) tokens->push_back(static_cast<int32_t>(token));
  ET_CHECK_OR_RETURN_ERROR(!tokens->empty(), InvalidArgument, "the prompt has no token");
  return Error::Ok;
}

// Where `occupied` tokens of the context are taken, the prompt's among them.
Error TextLLMRunner::Impl::options_of(const GenerationConfig& config, size_t occupied,
                                      own::GenerateOptions* options) const {
  const auto context = static_cast<int32_t>(runner->facts().context);
  const int32_t most = config.resolve_max_new_tokens(context, static_cast<int32_t>(occupied));
  ET_CHECK_OR_RETURN_ERROR(most > 0, InvalidArgument,
                           "no token can follow: the text has %zu tokens with the prompt, the "
                           "context %d, seq_len is %d and max_new_tokens %d",
                           occupied, static_cast<int>(context), static_cast<int>(config.seq_len),
                           static_cast<int>(config.max_new_tokens));
  options->max_tokens = static_cast<size_t>(most);
  options->sampling.temperature = temperature == -1.0f ? config.temperature : temperature;
  options->sampling.top_p = kTopp;
  options->sampling.seed = std::random_device{}();
  options->ignore_eos = config.ignore_eos;
  if (!config.ignore_eos) options->stop_tokens = end_tokens;
  return Error::Ok;
}

bool TextLLMRunner::Impl::ends(int32_t token) const {
  return std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end();
}

// The runner makes text by tables; other tokenizers are asked here.
std::string TextLLMRunner::Impl::text_of(const own::Piece& piece) {
  if (tokenizer->rushlight_tokenizer() != nullptr) return {piece.text.data(), piece.text.size()};
  std::string text;
  for (const own::Drawn& drawn : piece.tokens) {
    if (ends(drawn.token)) continue;
    const auto token = static_cast<uint64_t>(drawn.token);
    const auto part = tokenizer->decode(last_token, token);
    if (part.ok()) text += part.get();
    last_token = token;
  }
  return text;
}

// Gives out what is generated until the end, or until stop().
Error TextLLMRunner::Impl::read(own::Generation& generation,
                                const std::function<void(const std::string&)>& give) {
  own::Piece piece;
  while (generation.next(&piece, [this] { return !is_stopped; })) {
    if (is_stopped) {
      generation.cancel();
      continue;
    }
    if (!piece.tokens.empty() && stats.first_token_ms == 0) {
      stats.first_token_ms = stats.prompt_eval_end_ms = time_in_ms();
    }
    const std::string text = text_of(piece);
    if (!text.empty()) give(text);
  }
  Message message;
  return logged(generation.status(&message), message);
}

Error TextLLMRunner::Impl::generate(const std::vector<int32_t>& tokens, const std::string& prompt,
                                    const GenerationConfig& config,
                                    const std::function<void(const std::string&)>& give) {
  is_stopped = false;
  Message message;
  const auto text = session->tokens(&message);
  ET_CHECK_OK_OR_RETURN_ERROR(logged(text.status(), message));
  own::GenerateOptions options;
  ET_CHECK_OK_OR_RETURN_ERROR(options_of(config, text.value().size() + tokens.size(), &options));
  last_token = static_cast<uint64_t>(tokens.back());
  auto generation = session->generate({tokens.data(), tokens.size()}, options, &message);
  ET_CHECK_OK_OR_RETURN_ERROR(logged(generation.status(), message));
  if (config.echo) give(prompt);
  ET_CHECK_OK_OR_RETURN_ERROR(read(*generation.value(), give));
  stats.num_prompt_tokens = static_cast<int64_t>(tokens.size());
  stats.num_generated_tokens = static_cast<int64_t>(generation.value()->statistics().output_tokens);
  return Error::Ok;
}

TextLLMRunner::TextLLMRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextLLMRunner::~TextLLMRunner() = default;

TextLLMRunner::TextLLMRunner(std::unordered_map<std::string, int64_t> metadata,
                             std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
                             std::unique_ptr<Module> module,
                             std::unique_ptr<TextDecoderRunner> text_decoder_runner,
                             std::unique_ptr<TextPrefiller> text_prefiller,
                             std::unique_ptr<IOManager> io_manager,
                             std::unique_ptr<TextTokenGenerator> text_token_generator,
                             std::unique_ptr<Stats> stats, float temperature)
    : impl_(std::make_unique<Impl>()) {
  impl_->tokenizer = std::move(tokenizer);
  impl_->temperature = temperature;
  impl_->parts = std::make_unique<Parts>();
  Parts& parts = *impl_->parts;
  parts.metadata = std::move(metadata);
  parts.module = std::move(module);
  parts.io_manager = std::move(io_manager);
  parts.decoder = std::move(text_decoder_runner);
  parts.prefiller = std::move(text_prefiller);
  parts.stats = std::move(stats);
  parts.generator = std::move(text_token_generator);
}

bool TextLLMRunner::is_loaded() const {
  return impl_->parts != nullptr ? impl_->parts->is_loaded() : impl_->runner != nullptr;
}

Error TextLLMRunner::load() {
  return impl_->parts != nullptr ? impl_->parts->load() : impl_->load();
}

Error TextLLMRunner::generate(const std::string& prompt, const GenerationConfig& config,
                              std::function<void(const std::string&)> token_callback,
                              std::function<void(const Stats&)> stats_callback) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  Stats& stats = impl_->parts != nullptr ? *impl_->parts->stats : impl_->stats;
  stats.reset();
  stats.inference_start_ms = time_in_ms();
  std::vector<int32_t> tokens;
  ET_CHECK_OK_OR_RETURN_ERROR(impl_->encode(prompt, config, &tokens));
  stats.token_encode_end_ms = stats.model_execution_start_ms = time_in_ms();
  const auto give = [&](const std::string& piece) {
    if (!config.warming) {
      safe_printf(piece.c_str());
      std::fflush(stdout);
    }
    if (token_callback) token_callback(piece);
  };
  if (impl_->parts != nullptr) {
    if (config.echo) give(prompt);
    const float temperature = impl_->temperature == -1.0f ? config.temperature : impl_->temperature;
    ET_CHECK_OK_OR_RETURN_ERROR(
        impl_->parts->generate({tokens.begin(), tokens.end()}, config, temperature, give));
  } else {
    ET_CHECK_OK_OR_RETURN_ERROR(impl_->generate(tokens, prompt, config, give));
  }
  stats.model_execution_end_ms = stats.inference_end_ms = time_in_ms();
  if (!config.warming) {
    std::printf("\n");
    print_report(stats);
  }
  if (stats_callback) stats_callback(stats);
  return Error::Ok;
}

Error TextLLMRunner::prefill(const std::string& prompt, const GenerationConfig& config) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  if (impl_->parts != nullptr) {
    std::vector<int32_t> prompt_tokens;
    ET_CHECK_OK_OR_RETURN_ERROR(impl_->encode(prompt, config, &prompt_tokens));
    uint64_t next = 0;
    return impl_->parts->prefill({prompt_tokens.begin(), prompt_tokens.end()}, &next);
  }
  Message message;
  const auto text = impl_->session->tokens(&message);
  ET_CHECK_OK_OR_RETURN_ERROR(logged(text.status(), message));
  std::vector<int32_t> tokens = text.value();
  ET_CHECK_OK_OR_RETURN_ERROR(impl_->encode(prompt, config, &tokens));
  return logged(impl_->session->set_tokens({tokens.data(), tokens.size()}, &message), message);
}

Error TextLLMRunner::warmup(const std::string& prompt, int32_t max_new_tokens) {
  GenerationConfig config;
  config.echo = false;
  config.warming = true;
  config.max_new_tokens = max_new_tokens;
  const Error error = generate(prompt, config);
  reset();
  return error;
}

void TextLLMRunner::stop() {
  impl_->is_stopped = true;
  if (impl_->parts != nullptr) impl_->parts->generator->stop();
}

void TextLLMRunner::reset() {
  if (impl_->parts != nullptr) {
    impl_->parts->stats->reset();
    impl_->parts->position = 0;
  }
  impl_->stats.reset();
  if (impl_->session == nullptr) return;
  Message message;
  const auto text = impl_->session->tokens(&message);
  if (text.ok()) (void)impl_->session->rewind(text.value().size(), &message);
}

std::unique_ptr<TextLLMRunner> create_text_llm_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::vector<std::string> data_files, float temperature,
    std::unique_ptr<runtime::EventTracer> event_tracer, const std::string& method_name,
    Module::LoadMode load_mode) {
  runtime::runtime_init();
  auto impl = std::make_unique<TextLLMRunner::Impl>();
  impl->path = model_path;
  impl->data_files = std::move(data_files);
  impl->map = load_mode != Module::LoadMode::File;
  impl->temperature = temperature;
  impl->tracer = std::move(event_tracer);
  if (method_name != "forward") {
    ET_LOG(Error, "method_name is %s: a runner runs `forward`; use a Module for other methods",
           method_name.c_str());
    return nullptr;
  }
  if (impl->check_program() != Error::Ok) return nullptr;
  if (tokenizer == nullptr) {
    tokenizer = std::make_unique<tokenizers::CompiledTokenizer>();
    if (tokenizer->load(model_path) != tokenizers::Error::Ok) return nullptr;
    ET_LOG(Info, "no tokenizer is given: that of %s is used", model_path.c_str());
  }
  if (!tokenizer->is_loaded()) {
    ET_LOG(Error, "the tokenizer is not loaded: load() it before, and look at what that returns");
    return nullptr;
  }
  impl->tokenizer = std::move(tokenizer);
  return std::make_unique<TextLLMRunner>(std::move(impl));
}

std::unique_ptr<TextLLMRunner> create_text_llm_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::optional<const std::string> data_path, float temperature, const std::string& method_name,
    Module::LoadMode load_mode) {
  std::vector<std::string> data_files;
  if (data_path.has_value()) data_files.push_back(*data_path);
  return create_text_llm_runner(model_path, std::move(tokenizer), std::move(data_files),
                                temperature, nullptr, method_name, load_mode);
}

}  // namespace executorch::extension::llm
