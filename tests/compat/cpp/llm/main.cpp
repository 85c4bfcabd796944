// text generate MODEL TOKENIZER COUNT PROMPT    texts of a runner; no TOKENIZER ("-"): the model's
// text parts MODEL TOKENIZER COUNT PROMPT       texts of a runner that is made of parts
// text tokens TOKENIZER TEXT                    what a tokenizer makes of a text
// text sample TEMPERATURE TOP_P SEED COUNT      tokens drawn from the logits 0, 0.1, 0.2, … of 32
// What is meant for the test stands in lines that begin with "=".
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <executorch/extension/llm/sampler/sampler.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using executorch::extension::Module;
using executorch::extension::llm::create_text_llm_runner;
using executorch::extension::llm::GenerationConfig;
using executorch::extension::llm::get_eos_ids;
using executorch::extension::llm::get_llm_metadata;
using executorch::extension::llm::IOManager;
using executorch::extension::llm::IRunner;
using executorch::extension::llm::load_tokenizer;
using executorch::extension::llm::Sampler;
using executorch::extension::llm::Stats;
using executorch::extension::llm::TextDecoderRunner;
using executorch::extension::llm::TextLLMRunner;
using executorch::extension::llm::TextPrefiller;
using executorch::extension::llm::TextTokenGenerator;
using executorch::runtime::Error;

int print_tokens(const char* path, const char* text);

// In hexadecimal, as a text may have any characters.
void print_text(const char* what, const std::string& text) {
  std::printf("\n=%s ", what);
  for (const char byte : text) std::printf("%02x", static_cast<unsigned char>(byte));
  std::printf("\n");
}

namespace {

struct Text {
  Error error;
  std::string text;
  int64_t prompt = 0, generated = 0;
  bool has_times = false;
};

Text generate(IRunner& runner, const std::string& prompt, const GenerationConfig& config,
              bool stops = false) {
  Text text;
  text.error = runner.generate(
      prompt, config,
      [&](const std::string& piece) {
        text.text += piece;
        if (stops) runner.stop();
      },
      [&](const Stats& stats) {
        text.prompt = stats.num_prompt_tokens;
        text.generated = stats.num_generated_tokens;
        text.has_times = stats.model_load_end_ms >= stats.model_load_start_ms &&
                         stats.first_token_ms >= stats.inference_start_ms &&
                         stats.inference_end_ms >= stats.first_token_ms &&
                         stats.inference_start_ms > 0;
      });
  return text;
}

int print_error(Error error) {
  std::printf("=error %s\n", executorch::runtime::to_string(error));
  return 2;
}

// Counts the steps.
class CountingDecoder final : public TextDecoderRunner {
 public:
  CountingDecoder(Module* module, IOManager* io_manager, int* steps)
      : TextDecoderRunner(module, io_manager), steps_(steps) {}
  executorch::runtime::Result<executorch::aten::Tensor> step(
      executorch::extension::TensorPtr& input, int64_t start_pos) override {
    ++*steps_;
    return TextDecoderRunner::step(input, start_pos);
  }

 private:
  int* steps_;
};

int run_parts(const char* model, const char* tokenizer_path, int count, const std::string& prompt) {
  auto tokenizer = load_tokenizer(tokenizer_path);
  if (tokenizer == nullptr) return 3;
  auto module = std::make_unique<Module>(model);
  auto facts = get_llm_metadata(tokenizer.get(), module.get());
  if (!facts.ok()) return print_error(facts.error());
  int steps = 0;
  auto stats = std::make_unique<Stats>();
  auto io_manager = std::make_unique<IOManager>(*module);
  auto decoder = std::make_unique<CountingDecoder>(module.get(), io_manager.get(), &steps);
  auto prefiller =
      std::make_unique<TextPrefiller>(decoder.get(), true, true, facts->at("get_max_seq_len"));
  auto ends =
      std::make_unique<std::unordered_set<uint64_t>>(get_eos_ids(tokenizer.get(), module.get()));
  auto generator = std::make_unique<TextTokenGenerator>(tokenizer.get(), decoder.get(), true,
                                                        std::move(ends), stats.get());
  TextLLMRunner runner(*facts, std::move(tokenizer), std::move(module), std::move(decoder),
                       std::move(prefiller), std::move(io_manager), std::move(generator),
                       std::move(stats));
  if (runner.is_loaded() || runner.load() != Error::Ok || !runner.is_loaded()) return 5;
  GenerationConfig config;
  config.temperature = 0.0f;
  config.echo = false;
  config.max_new_tokens = count;
  const Text first = generate(runner, prompt, config);
  if (first.error != Error::Ok) return print_error(first.error);
  print_text("first", first.text);
  std::printf("=counts %d %d\n", static_cast<int>(first.prompt), static_cast<int>(first.generated));
  std::printf("=steps %d\n", steps);
  runner.reset();
  if (runner.prefill(prompt) != Error::Ok) return 8;
  print_text("prefilled", generate(runner, " and", config).text);
  config.max_new_tokens = 10000;
  std::string endless;
  for (int i = 0; i < 400; ++i) endless += prompt;
  return print_error(generate(runner, endless, config).error);
}

int run_texts(const char* model, const char* tokenizer_path, int count, const std::string& prompt) {
  std::unique_ptr<tokenizers::Tokenizer> tokenizer;
  if (std::strcmp(tokenizer_path, "-") != 0) {
    tokenizer = load_tokenizer(tokenizer_path);
    if (tokenizer == nullptr) return 3;
    Module module(model);
    auto facts = get_llm_metadata(tokenizer.get(), &module);
    if (!facts.ok()) return print_error(facts.error());
    std::printf("=context %d\n", static_cast<int>(facts->at("get_max_context_len")));
    for (const uint64_t end : get_eos_ids(tokenizer.get(), &module)) {
      std::printf("=end %d\n", static_cast<int>(end));
    }
  }
  std::unique_ptr<TextLLMRunner> runner =
      create_text_llm_runner(model, std::move(tokenizer), std::vector<std::string>{});
  if (runner == nullptr) return 4;
  if (runner->is_loaded()) return 5;
  GenerationConfig config;
  config.temperature = 0.0f;
  config.echo = false;
  config.max_new_tokens = count;
  if (runner->warmup(prompt, 2) != Error::Ok || !runner->is_loaded()) return 6;

  const Text first = generate(*runner, prompt, config);
  if (first.error != Error::Ok) return print_error(first.error);
  if (!first.has_times) return 7;
  print_text("first", first.text);
  std::printf("=counts %d %d\n", static_cast<int>(first.prompt), static_cast<int>(first.generated));
  const Text second = generate(*runner, " and", config);
  print_text("second", second.text);
  runner->reset();
  config.echo = true;
  const Text again = generate(*runner, prompt, config);
  print_text("echoed", again.text);
  config.echo = false;
  runner->reset();
  if (runner->prefill(prompt) != Error::Ok) return 8;
  const Text after = generate(*runner, " and", config);
  print_text("prefilled", after.text);
  runner->reset();
  const Text stopped = generate(*runner, prompt, config, true);
  print_text("stopped", stopped.text);
  runner->reset();
  config.max_new_tokens = -1;
  config.seq_len = static_cast<int32_t>(first.prompt) + 3;
  config.ignore_eos = true;
  std::printf("=short %d\n", static_cast<int>(generate(*runner, prompt, config).generated));
  runner->reset();
  return print_error(generate(*runner, "", config).error);
}

int draw(float temperature, float topp, unsigned long long seed, int count) {
  Sampler sampler(32, temperature, topp, seed);
  std::printf("=tokens");
  for (int i = 0; i < count; ++i) {
    std::vector<float> logits(32);
    for (int k = 0; k < 32; ++k) logits[static_cast<size_t>(k)] = 0.1f * static_cast<float>(k);
    std::printf(" %d", static_cast<int>(sampler.sample(logits.data())));
  }
  std::printf("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6 && std::strcmp(argv[1], "generate") == 0) {
    return run_texts(argv[2], argv[3], std::atoi(argv[4]), argv[5]);
  }
  if (argc == 6 && std::strcmp(argv[1], "parts") == 0) {
    return run_parts(argv[2], argv[3], std::atoi(argv[4]), argv[5]);
  }
  if (argc == 4 && std::strcmp(argv[1], "tokens") == 0) return print_tokens(argv[2], argv[3]);
  if (argc == 6 && std::strcmp(argv[1], "sample") == 0) {
    return draw(std::strtof(argv[2], nullptr), std::strtof(argv[3], nullptr),
                std::strtoull(argv[4], nullptr, 10), std::atoi(argv[5]));
  }
  return 1;
}
