// Deterministic automata over characters, and what can be done with the languages that they accept.
// All of it is bounded: an automaton that would get too large is an error, and so is a budget that
// is spent.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/grammar/regex/budget.h"
#include "rushlight/llm/grammar/regex/syntax.h"

namespace rushlight::llm::grammar {

constexpr uint32_t kDead = UINT32_MAX;  // the state from which nothing is accepted

// State 0 is the start. The characters are divided into symbols: symbol i are the codes from
// starts[i] to before starts[i + 1]. Every state leads to an accepting one, except a start that
// accepts nothing.
struct Dfa {
  std::vector<uint32_t> starts = {0};
  std::vector<uint32_t> next;  // states x symbols
  std::vector<uint8_t> accepts;

  size_t symbols() const { return starts.size(); }
  size_t states() const { return accepts.size(); }
  uint32_t after(uint32_t state, size_t symbol) const { return next[state * symbols() + symbol]; }
  uint32_t last_code(size_t symbol) const {
    return symbol + 1 < symbols() ? starts[symbol + 1] - 1 : kLastCode;
  }
  bool is_empty() const;                // accepts no text at all
  bool matches(StringView text) const;  // the whole of a valid UTF-8 text
};

// Whole: the texts that match from begin to end. Anywhere: those that have a match within, as
// JSON schema's `pattern`.
enum class Match { Whole, Anywhere };
enum class Combine { And, Or, Without };

Result<Dfa> dfa_from(const Regex& regex, Match match, Budget* budget, Message* message);
Result<Dfa> dfa_from(StringView pattern, Match match, Budget* budget, Message* message);
Result<Dfa> combine(const Dfa& a, const Dfa& b, Combine how, Budget* budget, Message* message);
// The texts of `low` to `high` characters out of those that `dfa` accepts.
Result<Dfa> with_length(const Dfa& dfa, uint64_t low, uint64_t high, Budget* budget,
                        Message* message);
Dfa any_text();
// The texts that do not have `marker` within.
Result<Dfa> text_without(StringView marker, Budget* budget, Message* message);
// With as few states as the language needs, except for an automaton with very many, or where the
// budget ends.
Dfa minimized(const Dfa& dfa, Budget* budget);

}  // namespace rushlight::llm::grammar
