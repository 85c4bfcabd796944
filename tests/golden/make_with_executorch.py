"""Makes the program files of this folder with ExecuTorch 1.4.1: `python make_with_executorch.py`.

They show what the runtime must load that Rushlight did not write. Run it in an environment that has
PyPI `executorch` 1.4.1; nothing of Rushlight is used. The outputs that ExecuTorch itself computes
for inputs of ones are written to expected.json beside the programs (of the one that it cannot run,
eager PyTorch's).
"""

from __future__ import annotations

import json
import pathlib

import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.sym_shape_eval_pass import HintBasedSymShapeEvalPass
from executorch.exir.schema import TensorShapeDynamism
from executorch.runtime import Runtime
from torch.export import Dim, export
from torch.utils._pytree import tree_leaves

HERE = pathlib.Path(__file__).parent


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x)


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count.add_(x)
        return self.count * 2


class Cond(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, [x])


class DynamicView(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        return y.reshape(2 * x.size(0), -1) * x.size(0)


class TopK(torch.nn.Module):
    def forward(self, x):
        values, indices = torch.topk(x * torch.arange(5.0), 2)
        return {"values": values, "indices": indices, "constant": 3.5}


class Image(torch.nn.Module):
    def forward(self, x):
        return torch.neg(x.to(memory_format=torch.channels_last))


class Positive(torch.nn.Module):
    def forward(self, x):
        kept = torch.masked_select(x, x > 0)
        return kept * 2.0 + kept


class WithoutBounds(HintBasedSymShapeEvalPass):
    """Leaves dynamic tensors without bounds, as ExecuTorch's planner and emitter know them; its
    runtime does not."""

    def call(self, graph_module):
        result = super().call(graph_module)
        for node in result.graph_module.graph.nodes:
            for spec in tree_leaves(node.meta.get("spec")):
                if spec is not None and spec.shape_dynamism == TensorShapeDynamism.DYNAMIC_BOUND:
                    spec.shape_dynamism = TensorShapeDynamism.DYNAMIC_UNBOUND
        return result


def write(name, exported, config=None, constant_methods=None, compile_config=None):
    program = to_edge(
        exported, constant_methods=constant_methods, compile_config=compile_config
    ).to_executorch(config or ExecutorchBackendConfig())
    (HERE / f"{name}.pte").write_bytes(program.buffer)


def main() -> None:
    torch.manual_seed(0)
    ones = torch.ones
    write("add", export(Add(), (ones(2, 3), ones(2, 3))))
    write("linear", export(Linear(), (ones(1, 3),)))
    write("counter", export(Counter(), (ones(2),)))
    write("cond", export(Cond(), (ones(4),)))
    rows = Dim("rows", min=2, max=8)
    write("dynamic_view", export(DynamicView(), (ones(4, 6),), dynamic_shapes={"x": {0: rows}}))
    write("topk", export(TopK(), (torch.arange(5.0),)))
    write("channels_last", export(Image(), (ones(1, 2, 3, 3),)))
    unplanned = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    )
    write("unplanned", export(Linear(), (ones(1, 3),)), config=unplanned)
    write(
        "methods",
        {
            "forward": export(Add(), (ones(2), ones(2))),
            "scale": export(Linear(), (ones(1, 3),)),
        },
        constant_methods={"get_name": "golden", "get_size": 7, "get_scale": 0.5, "is_small": True},
    )

    unbounded = ExecutorchBackendConfig(sym_shape_eval_pass=WithoutBounds())
    write(
        "unbounded",
        export(Positive(), (ones(2, 3),)),
        config=unbounded,
        compile_config=EdgeCompileConfig(_check_ir_validity=False),  # masked_select is not core
    )

    # Of make_cpu_engine.py's programs it has no backend.
    others = set(HERE.glob("cpu_engine_*.pte")) | {HERE / "unbounded.pte"}
    kept = json.loads((HERE / "expected.json").read_text())
    expected = {name: kept[name] for name in kept if name.startswith("cpu_engine_")}
    expected["unbounded.forward"] = [Positive()(ones(2, 3)).tolist()]
    for path in sorted(set(HERE.glob("*.pte")) - others):
        program = Runtime.get().load_program(path.read_bytes())
        for name in sorted(program.method_names):
            method = program.load_method(name)
            meta = method.metadata
            inputs = [ones(meta.input_tensor_meta(i).sizes()) for i in range(meta.num_inputs())]
            outputs = []
            for output in method.execute(inputs):
                outputs.append(output.tolist() if isinstance(output, torch.Tensor) else output)
            expected[f"{path.stem}.{name}"] = outputs
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
