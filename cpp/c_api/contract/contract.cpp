#include "rushlight/c_api/contract/contract.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <map>
#include <utility>

#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/memory/guard.h"
#include "rushlight/platform/platform.h"

namespace rushlight::c_api {
namespace {

using llm::JsonValue;

constexpr char kKey[] = "rushlight/contract";

ValueContract weak_value(const ValueMeta& meta) {
  ValueContract value;
  if (meta.tag != Tag::Tensor) return value;
  for (const int32_t size : meta.tensor.shape()) {
    value.sizes.push_back({meta.tensor.dynamism == Dynamism::Static ? size : 0, size, 0, 0});
  }
  return value;
}

// Reads what JSON says of a method into its contract.
class ContractReader {
 public:
  explicit ContractReader(Contract* contract) : contract_(*contract) {}

  bool read(const JsonValue& method) {
    if (!read_values(method.find("inputs"), &contract_.inputs, true) ||
        !read_values(method.find("outputs"), &contract_.outputs, false) ||
        !read_relations(method.find("relations"))) {
      return false;
    }
    contract_.n_symbols = static_cast<uint32_t>(numbers_.size());
    for (const Derived& one : contract_.derived) {
      contract_.texts.push_back(place_of(one) + " == " + in_terms_of_inputs(one.expression));
    }
    for (const Relation& one : contract_.relations) contract_.texts.push_back(one.text);
    return true;
  }

 private:
  uint32_t number_of(const std::string& symbol) {
    const auto next = static_cast<uint32_t>(numbers_.size());
    const auto [entry, is_new] = numbers_.emplace(symbol, next);
    if (is_new) places_.emplace_back();
    return entry->second;
  }
  // An expression that is not understood is not checked, which is told.
  bool read_expression(const std::string& text, Expression* expression) {
    if (expression->read(text, [this](const std::string& name) { return number_of(name); })) {
      return true;
    }
    const std::string line = "the condition " + text + " on inputs is not understood, nor checked";
    log_line(LogLevel::Warning, line.data(), line.size());
    return false;
  }
  std::string place_of(const Derived& one) const {
    const std::string label = label_of(contract_, one.input);
    return one.is_size ? "size " + std::to_string(one.dimension) + " of " + label : label;
  }

  // A size, {"min": 2, "max": 8, "sym": "s0"} or a number, within what the tensor has room for;
  // "expr" in place of "sym" for one that is computed.
  bool read_range(const JsonValue& json, Derived where, bool is_input, SizeRange* range);
  bool read_value(const JsonValue& json, size_t index, bool is_input, ValueContract* value);
  bool read_values(const JsonValue* json, std::vector<ValueContract>* values, bool are_inputs) {
    if (json == nullptr || json->items().size() != values->size()) return false;
    for (size_t i = 0; i < values->size(); ++i) {
      if (!read_value(json->items()[i], i, are_inputs, &(*values)[i])) return false;
    }
    return true;
  }
  bool read_relations(const JsonValue* json) {
    if (json == nullptr) return true;
    for (const JsonValue& one : json->items()) {
      const JsonValue* condition = one.find("expr");
      const JsonValue* text = one.find("text");
      if (condition == nullptr || !condition->is_string()) return false;
      Relation relation;
      relation.text = text != nullptr ? text->string() : condition->string();
      if (read_expression(condition->string(), &relation.condition)) {
        contract_.relations.push_back(std::move(relation));
      }
    }
    return true;
  }
  // The text of an expression with the inputs' sizes in place of symbols.
  std::string in_terms_of_inputs(const Expression& expression) const;

  Contract& contract_;
  std::map<std::string, uint32_t> numbers_;
  std::vector<std::string> places_;  // of each symbol, the first input's size that is it
};

bool ContractReader::read_range(const JsonValue& json, Derived where, bool is_input,
                                SizeRange* range) {
  int64_t least = json.integer(), most = json.integer();
  if (json.is_object()) {
    const JsonValue* low = json.find("min");
    const JsonValue* high = json.find("max");
    if (low == nullptr || high == nullptr || !low->is_integer() || !high->is_integer()) {
      return false;
    }
    least = low->integer();
    most = high->integer();
    const JsonValue* symbol = json.find("sym");
    const JsonValue* expression = json.find("expr");
    if (symbol != nullptr && !symbol->string().empty()) {
      const uint32_t number = number_of(symbol->string());
      range->symbol = number + 1;
      std::string& place = places_[number];
      if (is_input && place.empty()) {
        place = place_of(where);
      } else if (is_input) {
        contract_.texts.push_back(place_of(where) + " == " + place);
      }
    } else if (is_input && expression != nullptr &&
               read_expression(expression->string(), &where.expression)) {
      contract_.derived.push_back(std::move(where));
      range->derived = static_cast<uint32_t>(contract_.derived.size());
    }
  } else if (!json.is_integer()) {
    return false;
  }
  if (least > most) return false;
  if (least > range->least) range->least = least;
  if (most < range->most) range->most = most;
  return true;
}

bool ContractReader::read_value(const JsonValue& json, size_t index, bool is_input,
                                ValueContract* value) {
  const JsonValue* name = json.find("name");
  if (name != nullptr) value->name = name->string();
  const JsonValue* kind = json.find("kind");
  if (kind == nullptr || !kind->is_string()) return false;
  Derived where;
  where.input = index;
  if (kind->string() != "tensor") {
    value->is_fixed = json.find("value") != nullptr || kind->string() == "str";
    value->range = {INT64_MIN, INT64_MAX, 0, 0};
    where.is_size = false;
    const JsonValue* range = json.find("range");
    return range == nullptr || read_range(*range, std::move(where), is_input, &value->range);
  }
  const JsonValue* shape = json.find("shape");
  if (shape == nullptr || shape->items().size() != value->sizes.size()) return false;
  for (size_t k = 0; k < value->sizes.size(); ++k) {
    where.dimension = k;
    if (!read_range(shape->items()[k], where, is_input, &value->sizes[k])) return false;
  }
  return true;
}

std::string ContractReader::in_terms_of_inputs(const Expression& expression) const {
  const std::string& text = expression.text();
  std::string made;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    const auto is_letter = [](char c) {
      return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    while (end < text.size() &&
           (is_letter(text[end]) ||
            (end > i && std::isdigit(static_cast<unsigned char>(text[end])) != 0)))
      ++end;
    if (end == i) {
      made += text[i++];
      continue;
    }
    const std::string word = text.substr(i, end - i);
    const auto known = numbers_.find(word);
    const bool has_place = known != numbers_.end() && !places_[known->second].empty();
    made += has_place ? "(" + places_[known->second] + ")" : word;
    i = end;
  }
  return made;
}

}  // namespace

Result<Contract> read_contract(const MethodMeta& meta, Message* message) {
  Contract contract;
  for (size_t i = 0; i < meta.n_inputs(); ++i) contract.inputs.push_back(weak_value(meta.input(i)));
  for (size_t i = 0; i < meta.n_outputs(); ++i) {
    contract.outputs.push_back(weak_value(meta.output(i)));
  }
  Result<Span<const uint8_t>> bytes = meta.program().get(kKey);
  if (!bytes.ok()) return contract;
  const Result<JsonValue> json =
      llm::parse_json({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, message);
  if (!json.ok()) {
    message->prepend("the shape contract in the program cannot be read: ");
    return llm::recoded(json.status(), Code::InvalidProgram);
  }
  const JsonValue* methods = json.value().find("methods");
  const JsonValue* method = methods != nullptr ? methods->find(meta.name()) : nullptr;
  if (method == nullptr || ContractReader(&contract).read(*method)) return contract;
  return message->fail(Code::InvalidProgram,
                       "%.*s: the shape contract in the program does not fit its inputs and "
                       "outputs: export the model again",
                       meta.name().len(), meta.name().data());
}

std::string label_of(const Contract& contract, size_t input) {
  const std::string& name = contract.inputs[input].name;
  return name.empty() ? "input " + std::to_string(input) : "input '" + name + "'";
}

namespace {

// Keeps a value for what is checked between inputs; false if it differs from an equal one's.
bool keep(const SizeRange& range, uint32_t n_symbols, int64_t value, Span<int64_t> values) {
  if (range.derived != 0) values[n_symbols + range.derived - 1] = value;
  if (range.symbol == 0) return true;
  int64_t& known = values[range.symbol - 1];
  if (known == Contract::kUnknown) known = value;
  return known == value;
}

}  // namespace

Status Contract::check(size_t input, const MethodMeta& meta, Span<const int32_t> sizes,
                       Span<int64_t> values, Message* message) const {
  const ValueContract& value = inputs[input];
  const auto fail = [&](const char* format, auto... args) {
    const Status status = message->fail(Code::NotSupported, format, args...);
    message->prepend("%.*s: %s: ", meta.name().len(), meta.name().data(),
                     label_of(*this, input).c_str());
    return status;
  };
  if (sizes.size() != value.sizes.size()) {
    return fail("got %zu dimensions, the method takes %zu", sizes.size(), value.sizes.size());
  }
  for (size_t k = 0; k < sizes.size(); ++k) {
    const SizeRange& range = value.sizes[k];
    const auto least = static_cast<long long>(range.least);
    const auto most = static_cast<long long>(range.most);
    if (sizes[k] < range.least || sizes[k] > range.most) {
      if (range.least == range.most) {
        return fail("size %zu is %d, the method takes %lld", k, sizes[k], most);
      }
      return fail("size %zu is %d, the method takes %lld to %lld", k, sizes[k], least, most);
    }
    if (!keep(range, n_symbols, sizes[k], values)) {
      return fail("size %zu is %d, and must be %lld: it equals a size of an input before it", k,
                  sizes[k], static_cast<long long>(values[range.symbol - 1]));
    }
  }
  return {};
}

Status Contract::check_integer(size_t input, const MethodMeta& meta, int64_t value,
                               Span<int64_t> values, Message* message) const {
  const SizeRange& range = inputs[input].range;
  if (value >= range.least && value <= range.most && keep(range, n_symbols, value, values)) {
    return {};
  }
  const std::string label = label_of(*this, input);
  if (value < range.least || value > range.most) {
    return message->fail(Code::InvalidArgument,
                         "%.*s: %s: it is %lld, the method takes %lld to %lld", meta.name().len(),
                         meta.name().data(), label.c_str(), static_cast<long long>(value),
                         static_cast<long long>(range.least), static_cast<long long>(range.most));
  }
  return message->fail(
      Code::NotSupported,
      "%.*s: %s: it is %lld, and must be %lld: it equals a size of an input before "
      "it",
      meta.name().len(), meta.name().data(), label.c_str(), static_cast<long long>(value),
      static_cast<long long>(values[range.symbol - 1]));
}

Status Contract::check_derived(const Derived& one, int64_t value, Span<int64_t> values,
                               Message* message) const {
  if (value == kUnknown) return {};  // of an input that is none of this kind
  uint32_t unknown = 0, n_unknown = 0;
  for (const uint32_t symbol : one.expression.symbols()) {
    if (values[symbol] != kUnknown) continue;
    unknown = symbol;
    ++n_unknown;
  }
  if (n_unknown > 1) return {};
  const std::string place = (one.is_size ? "size " + std::to_string(one.dimension) + " of " : "") +
                            label_of(*this, one.input);
  Number got, next;
  if (n_unknown == 0) {
    const bool has_value = one.expression.compute(values, &got);
    if (has_value && got.is_whole && got.i == value) return {};
    return message->fail(Code::NotSupported, "%s is %lld, and must be %s%s", place.c_str(),
                         static_cast<long long>(value), one.expression.text().c_str(),
                         has_value && got.is_whole ? (" = " + std::to_string(got.i)).c_str() : "");
  }
  // It is linear in the symbol that no size gives.
  Number slope, rest, root;
  values[unknown] = 0;
  bool is_solved = one.expression.compute(values, &got) && got.is_whole;
  values[unknown] = 1;
  is_solved = is_solved && one.expression.compute(values, &next) && next.is_whole &&
              compute_binary(kSubtract, next, got, &slope) && slope.i != 0 &&
              compute_binary(kSubtract, {true, value, 0}, got, &rest) &&
              compute_binary(kFloorDivide, rest, slope, &root) &&
              compute_binary(kModulo, rest, slope, &rest) && rest.i == 0;
  values[unknown] = is_solved ? root.i : kUnknown;
  if (is_solved) return {};
  return message->fail(Code::NotSupported, "%s is %lld, which is not %s for any whole number",
                       place.c_str(), static_cast<long long>(value), one.expression.text().c_str());
}

Status Contract::check_relations(const MethodMeta& meta, Span<int64_t> values,
                                 Message* message) const {
  const auto named = [&](Status status) {
    message->prepend("%.*s: ", meta.name().len(), meta.name().data());
    return status;
  };
  for (size_t i = 0; i < derived.size(); ++i) {
    const int64_t value = values[n_symbols + i];
    const Status status = check_derived(derived[i], value, values, message);
    if (!status.ok()) return named(status);
  }
  for (const Relation& relation : relations) {
    const std::vector<uint32_t>& symbols = relation.condition.symbols();
    const bool is_known = std::all_of(symbols.begin(), symbols.end(),
                                      [&](uint32_t symbol) { return values[symbol] != kUnknown; });
    Number value;
    if (!is_known || (relation.condition.compute(values, &value) && value.is_true())) continue;
    return named(message->fail(Code::NotSupported, "the program takes only inputs with %s",
                               relation.text.c_str()));
  }
  return {};
}

}  // namespace rushlight::c_api
