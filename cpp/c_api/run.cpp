// Running a method.
#include <algorithm>
#include <cstring>

#include "rushlight/c_api/inputs.h"

namespace rushlight::c_api {
namespace {

Status set_inputs(MethodFace& face, Method& method, const rl_value_v1* inputs, uint32_t n_inputs,
                  Message* message) {
  if (n_inputs != method.n_inputs()) {
    return message->fail(Code::InvalidArgument, "%.*s: got %u inputs, the method takes %zu",
                         method.name().len(), method.name().data(), static_cast<unsigned>(n_inputs),
                         method.n_inputs());
  }
  if (n_inputs > 0) RL_TRY(check_given(inputs, "inputs", message));
  std::fill(face.known.begin(), face.known.end(), Contract::kUnknown);
  for (uint32_t i = 0; i < n_inputs; ++i) {
    rl_value_v1 value = {};
    RL_TRY(read_item(inputs, i, &value, message));
    RL_TRY(set_input(face, method, i, value, message));
  }
  return face.contract.check_relations(method.meta(), {face.known.data(), face.known.size()},
                                       message);
}

Status check_outputs(const Method& method, const rl_value_v1* outputs, uint32_t n_outputs,
                     Message* message) {
  if (n_outputs > method.n_outputs()) {
    return message->fail(Code::InvalidArgument, "%.*s: %u outputs are wanted, the method has %zu",
                         method.name().len(), method.name().data(),
                         static_cast<unsigned>(n_outputs), method.n_outputs());
  }
  if (n_outputs > 0) RL_TRY(check_given(outputs, "outputs", message));
  rl_value_v1 unused = {};
  for (uint32_t i = 0; i < n_outputs; ++i) RL_TRY(read_item(outputs, i, &unused, message));
  return {};
}

// Copies an output to where the caller wants it, unless it is there.
Status move_output(const MethodFace::Output& output, const Method& method, size_t index,
                   rl_value_v1* value, Message* message) {
  if (output.data == nullptr || value->kind != RL_TENSOR || value->data == output.data) return {};
  if (value->nbytes > output.bytes) {
    return message->fail(Code::InvalidArgument,
                         "%.*s: output %zu has %zu bytes, more than the %zu that were set for it",
                         method.name().len(), method.name().data(), index, value->nbytes,
                         output.bytes);
  }
  if (value->nbytes > 0) std::memmove(output.data, value->data, value->nbytes);
  value->data = output.data;
  value->capacity = output.bytes;
  return {};
}

Status run(ModuleObject& object, const char* name, const rl_value_v1* inputs, uint32_t n_inputs,
           rl_value_v1* outputs, uint32_t n_outputs, Failing& failing) {
  Message& message = failing.message;
  const Result<size_t> index = object.find(name, &message);
  if (!index.ok()) return index.status();
  const Result<Method*> loaded = object.load(index.value(), failing);
  if (!loaded.ok()) return loaded.status();
  Method& method = *loaded.value();
  const Result<MethodFace*> known = object.face(index.value(), &message);
  if (!known.ok()) return known.status();
  MethodFace& face = *known.value();
  RL_TRY(check_outputs(method, outputs, n_outputs, &message));
  const Status set = set_inputs(face, method, inputs, n_inputs, &message);
  if (!set.ok()) {
    if (object.report != nullptr && !object.report->has_failure()) {
      method.report_refusal(set.code(), message.text());
    }
    return set;
  }
  const Status status = method.execute();
  if (!status.ok()) {
    message = method.message();
    failing.instruction = method.failed_instruction();
    failing.delegate = method.failed_delegate();
    return status;
  }
  auto* to = reinterpret_cast<uint8_t*>(outputs);
  for (size_t i = 0; i < method.n_outputs(); ++i) {
    rl_value_v1 value = value_of(method.output(i));
    RL_TRY(move_output(face.outputs[i], method, i, &value, &message));
    if (i >= n_outputs) continue;
    RL_TRY(write_struct(value, reinterpret_cast<rl_value_v1*>(to), "rl_value_v1", &message));
    to += outputs[0].size;
  }
  return {};
}

Status set_output(ModuleObject& object, const char* name, uint32_t i, void* data, size_t bytes,
                  Failing& failing) {
  Message& message = failing.message;
  const Result<size_t> index = object.find(name, &message);
  if (!index.ok()) return index.status();
  const Result<Method*> loaded = object.load(index.value(), failing);
  if (!loaded.ok()) return loaded.status();
  Method& method = *loaded.value();
  const Result<MethodFace*> known = object.face(index.value(), &message);
  if (!known.ok()) return known.status();
  if (i >= method.n_outputs() || method.meta().output(i).tag != Tag::Tensor) {
    return message.fail(Code::InvalidArgument, "%s: output %u is no tensor: the method has %zu",
                        name, static_cast<unsigned>(i), method.n_outputs());
  }
  MethodFace::Output& output = known.value()->outputs[i];
  const TensorMeta meta = method.meta().output(i).tensor;
  if (data != nullptr && reinterpret_cast<uintptr_t>(data) % element_alignment(meta.dtype) != 0) {
    return message.fail(Code::InvalidArgument, "%s: output %u: its memory is not aligned for %s",
                        name, static_cast<unsigned>(i), dtype_name(meta.dtype));
  }
  if (method.output_needs_data(i)) {
    const Tensor& tensor = method.output(i).tensor();
    if (output.own == nullptr) {
      output.own = tensor.data;
      output.own_bytes = static_cast<size_t>(tensor.capacity) * element_size(tensor.dtype);
    }
    const Status status = data != nullptr ? method.set_output_data(i, data, bytes)
                                          : method.set_output_data(i, output.own, output.own_bytes);
    if (!status.ok()) {
      message = method.message();
      return status;
    }
  } else if (data != nullptr && meta.dynamism == Dynamism::Static && bytes < meta.nbytes) {
    return message.fail(Code::InvalidArgument, "%s: output %u: got %zu bytes, it takes %zu", name,
                        static_cast<unsigned>(i), bytes, meta.nbytes);
  }
  output.data = data;
  output.bytes = bytes;
  return {};
}

}  // namespace
}  // namespace rushlight::c_api

using namespace rushlight;
using namespace rushlight::c_api;

rl_status rl_module_load(rl_module* module, const char* method, rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error,
                             [&](ModuleObject& object, Failing& failing) -> Status {
                               const Result<size_t> index = object.find(method, &failing.message);
                               if (!index.ok()) return index.status();
                               RL_TRY(object.load(index.value(), failing).status());
                               return object.face(index.value(), &failing.message).status();
                             });
}

rl_status rl_module_unload(rl_module* module, const char* method, rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error,
                             [&](ModuleObject& object, Failing& failing) -> Status {
                               const Result<size_t> index = object.find(method, &failing.message);
                               if (!index.ok()) return index.status();
                               object.module.unload(method);
                               MethodFace* face = object.faces[index.value()].get();
                               if (face != nullptr) face->forget();  // its names stay lent
                               return {};
                             });
}

rl_status rl_module_run(rl_module* module, const char* method, const rl_value_v1* inputs,
                        uint32_t n_inputs, rl_value_v1* outputs, uint32_t n_outputs,
                        rl_error* error) {
  return enter<ModuleObject>(
      module, Use::Alone, error, [&](ModuleObject& object, Failing& failing) {
        if (object.report != nullptr) object.report->clear();
        return run(object, method, inputs, n_inputs, outputs, n_outputs, failing);
      });
}

rl_status rl_module_set_output(rl_module* module, const char* method, uint32_t index, void* data,
                               size_t bytes, rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error,
                             [&](ModuleObject& object, Failing& failing) {
                               return set_output(object, method, index, data, bytes, failing);
                             });
}
