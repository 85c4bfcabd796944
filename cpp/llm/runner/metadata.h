// What a program says of its language model, under the key "rushlight/llm" of its named data. The
// page docs/llm/runner.md lists the fields.
#pragma once

#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/llm/json/value.h"
#include "rushlight/llm/runner/options.h"
#include "rushlight/llm/runner/step_model.h"

namespace rushlight::llm {

// The most tokens of a vocabulary, a text or a step, and elements of an embedding: what needs more
// memory than any model has is refused.
inline constexpr int64_t kMostTokens = int64_t{1} << 24;

struct Metadata {
  std::string family;
  ModelFacts facts;  // without the cache's type and the bytes of a page
  int32_t bos = -1;  // -1: none
  std::vector<int32_t> ends;
  JsonValue tokens;          // the texts of special tokens: {"bos_token": "<s>", ...}
  GenerateOptions defaults;  // of the model's generation_config.json
};

// Returns InvalidProgram for what is no such text, or of another version.
Result<Metadata> read_metadata(StringView json, Message* message);

}  // namespace rushlight::llm
