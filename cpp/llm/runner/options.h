// What a caller of the runner chooses: limits of the runner, and how one text is generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/llm/adapters/adapter.h"
#include "rushlight/llm/grammar/grammar.h"
#include "rushlight/llm/sampling/options.h"
#include "rushlight/llm/session/speculation.h"

namespace rushlight::llm {

constexpr size_t kMostTexts = 128;  // of one request

// When a text has as many tokens as the model has positions.
enum class ContextFull : uint8_t {
  Stop,   // it ends
  Shift,  // half of what follows the first `keep` tokens is dropped, and the rest computed again
};

struct GenerateOptions {
  SamplingOptions sampling;
  size_t max_tokens = 0;             // of output; 0: as many as the context has room for
  std::vector<std::string> stop;     // texts that end the output, which are not part of it
  std::vector<int32_t> stop_tokens;  // besides the model's own end tokens
  bool ignore_eos = false;           // the model's own end tokens do not end the output
  bool echo = false;                 // the output begins with the prompt
  bool special = false;              // the text has the special tokens
  size_t n = 1;                      // texts for the prompt, up to kMostTexts
  ContextFull context_full = ContextFull::Stop;
  size_t keep = 0;                         // see ContextFull::Shift
  std::shared_ptr<const Grammar> grammar;  // what the output may be, over Runner::vocabulary()
  size_t guesses = kMostGuesses;           // the most tokens that speculation proposes; 0: none
  // What is computed with; nullptr: the model alone, or the session's own.
  std::shared_ptr<const Adapter> adapter;
};

struct SchedulerOptions {
  size_t cache_limit = 0;   // bytes of pages; 0: four texts as long as the context
  size_t texts = 0;         // at most so many are computed at once; 0: 32, if a step has them
  size_t prefill_rows = 0;  // of prompts in a step that also decodes; 0: 128
};

}  // namespace rushlight::llm
