"""The compiler half: from a part of a graph to a payload.

The payload is 32-bit words, little-endian: MAGIC, VERSION, the numbers of inputs, constants,
instructions and outputs; the length of each constant's key; four words for each instruction
(opcode, left, right, the most elements that it gives); the value of each output. Then come the keys
of the constants, whose bytes lie beside the payload. Values are counted: inputs, constants, results
of the instructions.
"""

import hashlib
import math
from typing import Any

import numpy as np
import torch
from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    DelegateMappingBuilder,
    NamedDataStore,
    PreprocessResult,
)
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq
from torch.utils._sympy.numbers import int_oo

MAGIC, VERSION = 0x4C454B53, 1
OPCODES = {torch.ops.aten.add.Tensor: 0, torch.ops.aten.mul.Tensor: 1}
_MAX_ELEMENTS = 2**31 - 1


def refusal(node: Node) -> str | None:
    """Why the backend cannot take a call; None if it can. The reasons stand in the report."""
    if node.target not in OPCODES:
        return f"it has no instruction for {node.target}"
    if node.kwargs.get("alpha", 1) != 1:
        return "its alpha is not 1"
    left, right = node.args[:2]
    if not isinstance(left, Node) or not isinstance(right, Node):
        return "an operand is not a tensor"
    for one in (left, right, node):
        value = one.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return f"{one.name} is not a float32 tensor"
        if not value.is_contiguous():
            return f"{one.name} is not row-major"
    sizes = [list(one.meta["val"].shape) for one in (left, right)]
    if not statically_known_true(sym_eq(*sizes)):
        return f"it does not broadcast {sizes[0]} and {sizes[1]}"
    if _most_elements(node) > _MAX_ELEMENTS:
        return f"{node.name} has no bound, or one too large"
    return None


def _most_elements(node: Node) -> int:
    """The bound on the elements of a tensor; more than any if there is none."""
    most = [_upper(size) for size in node.meta["val"].shape]
    return math.prod(most) if all(size <= _MAX_ELEMENTS for size in most) else _MAX_ELEMENTS + 1


def _upper(size: Any) -> int:
    if isinstance(size, int):
        return size
    upper = size.node.shape_env.bound_sympy(size.node.expr).upper
    return _MAX_ELEMENTS + 1 if upper == int_oo or upper > _MAX_ELEMENTS else int(upper)


class SkeletonBackend(BackendDetails):
    """Compiles; the name of the class is the backend's id in the file."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """See the module for the payload's form.

        Raises:
            ValueError: for a part that the backend cannot run.
        """
        signature = edge_program.graph_signature
        specs = {spec.arg.name: spec for spec in signature.input_specs}
        holders = [n for n in edge_program.graph.nodes if n.op == "placeholder"]
        inputs = [n for n in holders if specs[n.name].kind == InputKind.USER_INPUT]
        constants = [n for n in holders if n not in inputs]
        values = {node: i for i, node in enumerate([*inputs, *constants])}
        data = {**edge_program.constants, **edge_program.state_dict}
        store = NamedDataStore()
        keys = [_store(store, data[specs[n.name].target]) for n in constants]
        handles = DelegateMappingBuilder(generated_identifiers=True)
        varying, code = set(inputs), []
        for node in edge_program.graph.nodes:
            if node.op != "call_function":
                continue
            reason = refusal(node)
            if reason is None and varying.isdisjoint(node.all_input_nodes):
                reason = "its operands are constants"
            if reason is not None:
                raise ValueError(f"{node.name}: {reason}")
            handles.insert_delegate_mapping_entry(node)
            code += [OPCODES[node.target], *(values[n] for n in node.args), _most_elements(node)]
            values[node] = len(values)
            varying.add(node)
        results = edge_program.graph.output_node().args[0]
        if any(spec.kind != OutputKind.USER_OUTPUT for spec in signature.output_specs):
            raise ValueError("it keeps no state")
        if not varying.issuperset(results):
            raise ValueError("a result is a constant")
        head = [MAGIC, VERSION, len(inputs), len(keys), len(code) // 4, len(results)]
        words = [*head, *map(len, keys), *code, *(values[n] for n in results)]
        payload = np.array(words, "<u4").tobytes() + b"".join(keys)
        return PreprocessResult(
            payload, handles.get_delegate_mapping(), store.get_named_data_store_output()
        )


def _store(store: NamedDataStore, tensor: torch.Tensor) -> bytes:
    """Put a constant beside the payload; equal ones are stored once. Returns its key."""
    content = tensor.detach().contiguous().numpy().tobytes()
    key = f"skeleton/{hashlib.sha256(content).hexdigest()[:16]}"
    store.add_named_data(key, content, alignment=16)
    return key.encode()
