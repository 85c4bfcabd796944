// Generates tokens one after the other.
#pragma once

#include <executorch/extension/llm/runner/stats.h>
#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <pytorch/tokenizers/tokenizer.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace executorch::extension::llm {

class TextTokenGenerator {
 public:
  // The pointers must outlive it.
  TextTokenGenerator(::tokenizers::Tokenizer* tokenizer, TextDecoderRunner* text_decoder_runner,
                     bool use_kv_cache, std::unique_ptr<std::unordered_set<uint64_t>>&& eos_ids,
                     Stats* stats)
      : tokenizer_(tokenizer),
        decoder_(text_decoder_runner),
        ends_(std::move(eos_ids)),
        use_kv_cache_(use_kv_cache),
        stats_(stats) {}
  virtual ~TextTokenGenerator() = default;

  void set_ignore_eos(bool ignore_eos) { ignore_eos_ = ignore_eos; }
  // Generates after `tokens`, whose last one stands at `start_pos`, and returns how many there are.
  // The callback gets the bytes of each token but one that ends the text.
  virtual runtime::Result<int64_t> generate(
      std::vector<uint64_t> tokens, int64_t start_pos, int32_t max_new_tokens,
      float temperature = 0.0f, const std::function<void(const std::string&)>& token_callback = {});
  void stop() { is_stopped_ = true; }
  runtime::Error load() { return decoder_->load(); }
  bool is_loaded() const { return tokenizer_->is_loaded() && decoder_->is_method_loaded(); }
  // The bytes that a token adds to a text; none for one that the tokenizer does not have.
  runtime::Result<std::string> text_of(uint64_t before, uint64_t token) const;
  // Whether a token ends a text.
  bool ends(uint64_t token) const { return !ignore_eos_ && ends_->count(token) > 0; }

 private:
  ::tokenizers::Tokenizer* tokenizer_;
  TextDecoderRunner* decoder_;
  std::unique_ptr<std::unordered_set<uint64_t>> ends_;
  bool use_kv_cache_;
  bool ignore_eos_ = false;
  std::atomic<bool> is_stopped_{false};
  Stats* stats_;
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::TextTokenGenerator;
}  // namespace torch::executor
