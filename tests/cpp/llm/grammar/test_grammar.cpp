// Grammars from damaged and drawn schemas and expressions: whatever comes, there is an error, or a
// grammar whose masks are what its states accept. The argument is how many are tried.
#include "rushlight/llm/grammar/grammar.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/llm/grammar/state.h"
#include "rushlight/llm/grammar/tools.h"
#include "rushlight/llm/json/parse.h"
#include "seed.h"

namespace rushlight {
namespace test {
namespace {

using llm::Grammar;
using llm::GrammarOptions;
using llm::GrammarState;
using llm::Vocabulary;

const char* const kPatterns[] = {
    "^[a-z]{2,5}\\d+$", "(foo|ab*)+-?1",    "[^\\W\\d]{1,3}(, [a-z]+)*", "(?:\\w+ ){2}end$",
    "(a|aa){3,50}",     "\\u{1F600}|\\x41", "(((a|b)*c){0,9}x)*?",       "(?P<n>\\d{1,9})\\.$",
};

const char* const kSchemas[] = {
    R"({"type":"object","properties":{"a":{"type":"integer","minimum":-3,"maximum":120},)"
    R"("b":{"type":"string","maxLength":3,"minLength":2}},"required":["b"]})",
    R"({"type":"array","items":{"type":"number","minimum":0.25},"minItems":2,"maxItems":4})",
    R"({"$defs":{"n":{"type":"object","properties":{"v":{"const":[1,"x"]},"l":{"anyOf":)"
    R"([{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["l"]}},"$ref":"#/$defs/n"})",
    R"({"allOf":[{"properties":{"a":{"multipleOf":7}}},{"propertyNames":{"pattern":"^a"}}],)"
    R"("patternProperties":{"b$":true},"additionalProperties":false,"maxProperties":2})",
    R"({"oneOf":[{"type":"string","format":"date"},{"enum":[1,null,{"k":[]}]}]})",
    R"({"type":["string","array"],"pattern":"^(ab)*$","maxLength":9,"prefixItems":[true,false]})",
};

const char* const kParts[] = {
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "0",
    "-1",
    "1e9",
    "null",
    "\"type\"",
    "\"$ref\":\"#\"",
    "\"string\"",
    "\"anyOf\":[",
    "\"minItems\":1,",
    "999999999999999999999",
    "(",
    ")",
    "*",
    "{1000}",
    "[^",
    "|",
    "\\",
    "^",
    "$",
    "\xC3\xA9",
    "\xFF",
    "{0,",
    "a{9}",
};

std::shared_ptr<const Vocabulary> vocabulary(bool marks_reasoning = false) {
  Vocabulary::Parts parts;
  for (int i = 0; i < 256; ++i) parts.pieces.push_back(std::string(1, static_cast<char>(i)));
  for (const char* piece : {"ab", "abc", "12", "\"a", "\":", "\",\"", "\xC3\xA9", "a\xC3", "}]"}) {
    parts.pieces.push_back(piece);
  }
  parts.pieces.push_back("</s>");
  parts.pieces.push_back("<tool_call>");
  parts.pieces.push_back("<think>");
  parts.pieces.push_back("</think>");
  parts.ends = {265};
  parts.special = {266};
  if (marks_reasoning) parts.special.insert(parts.special.end(), {267, 268});
  Message message;
  auto made = Vocabulary::make(std::move(parts), &message);
  CHECK(made.ok());
  return made.value();
}

class Chance {
 public:
  explicit Chance(uint32_t seed) : state_(uint64_t{seed} << 16 | 1) {}
  size_t below(size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state_ >> 33) % n;
  }

 private:
  uint64_t state_;
};

std::string damaged(std::string text, Chance* chance) {
  for (size_t i = chance->below(4); i > 0; --i) {
    const size_t at = chance->below(text.size() + 1);
    const char* part = kParts[chance->below(sizeof(kParts) / sizeof(kParts[0]))];
    if (chance->below(3) == 0) {
      text.erase(at, chance->below(12));
    } else if (chance->below(2) == 0) {
      text.insert(at, part);
    } else {
      text.insert(at, text.substr(chance->below(text.size() + 1), chance->below(30)));
    }
  }
  return text;
}

// Draws tokens from the masks: each is accepted, and others are not.
void walk(const std::shared_ptr<const Grammar>& grammar, Chance* chance) {
  GrammarState state(grammar, 4);
  std::vector<uint32_t> bits(grammar->mask_words());
  for (int i = 0; i < 12 && !state.has_ended(); ++i) {
    state.mask(bits.data());
    std::vector<int32_t> allowed, forced;
    for (int32_t token = 0; token < static_cast<int32_t>(grammar->vocabulary().size()); ++token) {
      const auto at = static_cast<uint32_t>(token);
      if ((bits[at / 32] >> (at % 32) & 1) != 0) allowed.push_back(token);
    }
    CHECK(!allowed.empty());
    if (allowed.empty()) return;
    const auto other = static_cast<uint32_t>(chance->below(grammar->vocabulary().size()));
    GrammarState fork = state;
    const bool is_allowed = (bits[other / 32] >> (other % 32) & 1) != 0;
    CHECK(fork.accept(static_cast<int32_t>(other)) == is_allowed);
    if (is_allowed) CHECK(fork.rewind(1));
    state.forced(&forced);
    for (const int32_t token : forced) CHECK(fork.accept(token));
    CHECK(state.accept(allowed[chance->below(allowed.size())]));
    if (chance->below(5) == 0) CHECK(state.rewind(1));
  }
}

void test_damaged(size_t rounds) {
  const auto tokens = vocabulary();
  Chance chance(seed_for(1));
  size_t made = 0;
  for (size_t i = 0; i < rounds; ++i) {
    Message message;
    GrammarOptions options;
    options.white_space = static_cast<GrammarOptions::WhiteSpace>(chance.below(3));
    options.reasoning = static_cast<llm::Reasoning>(chance.below(3));
    options.cache_bytes = chance.below(2) == 0 ? 0 : size_t{1} << 20;
    const bool is_schema = chance.below(2) == 0;
    const std::string text =
        is_schema
            ? damaged(kSchemas[chance.below(sizeof(kSchemas) / sizeof(kSchemas[0]))], &chance)
            : damaged(kPatterns[chance.below(sizeof(kPatterns) / sizeof(kPatterns[0]))], &chance);
    const StringView view(text.data(), text.size());
    Result<std::shared_ptr<const Grammar>> grammar = Code::Internal;
    if (is_schema) {
      const auto schema = llm::parse_json(view, &message);
      if (!schema.ok()) continue;
      grammar = Grammar::from_json_schema(schema.value(), tokens, options, &message);
    } else {
      grammar = Grammar::from_regex(view, tokens, options, &message);
    }
    CHECK(grammar.ok() || !message.empty());
    if (!grammar.ok()) continue;
    ++made;
    walk(*grammar, &chance);
  }
  CHECK(made > rounds / 20);
}

void test_tools() {
  const auto tokens = vocabulary();
  Message message;
  const auto tools = llm::parse_json(
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])", &message);
  CHECK(tools.ok());
  const auto grammar = llm::grammar_from_tools(tools.value(), llm::JsonValue("auto"), true,
                                               *llm::tool_format("qwen3"), tokens, {}, &message);
  CHECK(grammar.ok());
  Chance chance(seed_for(2));
  for (int i = 0; i < 20; ++i) walk(grammar.value(), &chance);
  CHECK(llm::tool_format("none") == nullptr);
}

// What comes before the JSON, as text and as special tokens.
void test_reasoning(bool marks_reasoning) {
  const auto tokens = vocabulary(marks_reasoning);
  Message message;
  const auto schema = llm::parse_json(R"({"const":1})", &message);
  CHECK(schema.ok());
  for (const llm::Reasoning reasoning : {llm::Reasoning::Optional, llm::Reasoning::Open}) {
    GrammarOptions options;
    options.reasoning = reasoning;
    const auto grammar = Grammar::from_json_schema(schema.value(), tokens, options, &message);
    CHECK(grammar.ok());
    if (!grammar.ok()) return;
    const bool is_open = reasoning == llm::Reasoning::Open;
    GrammarState state(grammar.value(), 4), at_once(grammar.value(), 4);
    CHECK(is_open || state.accept(267));
    CHECK(state.accept_text("1 < 2, so </thi") && !state.can_end());
    CHECK(state.accept(268) && state.accept_text("\n\n1") && state.must_end());
    CHECK(at_once.accept_text("1"));
    CHECK(at_once.must_end() == !is_open);
  }
}

}  // namespace
}  // namespace test
}  // namespace rushlight

int main(int argc, char** argv) {
  rushlight::test::test_damaged(argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 300);
  rushlight::test::test_tools();
  rushlight::test::test_reasoning(false);
  rushlight::test::test_reasoning(true);
  return rushlight::test::check_result();
}
