"""Tests of passes: a small graph from a function, and graphs as text that a test can hold.

A pass test has a function as input and the expected graph as text:

    program = traced(lambda x: (x + 1.0).sin(), x)
    some_pass(program.graph)
    assert_expected_inline(text(program), '''...''')

`EXPECTTEST_ACCEPT=1 pytest ...` writes the actual text to the test; read the diff before you keep
it.
Nothing is exported: the function is traced operator by operator, with fake tensors. Constants are
passed by name, as the parameters of a model are. Graphs inside a graph, as of control flow and of
delegates, are printed where they are named.
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
from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
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

from rushlight.ir.branches import attribute
from rushlight.partition.lowered import LoweredBackendModule

SMALL = 8
"""Elements of a constant whose values stand in the text."""
WIDTH = 96
"""Columns of a line."""


class Traced(ExportedProgram):
    """As much of an exported program as passes use: graph, signature, constants, buffers."""

    def __init__(
        self, module: GraphModule, signature: ExportGraphSignature, tensors: Mapping[str, Any]
    ):
        buffers = set(signature.buffers)
        self._graph_module = module
        self._graph_signature = signature
        self._state_dict = {k: v for k, v in tensors.items() if k in buffers}
        self._constants = {k: v for k, v in tensors.items() if k not in buffers}
        self._range_constraints = {}
        inputs = tree_flatten(((0,) * len(signature.user_inputs), {}))[1]
        outputs = tree_flatten((0,) * len(signature.user_outputs))[1]
        call = ModuleCallSignature([], [], in_spec=inputs, out_spec=outputs)
        self._module_call_graph = [ModuleCallEntry("", call)]


def traced(
    function: Callable[..., Any],
    *args: torch.Tensor,
    dynamic: bool = False,
    buffers: Sequence[str] = (),
    **constants: Any,
) -> ExportedProgram:
    """The graph of `function`, called with the arguments and then with the constants by name.

    Args:
        function: a function of tensors; returns one or several.
        args: example inputs; inputs have the names of the function's parameters.
        dynamic: whether the inputs' sizes may vary (but for those of one element).
        buffers: those of the constants that the program writes: the function returns their new
            values before its results.
        constants: tensors that the program holds.

    Returns:
        A `Traced`, which passes accept as an exported program.
    """
    names = list(inspect.signature(function).parameters)[: len(args)] + list(constants)
    values = [value.clone() for value in (*args, *constants.values())]  # none of them the same
    mode = FakeTensorMode(
        shape_env=ShapeEnv(), static_shapes=not dynamic, allow_non_fake_inputs=True
    )
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
        kind = InputKind.BUFFER if name in buffers else InputKind.CONSTANT_TENSOR
        kind = InputKind.USER_INPUT if at < len(args) else kind
        target = None if kind is InputKind.USER_INPUT else name
        persistent = True if kind is InputKind.BUFFER else None
        specs.append(InputSpec(kind, TensorArgument(node.name), target, persistent))
    returned: Sequence[Node] = module.graph.output_node().args[0]
    kinds: list[tuple[OutputKind, str | None]] = [(OutputKind.BUFFER_MUTATION, b) for b in buffers]
    kinds += [(OutputKind.USER_OUTPUT, None)] * (len(returned) - len(buffers))
    outputs = [
        OutputSpec(kind, TensorArgument(node.name), target)
        for (kind, target), node in zip(kinds, returned, strict=True)
    ]
    return Traced(module, ExportGraphSignature(specs, outputs), constants)


def text(
    program: ExportedProgram | GraphModule | Graph, note: Callable[[Node], Any] = lambda node: None
) -> str:
    """A program's graph, one line for each node, and its small constants.

    Calls are numbered, and so are inputs and constants that a pass added: what torch names them
    changes with what was there before.

    Args:
        program: the graph.
        note: what stands at the end of a node's line, if it is not None.
    """
    written = "\n".join(_lines(program, note)) + "\n"
    symbols = dict.fromkeys(re.findall(r"\b[su]\d+\b", written))
    numbers = {symbol: f"s{i}" for i, symbol in enumerate(symbols)}
    return re.sub(r"\b[su]\d+\b", lambda match: numbers[match[0]], written)


def _lines(
    program: ExportedProgram | GraphModule | Graph, note: Callable[[Node], Any]
) -> list[str]:
    held: Mapping[str, Any] = {}
    buffers: list[str] = []
    graph = program if isinstance(program, Graph) else program.graph
    if isinstance(program, ExportedProgram):
        signature = program.graph_signature
        targets = {s.arg.name: s.target for s in signature.input_specs if s.target}
        everything = {**program.state_dict, **program.constants}
        held = {name: everything[target] for name, target in targets.items()}
        buffers = [str(s.target) for s in signature.output_specs if s.target]
    names: dict[Node, str] = {}
    lines = []
    for node in graph.nodes:
        told = note(node)
        end = "" if told is None else f"  # {told}"
        if node.op == "placeholder":
            added = sum("named" not in n.meta for n in names if n.op == "placeholder")
            kind = "c" if node.name in held else "in"
            names[node] = node.name if "named" in node.meta else f"{kind}{added}"
            lines.append(f"{names[node]}: {_type(node)}{_value(held.get(node.name))}{end}")
        elif node.op == "output":
            lines.append(f"return {_returned(node, names, buffers)}{end}")
        else:
            names[node] = f"%{sum(n.op != 'placeholder' for n in names) + 1}"
            lines += _written(node, names, note, end)
    return lines


def _written(
    node: Node, names: Mapping[Node, str], note: Callable[[Node], Any], end: str
) -> list[str]:
    """The lines of a call, or of a tensor or graph that the graph's module holds."""
    inner = attribute(node) if node.op == "get_attr" else None
    if isinstance(inner, LoweredBackendModule):
        head, inside = f"{node.target} for {inner.backend_id}", _lines(inner.original_module, note)
    elif isinstance(inner, GraphModule):
        head, inside = str(node.target), _lines(inner, note)
    else:
        told = f"{node.target}{_value(inner)}" if node.op == "get_attr" else _call(node, names)
        line = f"{names[node]}: {_type(node)} = {told}{end}"
        return textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False)
    return [f"{names[node]} = {head}:{end}", *(f"    {line}" for line in inside)]


def _returned(node: Node, names: Mapping[Node, str], buffers: Sequence[str]) -> str:
    """What a graph returns: new values of buffers by their names, then results."""
    returned: Any = node.args[0]
    if not buffers:
        return _argument(returned, names)
    told = [_argument(one, names) for one in returned]
    told[: len(buffers)] = [f"{b} = {t}" for b, t in zip(buffers, told, strict=False)]
    return f"[{', '.join(told)}]"


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
