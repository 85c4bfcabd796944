// Arrays and objects.
#include <algorithm>
#include <utility>

#include "rushlight/llm/grammar/schema/compiler.h"
#include "rushlight/llm/json/write.h"

namespace rushlight::llm::grammar {

using WhiteSpace = GrammarOptions::WhiteSpace;

void add_white_space(uint32_t state, Automaton* automaton) {
  for (const uint8_t byte : {' ', '\n', '\r', '\t'}) {
    automaton->states[state].edges.push_back({byte, byte, false, state});
  }
}

void SchemaCompiler::add_space(uint32_t state) {
  if (white_space_ == WhiteSpace::Flexible) add_white_space(state, &automaton_);
}

uint32_t SchemaCompiler::after_text(uint32_t from, const char* text) {
  const uint32_t state = automaton_.add_state(automaton_.states[from].rule);
  automaton_.add_text(from, text, state);
  add_space(state);
  return state;
}

void SchemaCompiler::open_counted(const Limits& limits, const Facts& facts, uint32_t* start,
                                  uint32_t* end) {
  if (limits.low == 0 && limits.high == kNoLimit) return;
  const uint32_t rule = automaton_.add_rule(document_.path(facts.schemas));
  automaton_.rules[rule].counts = true;
  automaton_.rules[rule].low = limits.low;
  automaton_.rules[rule].high = limits.high;
  call(*start, rule, *end);
  *start = automaton_.rules[rule].start;
  *end = automaton_.add_state(rule);
  automaton_.states[*end].accepts = true;
}

Status SchemaCompiler::add_array(const Facts& facts, uint32_t start, uint32_t end) {
  if (!check_limits("minItems", "maxItems", facts.items)) return Code::Ok;
  open_counted(facts.items, facts, &start, &end);
  const char* separator = white_space_ == WhiteSpace::Spaced ? ", " : ",";
  const uint32_t rule = automaton_.states[start].rule;
  const bool counts = automaton_.rules[rule].counts;
  const auto add_item = [&](uint32_t from, const SchemaSet& set, uint32_t* after) {
    const uint32_t read = automaton_.add_state(rule);
    *after = automaton_.add_state(rule);
    call(from, rule_of(set), read);
    automaton_.states[read].jumps.push_back({*after, counts});
    add_space(*after);
    automaton_.add_text(*after, "]", end);
  };
  uint32_t from = after_text(start, "["), after = 0;
  automaton_.add_text(from, "]", end);
  for (const SchemaSet& item : facts.prefix) {
    add_item(from, item, &after);
    from = after_text(after, separator);
  }
  add_item(from, facts.rest, &after);
  const uint32_t again = after_text(after, separator);
  const uint32_t read = automaton_.add_state(rule);
  call(again, rule_of(facts.rest), read);
  automaton_.states[read].jumps.push_back({after, counts});
  return Code::Ok;
}

// A value of `enum` or `const`.
void SchemaCompiler::add_literal(uint32_t from, const JsonValue& value, uint32_t to) {
  const bool spaced = white_space_ == WhiteSpace::Spaced;
  const char *comma = spaced ? ", " : ",", *colon = spaced ? ": " : ":";
  if (!value.is_array() && !value.is_object()) {
    return automaton_.add_text(from, write_json(value), to);
  }
  from = after_text(from, value.is_array() ? "[" : "{");
  const size_t size = std::max(value.items().size(), value.members().size());
  for (size_t i = 0; i < size; ++i) {
    if (value.is_object()) {
      from = after_text(from, write_json(JsonValue(value.members()[i].key)).c_str());
      from = after_text(from, colon);
    }
    const uint32_t read = automaton_.add_state(automaton_.states[from].rule);
    add_literal(from, value.is_array() ? value.items()[i] : value.members()[i].value, read);
    add_space(read);
    from = i + 1 < size ? after_text(read, comma) : read;
  }
  automaton_.add_text(from, value.is_array() ? "]" : "}", to);
}

// Whether the object can have the properties that it must have.
bool SchemaCompiler::check_required(const Facts& facts) {
  const auto is_false = [](const JsonValue* s) { return s->is_boolean() && !s->boolean(); };
  for (const Property& property : facts.named) {
    const SchemaSet& value = property.value;
    const bool is_refused = std::any_of(value.begin(), value.end(), is_false);
    if (!property.is_required || (property.is_possible && !is_refused)) continue;
    note("the required property '" + shown(property.name, 100) + "' is not allowed");
    return false;
  }
  return true;
}

// A property, from before its key to `after`: the colon, the value, and white space. `names` is the
// rule of the key; without one it is `name`.
void SchemaCompiler::add_property(uint32_t from, const std::string& name, uint32_t names,
                                  const SchemaSet& value, uint32_t after) {
  const uint32_t rule = automaton_.states[from].rule;
  const uint32_t key = automaton_.add_state(rule), read = automaton_.add_state(rule);
  if (names != kNoRule) {
    call(from, names, key);
  } else {
    automaton_.add_text(from, write_json(JsonValue(name)), key);
  }
  add_space(key);
  call(after_text(key, white_space_ == WhiteSpace::Spaced ? ": " : ":"), rule_of(value), read);
  automaton_.states[read].jumps.push_back({after, automaton_.rules[rule].counts});
}

// The properties in the order of the schema, then others. Between them there are two states: one
// where no property was written yet, and one where a comma comes before the next.
Status SchemaCompiler::add_object(const Facts& facts, uint32_t start, uint32_t end) {
  if (!check_limits("minProperties", "maxProperties", facts.properties)) return Code::Ok;
  if (!check_required(facts)) return Code::Ok;
  open_counted(facts.properties, facts, &start, &end);
  const char* comma = white_space_ == WhiteSpace::Spaced ? ", " : ",";
  const uint32_t rule = automaton_.states[start].rule;
  const auto jump = [&](uint32_t from, uint32_t to) {
    automaton_.states[from].jumps.push_back({to, false});
  };
  uint32_t none = after_text(start, "{"), some = automaton_.add_state(rule);
  for (const Property& property : facts.named) {
    if (!property.is_possible) continue;
    const uint32_t key = automaton_.add_state(rule), next = automaton_.add_state(rule);
    jump(none, key);
    jump(after_text(some, comma), key);
    add_property(key, property.name, kNoRule, property.value, next);
    add_space(next);
    const uint32_t skipped = automaton_.add_state(rule);
    if (!property.is_required) {
      jump(none, skipped);
      jump(some, next);
    }
    none = skipped;
    some = next;
  }
  automaton_.add_text(none, "}", end);
  automaton_.add_text(some, "}", end);
  if (facts.regions.empty()) return Code::Ok;
  const uint32_t key = automaton_.add_state(rule), again = automaton_.add_state(rule);
  jump(none, key);
  jump(after_text(some, comma), key);
  add_space(again);
  automaton_.add_text(again, "}", end);
  jump(after_text(again, comma), key);
  for (const Region& region : facts.regions) {
    uint32_t names = 0;
    RL_TRY(add_key(region, "the schema at " + document_.path(facts.schemas), &names));
    add_property(key, "", names, region.value, again);
  }
  return Code::Ok;
}

}  // namespace rushlight::llm::grammar
