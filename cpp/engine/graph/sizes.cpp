#include "rushlight/engine/graph/sizes.h"

#include <new>

namespace rushlight::engine {
namespace {

constexpr size_t kNamed = 8;  // inputs in a message

Status refuse(Message& message, const char* why) {
  return message.fail(Code::DelegateInvalidCompatibility, "%s", why);
}

template <typename T>
bool allocate(Allocator& allocator, size_t n, Span<T>* span) {
  T* data = allocator.allocate_array<T>(n);
  for (size_t i = 0; data != nullptr && i < n; ++i) new (data + i) T();
  *span = {data, n};
  return data != nullptr || n == 0;
}

// Rounded down, as Python's // does.
bool divide(int64_t a, int64_t b, int64_t* quotient) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  *quotient = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  return true;
}

}  // namespace

// --- load ---------------------------------------------------------------------------------------

Status Sizes::load(const GraphParts& parts, Allocator& allocator, Message& message) {
  expressions_ = parts.expressions;
  values_ = parts.values;
  arguments_ = parts.arguments;
  for (size_t i = 0; i < values_.size(); ++i) {
    const Status status = check_value(values_[i], message);
    if (status.ok()) continue;
    message.prepend("value %zu: ", i);
    return status;
  }
  if (fixed()) return {};
  if (!allocate(allocator, parts.n_inputs, &inputs_) ||
      !allocate(allocator, expressions_.size(), &numbers_)) {
    return message.fail(Code::DelegateMemoryAllocationFailed,
                        "the method's memory has no room for the delegate");
  }
  if (arguments_.size() != parts.n_inputs + parts.n_outputs) {
    return refuse(message, "the payload does not say the sizes of its arguments");
  }
  for (size_t i = 0; i < arguments_.size(); ++i) RL_TRY(check_argument(i, parts, message));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Value* value = own(i);
    if (value == nullptr) continue;
    Input& input = inputs_[i];
    input.rank = value->view.rank;
    for (size_t d = 0; d < input.rank; ++d) input.bounds[d] = value->view.sizes[d];
  }
  for (size_t i = 0; i < expressions_.size(); ++i) RL_TRY(check_expression(i, message));
  return {};
}

Status Sizes::check_value(const Value& value, Message& message) const {
  const auto is_known = [&](int32_t number) {
    return number == -1 || (number >= 0 && static_cast<size_t>(number) < expressions_.size());
  };
  for (const Span<const int32_t> numbers : {value.dynamic_sizes, value.dynamic_strides}) {
    if (!numbers.empty() && numbers.size() != value.view.rank) {
      return refuse(message, "its dynamic sizes or strides are not as many as its dimensions");
    }
    for (const int32_t number : numbers) {
      if (!is_known(number)) return refuse(message, "it names an expression that is not there");
    }
  }
  if (is_known(value.dynamic_offset)) return {};
  return refuse(message, "it names an expression that is not there");
}

Status Sizes::check_argument(size_t i, const GraphParts& parts, Message& message) const {
  const int32_t number = arguments_[i];
  if (number == -1) return {};
  if (number < 0 || static_cast<size_t>(number) >= values_.size()) {
    return refuse(message, "an argument's sizes are those of a value that is not there");
  }
  const Value& value = values_[static_cast<size_t>(number)];
  const bool is_input = i < parts.n_inputs;
  const size_t index = is_input ? i : i - parts.n_inputs;
  if (value.place == (is_input ? Place::Input : Place::Output) && value.index == index) return {};
  return refuse(message, "an argument's sizes are those of another one's value");
}

Status Sizes::check_expression(size_t i, Message& message) {
  const Expression& expression = expressions_[i];
  if (expression.kind == ExpressionKind::Constant) {
    numbers_[i] = expression.a;
    return {};
  }
  if (expression.kind > ExpressionKind::Minimum) {
    return refuse(message, "an expression is of a kind that this runtime does not know");
  }
  const auto is_below = [](int64_t number, size_t end) {
    return number >= 0 && static_cast<uint64_t>(number) < end;
  };
  if (expression.kind != ExpressionKind::InputSize) {
    if (is_below(expression.a, i) && is_below(expression.b, i)) return {};
    return refuse(message, "an expression is made of others that are not before it");
  }
  if (!is_below(expression.a, inputs_.size())) {
    return refuse(message, "an expression names an input that is not there");
  }
  Input& input = inputs_[static_cast<size_t>(expression.a)];
  const bool has_sizes = own(static_cast<size_t>(expression.a)) != nullptr;
  if (expression.b == -1 && !has_sizes) {
    input.is_number = true;
    return {};
  }
  if (has_sizes && is_below(expression.b, input.rank)) return {};
  return refuse(message, "an expression names a dimension that its input does not have");
}

// --- runs ---------------------------------------------------------------------------------------

const Value* Sizes::own(size_t argument) const {
  if (argument >= arguments_.size() || arguments_[argument] < 0) return nullptr;
  return &values_[static_cast<size_t>(arguments_[argument])];
}

bool Sizes::same(EValue* const* args) const {
  if (!taken_) return false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!is_same(inputs_[i], *args[i])) return false;
  }
  return true;
}

bool Sizes::is_same(const Input& input, const EValue& arg) const {
  if (input.is_number) return arg.is_scalar() && arg.to_int() == input.sizes[0];
  if (input.rank == 0) return true;
  if (!arg.is_tensor() || arg.tensor().rank != input.rank) return false;
  for (size_t d = 0; d < input.rank; ++d) {
    if (arg.tensor().size(d) != input.sizes[d]) return false;
  }
  return true;
}

Status Sizes::take(EValue* const* args, Message& message) {
  taken_ = false;
  for (size_t i = 0; i < inputs_.size(); ++i) RL_TRY(take_input(i, *args[i], message));
  for (size_t i = 0; i < expressions_.size(); ++i) RL_TRY(compute(i, message));
  for (size_t i = 0; i < inputs_.size(); ++i) RL_TRY(check_sizes(i, message));
  taken_ = true;
  return {};
}

Status Sizes::take_input(size_t i, const EValue& arg, Message& message) {
  Input& input = inputs_[i];
  if (input.is_number) {
    if (!arg.is_scalar()) {
      return message.fail(Code::InvalidArgument, "input %zu is not a number, but %s", i,
                          tag_name(arg.tag));
    }
    input.sizes[0] = arg.to_int();
    return {};
  }
  if (own(i) == nullptr) return {};
  if (!arg.is_tensor()) {
    return message.fail(Code::InvalidArgument, "input %zu is not a tensor, but %s", i,
                        tag_name(arg.tag));
  }
  const Tensor& tensor = arg.tensor();
  bool fits = tensor.rank == input.rank;
  for (size_t d = 0; fits && d < input.rank; ++d) {
    input.sizes[d] = tensor.size(d);
    fits = input.sizes[d] >= 0 && input.sizes[d] <= input.bounds[d];
  }
  if (fits) return {};
  return message.fail(Code::InvalidArgument,
                      "input %zu has sizes %s, but the delegate was made for %s at most", i,
                      ShapeText(tensor.shape()).text(), text_of(input.bounds, input.rank).text());
}

Status Sizes::compute(size_t i, Message& message) {
  const Expression& expression = expressions_[i];
  if (expression.kind == ExpressionKind::Constant) return {};
  if (expression.kind == ExpressionKind::InputSize) {
    const Input& input = inputs_[static_cast<size_t>(expression.a)];
    numbers_[i] = input.sizes[expression.b < 0 ? 0 : expression.b];
    return {};
  }
  const int64_t a = numbers_[static_cast<size_t>(expression.a)];
  const int64_t b = numbers_[static_cast<size_t>(expression.b)];
  int64_t quotient = 0;
  bool has_value = true;
  switch (expression.kind) {
    case ExpressionKind::Constant:
    case ExpressionKind::InputSize:
      break;
    case ExpressionKind::Add:
      has_value = !__builtin_add_overflow(a, b, &numbers_[i]);
      break;
    case ExpressionKind::Multiply:
      has_value = !__builtin_mul_overflow(a, b, &numbers_[i]);
      break;
    case ExpressionKind::FloorDivide:
      has_value = divide(a, b, &numbers_[i]);
      break;
    case ExpressionKind::Modulo:
      has_value = divide(a, b, &quotient);
      if (has_value) numbers_[i] = a - quotient * b;
      break;
    case ExpressionKind::Maximum:
      numbers_[i] = a > b ? a : b;
      break;
    case ExpressionKind::Minimum:
      numbers_[i] = a < b ? a : b;
      break;
  }
  if (has_value) return {};
  return message.fail(Code::InvalidArgument, "expression %zu, of %lld and %lld, %s", i,
                      static_cast<long long>(a), static_cast<long long>(b),
                      b == 0 ? "divides by zero" : "is beyond 64 bits");
}

// Compares the sizes of input i with those that its value now has.
Status Sizes::check_sizes(size_t i, Message& message) const {
  const Value* value = own(i);
  if (value == nullptr) return {};
  const Input& input = inputs_[i];
  int64_t wanted[kMaxViewRank];
  bool fits = true;
  for (size_t d = 0; d < input.rank; ++d) {
    const int32_t number = value->dynamic_sizes.empty() ? -1 : value->dynamic_sizes[d];
    wanted[d] = number < 0 ? input.bounds[d] : numbers_[static_cast<size_t>(number)];
    fits = fits && wanted[d] == input.sizes[d];
  }
  if (fits) return {};
  return message.fail(Code::InvalidArgument, "input %zu has sizes %s, but %s go with the others", i,
                      text_of(input.sizes, input.rank).text(), text_of(wanted, input.rank).text());
}

bool Sizes::set(Value& value) const {
  View& view = value.view;
  for (size_t d = 0; d < value.dynamic_sizes.size(); ++d) {
    const int32_t number = value.dynamic_sizes[d];
    if (number >= 0) view.sizes[d] = numbers_[static_cast<size_t>(number)];
  }
  for (size_t d = 0; d < value.dynamic_strides.size(); ++d) {
    const int32_t number = value.dynamic_strides[d];
    if (number >= 0) view.strides[d] = numbers_[static_cast<size_t>(number)];
  }
  if (value.dynamic_offset < 0) return true;
  const int64_t offset = numbers_[static_cast<size_t>(value.dynamic_offset)];
  view.offset = static_cast<uint64_t>(offset);
  return offset >= 0;
}

void Sizes::name_inputs(EValue* const* args, Message& message) const {
  message.prepend(": ");
  size_t named = inputs_.size() < kNamed ? inputs_.size() : kNamed;
  if (named < inputs_.size()) message.prepend(", ...");
  while (named-- > 0) {
    const Tensor* tensor = args[named]->tensor_or_null();
    if (tensor != nullptr) {
      message.prepend("%s%s", named > 0 ? ", " : "", ShapeText(tensor->shape()).text());
    } else {
      message.prepend("%s%lld", named > 0 ? ", " : "",
                      static_cast<long long>(args[named]->is_scalar() ? args[named]->to_int() : 0));
    }
  }
  message.prepend("for inputs of sizes ");
}

}  // namespace rushlight::engine
