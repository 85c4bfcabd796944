// What a Method of ExecuTorch's interface consists of.
#pragma once

#include <executorch/runtime/executor/method.h>

#include "rushlight/method/method.h"
#include "tracers.h"

namespace executorch::runtime::internal {

// A method that was loaded, and views of its inputs and outputs. It owns the views alone: what
// derives from it may own the method.
struct LoadedMethod {
  LoadedMethod() = default;
  LoadedMethod(const LoadedMethod&) = delete;
  LoadedMethod& operator=(const LoadedMethod&) = delete;
  virtual ~LoadedMethod() = default;
  // Gives back the object and its memory.
  virtual void destroy() = 0;

  // The bytes of views of so many values; set_views() makes them in such memory.
  static size_t view_bytes(const ::rushlight::MethodMeta& meta) {
    return (meta.n_inputs() + meta.n_outputs()) * sizeof(View);
  }
  void set_views(void* memory);
  const EValue& view_input(size_t i) { return update(views[i], method->input(i)); }
  const EValue& view_output(size_t i) {
    return update(views[method->n_inputs() + i], method->output(i));
  }

  struct View {
    EValue value;
    aten::ArrayRef<char> text;
  };
  ::rushlight::Method* method = nullptr;
  View* views = nullptr;
  EventTracer* tracer = nullptr;

 private:
  static const EValue& update(View& view, const ::rushlight::EValue& value);
};

Error set_input(::rushlight::Method& method, const EValue& value, size_t index);

}  // namespace executorch::runtime::internal
