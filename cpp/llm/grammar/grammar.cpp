#include "rushlight/llm/grammar/grammar.h"

#include <utility>

#include "rushlight/llm/grammar/automaton/lexeme.h"
#include "rushlight/llm/grammar/reasoning.h"
#include "rushlight/llm/grammar/schema/compiler.h"
#include "rushlight/llm/memory/guard.h"

namespace rushlight::llm {

using grammar::Automaton;

Grammar::Grammar(Automaton automaton, std::shared_ptr<const Vocabulary> vocabulary,
                 size_t cache_bytes)
    : automaton_(std::move(automaton)),
      automaton_bytes_(bytes_of(automaton_)),
      vocabulary_(std::move(vocabulary)),
      cache_(automaton_, vocabulary_->trie(), vocabulary_->size(), cache_bytes) {}

size_t Grammar::bytes() const { return automaton_bytes_ + cache_bytes(); }

size_t Grammar::cache_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cache_.bytes();
}

uint64_t Grammar::visited() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cache_.visited();
}

void Grammar::add_mask(const grammar::Places& places, const grammar::Reader& reader,
                       uint32_t* bits) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  cache_.add_masks(places, reader, bits);
}

Result<std::shared_ptr<const Grammar>> Grammar::from_regex(
    StringView pattern, std::shared_ptr<const Vocabulary> vocabulary, const GrammarOptions& options,
    Message* message) {
  return guard("compile the grammar", message, [&]() -> Result<std::shared_ptr<const Grammar>> {
    grammar::Budget budget;
    Result<grammar::Dfa> dfa = grammar::dfa_from(pattern, grammar::Match::Whole, &budget, message);
    if (!dfa.ok()) return dfa.status();
    if (dfa->is_empty()) {
      return message->fail(Code::InvalidArgument, "no text matches the regular expression '%.*s'",
                           pattern.len() < 200 ? pattern.len() : 200, pattern.data());
    }
    Automaton automaton;
    grammar::Lexeme lexeme;
    lexeme.characters = std::move(*dfa);
    RL_TRY(add_lexeme(std::move(lexeme), "the regular expression", &automaton, &automaton.root,
                      &budget, message));
    const Result<std::vector<bool>> pruned = prune(&automaton, &budget, message);
    if (!pruned.ok()) return pruned.status();
    return std::shared_ptr<const Grammar>(std::make_shared<Grammar>(
        std::move(automaton), std::move(vocabulary), options.cache_bytes));
  });
}

Result<std::shared_ptr<const Grammar>> Grammar::from_json_schema(
    const JsonValue& schema, std::shared_ptr<const Vocabulary> vocabulary,
    const GrammarOptions& options, Message* message) {
  return guard("compile the grammar", message, [&]() -> Result<std::shared_ptr<const Grammar>> {
    Automaton automaton;
    grammar::Budget budget;
    grammar::SchemaCompiler compiler(schema, options.white_space, &automaton, &budget, message);
    RL_TRY(compiler.compile());
    RL_TRY(add_reasoning(options.reasoning, *vocabulary, &automaton, &budget, message));
    return std::shared_ptr<const Grammar>(std::make_shared<Grammar>(
        std::move(automaton), std::move(vocabulary), options.cache_bytes));
  });
}

}  // namespace rushlight::llm
