"""A backend for tests: its payload is JSON, its runtime half NumPy.

It takes mm, add, mul, sigmoid and linear, with float32 tensors. Its own instructions are counted
from 0; `breaks_at` makes one of them raise, `adds` makes its results wrong.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    DelegateMappingBuilder,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
)

aten = torch.ops.aten
OPERATORS = {
    aten.mm.default: "mm",
    aten.add.Tensor: "add",
    aten.mul.Tensor: "mul",
    aten.sigmoid.default: "sigmoid",
    aten.linear.default: "linear",
}


class TinyBackend(BackendDetails):
    """Writes its part of the graph as JSON."""

    @staticmethod
    def preprocess(program: ExportedProgram, specs: list[CompileSpec]) -> PreprocessResult:
        data = {**program.constants, **program.state_dict}
        kinds = {s.arg.name: s for s in program.graph_signature.input_specs}
        names: list[str] = []
        constants: dict[str, Any] = {}
        code: list[Any] = []
        handles = DelegateMappingBuilder(generated_identifiers=True)
        for node in program.graph.nodes:
            if node.op == "placeholder" and kinds[node.name].kind == InputKind.USER_INPUT:
                names.append(node.name)
            elif node.op == "placeholder":
                constants[node.name] = data[kinds[node.name].target].tolist()
            elif node.op == "call_function":
                handles.insert_delegate_mapping_entry(node)
                code.append([OPERATORS[node.target], node.name, [n.name for n in node.args if n]])
        outputs = [n.name for n in program.graph.output_node().args[0]]
        text = json.dumps(
            {"inputs": names, "constants": constants, "code": code, "outputs": outputs}
        )
        return PreprocessResult(text.encode(), handles.get_delegate_mapping())


class TinyPartitioner(Partitioner):
    """Takes every call that the backend has; each is a partition of its own."""

    delegation_spec = DelegationSpec("TinyBackend")

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        tags, declined = {}, {}
        kinds = {s.arg.name: s.kind for s in exported_program.graph_signature.input_specs}
        for node in exported_program.graph.nodes:
            if node.op == "call_function" and node.target in OPERATORS:
                node.meta["delegation_tag"] = node.name
                tags[node.name] = DelegationSpec("TinyBackend")
                for source in node.all_input_nodes:
                    if kinds.get(source.name) in (InputKind.PARAMETER, InputKind.CONSTANT_TENSOR):
                        source.meta["delegation_tag"] = node.name
            elif node.op == "call_function":
                declined[node] = f"it has no instruction for {node.target}"
        return PartitionResult(exported_program, tags, declined)


class TinyRuntime:
    """Runs the JSON."""

    breaks_at: int | None = None
    adds = 0.0

    def init(self, context: Any) -> Any:
        return json.loads(bytes(context.payload))

    def execute(self, context: Any, handle: Any, args: tuple[Any, ...]) -> None:
        values = {k: np.asarray(v, np.float32) for k, v in handle["constants"].items()}
        values.update(zip(handle["inputs"], args, strict=False))
        run = {
            "mm": np.matmul,
            "add": np.add,
            "mul": np.multiply,
            "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
            "linear": lambda x, w, b=0.0: x @ w.T + b,
        }
        for i, (name, result, operands) in enumerate(handle["code"]):
            if i == self.breaks_at:
                context.fail_at(i)
                raise ArithmeticError(f"{name} broke")
            values[result] = run[name](*(values[o] for o in operands))
        for i, name in enumerate(handle["outputs"], start=len(handle["inputs"])):
            context.resize(i, values[name].shape)[...] = values[name] + self.adds
