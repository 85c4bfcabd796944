// One request while it is generated: its texts ("choices"), what their readers have not fetched
// yet, and its figures. The scheduler's thread of the moment changes it; readers see the outboxes
// alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/llm/grammar/state.h"
#include "rushlight/llm/runner/options.h"
#include "rushlight/llm/sampling/sampler.h"
#include "rushlight/llm/session/sequence.h"
#include "rushlight/llm/session/speculation.h"
#include "rushlight/llm/session/text_output.h"

namespace rushlight::llm {

enum class Finish : uint8_t {
  None,     // it goes on
  Stop,     // an end token, a stop token or a stop string
  Length,   // max_tokens
  Context,  // the context is full
  Cancelled,
  Failed,
};

const char* finish_name(Finish finish);

struct Statistics {
  size_t prompt_tokens = 0;
  size_t reused_tokens = 0;  // of the prompt, whose keys and values were there
  size_t output_tokens = 0;  // of all choices
  size_t guessed_tokens = 0;
  size_t accepted_tokens = 0;    // of the guessed ones
  size_t recomputed_tokens = 0;  // after a shift, or because pages were short
  size_t steps = 0;              // that had rows of this request
  uint64_t submitted_ns = 0;
  uint64_t started_ns = 0;  // of the first step
  uint64_t first_token_ns = 0;
  uint64_t finished_ns = 0;
};

// What a reader has not fetched. Guarded by the scheduler's mutex.
struct Outbox {
  std::vector<Drawn> tokens;
  std::string text;
  Finish finish = Finish::None;
};

struct Choice {
  Sequence* sequence = nullptr;
  std::unique_ptr<Sequence> own;  // if it is not a session's
  uint64_t order = 0;             // of its arrival; older ones come first
  uint64_t stream = 0;            // of random numbers
  size_t prompt = 0;              // tokens before the output
  size_t produced = 0;
  bool is_remembered = false;  // its prompt is in the prefix tree
  TextOutput text;
  Speculation speculation;
  std::unique_ptr<GrammarState> grammar;
  // Tokens that the grammar leaves no choice about, backwards.
  std::vector<int32_t> forced;
  Finish finish = Finish::None;
  Status status;  // why it failed
  Message message;
  Outbox fresh;            // of this step
  Outbox outbox;           // unread
  bool is_read = false;    // its end was fetched, too; guarded as the outbox is
  bool is_paused = false;  // its reader is behind
};

struct Request {
  GenerateOptions options;
  std::vector<int32_t> ends;  // tokens that end the output
  std::vector<std::unique_ptr<Choice>> choices;
  std::atomic<bool> cancelled{false};
  Statistics statistics;
};

}  // namespace rushlight::llm
