#include "rushlight/c_api/contract.h"

#include <climits>
#include <map>
#include <utility>

#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/memory/guard.h"

namespace rushlight::c_api {
namespace {

using llm::JsonValue;

constexpr char kKey[] = "rushlight/contract";

using Symbols = std::map<std::string, uint32_t>;

ValueContract weak_value(const ValueMeta& meta) {
  ValueContract value;
  if (meta.tag != Tag::Tensor) return value;
  for (const int32_t size : meta.tensor.shape()) {
    value.sizes.push_back({meta.tensor.dynamism == Dynamism::Static ? size : 0, size, 0});
  }
  return value;
}

// A size, {"min": 2, "max": 8, "sym": "s0"} or a number, within what the tensor has room for.
bool read_size(const JsonValue& json, Symbols* symbols, SizeRange* range) {
  int64_t least = json.integer(), most = json.integer();
  if (json.is_object()) {
    const JsonValue* low = json.find("min");
    const JsonValue* high = json.find("max");
    if (low == nullptr || high == nullptr || !low->is_integer() || !high->is_integer())
      return false;
    least = low->integer();
    most = high->integer();
    const JsonValue* symbol = json.find("sym");
    if (symbol != nullptr && !symbol->string().empty()) {
      const auto number = static_cast<uint32_t>(symbols->size() + 1);
      range->symbol = symbols->emplace(symbol->string(), number).first->second;
    }
  } else if (!json.is_integer()) {
    return false;
  }
  if (least < 0 || least > most || least > INT32_MAX) return false;
  if (least > range->least) range->least = static_cast<int32_t>(least);
  if (most < range->most) range->most = static_cast<int32_t>(most);
  return true;
}

bool read_value(const JsonValue& json, Symbols* symbols, ValueContract* value) {
  const JsonValue* name = json.find("name");
  if (name != nullptr) value->name = name->string();
  const JsonValue* kind = json.find("kind");
  if (kind == nullptr || !kind->is_string()) return false;
  if (kind->string() != "tensor") {
    value->is_fixed = json.find("value") != nullptr || kind->string() == "str";
    value->least = INT64_MIN;
    value->most = INT64_MAX;
    const JsonValue* range = json.find("range");
    if (range == nullptr) return true;
    const JsonValue* low = range->find("min");
    const JsonValue* high = range->find("max");
    if (low == nullptr || high == nullptr || !low->is_integer() || !high->is_integer())
      return false;
    value->least = low->integer();
    value->most = high->integer();
    return true;
  }
  const JsonValue* shape = json.find("shape");
  if (shape == nullptr || shape->items().size() != value->sizes.size()) return false;
  for (size_t k = 0; k < value->sizes.size(); ++k) {
    if (!read_size(shape->items()[k], symbols, &value->sizes[k])) return false;
  }
  return true;
}

bool read_values(const JsonValue* json, Symbols* symbols, std::vector<ValueContract>* values) {
  if (json == nullptr || json->items().size() != values->size()) return false;
  for (size_t i = 0; i < values->size(); ++i) {
    if (!read_value(json->items()[i], symbols, &(*values)[i])) return false;
  }
  return true;
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
  if (method == nullptr) return contract;
  Symbols symbols;
  if (read_values(method->find("inputs"), &symbols, &contract.inputs) &&
      read_values(method->find("outputs"), &symbols, &contract.outputs)) {
    contract.n_symbols = static_cast<uint32_t>(symbols.size());
    return contract;
  }
  return message->fail(Code::InvalidProgram,
                       "%.*s: the shape contract in the program does not fit its inputs and "
                       "outputs: export the model again",
                       meta.name().len(), meta.name().data());
}

std::string label_of(const Contract& contract, size_t input) {
  const std::string& name = contract.inputs[input].name;
  return name.empty() ? "input " + std::to_string(input) : "input '" + name + "'";
}

Status Contract::check(size_t input, const MethodMeta& meta, Span<const int32_t> sizes,
                       std::vector<int32_t>* symbols, Message* message) const {
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
    if (sizes[k] < range.least || sizes[k] > range.most) {
      if (range.least == range.most) {
        return fail("size %zu is %d, the method takes %d", k, sizes[k], range.most);
      }
      return fail("size %zu is %d, the method takes %d to %d", k, sizes[k], range.least,
                  range.most);
    }
    if (range.symbol == 0) continue;
    int32_t& known = (*symbols)[range.symbol - 1];
    if (known >= 0 && known != sizes[k]) {
      return fail("size %zu is %d, and must be %d: it equals a size of an input before it", k,
                  sizes[k], known);
    }
    known = sizes[k];
  }
  return {};
}

}  // namespace rushlight::c_api
