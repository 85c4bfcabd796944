#include "rushlight/llm/template/values/value.h"

#include <algorithm>

namespace rushlight::llm {

Value Value::string(Text text) {
  return object(Kind::String, make_ref<TextObject>(std::move(text)));
}

Value string_value(StringView bytes) {
  return Value::string(Text(std::string(bytes.data(), bytes.size())));
}

const Value* DictObject::find(const Value& key) const {
  for (const Entry& entry : entries) {
    if (are_equal(entry.first, key)) return &entry.second;
  }
  return nullptr;
}

const Value* DictObject::find(StringView key) const {
  for (const Entry& entry : entries) {
    if (entry.first.is(Kind::String) && entry.first.text().view() == key) return &entry.second;
  }
  return nullptr;
}

void DictObject::set(const Value& key, Value value) {
  for (Entry& entry : entries) {
    if (!are_equal(entry.first, key)) continue;
    entry.second = std::move(value);
    return;
  }
  entries.emplace_back(key, std::move(value));
}

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::Missing:
    case Kind::Undefined:
      return "Undefined";
    case Kind::None:
      return "NoneType";
    case Kind::Boolean:
      return "bool";
    case Kind::Integer:
      return "int";
    case Kind::Float:
      return "float";
    case Kind::String:
      return "str";
    case Kind::List:
      return "list";
    case Kind::Tuple:
      return "tuple";
    case Kind::Range:
      return "range";
    case Kind::View:
      return value.as<ListObject>().view;
    case Kind::Iterator:
      return "generator";
    case Kind::Dict:
      return "dict";
    case Kind::Namespace:
      return "namespace";
    case Kind::Macro:
      return "macro";
    case Kind::Function:
      return "function";
    case Kind::Method:
      return "method";
    case Kind::Loop:
      return "loop";
    case Kind::Cycler:
      return "cycler";
    case Kind::Joiner:
      return "joiner";
  }
  return "value";
}

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Kind::Missing:
    case Kind::Undefined:
    case Kind::None:
      return false;
    case Kind::Boolean:
    case Kind::Integer:
      return value.integer() != 0;
    case Kind::Float:
      return value.number() != 0;
    case Kind::String:
      return !value.text().empty();
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::View:
      return !value.items().empty();
    case Kind::Dict:
      return !value.as<DictObject>().entries.empty();
    default:
      return true;
  }
}

namespace {

bool dicts_equal(const DictObject& a, const DictObject& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const Entry& entry) {
    const Value* other = b.find(entry.first);
    return other != nullptr && are_equal(entry.second, *other);
  });
}

bool methods_equal(const MethodObject& a, const MethodObject& b) {
  return a.name == b.name && a.self.object() == b.self.object();
}

}  // namespace

bool are_equal(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::Missing:
    case Kind::Undefined:
    case Kind::None:
      return true;
    case Kind::String:
      return a.text().view() == b.text().view();
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
      return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                        are_equal);
    case Kind::Dict:
      return dicts_equal(a.as<DictObject>(), b.as<DictObject>());
    case Kind::Function:
      return a.function() == b.function();
    case Kind::Method:
      return methods_equal(a.as<MethodObject>(), b.as<MethodObject>());
    default:
      return a.object() == b.object();
  }
}

bool can_be_key(const Value& value) {
  if (value.is(Kind::Tuple)) {
    return std::all_of(value.items().begin(), value.items().end(), can_be_key);
  }
  return !value.is(Kind::List) && !value.is(Kind::Dict) && !value.is(Kind::View);
}

}  // namespace rushlight::llm
