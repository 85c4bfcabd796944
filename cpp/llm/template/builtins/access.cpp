#include "rushlight/llm/template/builtins/access.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/values/characters.h"
#include "rushlight/llm/template/values/operators.h"

namespace rushlight::llm {
namespace {

constexpr char kNoItem[] = "there is no such item";
constexpr char kNoPrevious[] = "there is no previous item";
constexpr char kNoNext[] = "there is no next item";
constexpr char kPrivate[] = "names that begin with '_' are private";
constexpr char kChanges[] = "a method that changes a list or a dict is not allowed";

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

bool has_method(const Value& value, const std::string& name) {
  switch (value.kind()) {
    case Kind::String:
      return find_text_method({name.data(), name.size()}) != nullptr;
    case Kind::Dict:
      return is_one_of(name, {"items", "keys", "values", "get", "copy"});
    case Kind::List:
      return is_one_of(name, {"index", "count", "copy"});
    case Kind::Tuple:
    case Kind::Range:
      return is_one_of(name, {"index", "count"});
    case Kind::Loop:
      return is_one_of(name, {"cycle", "changed"});
    case Kind::Cycler:
      return is_one_of(name, {"next", "reset"});
    default:
      return false;
  }
}

bool changes_value(const Value& value, const std::string& name) {
  if (value.is(Kind::Dict)) {
    return is_one_of(name, {"clear", "pop", "popitem", "setdefault", "update"});
  }
  return value.is(Kind::List) && is_one_of(name, {"append", "clear", "extend", "insert", "pop",
                                                  "remove", "reverse", "sort"});
}

// Methods of Python's strings that templates hardly use.
bool is_unsupported(const Value& value, const std::string& name) {
  if (value.is(Kind::Dict)) return name == "fromkeys";
  return value.is(Kind::String) &&
         is_one_of(name,
                   {"casefold", "encode", "expandtabs", "format_map", "isascii", "isidentifier",
                    "isprintable", "istitle", "maketrans", "rindex", "swapcase", "translate"});
}

Status loop_attribute(const LoopObject& loop, const std::string& name, Value* out) {
  const std::vector<Value>& items = loop.items->items;
  const auto index = static_cast<int64_t>(loop.index), size = static_cast<int64_t>(items.size());
  const std::pair<const char*, int64_t> numbers[] = {{"index", index + 1},
                                                     {"index0", index},
                                                     {"revindex", size - index},
                                                     {"revindex0", size - index - 1},
                                                     {"length", size},
                                                     {"depth", 1},
                                                     {"depth0", 0}};
  for (const auto& [other, number] : numbers) {
    if (name != other) continue;
    *out = Value::integer(number);
    return Code::Ok;
  }
  if (name == "first") *out = Value::boolean(index == 0);
  if (name == "last") *out = Value::boolean(index + 1 == size);
  if (name == "previtem") {
    *out = index == 0 ? Value::undefined(kNoPrevious) : items[loop.index - 1];
  }
  if (name == "nextitem") {
    *out = index + 1 == size ? Value::undefined(kNoNext) : items[loop.index + 1];
  }
  return Code::Ok;
}

// What has attributes that are no methods; leaves `out` if there is none of this name.
Status plain_attribute(RunContext& run, const Value& value, const std::string& name, Value* out) {
  if (value.is(Kind::Namespace)) {
    const Value* item = value.as<DictObject>().find(StringView{name.data(), name.size()});
    if (item != nullptr) *out = *item;
  } else if (value.is(Kind::Loop)) {
    return loop_attribute(value.as<LoopObject>(), name, out);
  } else if (value.is(Kind::Cycler) && name == "current") {
    const auto& cycler = value.as<ListObject>();
    *out = cycler.items[cycler.next % cycler.items.size()];
  }
  return run.charge(1);
}

// An attribute as Python's getattr has it; `exists` is false if there is none.
Status own_attribute(RunContext& run, const Value& value, const std::string& name, Value* out,
                     bool* exists) {
  *exists = true;
  if (changes_value(value, name)) {
    *out = Value::undefined(kChanges);
    return Code::Ok;
  }
  if (name.compare(0, 2, "__") == 0) {
    *out = Value::undefined(kPrivate);
    return Code::Ok;
  }
  if (is_unsupported(value, name)) {
    return run.fail("the method '%s' of a %s is not supported", name.c_str(), type_name(value));
  }
  if (has_method(value, name)) {
    Ref<MethodObject> method = make_ref<MethodObject>();
    method->self = value;
    method->name = name;
    method->depth = value.depth() + 1;
    method->weight = value.weight() + 1;
    if (method->depth > run.limits.depth) return run.fail("values nest too deep");
    *out = Value::object(Kind::Method, method);
    return Code::Ok;
  }
  *out = Value::missing();
  RL_TRY(plain_attribute(run, value, name, out));
  *exists = !out->is(Kind::Missing);
  return Code::Ok;
}

// An item as Python's value[key] has it; `exists` is false if there is none.
Status own_item(RunContext& run, const Value& value, const Value& key, Value* out, bool* exists) {
  *exists = false;
  if (value.is(Kind::Dict)) {
    const auto& dict = value.as<DictObject>();
    RL_TRY(run.charge(1 + dict.entries.size() / 8));
    const Value* item = can_be_key(key) ? dict.find(key) : nullptr;
    *exists = item != nullptr;
    if (*exists) *out = *item;
    return Code::Ok;
  }
  const bool has_index = (value.is_items() && !value.is(Kind::View)) || value.is(Kind::String);
  if (!has_index || !key.is_whole()) return Code::Ok;
  size_t size = 0;
  RL_TRY(length_of(run, value, &size));
  const int64_t length = static_cast<int64_t>(size);
  if (key.integer() >= length || key.integer() < -length) return Code::Ok;
  const auto index = static_cast<size_t>(key.integer() + (key.integer() < 0 ? length : 0));
  *exists = true;
  if (!value.is(Kind::String)) {
    *out = value.items()[index];
    return Code::Ok;
  }
  const Text& text = value.text();
  const size_t begin = byte_of_character(text.view(), index);
  const size_t end =
      begin + byte_of_character({text.bytes().data() + begin, text.size() - begin}, 1);
  return run.make_text(text.slice(begin, end), out);
}

// The bounds of a slice, as Python's slice.indices has them.
struct Bounds {
  int64_t start, stop, stride;
};

Status bounds_of(RunContext& run, const Value parts[3], int64_t length, Bounds* bounds) {
  const auto is_left_out = [&](size_t i) {
    return parts[i].is(Kind::Missing) || parts[i].is(Kind::None);
  };
  for (size_t i = 0; i < 3; ++i) {
    if (parts[i].is(Kind::Undefined)) return run.fail_undefined(parts[i]);
    if (is_left_out(i) || parts[i].is_whole()) continue;
    return run.fail("a slice needs an int, not a %s", type_name(parts[i]));
  }
  bounds->stride = is_left_out(2) ? 1 : parts[2].integer();
  if (bounds->stride == 0) return run.fail("a slice has a stride of 0");
  const bool down = bounds->stride < 0;
  const int64_t lowest = down ? -1 : 0, highest = down ? length - 1 : length;
  const auto bound = [&](size_t i, int64_t fallback) {
    if (is_left_out(i)) return fallback;
    const int64_t at = parts[i].integer();
    return std::clamp(at < 0 ? std::max(at, -length - 1) + length : at, lowest, highest);
  };
  bounds->start = bound(0, down ? highest : lowest);
  bounds->stop = bound(1, down ? lowest : highest);
  return Code::Ok;
}

std::vector<size_t> indices_of(const Bounds& bounds) {
  std::vector<size_t> indices;
  const int64_t span = bounds.stride > 0 ? bounds.stop - bounds.start : bounds.start - bounds.stop;
  const uint64_t stride = bounds.stride > 0 ? static_cast<uint64_t>(bounds.stride)
                                            : 0 - static_cast<uint64_t>(bounds.stride);
  for (uint64_t i = 0; span > 0 && i < static_cast<uint64_t>(span); i += stride) {
    const auto offset = static_cast<int64_t>(i);
    indices.push_back(static_cast<size_t>(bounds.start + (bounds.stride > 0 ? offset : -offset)));
    if (stride > static_cast<uint64_t>(span)) break;
  }
  return indices;
}

Status slice_text(RunContext& run, const Text& text, const Bounds& bounds, Value* out) {
  if (bounds.stride == 1) {
    const size_t begin = byte_of_character(text.view(), static_cast<size_t>(bounds.start));
    const size_t end =
        byte_of_character(text.view(), static_cast<size_t>(std::max(bounds.start, bounds.stop)));
    return run.make_text(text.slice(begin, end), out);
  }
  std::vector<size_t> starts;
  for (Characters characters(text.view()); !characters.at_end(); characters.next()) {
    starts.push_back(characters.at());
  }
  starts.push_back(text.size());
  Text part;
  for (size_t index : indices_of(bounds)) {
    RL_TRY(run.append(text.slice(starts[index], starts[index + 1]), &part));
  }
  return run.make_text(std::move(part), out);
}

Status call_dict_method(RunContext& run, const MethodObject& method, const Arguments& arguments,
                        Value* out) {
  const std::vector<Entry>& entries = method.self.as<DictObject>().entries;
  Value parts[2];
  if (method.name == "get") {
    RL_TRY(bind(run, "get", arguments, {"key", "default"}, parts, 1));
    if (!can_be_key(parts[0])) return run.fail("a %s cannot be a key", type_name(parts[0]));
    bool exists = false;
    RL_TRY(own_item(run, method.self, parts[0], out, &exists));
    if (!exists) *out = parts[1].is(Kind::Missing) ? Value::none() : parts[1];
    return Code::Ok;
  }
  RL_TRY(bind(run, method.name.c_str(), arguments, {}, parts));
  if (method.name == "copy") return run.make_dict(entries, out);
  std::vector<Value> items;
  for (const Entry& entry : entries) {
    if (method.name == "items") {
      items.emplace_back();
      RL_TRY(run.make_items(Kind::Tuple, {entry.first, entry.second}, &items.back()));
    } else {
      items.push_back(method.name == "keys" ? entry.first : entry.second);
    }
  }
  const char* view = method.name == "items"  ? "dict_items"
                     : method.name == "keys" ? "dict_keys"
                                             : "dict_values";
  return run.make_items(Kind::View, std::move(items), out, view);
}

Status call_list_method(RunContext& run, const MethodObject& method, const Arguments& arguments,
                        Value* out) {
  const std::vector<Value>& items = method.self.items();
  Value wanted;
  if (method.name == "copy") {
    RL_TRY(bind(run, "copy", arguments, {}, &wanted));
    return run.make_items(Kind::List, items, out);
  }
  RL_TRY(bind(run, method.name.c_str(), arguments, {"value"}, &wanted, 1));
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    bool equal = false;
    RL_TRY(check_equal(run, items[i], wanted, &equal));
    if (equal && method.name == "index") {
      *out = Value::integer(static_cast<int64_t>(i));
      return Code::Ok;
    }
    count += equal ? 1 : 0;
  }
  if (method.name == "index") return run.fail("'index': the value is not in the list");
  *out = Value::integer(count);
  return Code::Ok;
}

Status call_loop_method(RunContext& run, const MethodObject& method, const Arguments& arguments,
                        Value* out) {
  auto& loop = method.self.as<LoopObject>();
  if (!arguments.named.empty()) {
    return run.fail("'loop.%s' takes no arguments with names", method.name.c_str());
  }
  if (method.name == "cycle") {
    if (arguments.values.empty()) return run.fail("'loop.cycle' needs an argument");
    *out = arguments.values[loop.index % arguments.values.size()];
    return Code::Ok;
  }
  Value now;
  RL_TRY(run.make_items(Kind::Tuple, arguments.values, &now));
  bool equal = false;
  RL_TRY(check_equal(run, now, loop.before, &equal));
  if (loop.before.is(Kind::Undefined)) run.keep(Ref<LoopObject>(&loop));
  loop.before = std::move(now);
  *out = Value::boolean(!equal);
  return Code::Ok;
}

}  // namespace

Status get_attribute(RunContext& run, const Value& value, const std::string& name, const char* why,
                     Value* out) {
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  bool exists = false;
  RL_TRY(own_attribute(run, value, name, out, &exists));
  if (!exists && value.is(Kind::Dict)) {
    const auto& dict = value.as<DictObject>();
    RL_TRY(run.charge(1 + dict.entries.size() / 8));
    const Value* item = dict.find(StringView{name.data(), name.size()});
    exists = item != nullptr;
    if (exists) *out = *item;
  }
  if (!exists) *out = Value::undefined(why);
  return Code::Ok;
}

Status get_item(RunContext& run, const Value& value, const Value& key, const char* why,
                Value* out) {
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  bool exists = false;
  RL_TRY(own_item(run, value, key, out, &exists));
  if (!exists && key.is(Kind::String)) {
    RL_TRY(own_attribute(run, value, key.text().bytes(), out, &exists));
  }
  if (!exists) *out = Value::undefined(why);
  return Code::Ok;
}

Status get_slice(RunContext& run, const Value& value, const Value parts[3], Value* out) {
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  if (!value.is(Kind::String) && (!value.is_items() || value.is(Kind::View))) {
    return run.fail("a %s has no slices", type_name(value));
  }
  size_t length = 0;
  RL_TRY(length_of(run, value, &length));
  Bounds bounds = {};
  RL_TRY(bounds_of(run, parts, static_cast<int64_t>(length), &bounds));
  if (value.is(Kind::String)) return slice_text(run, value.text(), bounds, out);
  std::vector<Value> items;
  for (size_t index : indices_of(bounds)) items.push_back(value.items()[index]);
  return run.make_items(value.kind(), std::move(items), out);
}

Status get_path(RunContext& run, const Value& value, const Value& path, Value* out) {
  *out = value;
  if (path.is(Kind::Missing) || path.is(Kind::None)) return Code::Ok;
  if (!path.is(Kind::String)) return get_item(run, value, path, kNoItem, out);
  const std::string& names = path.text().bytes();
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find('.', at), names.size());
    const std::string name = names.substr(at, end - at);
    const bool is_index = !name.empty() && name.size() < 18 &&
                          name.find_first_not_of("0123456789") == std::string::npos;
    const Value key =
        is_index ? Value::integer(std::stoll(name)) : string_value({name.data(), name.size()});
    const Value from = *out;
    RL_TRY(get_item(run, from, key, kNoItem, out));
    at = end + 1;
  }
  return Code::Ok;
}

Status next_of_cycle(RunContext& run, ListObject& cycler, Value* out) {
  *out = cycler.items[cycler.next];
  cycler.next = (cycler.next + 1) % cycler.items.size();
  return run.charge(1);
}

Status call_method(RunContext& run, const MethodObject& method, const Arguments& arguments,
                   Value* out) {
  switch (method.self.kind()) {
    case Kind::String: {
      const TextMethod& named = *find_text_method({method.name.data(), method.name.size()});
      return named.call({run, named.name, named.option, method.self.text(), arguments}, out);
    }
    case Kind::Dict:
      return call_dict_method(run, method, arguments, out);
    case Kind::Loop:
      return call_loop_method(run, method, arguments, out);
    case Kind::Cycler: {
      auto& cycler = method.self.as<ListObject>();
      if (method.name == "next") return next_of_cycle(run, cycler, out);
      cycler.next = 0;
      *out = Value::none();
      return Code::Ok;
    }
    default:
      return call_list_method(run, method, arguments, out);
  }
}

}  // namespace rushlight::llm
