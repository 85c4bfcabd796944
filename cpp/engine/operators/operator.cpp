#include "rushlight/engine/operators/operator.h"

#include <cstdarg>

namespace rushlight::engine {

Status Setup::begin(const Node& next, Operator* former) {
  node_ = &next;
  former_ = former;
  for (size_t i = 0; i < next.inputs.size(); ++i) {
    if (next.inputs[i] >= 0 && input(i) == nullptr) {
      return refuse("its input %zu is value %d, which is not in the graph", i, next.inputs[i]);
    }
  }
  for (size_t i = 0; i < next.outputs.size(); ++i) {
    if (next.outputs[i] < 0) continue;
    const View* view = output(i);
    if (view == nullptr) {
      return refuse("its output %zu is value %d, which is not in the graph", i, next.outputs[i]);
    }
    if (!may_write(*view)) {
      return refuse("its output %zu is value %d, which is an input or a constant", i,
                    next.outputs[i]);
    }
  }
  return {};
}

const View* Setup::named(Span<const int32_t> numbers, size_t i) const {
  if (i >= numbers.size() || numbers[i] < 0) return nullptr;
  return value(static_cast<size_t>(numbers[i]));
}

// --- checks of values
// -----------------------------------------------------------------------------

Status Setup::check_floats(size_t inputs, size_t needed, size_t outputs, size_t weights) const {
  RL_TRY(check_at_most(inputs, outputs));
  for (size_t i = 0; i < inputs; ++i) {
    const View* view = input(i);
    if (view == nullptr && i < needed) return missing("input", i);
    if (view == nullptr) continue;
    const bool is_half = view->dtype == DType::BFloat16 || view->dtype == DType::Float16;
    const bool is_weight = is_half && weights != 0 && i == weights;
    if (!is_weight) RL_TRY(check_dtype("input", i, *view, DType::Float32));
    RL_TRY(check_no_repeats("input", i, *view));
  }
  for (size_t i = 0; i < outputs; ++i) {
    const View* view = output(i);
    if (view == nullptr && i == 0) return missing("output", i);
    if (view == nullptr) continue;
    RL_TRY(check_dtype("output", i, *view, DType::Float32));
    RL_TRY(check_no_repeats("output", i, *view));
  }
  return {};
}

Status Setup::check_dtypes(std::initializer_list<DType> inputs,
                           std::initializer_list<DType> outputs, size_t optional) const {
  RL_TRY(check_at_most(inputs.size(), outputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const View* view = input(i);
    if (view == nullptr && i + optional >= inputs.size()) continue;
    if (view == nullptr) return missing("input", i);
    RL_TRY(check_dtype("input", i, *view, inputs.begin()[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const View* view = output(i);
    if (view == nullptr) return missing("output", i);
    RL_TRY(check_dtype("output", i, *view, outputs.begin()[i]));
    RL_TRY(check_no_repeats("output", i, *view));
  }
  return {};
}

Status Setup::check_input(size_t i, DType dtype) const {
  const View* view = input(i);
  return view == nullptr ? Status() : check_dtype("input", i, *view, dtype);
}

Status Setup::check_output(size_t i, DType dtype) const {
  const View* view = output(i);
  return view == nullptr ? Status() : check_dtype("output", i, *view, dtype);
}

Status Setup::check_present(size_t inputs, size_t outputs) const {
  for (size_t i = 0; i < inputs; ++i) {
    if (input(i) == nullptr) return missing("input", i);
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (output(i) == nullptr) return missing("output", i);
  }
  return {};
}

Status Setup::check_no_repeats(const char* kind, size_t i, const View& view) const {
  if (!has_repeats(view)) return {};
  return refuse("its %s %zu has sizes %s and strides %s, which repeat elements", kind, i,
                text_of(view).text(), text_of(view.strides, view.rank).text());
}

Status Setup::read_rows(const char* name, const View& view, Rows* rows) const {
  if (as_rows(view, rows)) return {};
  return refuse("the sizes %s and strides %s of %s are not those of rows without gaps",
                text_of(view).text(), text_of(view.strides, view.rank).text(), name);
}

Status Setup::check_elements(const char* name, const View& view, int64_t numel) const {
  if (is_dense(view) && view.numel == numel) return {};
  if (numel < 0) return refuse("%s would need more elements than a value may have", name);
  return refuse("the sizes %s and strides %s of %s are not those of %lld elements without gaps",
                text_of(view).text(), text_of(view.strides, view.rank).text(), name,
                static_cast<long long>(numel));
}

Status Setup::check_same_sizes(const char* name, const View& view, const char* other_name,
                               const View& other) const {
  if (same_sizes(view, other)) return {};
  return refuse("%s and %s have sizes %s and %s: they must be equal", name, other_name,
                text_of(view).text(), text_of(other).text());
}

// --- errors
// ---------------------------------------------------------------------------------------

Status Setup::missing(const char* kind, size_t i) const {
  return refuse("its %s %zu is missing", kind, i);
}

Status Setup::check_at_most(size_t inputs, size_t outputs) const {
  if (node_->inputs.size() <= inputs && node_->outputs.size() <= outputs) return {};
  return refuse("it has %zu inputs and %zu outputs, but at most %zu and %zu are allowed",
                node_->inputs.size(), node_->outputs.size(), inputs, outputs);
}

Status Setup::check_dtype(const char* kind, size_t i, const View& view, DType dtype) const {
  if (view.dtype == dtype) return {};
  return refuse("its %s %zu is %s, but must be %s", kind, i, dtype_name(view.dtype),
                dtype_name(dtype));
}

Status Setup::refuse(const char* format, ...) const {
  std::va_list args;
  va_start(args, format);
  const Status status = message->vfail(Code::DelegateInvalidCompatibility, format, args);
  va_end(args);
  return status;
}

Status Setup::out_of_memory() const {
  return message->fail(Code::DelegateMemoryAllocationFailed,
                       "the method's memory has no room for the delegate");
}

bool read_scale_type(const View& scales, ScaleType* type) {
  *type = ScaleType::Float32;
  if (scales.dtype == DType::BFloat16) *type = ScaleType::BFloat16;
  if (scales.dtype == DType::Float16) *type = ScaleType::Float16;
  return scales.dtype == DType::Float32 || *type != ScaleType::Float32;
}

}  // namespace rushlight::engine
