#include "rushlight/llm/grammar/schema/compiler.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/json/write.h"

namespace rushlight::llm::grammar {

using WhiteSpace = GrammarOptions::WhiteSpace;

namespace {

constexpr size_t kMaxRules = 100000;

std::string key_of(const SchemaSet& set) {
  std::string key;
  for (const JsonValue* schema : set) {
    key.append(reinterpret_cast<const char*>(&schema), sizeof(SchemaSet::value_type));
  }
  return key;
}

}  // namespace

Status SchemaCompiler::compile() {
  RL_TRY(document_.check());
  RL_TRY(facts_.check_one_ofs());
  automaton_.root = rule_of({&document_.root()});
  while (!open_.empty()) {
    const Open next = std::move(open_.back());
    open_.pop_back();
    RL_TRY(add_value(next.set, next.rule));
    RL_TRY(check_size(next.set));
    RL_TRY(budget_->take(1, message_));
    if (rules_.size() > kMaxRules) {
      return message_->fail(Code::OutOfResources, "the schema has more than %zu different parts",
                            kMaxRules);
    }
  }
  const Result<std::vector<bool>> has_text = prune(&automaton_, budget_, message_);
  if (!has_text.ok()) return has_text.status();
  return has_text.value()[automaton_.root] ? Status() : unsatisfiable(has_text.value());
}

Status SchemaCompiler::check_size(const SchemaSet& set) {
  if (!automaton_.is_full) return {};
  return grammar::check_size(automaton_, "the schema at " + document_.path(set), message_);
}

Status SchemaCompiler::unsatisfiable(const std::vector<bool>& has_text) {
  // The rule that was made first is the nearest to the root.
  uint32_t first = UINT32_MAX;
  for (const auto& [rule, reason] : reasons_) {
    if (!has_text[rule]) first = std::min(first, rule);
  }
  if (first != UINT32_MAX) {
    return message_->fail(Code::InvalidArgument, "no value satisfies the schema: at %s, %s",
                          automaton_.rules[first].where.c_str(), reasons_[first].c_str());
  }
  return message_->fail(Code::InvalidArgument,
                        "no finite value satisfies the schema: it requires itself without end: "
                        "make a part of the recursion optional");
}

uint32_t SchemaCompiler::rule_of(const SchemaSet& set) {
  const auto known = rules_.find(key_of(set));
  if (known != rules_.end()) return known->second;
  const uint32_t rule = automaton_.add_rule(document_.path(set));
  rules_.emplace(key_of(set), rule);
  open_.push_back({rule, set});
  return rule;
}

Status SchemaCompiler::add_value(const SchemaSet& set, uint32_t rule) {
  current_ = rule;
  std::shared_ptr<const std::vector<Facts>> alternatives;
  RL_TRY(facts_.read(set, &alternatives));
  const uint32_t start = automaton_.rules[rule].start;
  const uint32_t end = automaton_.add_state(rule);
  automaton_.states[end].accepts = true;
  if (alternatives->empty()) note("it is false, or nothing but a reference to itself");
  for (const Facts& facts : *alternatives) {
    RL_TRY(facts.has_values ? add_values(facts, start, end) : add_types(facts, start, end));
    RL_TRY(check_size(facts.schemas));
  }
  return Code::Ok;
}

void SchemaCompiler::note(const std::string& reason) { reasons_.emplace(current_, reason); }

bool SchemaCompiler::check_limits(const char* low, const char* high, const Limits& limits) {
  if (limits.low <= limits.high) return true;
  note(std::string("'") + low + "' " + std::to_string(limits.low) + " is above '" + high + "' " +
       std::to_string(limits.high));
  return false;
}

Status SchemaCompiler::add_values(const Facts& facts, uint32_t start, uint32_t end) {
  bool any = false;
  std::vector<std::string> texts;
  for (const JsonValue* value : facts.values) {
    bool fits = false;
    RL_TRY(facts_.accepts_listed(facts, *value, &fits));
    if (!fits) continue;
    any = true;
    if (!value->is_array() && !value->is_object()) {
      texts.push_back(write_json(*value));
      continue;
    }
    add_literal(start, *value, end);
    RL_TRY(check_size(facts.schemas));
  }
  if (!texts.empty()) {
    const std::string where = "the schema at " + document_.path(facts.schemas);
    uint32_t rule = 0;
    RL_TRY(add_texts(std::move(texts), where, &automaton_, &rule, message_));
    call(start, rule, end);
  }
  if (!any) note("no value of 'enum' or 'const' satisfies the rest of the schema");
  return Code::Ok;
}

Status SchemaCompiler::add_types(const Facts& facts, uint32_t start, uint32_t end) {
  if (facts.types == 0) note("the types exclude each other");
  if ((facts.types & kNull) != 0) automaton_.add_text(start, "null", end);
  if ((facts.types & kBoolean) != 0) {
    automaton_.add_text(start, "true", end);
    automaton_.add_text(start, "false", end);
  }
  if ((facts.types & (kInteger | kFractional)) != 0) RL_TRY(add_number(facts, start, end));
  if ((facts.types & kString) != 0) RL_TRY(add_string(facts, start, end));
  if ((facts.types & kArray) != 0) RL_TRY(add_array(facts, start, end));
  if ((facts.types & kObject) != 0) RL_TRY(add_object(facts, start, end));
  return Code::Ok;
}

void SchemaCompiler::call(uint32_t from, uint32_t rule, uint32_t after) {
  automaton_.states[from].calls.push_back({rule, after});
}

Status SchemaCompiler::call_lexeme(const std::string& key, Lexeme lexeme, const Facts& facts,
                                   uint32_t start, uint32_t end) {
  const auto known = lexemes_.find(key);
  uint32_t rule = 0;
  if (known != lexemes_.end()) {
    rule = known->second;
  } else {
    const std::string where = "the schema at " + document_.path(facts.schemas);
    RL_TRY(add_lexeme(std::move(lexeme), where, &automaton_, &rule, budget_, message_));
    lexemes_.emplace(key, rule);
  }
  call(start, rule, end);
  return Code::Ok;
}

Status SchemaCompiler::add_string(const Facts& facts, uint32_t start, uint32_t end) {
  if (!check_limits("minLength", "maxLength", facts.length)) return Code::Ok;
  std::string key =
      "string " + std::to_string(facts.length.low) + " " + std::to_string(facts.length.high);
  for (const std::string& pattern : facts.patterns) key += "\n" + pattern;
  std::shared_ptr<const Dfa> texts;
  RL_TRY(facts_.located(facts_.strings(facts, false, &texts), facts.schemas));
  if (texts->is_empty()) {
    note("no string satisfies 'pattern' and 'format'");
    return Code::Ok;
  }
  Lexeme lexeme;
  lexeme.characters = *texts;
  lexeme.encoding = facts.patterns.empty() ? Encoding::JsonFree : Encoding::Json;
  lexeme.is_quoted = true;
  lexeme.low = facts.length.low;
  lexeme.high = facts.length.high;
  return call_lexeme(key, std::move(lexeme), facts, start, end);
}

Status SchemaCompiler::add_number(const Facts& facts, uint32_t start, uint32_t end) {
  std::shared_ptr<const Dfa> texts;
  RL_TRY(facts_.located(facts_.numbers(facts, &texts), facts.schemas));
  if (texts->is_empty()) {
    note("no number is within the bounds, and a multiple of 'multipleOf' if there is one");
    return Code::Ok;
  }
  const bool is_plain = !facts.range.low.exists && !facts.range.high.exists && facts.units.empty();
  std::string key = (facts.types & kFractional) != 0 ? "number" : "integer";
  if (!is_plain) key += key_of(facts.schemas);
  Lexeme lexeme;
  lexeme.characters = *texts;
  return call_lexeme(key, std::move(lexeme), facts, start, end);
}

// Objects often have the same keys besides those that they name.
Status SchemaCompiler::add_key(const Region& region, const std::string& where, uint32_t* rule) {
  const Dfa& dfa = *region.keys;
  std::string key = "key";
  const auto append = [&key](const auto& numbers) {
    key += " " + std::to_string(numbers.size()) + " ";
    key.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(numbers[0]));
  };
  append(dfa.starts);
  append(dfa.next);
  append(dfa.accepts);
  const auto known = lexemes_.find(key);
  if (known != lexemes_.end()) {
    *rule = known->second;
    return {};
  }
  Lexeme lexeme;
  lexeme.characters = dfa;
  lexeme.encoding = dfa.states() == 1 ? Encoding::JsonFree : Encoding::Json;
  lexeme.is_quoted = true;
  RL_TRY(add_lexeme(std::move(lexeme), where, &automaton_, rule, budget_, message_));
  lexemes_.emplace(std::move(key), *rule);
  return {};
}

}  // namespace rushlight::llm::grammar
