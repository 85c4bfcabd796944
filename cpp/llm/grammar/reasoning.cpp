#include "rushlight/llm/grammar/reasoning.h"

#include <string>
#include <utility>

#include "rushlight/llm/grammar/automaton/lexeme.h"
#include "rushlight/llm/grammar/schema/compiler.h"
#include "rushlight/llm/reply/format.h"

namespace rushlight::llm {
namespace {

// A marker, which is a special token in some vocabularies.
std::string written(const char* marker, const Vocabulary& vocabulary) {
  const int32_t token = vocabulary.special(StringView(marker));
  return token >= 0 ? Vocabulary::marked(token) : std::string(marker);
}

}  // namespace

Status add_reasoning(Reasoning reasoning, const Vocabulary& vocabulary,
                     grammar::Automaton* automaton, grammar::Budget* budget, Message* message) {
  if (reasoning == Reasoning::None) return {};
  const std::string begin = written(kThink.begin, vocabulary);
  const std::string end = written(kThink.end, vocabulary);
  grammar::Lexeme thought;
  thought.characters = grammar::any_text();
  if (end[0] != Vocabulary::kMark) {
    Result<grammar::Dfa> texts = grammar::text_without({end.data(), end.size()}, budget, message);
    if (!texts.ok()) return texts.status();
    thought.characters = std::move(*texts);
  }
  uint32_t text = 0;
  RL_TRY(add_lexeme(std::move(thought), "reasoning", automaton, &text, budget, message));
  const uint32_t asked = automaton->root;
  automaton->root = automaton->add_rule("reasoning, then what was asked for");
  const uint32_t start = automaton->rules[automaton->root].start;
  const uint32_t inside = automaton->add_state(automaton->root);
  const uint32_t closing = automaton->add_state(automaton->root);
  const uint32_t after = automaton->add_state(automaton->root);
  const uint32_t done = automaton->add_state(automaton->root);
  automaton->states[done].accepts = true;
  automaton->add_text(start, reasoning == Reasoning::Open ? "" : begin, inside);
  automaton->states[inside].calls.push_back({text, closing});
  automaton->add_text(closing, end, after);
  grammar::add_white_space(after, automaton);
  automaton->states[after].calls.push_back({asked, done});
  if (reasoning == Reasoning::Optional) automaton->states[start].calls.push_back({asked, done});
  RL_TRY(check_size(*automaton, "reasoning", message));
  return grammar::prune(automaton, budget, message).status();
}

}  // namespace rushlight::llm
