// Masks of strings of JSON with drawn patterns and bounds on their length, beside the tokens that
// are accepted one by one. The tokens are of a few letters, so that searches find their parts, and
// some of them are no whole characters, have a zero, or are longer than what is taken at once. Most
// useful with RUSHLIGHT_SANITIZE=ON.
//
// Usage: fuzz_masks ROUNDS: prints how many masks there were.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/llm/grammar/grammar.h"
#include "rushlight/llm/grammar/state.h"
#include "rushlight/llm/json/parse.h"
#include "seed.h"

namespace {

using namespace rushlight;
using llm::Grammar;
using llm::GrammarOptions;
using llm::GrammarState;
using llm::Vocabulary;

class Fuzz {
 public:
  explicit Fuzz(unsigned seed) : random_(seed) {}

  // A grammar of a drawn schema; null if it needs too many states or has no text.
  size_t run(const std::shared_ptr<const Vocabulary>& tokens) {
    Message message;
    const std::string source = schema();
    const auto json = llm::parse_json({source.data(), source.size()}, &message);
    CHECK(json.ok());
    const auto grammar = Grammar::from_json_schema(json.value(), tokens, {}, &message);
    if (!grammar.ok()) return 0;
    GrammarState state(grammar.value());
    std::vector<uint32_t> bits(grammar.value()->mask_words());
    size_t masks = 0;
    for (; masks < 12; ++masks) {
      std::fill(bits.begin(), bits.end(), 0u);
      state.mask(bits.data());
      std::vector<int32_t> allowed;
      for (int32_t token = 0; tokens->holds(token); ++token) {
        const bool is_taken = (bits[token / 32] >> (token % 32) & 1) != 0;
        if (is_taken) allowed.push_back(token);
        if (below(3) != 0 && !is_taken) continue;
        const bool is_accepted = state.accept(token);
        if (is_accepted) state.rewind(1);
        if (is_accepted == is_taken) continue;
        std::printf("%s: token %d is %s\n", source.c_str(), token,
                    is_taken ? "refused" : "left out");
        CHECK(false);
      }
      if (allowed.empty()) return masks;
      const int32_t token = allowed[below(allowed.size())];
      if (!state.accept(token)) return masks;
      if (tokens->is_end(token)) return masks;
    }
    return masks;
  }

  std::shared_ptr<const Vocabulary> vocabulary() {
    Vocabulary::Parts parts;
    parts.pieces.push_back("</s>");
    parts.ends = {0};
    for (int byte = 0; byte < 256; ++byte) parts.pieces.push_back({static_cast<char>(byte)});
    for (size_t n = 0; n < 1500; ++n)
      parts.pieces.push_back(text(1 + below(below(8) == 0 ? 12 : 5)));
    for (const size_t size : {31, 32, 33, 64, 255, 256, 300}) {
      parts.pieces.push_back(std::string(size, 'a'));
      parts.pieces.push_back(std::string(size, 'a') + "b");
    }
    parts.pieces.push_back(std::string("a\0b", 3));
    for (size_t n = 0; n < 60; ++n) {  // parts of characters
      const std::string whole = text(6);
      parts.pieces.push_back(whole.substr(below(whole.size())));
    }
    Message message;
    auto made = Vocabulary::make(std::move(parts), &message);
    CHECK(made.ok());
    return made.value();
  }

 private:
  size_t below(size_t end) { return random_() % end; }

  std::string text(size_t parts) {
    static const char* const kParts[] = {"a",  "a",  "a",   "b",  "b",      "c",     "x",
                                         "X",  "1",  " ",   ".",  "é",      "日",    "😀",
                                         "\"", "\\", "\\n", "\n", "\u2028", "\u00a0"};
    std::string made;
    for (size_t n = 0; n < parts; ++n) {
      made += kParts[below(below(2) == 0 ? 6 : sizeof(kParts) / sizeof(*kParts))];
    }
    return made;
  }

  // As it stands in JSON.
  std::string pattern() {
    static const char* const kParts[] = {"a",      "ab",      "aab",   "abc",   "b", "[ab]", "[^a]",
                                         "(a|bb)", "(ab|ba)", "\\\\d", "[A-Z]", ".", "é",    "日"};
    static const char* const kCounts[] = {"",  "",  "",  "",    "",      "",
                                          "?", "+", "*", "{2}", "{1,3}", "{2,}"};
    std::string made = below(4) == 0 ? "^" : "";
    for (size_t n = 1 + below(4); n > 0; --n) {
      made += kParts[below(sizeof(kParts) / sizeof(*kParts))];
      made += kCounts[below(sizeof(kCounts) / sizeof(*kCounts))];
      if (below(6) == 0) made += ".*";
      if (below(12) == 0) made += "|";
    }
    return below(3) == 0 ? made + "$" : made;
  }

  std::string schema() {
    std::string made = "{\"type\":\"string\",\"pattern\":\"" + pattern() + "\"";
    const size_t most = below(4) == 0 ? 40 : 1 + below(14);
    if (below(8) != 0) made += ",\"maxLength\":" + std::to_string(most);
    if (below(4) == 0) made += ",\"minLength\":" + std::to_string(below(most + 1));
    made += "}";
    return below(4) == 0 ? "{\"type\":\"array\",\"items\":" + made + "}" : made;
  }

  std::mt19937 random_;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  Fuzz fuzz(test::base_seed());
  size_t masks = 0, grammars = 0;
  std::shared_ptr<const Vocabulary> tokens;
  for (int round = 0; round < rounds; ++round) {
    if (round % 50 == 0) tokens = fuzz.vocabulary();
    const size_t made = fuzz.run(tokens);
    masks += made;
    grammars += made > 0 ? 1 : 0;
  }
  std::printf("%zu masks of %zu grammars in %d rounds\n", masks, grammars, rounds);
  CHECK(grammars * 2 > static_cast<size_t>(rounds));
  return test::check_result();
}
