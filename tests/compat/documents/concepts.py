"""The concepts as they are met in a script: dialects, kernels, planning, registries, methods."""

import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from executorch.exir.passes import MemoryPlanningPass
from executorch.runtime import Runtime


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.hardswish(x) * 2 + 1

    def other(self, x):
        return torch.where(x > 0, x, -x)


class DoubleAdded(ExportPass):
    """A pass over the Edge dialect."""

    def call_operator(self, op, args, kwargs, meta):
        if op is exir_ops.edge.aten.add.Tensor:
            args = (args[0], 2 * args[1] if isinstance(args[1], (int, float)) else args[1])
        return super().call_operator(op, args, kwargs, meta)


x = torch.linspace(-2, 4, 6).reshape(2, 3)
model = Model().eval()

# ATen dialect: functional operators of the user's model, and custom ones.
exported = torch.export.export(model, (x,))
other = torch.export.export(type("Other", (Model,), {"forward": Model.other})().eval(), (x,))
targets = [node.target for node in exported.graph.nodes if node.op == "call_function"]
assert torch.ops.aten.hardswish.default in targets
# Core ATen dialect: decomposed further, unless an operator is left out.
core = exported.run_decompositions()
assert len(core.graph.nodes) >= len(exported.graph.nodes)

# Edge dialect; several methods in a program, and one that returns constants.
manager = to_edge(
    {"forward": exported, "other": other},
    constant_methods={"version": 3},
    compile_config=EdgeCompileConfig(_check_ir_validity=True),
)
assert manager.methods == {"forward", "other"}
manager = manager.transform({"other": [DoubleAdded()]})

# Memory planning is the last step; inputs may be left to the application.
config = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False))
finished = manager.to_executorch(config)
program = finished.executorch_program
plans = {plan.name: plan for plan in program.execution_plan}
assert set(plans) == {"forward", "other", "version"}
inputs = [plans["forward"].values[i].val for i in plans["forward"].inputs]
assert inputs[0].allocation_info is None, "the application gives the input's memory"
operators = {(op.name, op.overload) for op in plans["forward"].operators}
assert operators, "the portable program calls kernels by name"

# The runtime: registries of kernels and backends, methods of a program.
runtime = Runtime.get()
names = runtime.operator_registry.operator_names
assert all(f"{name}.{overload}" in names for name, overload in operators if overload), operators
assert runtime.backend_registry.is_available("XnnpackBackend")
loaded = runtime.load_program(finished.buffer)
assert loaded.method_names == {"forward", "other", "version"}
for name, expected in (("forward", model(x)), ("other", model.other(x))):
    torch.testing.assert_close(loaded.load_method(name).execute([x])[0], expected)
assert loaded.load_method("version").execute([])[0] == 3
print("done")
