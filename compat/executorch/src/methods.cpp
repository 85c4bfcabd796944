#include "methods.h"

#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>

#include <new>

#include "rushlight/core/host_tensor.h"
#include "rushlight/program/program.h"
#include "rushlight/program/program_fb.h"
#include "values.h"

namespace executorch::runtime {
namespace internal {
namespace {

// Ok, or the code after a line for the log.
Error logged(const ::rushlight::Method& method, ::rushlight::Status status) {
  if (!status.ok() && status.code() != Error::EndOfMethod) {
    ET_LOG(Error, "%s", method.message().text());
  }
  return status.code();
}

}  // namespace

void LoadedMethod::set_views(void* memory) {
  views = static_cast<View*>(memory);
  const size_t count = method->n_inputs() + method->n_outputs();
  for (size_t i = 0; i < count; ++i) new (&views[i]) View();
}

const EValue& LoadedMethod::update(View& view, const ::rushlight::EValue& value) {
  if (value.tag == ::rushlight::Tag::String) {
    view.text = {value.string().data(), value.string().size()};
    view.value = EValue(&view.text);
  } else {
    view.value = view_of(value);
  }
  return view.value;
}

Error set_input(::rushlight::Method& method, const EValue& value, size_t index) {
  switch (value.tag) {
    case Tag::Tensor: {
      // The caller's tensor may have no strides.
      const aten::Tensor& tensor = value.toTensor();
      const ::rushlight::HostTensor host(static_cast<::rushlight::DType>(tensor.scalar_type()),
                                         {tensor.sizes().data(), tensor.sizes().size()},
                                         tensor.const_data_ptr(), tensor.dim_order().data());
      return logged(method, method.set_input(index, host));
    }
    case Tag::Int:
      return logged(method, method.set_input_int(index, value.toInt()));
    case Tag::Double:
      return logged(method, method.set_input_double(index, value.toDouble()));
    case Tag::Bool:
      return logged(method, method.set_input_bool(index, value.toBool()));
    case Tag::String:
      return logged(method, method.set_input_string(
                                index, {value.toString().data(), value.toString().size()}));
    case Tag::None:
      return logged(method, method.set_input_none(index));
    default:
      ET_LOG(Error, "input %zu is a %s: give a tensor, a number, a text or nothing", index,
             tag_to_string(value.tag));
      return Error::InvalidArgument;
  }
}

}  // namespace internal

Method::~Method() {
  if (loaded_ != nullptr) loaded_->destroy();
}

Error Method::set_input(const EValue& value, size_t index) {
  return internal::set_input(*loaded_->method, value, index);
}

Error Method::set_inputs(const aten::ArrayRef<EValue>& values) {
  ET_CHECK_OR_RETURN_ERROR(values.size() == inputs_size(), InvalidArgument,
                           "%zu inputs are given, but the method has %zu", values.size(),
                           inputs_size());
  for (size_t i = 0; i < values.size(); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(set_input(values[i], i));
  }
  return Error::Ok;
}

Error Method::set_output_data_ptr(void* buffer, size_t size, size_t index) {
  return internal::logged(*loaded_->method, loaded_->method->set_output_data(index, buffer, size));
}

Error Method::get_outputs(EValue* values, size_t length) {
  ET_CHECK_OR_RETURN_ERROR(values != nullptr && length >= outputs_size(), InvalidArgument,
                           "there is room for %zu outputs, but the method has %zu", length,
                           outputs_size());
  for (size_t i = 0; i < length; ++i) values[i] = i < outputs_size() ? get_output(i) : EValue();
  return Error::Ok;
}

Error Method::get_inputs(EValue* values, size_t length) {
  ET_CHECK_OR_RETURN_ERROR(values != nullptr && length >= inputs_size(), InvalidArgument,
                           "there is room for %zu inputs, but the method has %zu", length,
                           inputs_size());
  for (size_t i = 0; i < length; ++i) {
    values[i] = i < inputs_size() ? loaded_->view_input(i) : EValue();
  }
  return Error::Ok;
}

Result<aten::Tensor> Method::get_attribute(std::string_view name) {
  const auto values = loaded_->method->meta().plan().values();
  for (size_t i = 0; i < values.size(); ++i) {
    if (loaded_->method->value(i).tag != ::rushlight::Tag::Tensor) continue;
    const ::rushlight::StringView known =
        values[i].val_as_Tensor().extra_tensor_info().fully_qualified_name();
    if (known.empty() || known != ::rushlight::StringView(name.data(), name.size())) continue;
    return aten::Tensor(aten::TensorImpl::of(loaded_->method->value(i).t));
  }
  return Error::NotFound;
}

Error Method::execute() { return internal::logged(*loaded_->method, loaded_->method->execute()); }

Error Method::step() { return internal::logged(*loaded_->method, loaded_->method->step()); }

bool Method::in_progress() const { return loaded_->method->in_steps(); }

Error Method::reset_execution() {
  return internal::logged(*loaded_->method, loaded_->method->reset());
}

MethodMeta Method::method_meta() const { return MethodMeta(loaded_->method->meta()); }

size_t Method::inputs_size() const { return loaded_->method->n_inputs(); }

size_t Method::outputs_size() const { return loaded_->method->n_outputs(); }

const EValue& Method::get_output(size_t index) const {
  ET_CHECK_MSG(index < outputs_size(), "there is no output %zu among %zu", index, outputs_size());
  return loaded_->view_output(index);
}

const EValue& Method::get_input(size_t index) const {
  ET_CHECK_MSG(index < inputs_size(), "there is no input %zu among %zu", index, inputs_size());
  return loaded_->view_input(index);
}

EventTracer* Method::get_event_tracer() { return loaded_->tracer; }

::rushlight::Method& Method::rushlight() { return *loaded_->method; }

}  // namespace executorch::runtime
