// A JSON document in memory, as requests, schemas, tools and the replies of models need it: objects
// keep the order of their keys, as Python's dictionaries do, and integers are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rushlight/core/span.h"

namespace rushlight::llm {

struct JsonMember;

class JsonValue {
 public:
  // Number is what is written with a fraction or an exponent, and an integer beyond 64 bits.
  enum class Kind : uint8_t { Null, Boolean, Integer, Number, String, Array, Object };

  JsonValue() = default;
  JsonValue(bool boolean) : kind_(Kind::Boolean), integer_(boolean ? 1 : 0) {}
  JsonValue(int64_t integer) : kind_(Kind::Integer), integer_(integer) {}
  JsonValue(int integer) : JsonValue(int64_t{integer}) {}
  JsonValue(double number) : kind_(Kind::Number), number_(number) {}
  JsonValue(std::string text) : kind_(Kind::String), text_(std::move(text)) {}
  JsonValue(StringView text) : JsonValue(std::string(text.data(), text.size())) {}
  JsonValue(const char* text) : JsonValue(std::string(text)) {}
  static JsonValue array(std::vector<JsonValue> items = {});
  static JsonValue object(std::vector<JsonMember> members = {});
  // An integer beyond 64 bits: a Number near it that is written with these digits.
  static JsonValue big_integer(std::string digits);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::Null; }
  bool is_boolean() const { return kind_ == Kind::Boolean; }
  bool is_integer() const { return kind_ == Kind::Integer; }
  bool is_number() const { return kind_ == Kind::Number || is_integer(); }
  bool is_string() const { return kind_ == Kind::String; }
  bool is_array() const { return kind_ == Kind::Array; }
  bool is_object() const { return kind_ == Kind::Object; }

  // What the value holds; zero or empty if it is of another kind.
  bool boolean() const { return is_boolean() && integer_ != 0; }
  int64_t integer() const { return is_integer() ? integer_ : 0; }
  double number() const { return is_integer() ? static_cast<double>(integer_) : number_; }
  const std::string& string() const { return is_string() ? text_ : empty_text(); }
  const std::string& digits() const { return is_number() ? text_ : empty_text(); }
  const std::vector<JsonValue>& items() const { return items_; }
  const std::vector<JsonMember>& members() const { return members_; }

  // The member of this name; null if there is none, or if this is no object.
  const JsonValue* find(StringView key) const;
  // Replaces the member of this name, or adds one at the end. The value becomes an object.
  void set(StringView key, JsonValue value);
  // The value becomes an array.
  void append(JsonValue value);

 private:
  static const std::string& empty_text();

  Kind kind_ = Kind::Null;
  union {
    int64_t integer_;
    double number_ = 0;
  };
  std::string text_;  // of a string; the digits of an integer beyond 64 bits
  std::vector<JsonValue> items_;
  std::vector<JsonMember> members_;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

// As Python compares them: the order of members does not matter, and 1 equals 1.0.
bool operator==(const JsonValue& a, const JsonValue& b);
inline bool operator!=(const JsonValue& a, const JsonValue& b) { return !(a == b); }

// "null", "a boolean", "an integer", "a number", "a string", "an array" or "an object", for errors.
const char* kind_name(JsonValue::Kind kind);

}  // namespace rushlight::llm
