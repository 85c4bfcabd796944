// Arrays and objects.
#include <algorithm>
#include <utility>

#include "rushlight/llm/grammar/schema/compiler.h"
#include "rushlight/llm/json/write.h"

namespace rushlight::llm::grammar {

using WhiteSpace = GrammarOptions::WhiteSpace;

void SchemaCompiler::add_space(uint32_t state) {
  if (white_space_ != WhiteSpace::Flexible) return;
  for (const char c : {' ', '\n', '\r', '\t'}) {
    const auto byte = static_cast<uint8_t>(c);
    automaton_.states[state].edges.push_back({byte, byte, false, state});
  }
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

// The properties in the order of the schema, then others. Between them there are two states: one
// where no property was written yet, and one where a comma comes before the next.
Status SchemaCompiler::add_object(const Facts& facts, uint32_t start, uint32_t end) {
  if (!check_limits("minProperties", "maxProperties", facts.properties)) return Code::Ok;
  const auto is_false = [](const JsonValue* s) { return s->is_boolean() && !s->boolean(); };
  for (const Property& property : facts.named) {
    if (!property.is_required) continue;
    const SchemaSet& value = property.value;
    const bool is_refused = std::any_of(value.begin(), value.end(), is_false);
    if (property.is_possible && !is_refused) continue;
    note("the required property '" + shown(property.name, 100) + "' is not allowed");
    return Code::Ok;
  }
  open_counted(facts.properties, facts, &start, &end);
  const std::string colon = white_space_ == WhiteSpace::Spaced ? ": " : ":";
  const char* comma = white_space_ == WhiteSpace::Spaced ? ", " : ",";
  const uint32_t rule = automaton_.states[start].rule;
  const bool counts = automaton_.rules[rule].counts;
  const auto add = [&] { return automaton_.add_state(rule); };
  const auto jump = [&](uint32_t from, uint32_t to, bool count) {
    automaton_.states[from].jumps.push_back({to, count});
  };
  // After the key: the colon, the value, and white space.
  const auto add_rest = [&](uint32_t key, const SchemaSet& value, uint32_t after) {
    const uint32_t read = add();
    add_space(key);
    call(after_text(key, colon.c_str()), rule_of(value), read);
    jump(read, after, counts);
  };
  uint32_t none = after_text(start, "{"), some = add();
  for (const Property& property : facts.named) {
    if (!property.is_possible) continue;
    const uint32_t key = add(), next = add(), read = add();
    std::string name;
    write_json_string({property.name.data(), property.name.size()}, false, &name);
    jump(none, key, false);
    jump(after_text(some, comma), key, false);
    automaton_.add_text(key, name, read);
    add_rest(read, property.value, next);
    add_space(next);
    const uint32_t skipped = add();
    if (!property.is_required) {
      jump(none, skipped, false);
      jump(some, next, false);
    }
    none = skipped;
    some = next;
  }
  automaton_.add_text(none, "}", end);
  automaton_.add_text(some, "}", end);
  if (facts.regions.empty()) return Code::Ok;
  const uint32_t key = add();
  jump(none, key, false);
  jump(after_text(some, comma), key, false);
  const uint32_t again = add();
  add_space(again);
  automaton_.add_text(again, "}", end);
  jump(after_text(again, comma), key, false);
  for (const Region& region : facts.regions) {
    uint32_t names = 0;
    const uint32_t read = add();
    RL_TRY(add_key(region, "the schema at " + document_.path(facts.schemas), &names));
    call(key, names, read);
    add_rest(read, region.value, again);
  }
  return Code::Ok;
}

}  // namespace rushlight::llm::grammar
