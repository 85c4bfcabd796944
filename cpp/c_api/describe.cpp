// What a module and its methods are: names, dtypes, ranges of sizes, memory.
#include <algorithm>
#include <climits>

#include "rushlight/c_api/module_object.h"

namespace rushlight::c_api {
namespace {

uint32_t kind_of(Tag tag) {
  switch (tag) {
    case Tag::None:
      return RL_NONE;
    case Tag::Tensor:
      return RL_TENSOR;
    case Tag::String:
      return RL_STRING;
    case Tag::Double:
      return RL_DOUBLE;
    case Tag::Int:
      return RL_INT;
    case Tag::Bool:
      return RL_BOOL;
    default:
      return RL_LIST;
  }
}

void describe_tensor(const TensorMeta& tensor, const ValueContract& contract, rl_value_info* info) {
  info->dtype = static_cast<int32_t>(tensor.dtype);
  info->rank = tensor.rank;
  for (size_t k = 0; k < tensor.rank; ++k) {
    info->min_sizes[k] = static_cast<int32_t>(contract.sizes[k].least);
    info->max_sizes[k] = static_cast<int32_t>(contract.sizes[k].most);
    info->symbols[k] = contract.sizes[k].symbol;
    info->dim_order[k] = tensor.dim_order[k];
  }
  info->nbytes = tensor.nbytes == SIZE_MAX ? UINT64_MAX : tensor.nbytes;
  info->is_planned = tensor.planned;
}

rl_value_info describe(const ValueMeta& meta, const ValueContract& contract) {
  rl_value_info info = {};
  info.kind = kind_of(meta.tag);
  info.name = {contract.name.data(), contract.name.size()};
  if (meta.tag == Tag::Tensor) {
    describe_tensor(meta.tensor, contract, &info);
    return info;
  }
  info.i = meta.i;
  info.d = meta.d;
  info.text = text_of(meta.text);
  info.is_fixed = contract.is_fixed;
  info.min_int = contract.is_fixed ? meta.i : contract.range.least;
  info.max_int = contract.is_fixed ? meta.i : contract.range.most;
  return info;
}

template <class Body>
rl_status with_meta(rl_module* module, const char* method, rl_error* error, const Body& body) {
  return enter<ModuleObject>(
      module, Use::Alone, error, [&](ModuleObject& object, Failing& failing) -> Status {
        Message& message = failing.message;
        const Result<size_t> index = object.find(method, &message);
        if (!index.ok()) return index.status();
        const Result<MethodMeta> meta = object.module.program().method_meta(method, &message);
        if (!meta.ok()) return meta.status();
        return body(object, index.value(), meta.value(), message);
      });
}

rl_status describe_value(rl_module* module, const char* method, bool is_input, uint32_t i,
                         rl_value_info* info, rl_error* error) {
  return with_meta(
      module, method, error,
      [&](ModuleObject& object, size_t index, const MethodMeta& meta, Message& message) -> Status {
        const size_t count = is_input ? meta.n_inputs() : meta.n_outputs();
        const char* kind = is_input ? "input" : "output";
        if (i >= count) {
          return message.fail(Code::InvalidArgument, "%s: there is no %s %u: the method has %zu",
                              method, kind, static_cast<unsigned>(i), count);
        }
        const Result<MethodFace*> face = object.face(index, &message);
        if (!face.ok()) return face.status();
        const Contract& contract = face.value()->contract;
        const rl_value_info told = is_input ? describe(meta.input(i), contract.inputs[i])
                                            : describe(meta.output(i), contract.outputs[i]);
        return write_struct(told, info, "rl_value_info", &message);
      });
}

// `body(const Contract&, Message&)`.
template <class Body>
rl_status with_contract(rl_module* module, const char* method, rl_error* error, const Body& body) {
  return with_meta(module, method, error,
                   [&](ModuleObject& object, size_t index, const MethodMeta&, Message& message) {
                     const Result<MethodFace*> face = object.face(index, &message);
                     return face.ok() ? body(face.value()->contract, message) : face.status();
                   });
}

}  // namespace
}  // namespace rushlight::c_api

using namespace rushlight;
using namespace rushlight::c_api;

rl_status rl_module_describe(rl_module* module, rl_module_info* info, rl_error* error) {
  return enter<ModuleObject>(
      module, Use::Alone, error, [&](ModuleObject& object, Failing& failing) -> Status {
        rl_module_info told = {};
        told.n_methods = static_cast<uint32_t>(object.module.program().n_methods());
        told.threads = static_cast<uint32_t>(object.module.threads());
        told.memory_in_use = object.module.memory_in_use();
        told.memory_resident = object.module.memory_resident();
        return write_struct(told, info, "rl_module_info", &failing.message);
      });
}

rl_status rl_module_method_name(rl_module* module, uint32_t index, rl_text_v1* name,
                                rl_error* error) {
  return enter<ModuleObject>(
      module, Use::Alone, error, [&](ModuleObject& object, Failing& failing) -> Status {
        RL_TRY(check_given(name, "name", &failing.message));
        const Program& program = object.module.program();
        if (index >= program.n_methods()) {
          return failing.message.fail(Code::InvalidArgument,
                                      "there is no method %u: the program has %zu",
                                      static_cast<unsigned>(index), program.n_methods());
        }
        *name = text_of(program.method_name(index));
        return {};
      });
}

rl_status rl_module_describe_method(rl_module* module, const char* method, rl_method_info* info,
                                    rl_error* error) {
  return with_meta(
      module, method, error,
      [&](ModuleObject& object, size_t, const MethodMeta& meta, Message& message) -> Status {
        Result<MemoryUse> use = object.module.memory_use(method);
        if (!use.ok()) {
          message = object.module.message();
          return use.status();
        }
        rl_method_info told = {};
        told.is_loaded = object.module.is_loaded(method);
        told.n_inputs = static_cast<uint32_t>(meta.n_inputs());
        told.n_outputs = static_cast<uint32_t>(meta.n_outputs());
        told.name = text_of(meta.name());
        told.arenas = use->arenas;
        told.shared_arenas = use->shared_arenas;
        told.structures = use->structures;
        told.outputs = use->outputs;
        told.scratch = use->scratch;
        told.instructions = meta.n_instructions();
        return write_struct(told, info, "rl_method_info", &message);
      });
}

rl_status rl_module_relation_count(rl_module* module, const char* method, uint32_t* count,
                                   rl_error* error) {
  return with_contract(module, method, error,
                       [&](const Contract& contract, Message& message) -> Status {
                         RL_TRY(check_given(count, "count", &message));
                         *count = static_cast<uint32_t>(contract.texts.size());
                         return {};
                       });
}

rl_status rl_module_relation(rl_module* module, const char* method, uint32_t index,
                             rl_text_v1* text, rl_error* error) {
  return with_contract(
      module, method, error, [&](const Contract& contract, Message& message) -> Status {
        RL_TRY(check_given(text, "text", &message));
        if (index >= contract.texts.size()) {
          return message.fail(Code::InvalidArgument, "%s: there is no relation %u: there are %zu",
                              method, static_cast<unsigned>(index), contract.texts.size());
        }
        *text = {contract.texts[index].data(), contract.texts[index].size()};
        return {};
      });
}

rl_status rl_module_describe_input(rl_module* module, const char* method, uint32_t index,
                                   rl_value_info* info, rl_error* error) {
  return describe_value(module, method, true, index, info, error);
}

rl_status rl_module_describe_output(rl_module* module, const char* method, uint32_t index,
                                    rl_value_info* info, rl_error* error) {
  return describe_value(module, method, false, index, info, error);
}
