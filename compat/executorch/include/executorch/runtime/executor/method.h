// A method that is ready to run.
#pragma once

#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/merged_data_map.h>
#include <executorch/runtime/executor/method_meta.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/compiler.h>

#include <string_view>

namespace rushlight {
class Method;
}  // namespace rushlight

namespace executorch::runtime {

namespace internal {
struct LoadedMethod;
}  // namespace internal

class Method final {
 public:
  // For Program and Module, which make methods.
  explicit Method(internal::LoadedMethod* loaded) : loaded_(loaded) {}
  Method(Method&& other) noexcept : loaded_(other.loaded_) { other.loaded_ = nullptr; }
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  Method& operator=(Method&&) = delete;
  ~Method();

  ET_NODISCARD Error set_input(const EValue& value, size_t index);
  ET_NODISCARD Error set_inputs(const aten::ArrayRef<EValue>& values);
  // For outputs that the program does not plan.
  ET_NODISCARD Error set_output_data_ptr(void* buffer, size_t size, size_t index);
  ET_NODISCARD Error get_outputs(EValue* values, size_t length);
  ET_DEPRECATED ET_NODISCARD Error get_inputs(EValue* values, size_t length);
  // A mutable tensor by its name.
  ET_NODISCARD Result<aten::Tensor> get_attribute(std::string_view name);
  ET_NODISCARD Error execute();
  ET_EXPERIMENTAL ET_NODISCARD Error step();
  ET_EXPERIMENTAL ET_NODISCARD bool in_progress() const;
  ET_EXPERIMENTAL ET_NODISCARD Error reset_execution();
  MethodMeta method_meta() const;
  size_t inputs_size() const;
  size_t outputs_size() const;
  // Valid until the next run. The index must be in range.
  const EValue& get_output(size_t index) const;
  ET_DEPRECATED const EValue& get_input(size_t index) const;
  EventTracer* get_event_tracer();
  ::rushlight::Method& rushlight();

 private:
  internal::LoadedMethod* loaded_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Method;
}  // namespace torch::executor
