#include "rushlight/llm/grammar/schema/facts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rushlight/llm/grammar/schema/formats.h"

namespace rushlight::llm::grammar {
namespace {

constexpr size_t kMaxReading = 20;  // facts that are needed to read facts
constexpr size_t kMaxPatterns = 6;  // of properties, whose combinations are told apart
// Operations of asking what a schema says about a key that it does not name.
constexpr size_t kUnlistedCost = 32;

uint8_t type_of(const std::string& name) {
  if (name == "null") return kNull;
  if (name == "boolean") return kBoolean;
  if (name == "integer") return kInteger;
  if (name == "number") return kInteger | kFractional;
  if (name == "string") return kString;
  return name == "array" ? kArray : kObject;
}

uint64_t count_of(const JsonValue& value) {
  if (value.is_integer()) return static_cast<uint64_t>(value.integer());
  return value.number() < 1e18 ? static_cast<uint64_t>(value.number()) : kNoLimit;
}

void narrow(const JsonValue* schema, const char* low, const char* high, Limits* limits) {
  if (const JsonValue* value = schema->find(low)) {
    limits->low = std::max(limits->low, count_of(*value));
  }
  if (const JsonValue* value = schema->find(high)) {
    limits->high = std::min(limits->high, count_of(*value));
  }
}

void raise(const JsonValue* value, bool exclusive, Bound* low) {
  if (value == nullptr) return;
  const Decimal decimal = decimal_of(*value);
  const int order = low->exists ? compare(decimal, low->value) : 1;
  if (order > 0) *low = {true, exclusive, decimal};
  if (order == 0) low->is_exclusive = low->is_exclusive || exclusive;
}

void lower(const JsonValue* value, bool exclusive, Bound* high) {
  if (value == nullptr) return;
  const Decimal decimal = decimal_of(*value);
  const int order = high->exists ? compare(decimal, high->value) : -1;
  if (order < 0) *high = {true, exclusive, decimal};
  if (order == 0) high->is_exclusive = high->is_exclusive || exclusive;
}

void read_types(const JsonValue* schema, Facts* facts) {
  const JsonValue* type = schema->find("type");
  if (type == nullptr) return;
  uint8_t types = type->is_string() ? type_of(type->string()) : 0;
  for (const JsonValue& name : type->items()) types |= type_of(name.string());
  const JsonValue* nullable = schema->find("nullable");
  if (nullable != nullptr && nullable->boolean()) types |= kNull;
  facts->types &= types;
}

void read_values(const JsonValue* schema, Facts* facts) {
  for (const char* keyword : {"enum", "const"}) {
    const JsonValue* listed = schema->find(keyword);
    if (listed == nullptr) continue;
    std::vector<const JsonValue*> values;
    if (keyword[0] == 'c') {
      values.push_back(listed);
    } else {
      for (const JsonValue& value : listed->items()) values.push_back(&value);
    }
    if (facts->has_values) {
      const auto missing = [&values](const JsonValue* known) {
        return std::none_of(values.begin(), values.end(),
                            [known](const JsonValue* value) { return *value == *known; });
      };
      std::vector<const JsonValue*>& kept = facts->values;
      kept.erase(std::remove_if(kept.begin(), kept.end(), missing), kept.end());
    } else {
      facts->values = std::move(values);
      facts->has_values = true;
    }
  }
}

}  // namespace

Status FactReader::located(Status status, const SchemaSet& schemas) {
  const bool has_path = std::strncmp(message_->text(), "the schema at ", 14) == 0;
  if (status.ok() || has_path) return status;
  message_->prepend("the schema at %s: ", document_.path(schemas).c_str());
  return status;
}

Status FactReader::dfa(const std::string& pattern, Match match, DfaPointer* out) {
  DfaPointer& known = dfas_[(match == Match::Whole ? "=" : "~") + pattern];
  if (known == nullptr) {
    Result<Dfa> made = dfa_from({pattern.data(), pattern.size()}, match, budget_, message_);
    if (!made.ok()) return made.status();
    known = std::make_shared<const Dfa>(std::move(*made));
  }
  *out = known;
  return Code::Ok;
}

// Of one of `Facts::patterns`.
Status FactReader::dfa(const std::string& pattern, DfaPointer* out) {
  return dfa(pattern.substr(1), pattern[0] == '=' ? Match::Whole : Match::Anywhere, out);
}

Status FactReader::read(const SchemaSet& set, std::shared_ptr<const std::vector<Facts>>* out) {
  std::string key;
  if (!set.empty()) {
    key.assign(reinterpret_cast<const char*>(set.data()),
               set.size() * sizeof(SchemaSet::value_type));
  }
  const auto known = known_.find(key);
  if (known != known_.end()) {
    *out = known->second;
    return Code::Ok;
  }
  if (reading_ > kMaxReading) {
    return message_->fail(Code::InvalidArgument,
                          "the schema at %s: its 'propertyNames' lead to itself",
                          document_.path(set).c_str());
  }
  ++reading_;
  std::vector<SchemaSet> alternatives;
  RL_TRY(document_.alternatives(set, &alternatives));
  auto list = std::make_shared<std::vector<Facts>>();
  for (const SchemaSet& schemas : alternatives) {
    Facts facts;
    RL_TRY(located(facts_of(schemas, &facts), schemas));
    list->push_back(std::move(facts));
  }
  --reading_;
  *out = list;
  known_.emplace(std::move(key), std::move(list));
  return Code::Ok;
}

Status FactReader::facts_of(const SchemaSet& schemas, Facts* facts) {
  facts->schemas = schemas;
  for (const JsonValue* schema : schemas) RL_TRY(read_scalars(schema, facts));
  RL_TRY(read_array(schemas, facts));
  return read_object(schemas, facts);
}

Status FactReader::read_scalars(const JsonValue* schema, Facts* facts) {
  const JsonValue* listed = schema->find("enum");
  if (listed != nullptr && facts->has_values) {
    RL_TRY(budget_->take(facts->values.size() * listed->items().size(), message_));
  }
  read_types(schema, facts);
  read_values(schema, facts);
  narrow(schema, "minLength", "maxLength", &facts->length);
  narrow(schema, "minItems", "maxItems", &facts->items);
  narrow(schema, "minProperties", "maxProperties", &facts->properties);
  raise(schema->find("minimum"), false, &facts->range.low);
  raise(schema->find("exclusiveMinimum"), true, &facts->range.low);
  lower(schema->find("maximum"), false, &facts->range.high);
  lower(schema->find("exclusiveMaximum"), true, &facts->range.high);
  if (const JsonValue* unit = schema->find("multipleOf")) facts->units.push_back(decimal_of(*unit));
  if (const JsonValue* pattern = schema->find("pattern")) {
    facts->patterns.push_back("~" + pattern->string());
  }
  if (const JsonValue* format = schema->find("format")) {
    const std::string& name = format->string();
    const char* pattern = format_pattern({name.data(), name.size()});
    if (pattern == nullptr) {
      return message_->fail(Code::NotSupported, "'format' %s is not supported; %s are",
                            shown(name, 100).c_str(), format_names());
    }
    facts->patterns.push_back(std::string("=") + pattern);
  }
  return Code::Ok;
}

Status FactReader::read_array(const SchemaSet& schemas, Facts* facts) {
  for (const JsonValue* schema : schemas) {
    const JsonValue* prefix = schema->find("prefixItems");
    if (prefix != nullptr) {
      facts->prefix.resize(std::max(facts->prefix.size(), prefix->items().size()));
    }
  }
  RL_TRY(budget_->take(facts->prefix.size() * schemas.size(), message_));
  for (const JsonValue* schema : schemas) {
    const JsonValue* prefix = schema->find("prefixItems");
    const JsonValue* rest = schema->find("items");
    for (size_t i = 0; i < facts->prefix.size(); ++i) {
      const bool own = prefix != nullptr && i < prefix->items().size();
      const JsonValue* item = own ? &prefix->items()[i] : rest;
      if (item != nullptr) facts->prefix[i] = with(std::move(facts->prefix[i]), item);
    }
    if (rest != nullptr) facts->rest = with(std::move(facts->rest), rest);
  }
  return Code::Ok;
}

// What a schema says about the value of a key besides its properties: by the patterns that the key
// matches, else by additionalProperties.
Status FactReader::add_unlisted(const JsonValue* schema, const std::string& key, SchemaSet* out) {
  RL_TRY(budget_->take(kUnlistedCost, message_));
  const JsonValue* properties = schema->find("properties");
  bool is_listed = properties != nullptr && document_.member(*properties, key) != nullptr;
  if (const JsonValue* patterns = schema->find("patternProperties")) {
    for (const JsonMember& member : patterns->members()) {
      DfaPointer keys;
      RL_TRY(dfa(member.key, Match::Anywhere, &keys));
      if (!keys->matches({key.data(), key.size()})) continue;
      *out = with(std::move(*out), &member.value);
      is_listed = true;
    }
  }
  const JsonValue* additional = schema->find("additionalProperties");
  if (!is_listed && additional != nullptr) *out = with(std::move(*out), additional);
  return Code::Ok;
}

Status FactReader::read_object(const SchemaSet& schemas, Facts* facts) {
  std::unordered_map<std::string, size_t> places;
  const auto add = [&](const std::string& key) -> Property& {
    const auto place = places.emplace(key, facts->named.size());
    if (place.second) {
      facts->named.emplace_back();
      facts->named.back().name = key;
    }
    return facts->named[place.first->second];
  };
  SchemaSet names, for_unlisted;
  for (const JsonValue* schema : schemas) {
    if (const JsonValue* properties = schema->find("properties")) {
      RL_TRY(budget_->take(properties->members().size(), message_));
      for (const JsonMember& member : properties->members()) {
        SchemaSet& value = add(member.key).value;
        value = with(std::move(value), &member.value);
      }
    }
    if (schema->find("patternProperties") != nullptr ||
        schema->find("additionalProperties") != nullptr) {
      for_unlisted.push_back(schema);
    }
    const JsonValue* of_names = schema->find("propertyNames");
    if (of_names != nullptr) names = with(std::move(names), of_names);
  }
  for (const JsonValue* schema : schemas) {
    const JsonValue* required = schema->find("required");
    if (required == nullptr) continue;
    for (const JsonValue& name : required->items()) add(name.string()).is_required = true;
  }
  for (Property& property : facts->named) {
    for (const JsonValue* schema : for_unlisted) {
      RL_TRY(add_unlisted(schema, property.name, &property.value));
    }
  }
  if ((facts->types & kObject) == 0) return Code::Ok;
  RL_TRY(read_regions(schemas, facts));
  return names.empty() ? Code::Ok : narrow_names(names, facts);
}

// Keys that are not named, by the patterns that they match.
Status FactReader::read_regions(const SchemaSet& schemas, Facts* facts) {
  Regex named;
  std::vector<uint32_t> texts;
  texts.reserve(facts->named.size());
  for (const Property& property : facts->named) {
    texts.push_back(named.add_text({property.name.data(), property.name.size()}));
  }
  named.add_repeat(named.add_list(RegexNode::Kind::Choice, std::move(texts)), 1, 1);
  Result<Dfa> taken = dfa_from(named, Match::Whole, budget_, message_);
  if (!taken.ok()) return taken.status();
  std::vector<std::string> patterns;
  for (const JsonValue* schema : schemas) {
    const JsonValue* listed = schema->find("patternProperties");
    if (listed == nullptr) continue;
    for (const JsonMember& member : listed->members()) {
      if (std::find(patterns.begin(), patterns.end(), member.key) == patterns.end()) {
        patterns.push_back(member.key);
      }
    }
  }
  if (patterns.size() > kMaxPatterns) {
    return message_->fail(Code::NotSupported, "more than %zu patterns in 'patternProperties'",
                          kMaxPatterns);
  }
  for (size_t chosen = 0; chosen < (size_t{1} << patterns.size()); ++chosen) {
    SchemaSet value;
    for (const JsonValue* schema : schemas) {
      const JsonValue* listed = schema->find("patternProperties");
      bool is_listed = false;
      for (size_t i = 0; listed != nullptr && i < patterns.size(); ++i) {
        const JsonValue* own = listed->find({patterns[i].data(), patterns[i].size()});
        if (own == nullptr || (chosen >> i & 1) == 0) continue;
        value = with(std::move(value), own);
        is_listed = true;
      }
      const JsonValue* additional = schema->find("additionalProperties");
      if (!is_listed && additional != nullptr) value = with(std::move(value), additional);
    }
    const auto is_false = [](const JsonValue* s) { return s->is_boolean() && !s->boolean(); };
    if (std::any_of(value.begin(), value.end(), is_false)) continue;
    Result<Dfa> keys = combine(any_text(), *taken, Combine::Without, budget_, message_);
    for (size_t i = 0; keys.ok() && i < patterns.size(); ++i) {
      DfaPointer match;
      RL_TRY(dfa(patterns[i], Match::Anywhere, &match));
      const bool in = (chosen >> i & 1) != 0;
      keys = combine(*keys, *match, in ? Combine::And : Combine::Without, budget_, message_);
    }
    if (!keys.ok()) return keys.status();
    if (keys->is_empty()) continue;
    facts->regions.push_back({std::make_shared<const Dfa>(std::move(*keys)), std::move(value)});
  }
  return Code::Ok;
}

Status FactReader::narrow_names(const SchemaSet& names, Facts* facts) {
  for (Property& property : facts->named) {
    RL_TRY(accepts(names, JsonValue(property.name), &property.is_possible));
  }
  DfaPointer keys;
  RL_TRY(key_strings(names, &keys));
  std::vector<Region> kept;
  for (const Region& region : facts->regions) {
    Result<Dfa> narrowed = combine(*region.keys, *keys, Combine::And, budget_, message_);
    if (!narrowed.ok()) return narrowed.status();
    if (narrowed->is_empty()) continue;
    kept.push_back({std::make_shared<const Dfa>(std::move(*narrowed)), region.value});
  }
  facts->regions = std::move(kept);
  return Code::Ok;
}

// The strings that satisfy a set.
Status FactReader::key_strings(const SchemaSet& set, DfaPointer* out) {
  std::shared_ptr<const std::vector<Facts>> list;
  RL_TRY(read(set, &list));
  Result<Dfa> all = combine(any_text(), any_text(), Combine::Without, budget_, message_);
  for (const Facts& facts : *list) {
    if ((facts.types & kString) == 0 || !all.ok()) continue;
    DfaPointer strings_of;
    RL_TRY(strings(facts, true, &strings_of));
    all = combine(*all, *strings_of, Combine::Or, budget_, message_);
  }
  if (!all.ok()) return all.status();
  *out = std::make_shared<const Dfa>(std::move(*all));
  return Code::Ok;
}

Status FactReader::strings(const Facts& facts, bool with_lengths, DfaPointer* out) {
  Result<Dfa> all = any_text();
  if (facts.has_values) {
    Regex listed;
    std::vector<uint32_t> texts;
    for (const JsonValue* value : facts.values) {
      if (!value->is_string()) continue;
      texts.push_back(listed.add_text({value->string().data(), value->string().size()}));
    }
    listed.add_repeat(listed.add_list(RegexNode::Kind::Choice, std::move(texts)), 1, 1);
    all = dfa_from(listed, Match::Whole, budget_, message_);
  }
  for (const std::string& pattern : facts.patterns) {
    DfaPointer one;
    RL_TRY(dfa(pattern, &one));
    const bool is_first = !facts.has_values && &pattern == &facts.patterns.front();
    if (is_first) {
      all = Result<Dfa>(*one);
    } else if (all.ok()) {
      all = combine(*all, *one, Combine::And, budget_, message_);
    }
  }
  const bool bounded = facts.length.low > 0 || facts.length.high != kNoLimit;
  if (all.ok() && with_lengths && bounded) {
    all = with_length(*all, facts.length.low, facts.length.high, budget_, message_);
  }
  if (!all.ok()) return all.status();
  *out = std::make_shared<const Dfa>(std::move(*all));
  return Code::Ok;
}

Status FactReader::numbers(const Facts& facts, DfaPointer* out) {
  const bool integers = (facts.types & kFractional) == 0;
  Result<Dfa> all = numbers_within(facts.range, integers, budget_, message_);
  for (const Decimal& unit : facts.units) {
    const Result<Dfa> multiples = multiples_of(unit, budget_, message_);
    if (!multiples.ok()) return multiples.status();
    if (all.ok()) all = combine(*all, multiples.value(), Combine::And, budget_, message_);
  }
  if (!all.ok()) return all.status();
  *out = std::make_shared<const Dfa>(std::move(*all));
  return Code::Ok;
}

}  // namespace rushlight::llm::grammar
