#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {

Status Setup::begin(const Node& next, Operator* former) {
  node_ = &next;
  former_ = former;
  for (size_t i = 0; i < next.inputs.size(); ++i) {
    if (next.inputs[i] >= 0 && input(i) == nullptr) return refuse("it names no value");
  }
  for (size_t i = 0; i < next.outputs.size(); ++i) {
    const View* view = output(i);
    if (next.outputs[i] < 0) continue;
    if (view == nullptr) return refuse("it names no value");
    if (!may_write(*view)) return refuse("it writes an input or a constant");
  }
  return {};
}

const View* Setup::named(Span<const int32_t> numbers, size_t i) const {
  if (i >= numbers.size() || numbers[i] < 0) return nullptr;
  return value(static_cast<size_t>(numbers[i]));
}

Status Setup::check_floats(size_t inputs, size_t needed, size_t outputs, size_t weights) const {
  if (!has_values(inputs, outputs)) return refuse("it has too many values");
  for (size_t i = 0; i < inputs; ++i) {
    const View* view = input(i);
    if (view == nullptr && i < needed) return refuse("an input is missing");
    if (view == nullptr) continue;
    const bool is_half = view->dtype == DType::BFloat16 || view->dtype == DType::Float16;
    if (view->dtype != DType::Float32 && !(is_half && weights != 0 && i == weights)) {
      return refuse("an input is not float32");
    }
    if (has_repeats(*view)) return refuse("an input repeats elements");
  }
  for (size_t i = 0; i < outputs; ++i) {
    const View* view = output(i);
    if (view == nullptr && i == 0) return refuse("an output is missing");
    if (view == nullptr) continue;
    if (view->dtype != DType::Float32) return refuse("an output is not float32");
    if (has_repeats(*view)) return refuse("an output repeats elements");
  }
  return {};
}

Status Setup::check_dtypes(std::initializer_list<DType> inputs,
                           std::initializer_list<DType> outputs, size_t optional) const {
  if (node_->inputs.size() > inputs.size() || node_->outputs.size() != outputs.size()) {
    return refuse("it has too many values, or too few");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const View* view = input(i);
    if (view == nullptr && i + optional >= inputs.size()) continue;
    if (view == nullptr) return refuse("an input is missing");
    if (view->dtype != inputs.begin()[i]) return refuse("an input has another dtype");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const View* view = output(i);
    if (view == nullptr) return refuse("an output is missing");
    if (view->dtype != outputs.begin()[i]) return refuse("its output has another dtype");
    if (has_repeats(*view)) return refuse("its output repeats elements");
  }
  return {};
}

Status Setup::refuse(const char* why) const {
  return message->fail(Code::DelegateInvalidCompatibility, "%s", why);
}

Status Setup::out_of_memory() const {
  return message->fail(Code::DelegateMemoryAllocationFailed,
                       "the method's memory has no room for the delegate");
}

}  // namespace rushlight::engine
