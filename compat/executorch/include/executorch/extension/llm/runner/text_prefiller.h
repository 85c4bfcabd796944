// Reads a prompt into the cache of a language model.
#pragma once

#include <executorch/extension/llm/runner/text_decoder_runner.h>

#include <cstdint>
#include <vector>

namespace executorch::extension::llm {

class TextPrefiller {
 public:
  // `max_seq_len` is how many tokens a step takes, if it takes several at once.
  TextPrefiller(TextDecoderRunner* text_decoder_runner, bool use_kv_cache,
                bool enable_parallel_prefill, int64_t max_seq_len = 128);
  virtual ~TextPrefiller() = default;

  // The most probable token after the prompt, whose first token stands at `start_pos`; that becomes
  // the place of the next one.
  virtual runtime::Result<uint64_t> prefill(std::vector<uint64_t>& prompt_tokens,
                                            int64_t& start_pos);
  virtual runtime::Error load() { return decoder_->load(); }
  virtual bool is_loaded() const { return decoder_->is_method_loaded(); }

 private:
  TextDecoderRunner* decoder_;
  bool use_kv_cache_;
  bool enable_parallel_prefill_;
  int64_t max_seq_len_;
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::TextPrefiller;
}  // namespace torch::executor
