"""A part's graph while patterns of calls in it are replaced by calls that are one node each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Node

from rushlight.backends.cpu.graph.sizes import all_same, sizes_of

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)
_SAME_ELEMENTS = (aten.alias_copy.default, aten.expand_copy.default, aten.view_copy.default)


class Rewriter:
    """The graph of a part and its constants, and the means to change them.

    Args:
        program: the part; its graph, signature and constants are changed.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.graph = program.graph
        self._program = program
        tensors = {**program.constants, **program.state_dict}
        self._data = {
            node: real(tensors[str(spec.target)].detach())
            for node, spec in zip(self._placeholders(), self._specs(), strict=True)
            if spec.kind != InputKind.USER_INPUT
        }
        self._made: dict[Any, Node] = {}  # by key
        vals = (node.meta.get("val") for node in self.graph.nodes)
        self._mode = next(val.fake_mode for val in vals if isinstance(val, FakeTensor))

    def fake(
        self, sizes: Sequence[Any], strides: Sequence[Any], dtype: torch.dtype
    ) -> torch.Tensor:
        """An example value (a fake tensor) of these sizes, strides and dtype."""
        with self._mode:
            return torch.empty_strided(tuple(sizes), tuple(strides), dtype=dtype)

    def _placeholders(self) -> list[Node]:
        return list(self.graph.find_nodes(op="placeholder"))

    def _specs(self) -> list[InputSpec]:
        return list(self._program.graph_signature.input_specs)

    def data(self, node: Any) -> torch.Tensor | None:
        """The elements of a constant; None for any other node."""
        return self._data.get(node) if isinstance(node, Node) else None

    def number(self, arg: Any) -> float | None:
        """The number that every element of an argument is; None if that is not known."""
        while isinstance(arg, Node) and arg.target in _SAME_ELEMENTS:
            arg = arg.args[0]
        if isinstance(arg, bool | int | float):
            return float(arg)
        if isinstance(arg, Node) and arg.target in (aten.full.default, aten.full_like.default):
            return self.number(arg.args[1])
        data = self.data(arg)
        return float(data.item()) if data is not None and data.numel() == 1 else None

    def operands(self, node: Any, *targets: Any) -> tuple[Any, Any] | None:
        """The two operands of a call of one of `targets` without a factor alpha; else None."""
        if not isinstance(node, Node) or node.target not in targets:
            return None
        if node.kwargs.get("alpha", 1) != 1:
            return None
        return node.args[0], node.args[1]

    def factor(self, node: Any) -> tuple[Node, float] | None:
        """The operand that a call multiplies by a number, and the number; else None."""
        for one, other in both(self.operands(node, aten.mul.Tensor, aten.mul.Scalar)):
            number = self.number(other)
            if number is not None and isinstance(one, Node):
                return one, number
        pair = self.operands(node, aten.div.Tensor, aten.div.Scalar)
        if pair is None or not isinstance(pair[0], Node):
            return None
        number = self.number(pair[1])
        return None if not number else (pair[0], 1 / number)

    def term(self, node: Any) -> tuple[Node, float] | None:
        """The operand that a call adds a number to, and the number; else None."""
        for one, other in both(self.operands(node, aten.add.Tensor, aten.add.Scalar)):
            number = self.number(other)
            if number is not None and isinstance(one, Node):
                return one, number
        return None

    def constant(self, key: Any, data: torch.Tensor) -> Node:
        """A new constant, made once for each key."""
        if key not in self._made:
            name = f"made_{len(self._made)}"
            first = next(iter(self.graph.nodes))
            with self.graph.inserting_before(first):
                node = self.graph.placeholder(name)
            with self._mode:
                node.meta["val"] = torch.empty(data.shape, dtype=data.dtype)
            spec = InputSpec(
                InputKind.CONSTANT_TENSOR, TensorArgument(name=node.name), node.name, None
            )
            self._program.graph_signature.input_specs.insert(0, spec)
            self._program.constants[node.name] = data
            self._data[node] = data
            self._made[key] = node
        made: Node = self._made[key]
        return made

    def call(
        self,
        before: Node,
        target: Any,
        *args: Any,
        shape: Sequence[Any],
        dtype: torch.dtype = torch.float32,
        replaced: Iterable[Node] = (),
        **kwargs: Any,
    ) -> Node:
        """A new call.

        Its shape is passed in and not computed by torch: that might fix sizes that are dynamic.

        Args:
            before: the call before which it is inserted, and whose source line it takes.
            target: what it calls.
            args: its arguments.
            shape: sizes of its result.
            dtype: of its result.
            replaced: the calls that it takes the place of, beside `before`.
            kwargs: its arguments by name.
        """
        with self.graph.inserting_before(before):
            node: Node = self.graph.call_function(target, args, kwargs)
        node.meta = {k: v for k, v in before.meta.items() if k != "val"}
        node.meta["debug_handles"] = handles_of([*replaced, before])
        with self._mode:
            node.meta["val"] = torch.empty(tuple(shape), dtype=dtype)
        return node

    def view(self, before: Node, node: Node, shape: Sequence[Any]) -> Node:
        """A reshape."""
        dtype = node.meta["val"].dtype
        target = aten.view_copy.default
        return self.call(before, target, node, plain(shape), shape=shape, dtype=dtype)

    def expand(self, before: Node, node: Node, shape: Sequence[Any]) -> Node:
        """Dimensions of one element repeated."""
        dtype = node.meta["val"].dtype
        target = aten.expand_copy.default
        return self.call(before, target, node, plain(shape), shape=shape, dtype=dtype)

    def permute(self, before: Node, node: Node, dims: list[int]) -> Node:
        """Dimensions in another order."""
        shape = [traced_shape(node)[d] for d in dims]
        return self.call(before, aten.permute_copy.default, node, dims, shape=shape)

    def elementwise(self, before: Node, target: Any, *args: Node) -> Node:
        """An elementwise call on float32 values, which are broadcast."""
        rank = max(len(traced_shape(arg)) for arg in args)
        shapes = [[1] * (rank - len(traced_shape(arg))) + traced_shape(arg) for arg in args]
        shape = [
            next((n for n in sizes if not alike([n], [1])), 1)
            for sizes in zip(*shapes, strict=True)
        ]
        return self.call(before, target, *args, shape=shape)

    def replace(self, old: Node, new: Node) -> None:
        """Let all users of one call use another."""
        old.replace_all_uses_with(new)

    def erase(self, node: Node) -> None:
        """Remove a call that nothing uses, and the calls that only it used."""
        inputs = node.all_input_nodes
        self.graph.erase_node(node)
        for one in inputs:
            if one.op == "call_function" and not one.users:
                self.erase(one)

    def clean(self) -> None:
        """Remove calls that nothing uses any more."""
        for node in reversed(list(self.graph.nodes)):
            if node.op == "call_function" and not node.users:
                self.graph.erase_node(node)


MANY = 4096
"""A constant in half precision with at least so many elements is stored in half precision."""


def real(data: torch.Tensor) -> torch.Tensor:
    """A constant in the dtype that a part reads: a small one in half precision as float32."""
    return data.float() if data.dtype in HALVES and data.numel() < MANY else data


def both(pair: tuple[Any, Any] | None) -> list[tuple[Any, Any]]:
    """Two operands in both orders; an empty list for None."""
    return [] if pair is None else [pair, pair[::-1]]


def only_user(node: Node) -> Node | None:
    """The single call that uses a node, if there is just one."""
    return next(iter(node.users)) if len(node.users) == 1 else None


def traced_shape(node: Any) -> list[Any]:
    """Sizes of a node's value as torch has them: dynamic ones are SymInts, unlike in `shape_of`."""
    return list(node.meta["val"].shape)


def plain(sizes: Sequence[Any]) -> list[int]:
    """Sizes as an argument of a reshape: -1 for dynamic ones, which the node's value has."""
    return [size if isinstance(size, int) else -1 for size in sizes]


def alike(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two lists of sizes have equal lengths and entries, for all sizes of the inputs."""
    return all_same(sizes_of(ones), sizes_of(others))


def handles_of(nodes: Sequence[Node]) -> list[int]:
    """The debug handles of the model's calls that these calls compute."""
    handles: list[int] = []
    for node in nodes:
        own = [node.meta["debug_handle"]] if "debug_handle" in node.meta else []
        handles += node.meta.get("debug_handles", own)
    return list(dict.fromkeys(handles))
