"""Tests of passes: a small graph from a function, and graphs as text that a test can hold.

A pass test has a function as input and the expected graph as text:

    program = traced(lambda x: (x + 1.0).sin(), x)
    some_pass(program.graph)
    assert_expected_inline(text(program), '''...''')

`EXPECTTEST_ACCEPT=1 pytest ...` writes the actual text to the test; read the diff before you keep
it.
Nothing is exported: the function is traced operator by operator, with fake tensors. Constants are
passed by name, as the parameters of a model are.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._pytree import tree_flatten

SMALL = 8
"""Elements of a constant whose values stand in the text."""
WIDTH = 96
"""Columns of a line."""


class Traced:
    """The parts of an exported program that passes use: graph, signature, constants."""

    def __init__(self, module: GraphModule, signature: ExportGraphSignature, **constants: Any):
        self._graph_module = module
        self._graph_signature = signature
        self._state_dict: dict[str, Any] = {}
        self._constants: dict[str, Any] = constants
        self.range_constraints: dict[Any, Any] = {}

    graph_module = property(lambda self: self._graph_module)
    graph = property(lambda self: self._graph_module.graph)
    graph_signature = property(lambda self: self._graph_signature)
    state_dict = property(lambda self: self._state_dict)
    constants = property(lambda self: self._constants)


def traced(
    function: Callable[..., Any], *args: torch.Tensor, dynamic: bool = False, **constants: Any
) -> ExportedProgram:
    """The graph of `function`, called with the arguments and then with the constants by name.

    Args:
        function: a function of tensors; returns one or several.
        args: example inputs; inputs have the names of the function's parameters.
        dynamic: whether the inputs' sizes may vary (except sizes of 1).
        constants: tensors that the program holds.

    Returns:
        A `Traced`, which passes accept as an exported program.
    """
    names = list(inspect.signature(function).parameters)[: len(args)] + list(constants)
    values = [value.clone() for value in (*args, *constants.values())]  # no tensor occurs twice
    mode = FakeTensorMode(shape_env=ShapeEnv(), static_shapes=not dynamic)
    fakes = [
        mode.from_tensor(value, static_shapes=not dynamic or i >= len(args))
        for i, value in enumerate(values)
    ]

    def flat(*inputs: torch.Tensor) -> tuple[Any, ...]:
        named = dict(zip(constants, inputs[len(args) :], strict=True))
        return tuple(tree_flatten(function(*inputs[: len(args)], **named))[0])

    module = make_fx(flat, tracing_mode="real")(*fakes)
    specs = []
    for node, name, at in zip(
        module.graph.find_nodes(op="placeholder"), names, range(len(names)), strict=True
    ):
        node.name = node.target = name
        node.meta["named"] = True
        kind = InputKind.USER_INPUT if at < len(args) else InputKind.CONSTANT_TENSOR
        target = None if at < len(args) else name
        specs.append(InputSpec(kind, TensorArgument(node.name), target))
    returned: Sequence[Node] = module.graph.output_node().args[0]
    outputs = [
        OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None) for node in returned
    ]
    program: Any = Traced(module, ExportGraphSignature(specs, outputs), **constants)
    return program


def text(program: ExportedProgram | GraphModule | Graph) -> str:
    """A program's graph, one line for each node, and its small constants.

    Calls, and constants that a pass added, are numbered here, because the names that torch gives
    them depend on nodes that were removed.
    """
    held: Mapping[str, Any] = {}
    graph = program if isinstance(program, Graph) else program.graph
    if not isinstance(program, Graph | GraphModule):
        targets = {s.arg.name: s.target for s in program.graph_signature.input_specs if s.target}
        everything = {**program.state_dict, **program.constants}
        held = {name: everything[target] for name, target in targets.items()}
    names: dict[Node, str] = {}
    lines = []
    for node in graph.nodes:
        if node.op == "placeholder":
            added = sum("named" not in n.meta for n in names if n.op == "placeholder")
            names[node] = node.name if "named" in node.meta else f"c{added}"
            lines.append(f"{names[node]}: {_type(node)}{_value(held.get(node.name))}")
        elif node.op == "output":
            lines.append(f"return {_argument(node.args[0], names)}")
        else:
            names[node] = f"%{sum(n.op != 'placeholder' for n in names) + 1}"
            line = f"{names[node]}: {_type(node)} = {_call(node, names)}"
            lines += textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False)
    written = "\n".join(lines) + "\n"
    symbols = dict.fromkeys(re.findall(r"\b[su]\d+\b", written))
    numbers = {symbol: f"s{i}" for i, symbol in enumerate(symbols)}
    return re.sub(r"\b[su]\d+\b", lambda found: numbers[found[0]], written)


def _call(node: Node, names: Mapping[Node, str]) -> str:
    target: Any = node.target
    name = str(target) if hasattr(target, "_schema") else getattr(target, "__name__", str(target))
    args = [_argument(arg, names) for arg in node.args]
    args += [f"{key}={_argument(value, names)}" for key, value in node.kwargs.items()]
    name = re.sub(r"^(aten|dim_order_ops|quantized_decomposed)\.", "", name)
    return f"{name.removesuffix('.default')}({', '.join(args)})"


def _argument(arg: Any, names: Mapping[Node, str]) -> str:
    if isinstance(arg, Node):
        return names[arg]
    if isinstance(arg, torch.Tensor):
        return f"{_type_of(arg)}{_value(arg)}"
    if isinstance(arg, Enum):
        return arg.name
    if is_dataclass(arg) or hasattr(arg, "_fields"):
        values = [getattr(arg, f.name) for f in fields(arg)] if is_dataclass(arg) else arg
        inner = ", ".join(_argument(one, names) for one in values)
        return f"{type(arg).__name__}({inner})"
    if isinstance(arg, list | tuple):
        return f"[{', '.join(_argument(one, names) for one in arg)}]"
    if isinstance(arg, torch.dtype | torch.memory_format):
        return str(arg).removeprefix("torch.")
    return repr(arg)


def _type(node: Node) -> str:
    value = node.meta.get("val")
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_type_of, value))})"
    return _type_of(value)


def _type_of(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    sizes = ", ".join(map(str, value.shape))
    return f"{str(value.dtype).removeprefix('torch.')}[{sizes}]"


def _value(tensor: Any) -> str:
    if tensor is None:
        return ""
    if tensor.numel() > SMALL:
        return " = constant"
    return f" = {_rounded(tensor.tolist())}"


def _rounded(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_rounded, value))}]"
    return format(value, ".6g") if isinstance(value, float) else str(value)
