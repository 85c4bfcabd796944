// Values held against facts, for the values of `enum`; and facts against each other, for `oneOf`.
#include <algorithm>
#include <string>

#include "rushlight/llm/grammar/schema/facts.h"
#include "rushlight/llm/json/write.h"
#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm::grammar {
namespace {

constexpr int kMaxNesting = 4;       // of objects in each other that are compared
constexpr size_t kMaxWork = 100000;  // comparisons

uint8_t type_of(const JsonValue& value) {
  switch (value.kind()) {
    case JsonValue::Kind::Null:
      return kNull;
    case JsonValue::Kind::Boolean:
      return kBoolean;
    case JsonValue::Kind::Integer:
      return kInteger;
    case JsonValue::Kind::Number:
      return decimal_of(value).fraction.empty() ? kInteger : kFractional;
    case JsonValue::Kind::String:
      return kString;
    case JsonValue::Kind::Array:
      return kArray;
    case JsonValue::Kind::Object:
      return kObject;
  }
  return 0;
}

bool within(size_t count, const Limits& limits) {
  return count >= limits.low && count <= limits.high;
}

bool apart(const Limits& a, const Limits& b) {
  return std::max(a.low, b.low) > std::min(a.high, b.high);
}

// Whether no number is in both ranges.
bool apart(const NumberRange& a, const NumberRange& b) {
  for (const auto& [low, high] :
       {std::make_pair(&a.low, &b.high), std::make_pair(&b.low, &a.high)}) {
    if (!low->exists || !high->exists) continue;
    const int order = compare(low->value, high->value);
    if (order > 0 || (order == 0 && (low->is_exclusive || high->is_exclusive))) return true;
  }
  return false;
}

const Property* named(const Facts& facts, const std::string& name) {
  for (const Property& property : facts.named) {
    if (property.name == name) return &property;
  }
  return nullptr;
}

bool has_key(const Facts& facts, const std::string& name) {
  const Property* property = named(facts, name);
  if (property != nullptr) return property->is_possible;
  return std::any_of(facts.regions.begin(), facts.regions.end(), [&name](const Region& region) {
    return region.keys->matches({name.data(), name.size()});
  });
}

}  // namespace

Status FactReader::accepts(const SchemaSet& set, const JsonValue& value, bool* out) {
  std::shared_ptr<const std::vector<Facts>> list;
  RL_TRY(read(set, &list));
  *out = false;
  for (const Facts& facts : *list) {
    if (!*out) RL_TRY(accepts(facts, value, out));
  }
  return Code::Ok;
}

Status FactReader::accepts(const Facts& facts, const JsonValue& value, bool* out) {
  RL_TRY(budget_->take(1 + facts.values.size(), message_));
  *out = false;
  const auto same = [&value](const JsonValue* other) { return *other == value; };
  if (facts.has_values && std::none_of(facts.values.begin(), facts.values.end(), same)) {
    return Code::Ok;
  }
  return accepts_listed(facts, value, out);
}

Status FactReader::accepts_listed(const Facts& facts, const JsonValue& value, bool* out) {
  RL_TRY(budget_->take(1, message_));
  *out = false;
  const uint8_t type = type_of(value);
  if ((facts.types & type) == 0) return Code::Ok;
  if (type == kArray) return accepts_array(facts, value, out);
  if (type == kObject) return accepts_object(facts, value, out);
  if (type == kString) {
    size_t characters = 0;
    const std::string& text = value.string();
    for (size_t at = 0; at < text.size(); ++characters) {
      at += read_utf8(text.data() + at, text.size() - at).bytes;
    }
    *out = within(characters, facts.length);
    for (const std::string& pattern : facts.patterns) {
      DfaPointer texts;
      RL_TRY(dfa(pattern, &texts));
      *out = *out && texts->matches({text.data(), text.size()});
    }
  } else if ((type & (kInteger | kFractional)) != 0) {
    const Bound own = {true, false, decimal_of(value)};
    *out = !apart(facts.range, NumberRange{own, own});
    for (const Decimal& unit : facts.units) {
      const Result<Dfa> multiples = multiples_of(unit, budget_, message_);
      if (!multiples.ok()) return multiples.status();
      const Decimal& n = own.value;
      const std::string text = n.whole + (n.fraction.empty() ? "" : ".") + n.fraction;
      *out = *out && multiples.value().matches({text.data(), text.size()});
    }
  } else {
    *out = true;
  }
  return Code::Ok;
}

Status FactReader::accepts_array(const Facts& facts, const JsonValue& value, bool* out) {
  *out = within(value.items().size(), facts.items);
  for (size_t i = 0; *out && i < value.items().size(); ++i) {
    const bool own = i < facts.prefix.size();
    RL_TRY(accepts(own ? facts.prefix[i] : facts.rest, value.items()[i], out));
  }
  return Code::Ok;
}

Status FactReader::accepts_object(const Facts& facts, const JsonValue& value, bool* out) {
  RL_TRY(budget_->take(value.members().size() * (1 + facts.named.size()), message_));
  *out = within(value.members().size(), facts.properties);
  for (const Property& property : facts.named) {
    const bool is_there = value.find({property.name.data(), property.name.size()}) != nullptr;
    *out = *out && (is_there ? property.is_possible : !property.is_required);
  }
  for (const JsonMember& member : value.members()) {
    if (!*out) return Code::Ok;
    *out = false;
    const Property* property = named(facts, member.key);
    if (property != nullptr) RL_TRY(accepts(property->value, member.value, out));
    for (const Region& region : facts.regions) {
      if (property != nullptr || !region.keys->matches({member.key.data(), member.key.size()}))
        continue;
      RL_TRY(accepts(region.value, member.value, out));
    }
  }
  return Code::Ok;
}

Status FactReader::exclude(const Facts& a, const Facts& b, int nesting, bool* out) {
  if (++work_ > kMaxWork) {
    *out = false;
    return Code::Ok;
  }
  *out = true;
  if (a.has_values || b.has_values) {
    const Facts& listed = a.has_values ? a : b;
    for (const JsonValue* value : listed.values) {
      bool in_a = false, in_b = false;
      RL_TRY(accepts(a, *value, &in_a));
      if (in_a) RL_TRY(accepts(b, *value, &in_b));
      *out = *out && !in_b;
    }
    return Code::Ok;
  }
  const auto both = static_cast<uint8_t>(a.types & b.types);
  if ((both & (kNull | kBoolean)) != 0) *out = false;
  if ((both & (kInteger | kFractional)) != 0) *out = *out && apart(a.range, b.range);
  if ((both & kArray) != 0) *out = *out && apart(a.items, b.items);
  if (*out && (both & kString) != 0) {
    DfaPointer in_a, in_b;
    RL_TRY(strings(a, false, &in_a));
    RL_TRY(strings(b, false, &in_b));
    const Result<Dfa> common = combine(*in_a, *in_b, Combine::And, budget_, message_);
    if (!common.ok()) return common.status();
    *out = apart(a.length, b.length) || common.value().is_empty();
  }
  if (*out && (both & kObject) != 0) RL_TRY(exclude_objects(a, b, nesting, out));
  return Code::Ok;
}

Status FactReader::exclude_sets(const SchemaSet& a, const SchemaSet& b, int nesting, bool* out) {
  std::shared_ptr<const std::vector<Facts>> in_a, in_b;
  RL_TRY(read(a, &in_a));
  RL_TRY(read(b, &in_b));
  *out = true;
  for (const Facts& one : *in_a) {
    for (const Facts& other : *in_b) {
      if (*out) RL_TRY(exclude(one, other, nesting, out));
    }
  }
  return Code::Ok;
}

// Objects cannot be the same where one must have a property that the other cannot have, or both
// must have one whose values exclude each other.
Status FactReader::exclude_objects(const Facts& a, const Facts& b, int nesting, bool* out) {
  RL_TRY(budget_->take(a.named.size() * b.named.size(), message_));
  *out = apart(a.properties, b.properties);
  for (const auto& [one, other] : {std::make_pair(&a, &b), std::make_pair(&b, &a)}) {
    for (const Property& property : one->named) {
      if (*out || !property.is_required) continue;
      const Property* same = named(*other, property.name);
      *out = !has_key(*other, property.name);
      if (*out || same == nullptr || !same->is_required || nesting >= kMaxNesting) continue;
      RL_TRY(exclude_sets(property.value, same->value, nesting + 1, out));
    }
  }
  return Code::Ok;
}

Status FactReader::check_one_ofs() {
  for (const JsonValue* schema : document_.one_ofs()) {
    const std::vector<JsonValue>& branches = schema->find("oneOf")->items();
    for (size_t i = 0; i < branches.size(); ++i) {
      for (size_t j = i + 1; j < branches.size(); ++j) {
        bool apart_from = false;
        RL_TRY(exclude_sets({&branches[i]}, {&branches[j]}, 0, &apart_from));
        if (apart_from) continue;
        return message_->fail(
            Code::NotSupported,
            "the schema at %s: a value may satisfy both 'oneOf/%zu' and 'oneOf/%zu', which is "
            "not supported: use 'anyOf', or give each a required property with a constant",
            document_.path(schema).c_str(), i, j);
      }
    }
  }
  return Code::Ok;
}

}  // namespace rushlight::llm::grammar
