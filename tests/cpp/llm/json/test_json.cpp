// The JSON reader and writer: values, order, numbers, escapes, styles, limits and errors; and that
// texts with random changes are refused or read back as they were written. Python's json is the
// oracle in tests/python/llm/template.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/llm/json/number.h"
#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/json/write.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::llm;

namespace {

StringView view(const std::string& text) { return {text.data(), text.size()}; }

JsonValue read(const std::string& text) {
  Message message;
  Result<JsonValue> value = parse_json(view(text), &message);
  if (!value.ok()) std::fprintf(stderr, "%s: %s\n", text.c_str(), message.text());
  CHECK(value.ok());
  return value.ok() ? *value : JsonValue();
}

void refuses(const std::string& text, const char* part, const JsonLimits& limits = {}) {
  Message message;
  const bool ok = parse_json(view(text), &message, limits).ok();
  const bool says = std::strstr(message.text(), part) != nullptr;
  if (ok || !says) std::fprintf(stderr, "%s: %s\n", text.c_str(), message.text());
  CHECK(!ok && says);
}

void test_values() {
  const JsonValue value = read(" {\"b\": [1, -0.5, true, null], \"a\": {}, \"b2\": \"x\"}\n");
  CHECK(value.is_object() && value.members().size() == 3);
  CHECK(value.members()[0].key == "b" && value.members()[1].key == "a");
  const JsonValue* items = value.find("b");
  CHECK(items != nullptr && items->items().size() == 4);
  CHECK(items->items()[0].integer() == 1 && items->items()[1].number() == -0.5);
  CHECK(items->items()[2].boolean() && items->items()[3].is_null());
  CHECK(value.find("c") == nullptr && items->find("b") == nullptr);
  CHECK(write_json(read("{\"a\": 1, \"b\": 2, \"a\": 3}")) == "{\"a\": 3, \"b\": 2}");
  CHECK(read("[1, {\"a\": 1.0, \"b\": 2}]") == read("[1.0, {\"b\": 2, \"a\": 1}]"));
  CHECK(read("[1]") != read("[true]") && read("{\"a\": 1}") != read("{\"b\": 1}"));
}

void test_numbers() {
  CHECK(read("9223372036854775807").integer() == INT64_MAX);
  CHECK(read("-9223372036854775808").integer() == INT64_MIN);
  const JsonValue big = read("18446744073709551615");
  CHECK(big.kind() == JsonValue::Kind::Number && big.number() == 18446744073709551615.0);
  CHECK(write_json(big) == "18446744073709551615");
  CHECK(std::isinf(read("1e999").number()) && read("1e-999").number() == 0);
  CHECK(write_json(read("[1.0, 1e16, 123456789012345680, 1e-5, 0.0001, -0.0, 2.5E+3, 1e22]")) ==
        "[1.0, 1e+16, 123456789012345680, 1e-05, 0.0001, -0.0, 2500.0, 1e+22]");
  CHECK(write_double(0.1 + 0.2) == "0.30000000000000004" && write_double(5e-324) == "5e-324");
  CHECK(write_double(NAN) == "nan" && write_double(-INFINITY) == "-inf");
}

void test_strings() {
  CHECK(read("\"\\u00e9\\ud83d\\ude00\\n\\/\"").string() == "\xC3\xA9\xF0\x9F\x98\x80\n/");
  JsonStyle ascii;
  ascii.ascii = true;
  const JsonValue text("\xC3\xA9\xF0\x9F\x98\x80\x7F\x01\"\\\t");
  CHECK(write_json(text, ascii) == "\"\\u00e9\\ud83d\\ude00\\u007f\\u0001\\\"\\\\\\t\"");
  CHECK(write_json(text) == "\"\xC3\xA9\xF0\x9F\x98\x80\x7F\\u0001\\\"\\\\\\t\"");
}

void test_styles() {
  const JsonValue value = read("{\"b\":[1,{}],\"a\":[]}");
  CHECK(write_json(value) == "{\"b\": [1, {}], \"a\": []}");
  CHECK(write_json(value, JsonStyle::compact()) == "{\"b\":[1,{}],\"a\":[]}");
  JsonStyle lines = JsonStyle::indented("  ");
  CHECK(write_json(value, lines) == "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": []\n}");
  lines.sorts_keys = true;
  CHECK(write_json(value, lines) == "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {}\n  ]\n}");
}

void test_errors() {
  refuses("", "line 1, column 1: expected a value, got the end of the text");
  refuses("[1,\n 2 3]", "line 2, column 4: expected ',' or ']' after an item of an array, got '3'");
  refuses("{\"a\" 1}", "expected ':'");
  refuses("{\"a\": 1,}", "expected the name of a member");
  refuses("[1,]", "expected a value, got ']'");
  refuses("01", "leading 0");
  refuses("-", "expected a digit");
  refuses("1.", "expected a digit after '.'");
  refuses("1e+", "exponent");
  refuses("NaN", "expected a value");
  refuses("nul", "expected a value");
  refuses("1 2", "expected the end of the text");
  refuses("\"\n\"", "control character");
  refuses("\"a", "at the end of a string");
  refuses("\"\\x\"", "after '\\'");
  refuses("\"\\u12g4\"", "four hexadecimal digits");
  refuses("\"\\ud800\"", "second half of a surrogate pair");
  refuses("\"\\ud800\\u0041\"", "second half of a surrogate pair");
  refuses("\"\\udc00\"", "first half of a surrogate pair");
  refuses("\"\xC3\"", "valid UTF-8");
  refuses(std::string("\"\0\"", 3), "control character");
  refuses(std::string(100000, '['), "nests deeper than 128");
  JsonLimits limits;
  limits.bytes = 4;
  refuses("[1,2]", "at most 4", limits);
  limits = {};
  limits.values = 3;
  refuses("[1,2,3]", "more than 3 values", limits);
  CHECK(read(std::string(128, '[') + std::string(128, ']')).is_array());
}

// Whatever is accepted is written and read back as the same, in every style.
void test_damaged_texts() {
  const std::vector<std::string> seeds = {
      "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"\\ud83d\\ude00 "
      "\xC3\xA9\"}]}",
      "[1, -2.5e-3, 1e400, 123456789012345678901234567890, true, false, null, \"\\\\\"]",
      "{\"a\": {\"b\": {\"c\": [[[[]]], {}]}}, \"a\": 1, \"\\u0000\": \"\\u001f\"}"};
  std::mt19937 random(test::seed_for(1));
  size_t accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (unsigned i = 0, n = 1 + random() % 3; i < n && !text.empty(); ++i) {
      const size_t at = random() % text.size();
      const unsigned way = random() % 4;
      if (way == 0) text.erase(at, 1 + random() % 4);
      if (way == 1) text[at] = static_cast<char>(random());
      if (way == 2) text.insert(at, 1, "{}[]\",:\\u0e-1"[random() % 13]);
      if (way == 3) text.insert(at, text.substr(random() % text.size(), random() % 12));
    }
    Message message;
    Result<JsonValue> value = parse_json(view(text), &message);
    CHECK(value.ok() == message.empty());
    if (!value.ok()) continue;
    ++accepted;
    JsonStyle ascii = JsonStyle::indented(" ");
    ascii.ascii = true;
    for (const JsonStyle& style : {JsonStyle(), JsonStyle::compact(), ascii}) {
      const std::string first = write_json(*value, style);
      if (first.find("Infinity") != std::string::npos) continue;  // as Python, not JSON
      const JsonValue again = read(first);
      CHECK(again == *value && write_json(again, style) == first);
    }
  }
  CHECK(accepted > 1000);
}

}  // namespace

int main() {
  test_values();
  test_numbers();
  test_strings();
  test_styles();
  test_errors();
  test_damaged_texts();
  return test::check_result();
}
