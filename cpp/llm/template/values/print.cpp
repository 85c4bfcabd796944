#include "rushlight/llm/template/values/print.h"

#include <cstdio>
#include <utility>

#include "rushlight/llm/json/number.h"
#include "rushlight/llm/template/values/characters.h"

namespace rushlight::llm {
namespace {

// A character in a Python literal between these quotation marks.
void append_quoted(uint32_t code, StringView bytes, char quote, std::string* out) {
  if (code == '\\' || code == static_cast<unsigned char>(quote)) {
    out->push_back('\\');
    out->push_back(static_cast<char>(code));
  } else if (code == '\n' || code == '\r' || code == '\t') {
    out->append(code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
  } else if ((character_flags(code) & kPrintable) != 0) {
    out->append(bytes.data(), bytes.size());
  } else {
    char escape[16];
    const char* format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
    std::snprintf(escape, sizeof escape, format, code);
    out->append(escape);
  }
}

// Writes Python's repr of nested values.
class Printer {
 public:
  Printer(RunContext& run, Text* out) : run_(run), out_(out) {}

  Status any(const Value& value) {
    switch (value.kind()) {
      case Kind::String:
        return run_.append(value.text().made(quoted(value.text().view())), out_);
      case Kind::List:
        return items(value, "[", "]");
      case Kind::Tuple:
        return items(value, "(", value.items().size() == 1 ? ",)" : ")");
      case Kind::View: {
        RL_TRY(run_.append(value.as<ListObject>().view, out_));
        return items(value, "([", "])");
      }
      case Kind::Dict:
        return dict(value.as<DictObject>());
      case Kind::Missing:
      case Kind::Undefined:
        return run_.append("Undefined", out_);
      default:
        break;
    }
    if (!value.is_number() && !value.is(Kind::None)) {
      return run_.fail("a %s cannot be printed%s", type_name(value),
                       value.is(Kind::Iterator) || value.is(Kind::Range)
                           ? ": make it a list with the filter 'list'"
                           : "");
    }
    Text text;
    RL_TRY(to_text(run_, value, &text));
    return run_.append(text, out_);
  }

 private:
  Status items(const Value& value, const char* open, const char* close) {
    RL_TRY(run_.append(open, out_));
    for (size_t i = 0; i < value.items().size(); ++i) {
      if (i != 0) RL_TRY(run_.append(", ", out_));
      RL_TRY(any(value.items()[i]));
    }
    return run_.append(close, out_);
  }

  Status dict(const DictObject& dict) {
    RL_TRY(run_.append("{", out_));
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      if (i != 0) RL_TRY(run_.append(", ", out_));
      RL_TRY(any(dict.entries[i].first));
      RL_TRY(run_.append(": ", out_));
      RL_TRY(any(dict.entries[i].second));
    }
    return run_.append("}", out_);
  }

  RunContext& run_;
  Text* out_;
};

class JsonMaker {
 public:
  JsonMaker(RunContext& run, bool* has_data) : run_(run), has_data_(has_data) {}

  Status any(const Value& value, JsonValue* out) {
    RL_TRY(run_.charge(1));
    switch (value.kind()) {
      case Kind::None:
        *out = JsonValue();
        return Code::Ok;
      case Kind::Boolean:
        *out = JsonValue(value.boolean());
        return Code::Ok;
      case Kind::Integer:
        *out = JsonValue(value.integer());
        return Code::Ok;
      case Kind::Float:
        *out = JsonValue(value.number());
        return Code::Ok;
      case Kind::String: {
        RL_TRY(count(value.text()));
        *out = JsonValue(value.text().bytes());
        return Code::Ok;
      }
      case Kind::List:
      case Kind::Tuple:
        return array(value.items(), out);
      case Kind::Dict:
        return object(value.as<DictObject>(), out);
      case Kind::Undefined:
        return run_.fail_undefined(value);
      default:
        return run_.fail("a %s cannot be written as JSON", type_name(value));
    }
  }

 private:
  Status count(const Text& text) {
    bytes_ += text.size();
    if (text.has_data()) *has_data_ = true;
    if (bytes_ <= run_.limits.output) return run_.charge(text.size() / 16);
    return run_.fail("a text would have more than %zu bytes", run_.limits.output);
  }

  Status array(const std::vector<Value>& items, JsonValue* out) {
    std::vector<JsonValue> values(items.size());
    for (size_t i = 0; i < items.size(); ++i) RL_TRY(any(items[i], &values[i]));
    *out = JsonValue::array(std::move(values));
    return Code::Ok;
  }

  Status object(const DictObject& dict, JsonValue* out) {
    std::vector<JsonMember> members(dict.entries.size());
    for (size_t i = 0; i < members.size(); ++i) {
      RL_TRY(key(dict.entries[i].first, &members[i].key));
      RL_TRY(any(dict.entries[i].second, &members[i].value));
    }
    *out = JsonValue::object(std::move(members));
    return Code::Ok;
  }

  Status key(const Value& value, std::string* out) {
    if (value.is(Kind::String)) {
      *out = value.text().bytes();
      return count(value.text());
    }
    if (value.is(Kind::None) || value.is(Kind::Boolean)) {
      *out = value.is(Kind::None) ? "null" : value.boolean() ? "true" : "false";
      return Code::Ok;
    }
    if (!value.is_number()) {
      return run_.fail("a %s cannot be a key of a JSON object", type_name(value));
    }
    Text text;
    RL_TRY(to_text(run_, value, &text));
    *out = text.take_bytes();
    return Code::Ok;
  }

  RunContext& run_;
  bool* has_data_;
  size_t bytes_ = 0;
};

}  // namespace

std::string quoted(StringView text) {
  bool has_single = false, has_double = false;
  for (size_t i = 0; i < text.size(); ++i) {
    has_single |= text.data()[i] == '\'';
    has_double |= text.data()[i] == '"';
  }
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (Characters characters(text); !characters.at_end();) {
    const size_t start = characters.at();
    const uint32_t code = characters.next();
    append_quoted(code, {text.data() + start, characters.at() - start}, quote, &out);
  }
  out.push_back(quote);
  return out;
}

Status to_text(RunContext& run, const Value& value, Text* out) {
  switch (value.kind()) {
    case Kind::Missing:
    case Kind::Undefined:
      *out = Text();
      return Code::Ok;
    case Kind::None:
      *out = Text("None");
      return Code::Ok;
    case Kind::Boolean:
      *out = Text(value.boolean() ? "True" : "False");
      return Code::Ok;
    case Kind::Integer:
      *out = Text(std::to_string(value.integer()));
      return Code::Ok;
    case Kind::Float:
      *out = Text(write_double(value.number()));
      return Code::Ok;
    case Kind::String:
      *out = value.text();
      return Code::Ok;
    default:
      *out = Text();
      return Printer(run, out).any(value);
  }
}

Status to_json(RunContext& run, const Value& value, JsonValue* out, bool* has_data) {
  return JsonMaker(run, has_data).any(value, out);
}

Status from_json(RunContext& run, const JsonValue& json, bool is_data, Value* out) {
  switch (json.kind()) {
    case JsonValue::Kind::Null:
      *out = Value::none();
      return Code::Ok;
    case JsonValue::Kind::Boolean:
      *out = Value::boolean(json.boolean());
      return Code::Ok;
    case JsonValue::Kind::Integer:
      *out = Value::integer(json.integer());
      return Code::Ok;
    case JsonValue::Kind::Number:
      if (!json.digits().empty()) {
        return run.fail("the integer %s is beyond 64 bits", json.digits().c_str());
      }
      *out = Value::number(json.number());
      return Code::Ok;
    case JsonValue::Kind::String:
      return run.make_text(Text(json.string(), is_data), out);
    case JsonValue::Kind::Array: {
      std::vector<Value> items(json.items().size());
      for (size_t i = 0; i < items.size(); ++i) {
        RL_TRY(from_json(run, json.items()[i], is_data, &items[i]));
      }
      return run.make_items(Kind::List, std::move(items), out);
    }
    case JsonValue::Kind::Object:
      break;
  }
  std::vector<Entry> entries(json.members().size());
  for (size_t i = 0; i < entries.size(); ++i) {
    RL_TRY(run.make_text(Text(json.members()[i].key, is_data), &entries[i].first));
    RL_TRY(from_json(run, json.members()[i].value, is_data, &entries[i].second));
  }
  return run.make_dict(std::move(entries), out);
}

}  // namespace rushlight::llm
