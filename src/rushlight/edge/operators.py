"""Operators of the Edge dialect by ExecuTorch's names, and graphs that are spelled with them.

ExecuTorch wraps each operator of torch for its dialects; here a graph holds torch's own operators
in every dialect. `ops.edge.aten.add.Tensor` is an object of its own that equals
`torch.ops.aten.add.Tensor`, with the names that ExecuTorch prints. A program may be spelled with
such objects, for scripts that were written for ExecuTorch: `spell`. Stages that compile are given
`plain` programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.ir.branches import branch
from rushlight.ir.operators import out_variant
from rushlight.ir.programs import copy_program

_MODULE = "executorch.exir.dialects.{}._ops"
LEFT_PLAIN = frozenset(
    (
        torch.ops.aten.sym_size.int,
        torch.ops.aten.sym_stride.int,
        torch.ops.aten.sym_numel.default,
        torch.ops.aten._local_scalar_dense.default,
        torch.ops.aten.sym_constrain_range.default,
        torch.ops.aten.sym_constrain_range_for_size.default,
        torch.ops.aten._assert_scalar.default,
        torch.ops.aten._assert_async.msg,
        torch.ops.aten.scalar_tensor.default,
    )
)
"""Operators that ExecuTorch leaves as they are in every dialect."""


class EdgeOpOverload(OpOverload):
    """An operator of the Edge dialect: equals torch's operator, and calls it."""

    _dialect = "edge"

    def __init__(self, op: OpOverload) -> None:
        self.__dict__.update(op.__dict__)
        self._op = op
        self.__name__ = f"{op.namespace}.{op.__name__}"
        self.__module__ = _MODULE.format(self._dialect)

    def __eq__(self, other: object) -> bool:
        return self._op is (other._op if isinstance(other, EdgeOpOverload) else other)

    def __hash__(self) -> int:
        return hash(self._op)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.__name__}>: schema = {self._schema}"

    def __reduce__(self) -> Any:
        return _named, (self._dialect, self.namespace, self._opname, self._overloadname)

    def to_out_variant(self) -> OpOverload:
        """The out variant; RuntimeError if there is none."""
        variant = out_variant(self._op)
        if variant is None:
            raise RuntimeError(f"{self.__name__} has no out variant: load the library that has it")
        return variant


class BackendOpOverload(EdgeOpOverload):
    """The same for an operator that a backend defines.

    Attributes:
        equivalent_callable: the function that `bind_pattern_to_op` bound to it.
    """

    _dialect = "backend"
    equivalent_callable: Any = None


@cache
def edge_operator(op: OpOverload) -> EdgeOpOverload:
    """The Edge dialect's operator for one of torch's."""
    return op if isinstance(op, EdgeOpOverload) else EdgeOpOverload(op)


@cache
def backend_operator(op: OpOverload) -> BackendOpOverload:
    """The operator of backends for one of torch's."""
    return BackendOpOverload(op)


def _named(dialect: str, namespace: str, name: str, overload: str) -> EdgeOpOverload:
    operator: OpOverload = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    return edge_operator(operator) if dialect == "edge" else backend_operator(operator)


class EdgeOpOverloadPacket:
    """The overloads of one operator; equals torch's packet."""

    def __init__(self, packet: OpOverloadPacket, dialect: str = "edge") -> None:
        self._packet = packet
        self.__name__ = packet._qualified_op_name.replace("::", ".")
        make = edge_operator if dialect == "edge" else backend_operator
        for name in packet.overloads():  # now, since Dynamo cannot trace how they are made
            setattr(self, name, make(getattr(packet, name)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._packet, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the overload that fits the arguments."""
        return self._packet(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self._packet is getattr(other, "_packet", other)

    def __hash__(self) -> int:
        return hash(self._packet)


class _Namespace(ModuleType):
    """The operators of one library in a dialect: a module, whose names Dynamo looks up."""

    def __init__(self, namespace: Any, dialect: str) -> None:
        super().__init__(namespace.name)
        self._namespace, self._dialect = namespace, dialect

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = EdgeOpOverloadPacket(getattr(self._namespace, name), self._dialect)
        setattr(self, name, value)
        return value


class _Dialect(ModuleType):
    """The libraries of a dialect."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _Namespace(getattr(torch.ops, name), self._name)
        setattr(self, name, value)
        return value


class _Operators(ModuleType):
    """The dialects, as `exir_ops` of ExecuTorch."""

    def __init__(self) -> None:
        super().__init__("exir_ops")
        self.edge = _Dialect("edge")
        self.backend = _Dialect("backend")


ops = _Operators()


def _modules(module: GraphModule) -> Iterator[GraphModule]:
    yield module
    for node in module.graph.nodes:
        inner = branch(node) if node.op == "get_attr" else None
        if inner is not None:
            yield from _modules(inner)


def spell(program: ExportedProgram) -> ExportedProgram:
    """A copy of a program of the Edge dialect with ExecuTorch's operators and names of nodes."""
    new = copy_program(program)
    renamed: dict[str, str] = {}
    for module in _modules(new.graph_module):
        calls = [n for n in module.graph.nodes if _is_plain(n)]
        before = {n: n.name for n in calls}
        for node in calls:
            node.target = edge_operator(node.target)
            if re.fullmatch(rf"{_name_of(node)}(_\d+)?", node.name):
                del before[node]  # the program was spelled before
        for node in before:  # all are renamed at once, so that numbers count from the first
            node._rename(f"renamed_{node.name}")
        for node, old in before.items():
            node._rename(_name_of(node))
            renamed[old] = node.name
        module.recompile()
    for spec in new.graph_signature.output_specs:
        if getattr(spec.arg, "name", None) in renamed:
            spec.arg.name = renamed[spec.arg.name]
    return new


def _name_of(node: Node) -> str:
    """How FX names a call by its operator, which is the Edge dialect's: `aten_sum_dim_int_list`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.target.__name__)  # type: ignore[union-attr]
    return re.sub(r"[^0-9a-zA-Z_]+", "_", words).lower()


def _is_plain(node: Node) -> bool:
    target = node.target
    return (
        node.op == "call_function"
        and isinstance(target, OpOverload)
        and not isinstance(target, EdgeOpOverload)
        and target not in LEFT_PLAIN
    )


def is_spelled(program: ExportedProgram) -> bool:
    """Whether a program has operators of ExecuTorch's."""
    return any(
        isinstance(node.target, EdgeOpOverload)
        for module in _modules(program.graph_module)
        for node in module.graph.nodes
    )


def plain(program: ExportedProgram) -> ExportedProgram:
    """The program with torch's operators: itself, or a copy if it is spelled."""
    if not is_spelled(program):
        return program
    new = copy_program(program)
    make_plain(new)
    return new


def make_plain(program: ExportedProgram) -> dict[Node, EdgeOpOverload]:
    """Put torch's operators into a program; returns those that were there, for `put_back`."""
    spelled: dict[Node, EdgeOpOverload] = {}
    for module in _modules(program.graph_module):
        for node in module.graph.nodes:
            if isinstance(node.target, EdgeOpOverload):
                spelled[node] = node.target
                node.target = node.target._op
        if spelled:
            module.recompile()
    return spelled


def put_back(spelled: dict[Node, EdgeOpOverload]) -> None:
    """Undo `make_plain`, for the nodes that still have the same operator."""
    for node, operator in spelled.items():
        if node.target is operator._op:
            node.target = operator
    for module in {node.graph.owning_module for node in spelled}:
        if module is not None:
            module.recompile()
