// Writes JSON as Python's json.dumps does, byte for byte.
#pragma once

#include <string>

#include "rushlight/core/span.h"
#include "rushlight/llm/json/value.h"

namespace rushlight::llm {

struct JsonStyle {
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  std::string indent;  // of one level, where each item has a line of its own
  bool has_lines = false;
  bool ascii = false;  // other characters as \u escapes
  bool sorts_keys = false;

  // Without any white space.
  static JsonStyle compact();
  // As json.dumps(indent=…) does: lines do not end in a space.
  static JsonStyle indented(std::string indent);
};

std::string write_json(const JsonValue& value, const JsonStyle& style = {});

// Appends `text` in quotation marks.
void write_json_string(StringView text, bool ascii, std::string* out);

}  // namespace rushlight::llm
