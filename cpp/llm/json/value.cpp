#include "rushlight/llm/json/value.h"

#include "rushlight/llm/json/number.h"

namespace rushlight::llm {

JsonValue JsonValue::array(std::vector<JsonValue> items) {
  JsonValue value;
  value.kind_ = Kind::Array;
  value.items_ = std::move(items);
  return value;
}

JsonValue JsonValue::object(std::vector<JsonMember> members) {
  JsonValue value;
  value.kind_ = Kind::Object;
  value.members_ = std::move(members);
  return value;
}

JsonValue JsonValue::big_integer(std::string digits) {
  JsonValue value(read_double(digits));
  value.text_ = std::move(digits);
  return value;
}

const std::string& JsonValue::empty_text() {
  static const std::string empty;
  return empty;
}

const JsonValue* JsonValue::find(StringView key) const {
  for (const JsonMember& member : members_) {
    if (key == StringView(member.key.data(), member.key.size())) return &member.value;
  }
  return nullptr;
}

void JsonValue::set(StringView key, JsonValue value) {
  if (!is_object()) *this = object();
  for (JsonMember& member : members_) {
    if (key != StringView(member.key.data(), member.key.size())) continue;
    member.value = std::move(value);
    return;
  }
  members_.push_back({std::string(key.data(), key.size()), std::move(value)});
}

void JsonValue::append(JsonValue value) {
  if (!is_array()) *this = array();
  items_.push_back(std::move(value));
}

namespace {

bool numbers_equal(const JsonValue& a, const JsonValue& b) {
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  if (!a.digits().empty() && !b.digits().empty()) return a.digits() == b.digits();
  return a.number() == b.number();
}

bool objects_equal(const JsonValue& a, const JsonValue& b) {
  if (a.members().size() != b.members().size()) return false;
  for (const JsonMember& member : a.members()) {
    const JsonValue* other = b.find({member.key.data(), member.key.size()});
    if (other == nullptr || member.value != *other) return false;
  }
  return true;
}

}  // namespace

bool operator==(const JsonValue& a, const JsonValue& b) {
  if (a.is_number() && b.is_number()) return numbers_equal(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case JsonValue::Kind::Boolean:
      return a.boolean() == b.boolean();
    case JsonValue::Kind::String:
      return a.string() == b.string();
    case JsonValue::Kind::Array:
      return a.items() == b.items();
    case JsonValue::Kind::Object:
      return objects_equal(a, b);
    default:
      return true;
  }
}

const char* kind_name(JsonValue::Kind kind) {
  constexpr const char* kNames[] = {"null",     "a boolean", "an integer", "a number",
                                    "a string", "an array",  "an object"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace rushlight::llm
