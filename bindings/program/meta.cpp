#include "program/meta.h"

#include <nanobind/stl/string.h>

#include "arrays/values.h"
#include "failure.h"
#include "rushlight/program/program_fb.h"

namespace rushlight::python {

namespace {

nb::dict tensor_meta(const TensorMeta& tensor) {
  nb::list sizes, dim_order;
  for (size_t k = 0; k < tensor.rank; ++k) {
    sizes.append(tensor.sizes[k]);
    dim_order.append(tensor.dim_order[k]);
  }
  nb::dict d;
  d["dtype"] = dtype_name(tensor.dtype);
  d["dynamic"] = tensor.dynamism != Dynamism::Static;
  d["sizes"] = sizes;
  d["dim_order"] = dim_order;
  d["planned"] = tensor.planned;
  d["constant"] = tensor.constant;
  d["nbytes"] = tensor.nbytes;
  return d;
}

nb::dict value_meta(const ValueMeta& value) {
  nb::dict d;
  switch (value.tag) {
    case Tag::Tensor:
      d = tensor_meta(value.tensor);
      d["kind"] = "tensor";
      break;
    case Tag::Int:
      d["kind"] = "int";
      d["value"] = value.i;
      break;
    case Tag::Bool:
      d["kind"] = "bool";
      d["value"] = value.i != 0;
      break;
    case Tag::Double:
      d["kind"] = "float";
      d["value"] = value.d;
      break;
    case Tag::String:
      d["kind"] = "str";
      d["value"] = to_str(value.text);
      break;
    case Tag::None:
      d["kind"] = "none";
      break;
    default:
      d["kind"] = tag_name(value.tag);
  }
  return d;
}

// The tensors that the method keeps from one call to the next, if the file has their names.
nb::list named_state(const MethodMeta& meta) {
  nb::list attributes;
  for (size_t k = 0; k < meta.n_values(); ++k) {
    const StringView name = meta.state_name(k);
    if (name.empty()) continue;
    nb::dict d = tensor_meta(meta.value(k).tensor);
    d["name"] = to_str(name);
    attributes.append(d);
  }
  return attributes;
}

nb::tuple containers(const MethodMeta& meta) {
  const fb::ExecutionPlan plan = meta.plan();
  if (!plan.has_container_meta_type()) return nb::make_tuple("", "");
  const fb::ContainerMetadata containers = plan.container_meta_type();
  return nb::make_tuple(to_str(containers.encoded_inp_str()), to_str(containers.encoded_out_str()));
}

}  // namespace

nb::dict method_meta(const Module& module, StringView name) {
  Message message;
  Result<MethodMeta> result = module.program().method_meta(name, &message);
  if (!result.ok()) fail(result.status().code(), message);
  const MethodMeta& meta = result.value();
  nb::list inputs, outputs, arenas, operators, backends;
  for (size_t k = 0; k < meta.n_inputs(); ++k) inputs.append(value_meta(meta.input(k)));
  for (size_t k = 0; k < meta.n_outputs(); ++k) outputs.append(value_meta(meta.output(k)));
  for (size_t k = 0; k < meta.n_arenas(); ++k) arenas.append(meta.arena_bytes(k));
  for (size_t k = 0; k < meta.n_operators(); ++k) {
    char text[256];
    operators.append(to_str(meta.operator_name(k).join(text, sizeof text)));
  }
  for (size_t k = 0; k < meta.n_delegates(); ++k) backends.append(to_str(meta.delegate_id(k)));
  nb::dict d;
  d["name"] = to_str(meta.name());
  d["inputs"] = inputs;
  d["outputs"] = outputs;
  d["attributes"] = named_state(meta);
  d["arenas"] = arenas;
  d["operators"] = operators;
  d["backends"] = backends;
  d["instructions"] = meta.n_instructions();
  d["values"] = meta.n_values();
  d["containers"] = containers(meta);
  return d;
}

nb::dict memory_use(Module& module, StringView name) {
  Result<MemoryUse> use = module.memory_use(name);
  if (!use.ok()) fail(use.status().code(), module.message());
  nb::dict d;
  d["arenas"] = use->arenas;
  d["shared_arenas"] = use->shared_arenas;
  d["structures"] = use->structures;
  d["outputs"] = use->outputs;
  d["scratch"] = use->scratch;
  return d;
}

nb::dict program_sizes(const Program& program) {
  nb::dict d;
  d["file"] = program.image().size();
  size_t constants = 0;
  if (program.root().has_constant_segment()) {
    const uint32_t segment = program.root().constant_segment().segment_index();
    if (segment < program.n_segments()) constants = program.segment(segment).size();
  }
  d["constants"] = constants;
  return d;
}

}  // namespace rushlight::python
