// Regular expressions as trees. The syntax is what ECMAScript and Rust's regex have in common,
// without what no automaton can do or what needs tables of Unicode: docs/llm/grammar.md lists it.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/grammar/regex/classes.h"

namespace rushlight::llm::grammar {

constexpr uint32_t kUnbounded = UINT32_MAX;

struct RegexNode {
  enum class Kind : uint8_t { Empty, Set, Sequence, Choice, Repeat, Begin, End };
  Kind kind = Kind::Empty;
  uint32_t set = 0;              // Set: index in Regex::sets
  uint32_t least = 0, most = 0;  // Repeat; most may be kUnbounded
  std::vector<uint32_t> parts;   // Sequence, Choice, Repeat (one)
};

// A tree of nodes, each after its parts; the last one is the whole expression.
struct Regex {
  std::vector<RegexNode> nodes;
  std::vector<CodeSet> sets;

  uint32_t add(RegexNode node);
  uint32_t add_set(CodeSet set);
  uint32_t add_text(StringView text);  // valid UTF-8
  uint32_t add_list(RegexNode::Kind kind, std::vector<uint32_t> parts);
  uint32_t add_repeat(uint32_t part, uint32_t least, uint32_t most);
};

Result<Regex> parse_regex(StringView pattern, Message* message);

}  // namespace rushlight::llm::grammar
