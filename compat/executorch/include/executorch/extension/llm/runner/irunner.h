// What generates text.
#pragma once

#include <executorch/extension/llm/runner/stats.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/core/error.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

namespace executorch::extension::llm {

struct GenerationConfig {
  bool echo = true;             // the prompt is given out first
  bool ignore_eos = false;      // tokens that end a text do not
  int32_t max_new_tokens = -1;  // -1: as many as there is room for
  bool warming = false;         // nothing is printed
  int32_t seq_len = -1;         // the most tokens of prompt and output together; -1: the context
  float temperature = 0.8f;     // 0: the most probable token, always
  int32_t num_bos = 0;          // tokens that begin a text, before the prompt
  int32_t num_eos = 0;          // tokens that end a text, after it

  // How many tokens may be generated where `num_tokens_occupied` are there.
  int32_t resolve_max_new_tokens(int32_t max_context_len, int32_t num_tokens_occupied) const {
    const int32_t whole = seq_len == -1 ? max_context_len : std::min(seq_len, max_context_len);
    const int32_t room = whole - num_tokens_occupied;
    return std::max(0, max_new_tokens == -1 ? room : std::min(room, max_new_tokens));
  }
};

class IRunner {
 public:
  virtual ~IRunner() = default;

  virtual bool is_loaded() const = 0;
  virtual runtime::Error load() = 0;
  // Adds a prompt to the text and generates what follows, token by token. Loads before.
  virtual runtime::Error generate(const std::string& prompt, const GenerationConfig& config,
                                  std::function<void(const std::string&)> token_callback,
                                  std::function<void(const Stats&)> stats_callback) = 0;
  // Ends the text at the next token; from any thread, and from a callback.
  virtual void stop() = 0;
  // Begins a new text.
  virtual void reset() = 0;
};

}  // namespace executorch::extension::llm
