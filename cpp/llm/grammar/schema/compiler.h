// From a JSON schema to an automaton: a rule for each set of schemas that a value must satisfy.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/grammar/automaton/automaton.h"
#include "rushlight/llm/grammar/automaton/lexeme.h"
#include "rushlight/llm/grammar/grammar.h"
#include "rushlight/llm/grammar/schema/facts.h"

namespace rushlight::llm::grammar {

// JSON's white space, as much as there is, is read at a state.
void add_white_space(uint32_t state, Automaton* automaton);

class SchemaCompiler {
 public:
  SchemaCompiler(const JsonValue& schema, GrammarOptions::WhiteSpace white_space,
                 Automaton* automaton, Budget* budget, Message* message)
      : document_(schema, message),
        facts_(&document_, budget, message),
        white_space_(white_space),
        automaton_(*automaton),
        budget_(budget),
        message_(message) {}

  // Makes the automaton, which was empty. Its root has a text.
  Status compile();

 private:
  struct Open {
    uint32_t rule;
    SchemaSet set;
  };

  uint32_t rule_of(const SchemaSet& set);
  Status check_size(const SchemaSet& set);
  Status add_value(const SchemaSet& set, uint32_t rule);
  Status add_types(const Facts& facts, uint32_t start, uint32_t end);
  Status add_values(const Facts& facts, uint32_t start, uint32_t end);
  Status add_string(const Facts& facts, uint32_t start, uint32_t end);
  Status add_number(const Facts& facts, uint32_t start, uint32_t end);
  Status add_array(const Facts& facts, uint32_t start, uint32_t end);
  Status add_object(const Facts& facts, uint32_t start, uint32_t end);
  static constexpr uint32_t kNoRule = UINT32_MAX;
  bool check_required(const Facts& facts);
  void add_property(uint32_t from, const std::string& name, uint32_t names, const SchemaSet& value,
                    uint32_t after);
  Status add_key(const Region& region, const std::string& where, uint32_t* rule);
  Status call_lexeme(const std::string& key, Lexeme lexeme, const Facts& facts, uint32_t start,
                     uint32_t end);
  void add_literal(uint32_t from, const JsonValue& value, uint32_t to);
  // A rule of its own if the limits need counts; else the part between start and end.
  void open_counted(const Limits& limits, const Facts& facts, uint32_t* start, uint32_t* end);
  // A state after `text` and perhaps white space.
  uint32_t after_text(uint32_t from, const char* text);
  void add_space(uint32_t state);
  void call(uint32_t from, uint32_t rule, uint32_t after);
  bool check_limits(const char* low, const char* high, const Limits& limits);
  // Why the rule, or an alternative of it, has no text.
  void note(const std::string& reason);
  Status unsatisfiable(const std::vector<bool>& has_text);

  Document document_;
  FactReader facts_;
  const GrammarOptions::WhiteSpace white_space_;
  Automaton& automaton_;
  Budget* budget_;
  Message* message_;
  std::unordered_map<std::string, uint32_t> rules_;  // by set
  std::unordered_map<std::string, uint32_t> lexemes_;
  std::vector<Open> open_;
  std::unordered_map<uint32_t, std::string> reasons_;  // by rule: why an alternative has no text
  uint32_t current_ = 0;                               // the rule that is being added
};

}  // namespace rushlight::llm::grammar
