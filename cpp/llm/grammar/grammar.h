// What a model may write, as an automaton over the tokens of its vocabulary.
//
//   Grammar        compiled once from a regular expression, a JSON schema or tools; shared by
//                  sessions and threads
//   GrammarState   one reply being written (state.h)
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/grammar/automaton/automaton.h"
#include "rushlight/llm/grammar/run/mask_cache.h"
#include "rushlight/llm/grammar/vocabulary.h"
#include "rushlight/llm/json/value.h"

namespace rushlight::llm {

// What may come before JSON or calls: nothing; reasoning or nothing; reasoning that the prompt has
// opened.
enum class Reasoning : uint8_t { None, Optional, Open };

struct GrammarOptions {
  // White space in JSON: none at all; one space after ',' and ':', as json.dumps writes; any
  // between the parts.
  enum class WhiteSpace : uint8_t { Compact, Spaced, Flexible };
  WhiteSpace white_space = WhiteSpace::Compact;
  Reasoning reasoning = Reasoning::None;
  size_t cache_bytes = size_t{64} << 20;  // of masks; when they are full, they are made anew
};

class Grammar {
 public:
  // The whole text matches `pattern`.
  static Result<std::shared_ptr<const Grammar>> from_regex(
      StringView pattern, std::shared_ptr<const Vocabulary> vocabulary,
      const GrammarOptions& options, Message* message);
  // The text is JSON that `schema` accepts: draft 2020-12, as far as docs/llm/grammar.md says.
  static Result<std::shared_ptr<const Grammar>> from_json_schema(
      const JsonValue& schema, std::shared_ptr<const Vocabulary> vocabulary,
      const GrammarOptions& options, Message* message);

  // Pruned; a root rule without a text is the caller's error.
  Grammar(grammar::Automaton automaton, std::shared_ptr<const Vocabulary> vocabulary,
          size_t cache_bytes);

  const grammar::Automaton& automaton() const { return automaton_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  size_t mask_words() const { return (vocabulary_->size() + 31) / 32; }
  size_t cache_bytes() const;  // of masks
  // Nodes of the trees of tokens that masks have come to: what they cost so far.
  uint64_t visited() const;
  size_t bytes() const;  // of the automaton, too
  // Sets the bits of the tokens that go on from these places.
  void add_mask(const grammar::Places& places, const grammar::Reader& reader, uint32_t* bits) const;

 private:
  const grammar::Automaton automaton_;
  const size_t automaton_bytes_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  mutable std::mutex mutex_;
  mutable grammar::MaskCache cache_;
};

}  // namespace rushlight::llm
