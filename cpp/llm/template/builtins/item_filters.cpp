// Filters over lists, dictionaries and other items.
#include <algorithm>
#include <utility>

#include "rushlight/llm/template/builtins/access.h"
#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/values/characters.h"
#include "rushlight/llm/template/values/operators.h"

namespace rushlight::llm {
namespace {

constexpr char kNoFirst[] = "there is no first item: the sequence is empty";
constexpr char kNoLast[] = "there is no last item: the sequence is empty";
constexpr char kNoExtreme[] = "there is no least or greatest item: the sequence is empty";

Status no_arguments(RunContext& run, const char* name, const Arguments& arguments) {
  Value none;
  return bind(run, name, arguments, {}, &none);
}

Status fallback(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, "default", arguments, {"default_value", "boolean"}, parts));
  const bool replaces = value.is(Kind::Undefined) || (is_true(parts[1]) && !is_true(value));
  *out = !replaces ? value : parts[0].is(Kind::Missing) ? Value::string(Text()) : parts[0];
  return Code::Ok;
}

Status length(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "length", arguments));
  size_t size = 0;
  RL_TRY(length_of(run, value, &size));
  *out = Value::integer(static_cast<int64_t>(size));
  return Code::Ok;
}

Status as_list(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "list", arguments));
  Ref<ListObject> items;
  RL_TRY(items_of(run, value, &items));
  return run.make_items(Kind::List, items->items, out);
}

Status first(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "first", arguments));
  *out = Value::undefined(kNoFirst);
  if (value.is(Kind::Iterator)) {
    auto& iterator = value.as<ListObject>();
    if (iterator.next < iterator.items.size()) *out = iterator.items[iterator.next++];
    return Code::Ok;
  }
  Ref<ListObject> items;
  RL_TRY(items_of(run, value, &items));
  if (!items->items.empty()) *out = items->items.front();
  return Code::Ok;
}

Status last(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "last", arguments));
  if (value.is(Kind::Iterator)) {
    return run.fail("'last' cannot read a generator from its end: use the filter 'list' before it");
  }
  Ref<ListObject> items;
  RL_TRY(items_of(run, value, &items));
  *out = items->items.empty() ? Value::undefined(kNoLast) : items->items.back();
  return Code::Ok;
}

Status reverse(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "reverse", arguments));
  if (value.is(Kind::String)) {
    const Value parts[3] = {Value::missing(), Value::missing(), Value::integer(-1)};
    return get_slice(run, value, parts, out);
  }
  Ref<ListObject> items;
  RL_TRY(items_of(run, value, &items));
  const Kind kind = value.is(Kind::Iterator) ? Kind::List : Kind::Iterator;
  return run.make_items(kind, {items->items.rbegin(), items->items.rend()}, out);
}

Status items(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "items", arguments));
  std::vector<Value> pairs;
  if (value.is(Kind::Dict)) {
    for (const Entry& entry : value.as<DictObject>().entries) {
      pairs.emplace_back();
      RL_TRY(run.make_items(Kind::Tuple, {entry.first, entry.second}, &pairs.back()));
    }
  } else if (!value.is(Kind::Undefined)) {
    return run.fail("'items' needs a dict, not a %s", type_name(value));
  }
  return run.make_items(Kind::Iterator, std::move(pairs), out);
}

Status batch(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, "batch", arguments, {"linecount", "fill_with"}, parts, 1));
  int64_t size = 0;
  RL_TRY(integer_argument(run, "batch", parts[0], 1, &size));
  if (size < 1 || size > 100000) return run.fail("'batch' makes lists of 1 to 100000 items");
  Ref<ListObject> list;
  RL_TRY(items_of(run, value, &list));
  std::vector<Value> batches;
  for (size_t at = 0; at < list->items.size(); at += static_cast<size_t>(size)) {
    const size_t end = std::min(at + static_cast<size_t>(size), list->items.size());
    std::vector<Value> part(list->items.begin() + static_cast<std::ptrdiff_t>(at),
                            list->items.begin() + static_cast<std::ptrdiff_t>(end));
    const bool fills = !parts[1].is(Kind::Missing) && !parts[1].is(Kind::None);
    if (fills) part.resize(static_cast<size_t>(size), parts[1]);
    batches.emplace_back();
    RL_TRY(run.make_items(Kind::List, std::move(part), &batches.back()));
  }
  return run.make_items(Kind::Iterator, std::move(batches), out);
}

Status sum(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, "sum", arguments, {"attribute", "start"}, parts));
  Ref<ListObject> list;
  RL_TRY(items_of(run, value, &list));
  Value total = parts[1].is(Kind::Missing) ? Value::integer(0) : parts[1];
  if (total.is(Kind::String)) return run.fail("'sum' cannot add text: use the filter 'join'");
  for (const Value& item : list->items) {
    Value part;
    RL_TRY(get_path(run, item, parts[0], &part));
    const Value before = total;
    RL_TRY(arithmetic(run, Arithmetic::Add, before, part, &total));
  }
  *out = std::move(total);
  return Code::Ok;
}

// --- map, select and reject ----------------------------------------------------------------------

// The items that these filters see; none in what is not true, whatever it is.
Status items_if_true(RunContext& run, const Value& value, Ref<ListObject>* items) {
  return items_of(run, is_true(value) ? value : Value(), items);
}

Arguments rest_of(const Arguments& arguments, size_t count) {
  Arguments rest;
  const size_t from = std::min(count, arguments.values.size());
  rest.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(from),
                     arguments.values.end());
  rest.named = arguments.named;
  return rest;
}

Status map_attribute(RunContext& run, const std::vector<Value>& list, const Arguments& arguments,
                     Value* out) {
  Value parts[2];
  RL_TRY(bind(run, "map", arguments, {"attribute", "default"}, parts, 1));
  std::vector<Value> results;
  for (const Value& item : list) {
    Value part;
    RL_TRY(get_path(run, item, parts[0], &part));
    if (part.is(Kind::Undefined) && !parts[1].is(Kind::Missing)) part = parts[1];
    results.push_back(std::move(part));
  }
  return run.make_items(Kind::Iterator, std::move(results), out);
}

Status map(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Ref<ListObject> list;
  RL_TRY(items_if_true(run, value, &list));
  if (arguments.values.empty()) return map_attribute(run, list->items, arguments, out);
  const Text* name = nullptr;
  RL_TRY(text_argument(run, "map", arguments.values[0], &name));
  const Filter* filter = find_filter(name->view());
  if (filter == nullptr) {
    return run.fail("the filter '%s' is not supported", name->bytes().c_str());
  }
  const Arguments rest = rest_of(arguments, 1);
  std::vector<Value> results(list->items.size());
  for (size_t i = 0; i < results.size(); ++i) {
    RL_TRY(run.charge(1));
    RL_TRY(filter->apply(run, list->items[i], rest, &results[i]));
  }
  return run.make_items(Kind::Iterator, std::move(results), out);
}

Status choose(RunContext& run, const char* callee, const Value& value, const Arguments& arguments,
              bool by_attribute, bool wanted, Value* out) {
  const size_t first_of_test = by_attribute ? 1 : 0;
  if (arguments.values.size() < first_of_test) {
    return run.fail("'%s' needs the name of an attribute", callee);
  }
  const Value path = by_attribute ? arguments.values[0] : Value::missing();
  const Test* test = nullptr;
  if (arguments.values.size() > first_of_test) {
    const Text* name = nullptr;
    RL_TRY(text_argument(run, callee, arguments.values[first_of_test], &name));
    test = find_test(name->view());
    if (test == nullptr) {
      return run.fail("the test '%s' is not supported", name->bytes().c_str());
    }
  }
  const Arguments rest = rest_of(arguments, first_of_test + 1);
  Ref<ListObject> list;
  RL_TRY(items_if_true(run, value, &list));
  std::vector<Value> chosen;
  for (const Value& item : list->items) {
    RL_TRY(run.charge(1));
    Value part;
    RL_TRY(get_path(run, item, path, &part));
    bool holds = is_true(part);
    if (test != nullptr) RL_TRY(test->check(run, part, rest, &holds));
    if (holds == wanted) chosen.push_back(item);
  }
  return run.make_items(Kind::Iterator, std::move(chosen), out);
}

Status select(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  return choose(run, "select", value, arguments, false, true, out);
}
Status reject(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  return choose(run, "reject", value, arguments, false, false, out);
}
Status selectattr(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  return choose(run, "selectattr", value, arguments, true, true, out);
}
Status rejectattr(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  return choose(run, "rejectattr", value, arguments, true, false, out);
}

// --- order
// ----------------------------------------------------------------------------------------

// What is compared in place of a value.
Status key_of(RunContext& run, const Value& value, const Value& path, bool keeps_case, Value* out) {
  Value part;
  RL_TRY(get_path(run, value, path, &part));
  if (keeps_case || !part.is(Kind::String)) {
    *out = std::move(part);
    return Code::Ok;
  }
  return run.make_text(Text(change_case(part.text().view(), Case::Lower)), out);
}

struct Keyed {
  Value key;
  Value item;
};

Status is_before(RunContext& run, const Keyed& a, const Keyed& b, bool* before) {
  Order order = Order::None;
  RL_TRY(order_of(run, a.key, b.key, &order));
  *before = order == Order::Less;
  return Code::Ok;
}

// A stable merge sort: comparisons can fail, and need not be consistent.
Status sort_keyed(RunContext& run, bool reversed, std::vector<Keyed>* list) {
  std::vector<Keyed> other(list->size());
  for (size_t width = 1; width < list->size(); width *= 2) {
    for (size_t begin = 0; begin < list->size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, list->size());
      const size_t end = std::min(begin + 2 * width, list->size());
      size_t a = begin, b = middle;
      for (size_t at = begin; at < end; ++at) {
        bool takes_second = a == middle;
        if (a < middle && b < end) {
          const Keyed &left = (*list)[a], &right = (*list)[b];
          RL_TRY(reversed ? is_before(run, left, right, &takes_second)
                          : is_before(run, right, left, &takes_second));
        }
        other[at] = std::move((*list)[takes_second ? b++ : a++]);
      }
    }
    list->swap(other);
  }
  return Code::Ok;
}

Status sorted_items(RunContext& run, bool reversed, std::vector<Keyed>* list, Value* out) {
  RL_TRY(sort_keyed(run, reversed, list));
  std::vector<Value> items;
  items.reserve(list->size());
  for (Keyed& one : *list) items.push_back(std::move(one.item));
  return run.make_items(Kind::List, std::move(items), out);
}

std::vector<Value> paths_of(const Value& attribute) {
  if (!attribute.is(Kind::String)) return {attribute};
  std::vector<Value> paths;
  const std::string& names = attribute.text().bytes();
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    paths.push_back(string_value({names.data() + at, end - at}));
    at = end + 1;
  }
  return paths;
}

Status sort(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[3];
  RL_TRY(bind(run, "sort", arguments, {"reverse", "case_sensitive", "attribute"}, parts));
  Ref<ListObject> list;
  RL_TRY(items_of(run, value, &list));
  std::vector<Keyed> keyed;
  for (const Value& item : list->items) {
    // Jinja compares lists of keys, in which values that have no order may be equal.
    std::vector<Value> keys;
    for (const Value& path : paths_of(parts[2])) {
      keys.emplace_back();
      RL_TRY(key_of(run, item, path, is_true(parts[1]), &keys.back()));
    }
    keyed.push_back({{}, item});
    RL_TRY(run.make_items(Kind::List, std::move(keys), &keyed.back().key));
  }
  return sorted_items(run, is_true(parts[0]), &keyed, out);
}

Status dictsort(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[3];
  RL_TRY(bind(run, "dictsort", arguments, {"case_sensitive", "by", "reverse"}, parts));
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  if (!value.is(Kind::Dict)) return run.fail("'dictsort' needs a dict, not a %s", type_name(value));
  const std::string by = parts[1].is(Kind::String) ? parts[1].text().bytes() : "key";
  if (by != "key" && by != "value") {
    return run.fail("'dictsort' sorts by key or value, not by '%s'", by.c_str());
  }
  std::vector<Keyed> keyed;
  for (const Entry& entry : value.as<DictObject>().entries) {
    keyed.emplace_back();
    RL_TRY(run.make_items(Kind::Tuple, {entry.first, entry.second}, &keyed.back().item));
    RL_TRY(key_of(run, by == "key" ? entry.first : entry.second, Value::missing(),
                  is_true(parts[0]), &keyed.back().key));
  }
  return sorted_items(run, is_true(parts[2]), &keyed, out);
}

Status unique(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, "unique", arguments, {"case_sensitive", "attribute"}, parts));
  Ref<ListObject> list;
  RL_TRY(items_of(run, value, &list));
  std::vector<Value> keys, kept;
  for (const Value& item : list->items) {
    Value key;
    RL_TRY(key_of(run, item, parts[1], is_true(parts[0]), &key));
    if (!can_be_key(key)) return run.fail("'unique' cannot compare a %s", type_name(key));
    RL_TRY(run.charge(1 + keys.size() / 4));
    const bool is_new = std::none_of(keys.begin(), keys.end(),
                                     [&](const Value& other) { return are_equal(key, other); });
    if (!is_new) continue;
    keys.push_back(std::move(key));
    kept.push_back(item);
  }
  return run.make_items(Kind::Iterator, std::move(kept), out);
}

Status extreme(RunContext& run, const char* callee, const Value& value, const Arguments& arguments,
               Order wanted, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, callee, arguments, {"case_sensitive", "attribute"}, parts));
  Ref<ListObject> list;
  RL_TRY(items_of(run, value, &list));
  *out = Value::undefined(kNoExtreme);
  Value best;
  for (size_t i = 0; i < list->items.size(); ++i) {
    Value key;
    RL_TRY(key_of(run, list->items[i], parts[1], is_true(parts[0]), &key));
    Order order = wanted;
    if (i != 0) RL_TRY(order_of(run, key, best, &order));
    if (order != wanted) continue;
    best = std::move(key);
    *out = list->items[i];
  }
  return Code::Ok;
}

Status least(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  return extreme(run, "min", value, arguments, Order::Less, out);
}
Status greatest(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  return extreme(run, "max", value, arguments, Order::Greater, out);
}

constexpr Filter kFilters[] = {
    {"default", fallback},
    {"d", fallback},
    {"length", length},
    {"count", length},
    {"list", as_list},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"items", items},
    {"batch", batch},
    {"sum", sum},
    {"map", map},
    {"select", select},
    {"reject", reject},
    {"selectattr", selectattr},
    {"rejectattr", rejectattr},
    {"sort", sort},
    {"dictsort", dictsort},
    {"unique", unique},
    {"min", least},
    {"max", greatest},
};

}  // namespace

Span<const Filter> item_filters() { return kFilters; }

}  // namespace rushlight::llm
