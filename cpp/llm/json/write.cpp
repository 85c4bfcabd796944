#include "rushlight/llm/json/write.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "rushlight/llm/json/number.h"
#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {
namespace {

void escape_unit(uint32_t unit, std::string* out) {
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", unit);
  out->append(text);
}

void escape_code(uint32_t code, std::string* out) {
  if (code < 0x10000) return escape_unit(code, out);
  escape_unit(0xD800 + ((code - 0x10000) >> 10), out);
  escape_unit(0xDC00 + ((code - 0x10000) & 0x3FF), out);
}

void escape_control(char c, std::string* out) {
  constexpr const char* kMeanings = "\"\\\b\f\n\r\t";
  constexpr const char* kNames = "\"\\bfnrt";
  for (size_t i = 0; kMeanings[i] != '\0'; ++i) {
    if (c != kMeanings[i]) continue;
    out->push_back('\\');
    out->push_back(kNames[i]);
    return;
  }
  escape_unit(static_cast<unsigned char>(c), out);
}

class Writer {
 public:
  Writer(const JsonStyle& style, std::string* out) : style_(style), out_(out) {}

  void any(const JsonValue& value) {
    switch (value.kind()) {
      case JsonValue::Kind::Null:
        out_->append("null");
        break;
      case JsonValue::Kind::Boolean:
        out_->append(value.boolean() ? "true" : "false");
        break;
      case JsonValue::Kind::Integer:
        out_->append(std::to_string(value.integer()));
        break;
      case JsonValue::Kind::Number:
        number(value);
        break;
      case JsonValue::Kind::String:
        write_json_string({value.string().data(), value.string().size()}, style_.ascii, out_);
        break;
      case JsonValue::Kind::Array:
        array(value.items());
        break;
      case JsonValue::Kind::Object:
        object(value.members());
        break;
    }
  }

 private:
  void number(const JsonValue& value) {
    if (!value.digits().empty()) {
      out_->append(value.digits());
    } else if (std::isnan(value.number())) {
      out_->append("NaN");
    } else if (std::isinf(value.number())) {
      out_->append(value.number() < 0 ? "-Infinity" : "Infinity");
    } else {
      out_->append(write_double(value.number()));
    }
  }

  void line() {
    if (!style_.has_lines) return;
    out_->push_back('\n');
    for (size_t i = 0; i < depth_; ++i) out_->append(style_.indent);
  }

  void array(const std::vector<JsonValue>& items) {
    out_->push_back('[');
    ++depth_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_->append(style_.item_separator);
      line();
      any(items[i]);
    }
    close(items.empty(), ']');
  }

  void object(const std::vector<JsonMember>& members) {
    std::vector<const JsonMember*> order;
    order.reserve(members.size());
    for (const JsonMember& member : members) order.push_back(&member);
    if (style_.sorts_keys) {
      std::sort(order.begin(), order.end(),
                [](const JsonMember* a, const JsonMember* b) { return a->key < b->key; });
    }
    out_->push_back('{');
    ++depth_;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i != 0) out_->append(style_.item_separator);
      line();
      write_json_string({order[i]->key.data(), order[i]->key.size()}, style_.ascii, out_);
      out_->append(style_.key_separator);
      any(order[i]->value);
    }
    close(order.empty(), '}');
  }

  void close(bool empty, char bracket) {
    --depth_;
    if (!empty) line();
    out_->push_back(bracket);
  }

  const JsonStyle& style_;
  std::string* out_;
  size_t depth_ = 0;
};

}  // namespace

JsonStyle JsonStyle::compact() {
  JsonStyle style;
  style.item_separator = ",";
  style.key_separator = ":";
  return style;
}

JsonStyle JsonStyle::indented(std::string indent) {
  JsonStyle style;
  style.item_separator = ",";
  style.indent = std::move(indent);
  style.has_lines = true;
  return style;
}

void write_json_string(StringView text, bool ascii, std::string* out) {
  out->push_back('"');
  size_t at = 0;
  while (at < text.size()) {
    const size_t start = at;
    const auto is_plain = [&](char c) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x7F) return !ascii;
      return byte >= 0x20 && c != '"' && c != '\\';
    };
    while (at < text.size() && is_plain(text.data()[at])) ++at;
    out->append(text.data() + start, at - start);
    if (at == text.size()) break;
    if (static_cast<unsigned char>(text.data()[at]) < 0x80) {
      escape_control(text.data()[at], out);
      ++at;
      continue;
    }
    const Character character = read_utf8(text.data() + at, text.size() - at);
    escape_code(character.code, out);
    at += character.bytes;
  }
  out->push_back('"');
}

std::string write_json(const JsonValue& value, const JsonStyle& style) {
  std::string out;
  Writer(style, &out).any(value);
  return out;
}

}  // namespace rushlight::llm
