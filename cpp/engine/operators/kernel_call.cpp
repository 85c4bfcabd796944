// Calls of kernels of the user's own between the engine's operators: arguments are values as a
// method has them, made when the graph is loaded, and given their sizes when these change.
#include "rushlight/kernel/kernel.h"

#include <cstring>

#include "rushlight/engine/operators/operator.h"
#include "rushlight/kernel/foreign_kernel.h"
#include "rushlight/kernel/schema.h"

namespace rushlight::engine {
namespace {

constexpr size_t kMostText = static_cast<size_t>(fb::cpu_engine::Limit::KERNEL_TEXT);

// An input or output as kernels read them.
struct Slot {
  const View* view = nullptr;
  Tensor tensor;
  EValue value;
  int32_t sizes[kMaxViewRank] = {};
  int32_t strides[kMaxViewRank] = {};
};

bool reads(ArgumentKind kind) {
  return kind == ArgumentKind::TENSOR || kind == ArgumentKind::TENSORS ||
         kind == ArgumentKind::OPTIONAL_TENSORS;
}

bool writes(ArgumentKind kind) {
  return kind == ArgumentKind::RESULT || kind == ArgumentKind::RESULTS;
}

bool is_single(ArgumentKind kind) {
  return kind == ArgumentKind::TENSOR || kind == ArgumentKind::RESULT;
}

// How many inputs or outputs an argument takes.
size_t slots_of(const KernelArgument& argument) {
  if (is_single(argument.kind)) return 1;
  return reads(argument.kind) || writes(argument.kind) ? argument.count : 0;
}

bool has_one_integer(ArgumentKind kind) {
  return kind == ArgumentKind::INTEGER || kind == ArgumentKind::BOOLEAN;
}

// Whether an argument has one of its numbers, or a list of them: as many as it needs.
bool has_its_numbers(const KernelArgument& argument) {
  const size_t integers = argument.integers.size();
  if (has_one_integer(argument.kind) && integers != 1) return false;
  if (argument.kind == ArgumentKind::FLOAT && argument.floats.size() != 1) return false;
  return argument.expressions.empty() || argument.expressions.size() == integers;
}

class KernelCallOperator final : public Operator {
 public:
  Status prepare(const KernelCallParameters& parameters, Setup& setup);
  Status run(const Frame& frame) const override;

 private:
  Status check(const KernelCallParameters& parameters, const Setup& setup) const;
  Status make_slots(Span<const uint8_t> dim_orders, Setup& setup);
  Status make_values(Span<const KernelArgument> arguments, Setup& setup);
  Status make_list(const KernelArgument& argument, Slot* first, Setup& setup, EValue* value) const;
  Status set_sizes(Slot& slot, const Setup& setup) const;
  void set_numbers(Span<const KernelArgument> arguments, const Setup& setup) const;
  Status find(StringView name, const Setup& setup);
  Status call(const Frame& frame) const;

  template <typename T>
  Status allocate(size_t n, const Setup& setup, Span<T>* span) const {
    T* data = setup.allocator->allocate_array<T>(n);
    if (data == nullptr && n > 0) return setup.out_of_memory();
    for (size_t i = 0; i < n; ++i) new (data + i) T();
    *span = {data, n};
    return {};
  }

  const Kernel* kernel_ = nullptr;
  Span<Slot> slots_;  // inputs, then outputs
  Span<EValue> values_;
  Span<EValue*> arguments_;  // and the return alias
};

Status KernelCallOperator::prepare(const KernelCallParameters& parameters, Setup& setup) {
  const auto* former = setup.former<KernelCallOperator>();
  if (former != nullptr) {
    *this = *former;
  } else {
    RL_TRY(check(parameters, setup));
    RL_TRY(make_slots(parameters.dim_orders, setup));
    RL_TRY(make_values(parameters.arguments, setup));
  }
  for (Slot& slot : slots_) {
    if (slot.view != nullptr) RL_TRY(set_sizes(slot, setup));
  }
  set_numbers(parameters.arguments, setup);
  return former != nullptr ? Status() : find(parameters.name, setup);
}

Status KernelCallOperator::check(const KernelCallParameters& parameters, const Setup& setup) const {
  size_t inputs = 0, outputs = 0;
  for (const KernelArgument& argument : parameters.arguments) {
    const size_t limit = setup.n_inputs() + setup.n_outputs();
    if (argument.count > limit || !has_its_numbers(argument)) {
      return setup.refuse("an argument of its kernel does not have what it is made of");
    }
    for (const int32_t number : argument.expressions) {
      if (number >= -1 && number < static_cast<int64_t>(setup.numbers.size())) continue;
      return setup.refuse("an argument of its kernel names an expression that is not there");
    }
    if (argument.kind == ArgumentKind::TENSOR && setup.input(inputs) == nullptr) {
      return setup.refuse("its input %zu is missing", inputs);
    }
    inputs += reads(argument.kind) ? slots_of(argument) : 0;
    outputs += writes(argument.kind) ? slots_of(argument) : 0;
  }
  if (inputs != setup.n_inputs() || outputs != setup.n_outputs()) {
    return setup.refuse("its kernel takes %zu inputs and %zu outputs, and it has %zu and %zu",
                        inputs, outputs, setup.n_inputs(), setup.n_outputs());
  }
  return setup.check_present(0, outputs);
}

Status KernelCallOperator::make_slots(Span<const uint8_t> dim_orders, Setup& setup) {
  const size_t n_inputs = setup.n_inputs();
  RL_TRY(allocate(n_inputs + setup.n_outputs(), setup, &slots_));
  const uint8_t* dim_order = dim_orders.begin();
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.view = i < n_inputs ? setup.input(i) : setup.output(i - n_inputs);
    if (slot.view == nullptr) continue;
    const size_t rank = slot.view->rank;
    if (rank > static_cast<size_t>(dim_orders.end() - dim_order) ||
        !is_permutation(dim_order, rank)) {
      return setup.refuse("the dim orders of its inputs and outputs are not valid");
    }
    slot.tensor.sizes = slot.sizes;
    slot.tensor.strides = slot.strides;
    slot.tensor.dim_order = dim_order;
    slot.tensor.dtype = slot.view->dtype;
    slot.tensor.rank = static_cast<uint8_t>(rank);
    slot.tensor.read_only = i < n_inputs;
    slot.value.tag = Tag::Tensor;
    slot.value.t = &slot.tensor;
    dim_order += rank;
  }
  return {};
}

Status KernelCallOperator::make_values(Span<const KernelArgument> arguments, Setup& setup) {
  RL_TRY(allocate(arguments.size(), setup, &values_));
  RL_TRY(allocate(arguments.size() + 1, setup, &arguments_));
  Slot* input = slots_.begin();
  Slot* output = input + setup.n_inputs();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    Slot*& next = writes(argument.kind) ? output : input;
    arguments_[i] = is_single(argument.kind) ? &next->value : &values_[i];
    if (!is_single(argument.kind)) RL_TRY(make_list(argument, next, setup, &values_[i]));
    next += slots_of(argument);
  }
  arguments_[arguments.size()] = arguments_[arguments.empty() ? 0 : arguments.size() - 1];
  return {};
}

// The value of an argument that is no tensor; numbers are set apart.
Status KernelCallOperator::make_list(const KernelArgument& argument, Slot* first, Setup& setup,
                                     EValue* value) const {
  const auto n_integers = static_cast<uint32_t>(argument.integers.size());
  Span<EValue*> items;
  Span<EValue> numbers;
  Span<uint8_t> bools;
  switch (argument.kind) {
    case ArgumentKind::TENSORS:
    case ArgumentKind::OPTIONAL_TENSORS:
    case ArgumentKind::RESULTS:
      RL_TRY(allocate(argument.count, setup, &items));
      for (size_t k = 0; k < items.size(); ++k) {
        const bool is_there = first[k].view != nullptr;
        if (!is_there && argument.kind != ArgumentKind::OPTIONAL_TENSORS) {
          return setup.refuse("a tensor of a list is missing");
        }
        items[k] = is_there ? &first[k].value : nullptr;
      }
      value->tag = argument.kind == ArgumentKind::OPTIONAL_TENSORS ? Tag::OptionalTensorList
                                                                   : Tag::TensorList;
      value->list = {items.data(), argument.count};
      return {};
    case ArgumentKind::INTEGERS:
      RL_TRY(allocate(n_integers, setup, &items));
      RL_TRY(allocate(n_integers, setup, &numbers));
      for (size_t k = 0; k < items.size(); ++k) items[k] = &numbers[k];
      value->tag = Tag::IntList;
      value->list = {items.data(), n_integers};
      return {};
    case ArgumentKind::BOOLEANS:
      RL_TRY(allocate(n_integers, setup, &bools));
      for (size_t k = 0; k < bools.size(); ++k) bools[k] = argument.integers[k] != 0 ? 1 : 0;
      value->tag = Tag::BoolList;
      value->list = {bools.data(), n_integers};
      return {};
    case ArgumentKind::FLOATS:
      value->tag = Tag::DoubleList;
      value->list = {argument.floats.data(), static_cast<uint32_t>(argument.floats.size())};
      return {};
    case ArgumentKind::FLOAT:
      value->set_double(argument.floats[0]);
      return {};
    case ArgumentKind::TEXT:
      value->tag = Tag::String;
      value->list = {argument.text.data(), static_cast<uint32_t>(argument.text.size())};
      return {};
    default:  // None, and single numbers
      return {};
  }
}

Status KernelCallOperator::set_sizes(Slot& slot, const Setup& setup) const {
  const View& view = *slot.view;
  Tensor& tensor = slot.tensor;
  bool fits = true;
  for (size_t d = 0; d < view.rank; ++d) {
    fits = fits && view.sizes[d] <= INT32_MAX;
    slot.sizes[d] = fits ? static_cast<int32_t>(view.sizes[d]) : 0;
  }
  fits = fits && strides_of(tensor.shape(), tensor.dim_order, slot.strides);
  for (size_t d = 0; d < view.rank && fits && view.numel > 0; ++d) {
    fits = view.sizes[d] <= 1 || view.strides[d] == slot.strides[d];
  }
  if (!fits) {
    return setup.refuse(
        "its sizes %s with strides %s are not those of a dense tensor in its dim "
        "order",
        text_of(view).text(), text_of(view.strides, view.rank).text());
  }
  tensor.numel = view.numel;
  tensor.capacity = view.numel;
  return {};
}

void KernelCallOperator::set_numbers(Span<const KernelArgument> arguments,
                                     const Setup& setup) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    const auto number = [&](size_t k) {
      const int32_t expression = argument.expressions.empty() ? -1 : argument.expressions[k];
      return expression < 0 ? argument.integers[k] : setup.numbers[static_cast<size_t>(expression)];
    };
    if (argument.kind == ArgumentKind::INTEGER) values_[i].set_int(number(0));
    if (argument.kind == ArgumentKind::BOOLEAN) values_[i].set_bool(number(0) != 0);
    if (argument.kind != ArgumentKind::INTEGERS) continue;
    auto* const* items = static_cast<EValue* const*>(values_[i].list.items);
    for (size_t k = 0; k < values_[i].size(); ++k) items[k]->set_int(number(k));
  }
}

// Looks the kernel up, and checks that it takes these arguments.
Status KernelCallOperator::find(StringView name, const Setup& setup) {
  char text[kMostText + 1] = {};
  std::memcpy(text, name.data(), name.size());
  Message& message = *setup.message;
  if (setup.kernels != nullptr) {
    kernel_ = setup.kernels->find(name, arguments_.data(), arguments_.size());
  }
  if (kernel_ == nullptr) {
    const bool is_there = setup.kernels != nullptr && setup.kernels->has(name);
    const bool is_listed = std::strstr(message.text(), text) != nullptr;
    if (!is_listed) {
      message.append("%s %s%s", message.empty() ? "no kernel for" : ",", text,
                     is_there ? " of these dtypes" : "");
    }
    return Code::OperatorMissing;
  }
  if (kernel_->self == nullptr || !kernel_->self->in_delegates) {
    return message.fail(Code::NotSupported,
                        "the kernel of %s does not say that it may be called inside a delegate, "
                        "where the program has it: declare it so, or export with this kernel",
                        text);
  }
  const StringView schema = find_schema(setup.schemas, name);
  Status status = schema.empty() ? Status() : check_schema(*kernel_, schema, message);
  if (status.ok()) {
    status = check_arguments(*kernel_, arguments_.data(), arguments_.size(), message);
  }
  if (!status.ok()) message.prepend("%s: ", text);
  return status;
}

Status KernelCallOperator::run(const Frame& frame) const {
  for (Slot& slot : slots_) {
    if (slot.view != nullptr) slot.tensor.data = frame.at<uint8_t>(*slot.view);
  }
  const Status status = call(frame);
  frame.kernel_scratch->reset();
  if (!status.ok()) frame.message->prepend("%s: ", kernel_->name);
  return status;
}

Status KernelCallOperator::call(const Frame& frame) const {
  // Arguments of a delegate may share memory, which is known in runs alone.
  RL_TRY(check_written(*kernel_, arguments_.data(), arguments_.size(), *frame.message));
  KernelContext context(*frame.message, &frame.kernel_scratch->memory(), frame.workers);
  context.set_kernel(kernel_);
  if (frame.shadow != nullptr) {
    return run_guarded(*kernel_, context, arguments_.data(), *frame.shadow);
  }
  return kernel_->fn(context, arguments_.data());
}

}  // namespace

KernelScratch::KernelScratch(Allocator* run) : run_(run) {
  if (run == nullptr) return;
  void* start = run->allocate(0, KernelContext::kScratchAlignment);
  memory_ = Allocator(start, run->left(KernelContext::kScratchAlignment));
}

void KernelScratch::reset() {
  if (memory_.used() > most_) most_ = memory_.used();
  memory_.reset();
}

void KernelScratch::count() {
  if (most_ > 0) (void)run_->allocate(most_, 1);
}

Result<Operator*> make_operator(const KernelCallParameters& parameters, Setup& setup) {
  return setup.make<KernelCallOperator>(parameters);
}

}  // namespace rushlight::engine
