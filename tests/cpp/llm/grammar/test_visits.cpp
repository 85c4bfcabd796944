// The first mask of each kind of place comes to few nodes of the trees of tokens: what states have
// in common with text, with other states and with each other is found without a walk. It has the
// tokens that are accepted one by one.
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/llm/grammar/grammar.h"
#include "rushlight/llm/grammar/state.h"
#include "rushlight/llm/json/parse.h"

namespace rushlight {
namespace test {
namespace {

using llm::Grammar;
using llm::GrammarOptions;
using llm::GrammarState;
using llm::Vocabulary;

struct Place {
  const char* grammar;  // a regular expression, or a schema if it begins with '{'
  const char* text;     // before the mask
  size_t nodes;         // that its mask may come to
};

// Of 59,216 tokens; a third more than they come to.
const Place kPlaces[] = {
    {R"({"type":"string"})", "\"the ", 310},
    {R"({"type":"string","maxLength":20})", "\"the ", 310},
    {R"({"type":"string","maxLength":20})", "\"the \\", 210},
    {R"({"type":"string","minLength":20})", "\"the \\", 880},
    {R"({"type":"string","pattern":"b+"})", "\"the ", 700},
    {R"({"type":"string","pattern":"error|warning: .*timeout"})", "\"the ", 550},
    {R"({"type":"string","pattern":"error","maxLength":12})", "\"the ", 640},
    {R"({"type":"string","pattern":"END$","maxLength":12})", "\"the E", 430},
    {R"({"type":"string","pattern":"^.{1,80}$"})", "\"", 290},
    {R"({"type":"string","pattern":"^[a-z0-9]+(-[a-z0-9]+)*$"})", "\"the", 110},
    {R"({"type":"string","format":"email"})", "\"the", 2400},
    {R"({"type":"object","patternProperties":{"^x_":{"type":"integer"},"y$":{}}})", "{\"the", 1400},
    {R"({"type":"string","pattern":"^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$"})", "\"the", 20000},
    {R"({"type":"string","minLength":1,"maxLength":200})", "", 60},
    {R"({"type":"array","items":{"type":"string","maxLength":60}})", "[\"the\",", 115},
    {R"({})", "", 880},
    {R"({})", "{\"the\":", 960},
    {"(.|\n)*", "the", 70},
    {"[^<]*<tool>[a-z]+", "the", 160},
    {"the [^\n]{1,200}\n", "the", 55},
    {"([a-z]+ )*[a-z]+", "the", 32},
    {"[A-Z][a-z]* [A-Z][a-z]*", "", 2},
    {"[^\n]{1,80}(\n[^\n]{1,80}){2}", "", 100},
};

// As those of models are: all bytes; words, with a space and with a capital; punctuation, and words
// with punctuation before and after.
std::shared_ptr<const Vocabulary> vocabulary() {
  std::set<std::string> pieces;
  std::vector<std::string> words;
  const std::string consonants = "bcdfghklmnprstvwy", vowels = "aeiou";
  for (const char a : consonants) {
    for (const char b : vowels) {
      for (const char c : consonants) {
        words.push_back({a, b, c});
        for (const char d : vowels) words.push_back({a, b, c, d, 'n'});
      }
    }
  }
  for (const std::string& word : words) {
    const auto capital = static_cast<char>(word[0] - 'a' + 'A');
    pieces.insert({word, " " + word, capital + word.substr(1), " " + (capital + word.substr(1))});
  }
  const char* const signs[] = {"\"", "\\", "{", "}", "[", "]", "(", ")", ",", ":",
                               ".",  "-",  "_", "@", "<", ">", "=", "/", "'", "\n"};
  for (const char* first : signs) {
    for (const char* second : signs) {
      pieces.insert({std::string(first) + second, std::string(" ") + first + second});
      for (const char* third : signs) pieces.insert(std::string(first) + second + third);
    }
    for (size_t i = 0; i < words.size(); i += 24) {
      pieces.insert({first + words[i], words[i] + first});
    }
  }
  for (uint32_t number = 0; number < 1000; ++number) pieces.insert(std::to_string(number));
  Vocabulary::Parts parts;
  for (int byte = 0; byte < 256; ++byte) parts.pieces.push_back({static_cast<char>(byte)});
  parts.pieces.insert(parts.pieces.end(), pieces.begin(), pieces.end());
  Message message;
  auto made = Vocabulary::make(std::move(parts), &message);
  CHECK(made.ok());
  return made.value();
}

std::shared_ptr<const Grammar> grammar_of(const Place& place,
                                          const std::shared_ptr<const Vocabulary>& tokens) {
  Message message;
  const std::string source = place.grammar;
  const StringView text(source.data(), source.size());
  const GrammarOptions options;
  if (source[0] != '{') return Grammar::from_regex(text, tokens, options, &message).value();
  const auto schema = llm::parse_json(text, &message);
  return Grammar::from_json_schema(schema.value(), tokens, options, &message).value();
}

// By a part of the tokens.
void check_mask(const Vocabulary& tokens, const uint32_t* bits, GrammarState* state) {
  constexpr int32_t kStep = 13;
  for (int32_t token = 0; tokens.holds(token); token += kStep) {
    const bool is_taken = (bits[token / 32] >> (token % 32) & 1) != 0;
    CHECK(state->accept(token) == is_taken);
    if (is_taken) CHECK(state->rewind(1));
  }
}

void test_visits() {
  const auto tokens = vocabulary();
  std::printf("%zu tokens\n", tokens->size());
  for (const Place& place : kPlaces) {
    const auto grammar = grammar_of(place, tokens);
    GrammarState state(grammar);
    const std::string before = place.text;
    CHECK(state.accept_text({before.data(), before.size()}));
    std::vector<uint32_t> bits(grammar->mask_words());
    state.mask(bits.data());
    const uint64_t first = grammar->visited();
    std::printf("%6zu nodes, at most %6zu: %s after '%s'\n", static_cast<size_t>(first),
                place.nodes, place.grammar, place.text);
    CHECK(first <= place.nodes);
    check_mask(*tokens, bits.data(), &state);
    state.mask(bits.data());
    CHECK(grammar->visited() == first);
  }
}

}  // namespace
}  // namespace test
}  // namespace rushlight

int main() {
  rushlight::test::test_visits();
  return rushlight::test::check_result();
}
