"""The values of a quantised graph that are compared with the float graph's, and graphs that return
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.graph import _PyTreeCodeGen
from torch.utils._pytree import tree_flatten

from rushlight.ir.source import source_of
from rushlight.schema.source import Source

_MOVEMENT = frozenset(
    "alias cat chunk clone contiguous copy detach dropout expand flatten getitem index "
    "index_select lift_fresh_copy movedim narrow permute repeat reshape select slice split "
    "split_with_sizes squeeze stack t to transpose type_as unbind unflatten unsqueeze "
    "view".split()
)
_BATCH_NORMS = frozenset({"batch_norm", "_native_batch_norm_legit_no_training"})
# Activations that a backend fuses with the operator before.
_ACTIVATIONS = frozenset("relu relu_ relu6 relu6_ hardtanh hardtanh_ clamp clamp_".split())


@dataclass(frozen=True)
class Range:
    """The range of a quantised value: scale * (low - zero_point) to scale * (high - zero_point)."""

    scale: float
    zero_point: int
    low: int
    high: int

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest number that round to an integer in the range."""
        low, high = self.low - 0.5 - self.zero_point, self.high + 0.5 - self.zero_point
        return self.scale * low, self.scale * high


@dataclass(frozen=True)
class Tap:
    """A value that is compared.

    Attributes:
        name: the node of the float graph, and of the quantised one if `quantized` is that node.
        op: the operators that compute it, such as "conv2d, relu".
        module: the path of the first operator's module.
        source: the Python line of the first operator.
        range: the range of its integers; None for a value that stays float.
        inputs: the names of the taps that it is computed from.
    """

    name: str
    op: str
    module: str
    source: Source
    range: Range | None
    inputs: tuple[str, ...]


def operator(node: Node) -> str:
    """The operator's name: "conv2d"."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.partition("::")[2]
    return getattr(target, "__name__", str(target))


def find_taps(model: GraphModule, quantized: GraphModule) -> list[tuple[Tap, Node, Node]]:
    """The taps in the order of the float graph, each with its node there and in the other graph.

    Results of computations are compared, but not those of operators that only move elements. A
    value between an operator and an activation that is fused with it has no tap, because the
    program does not compute it separately.

    Args:
        model: the float graph.
        quantized: the quantised graph that was made from it, whose nodes kept their names.
    """
    there = {n.name: n for n in quantized.graph.nodes if n.op == "call_function"}
    chosen: dict[Node, tuple[Node, list[Node]]] = {}
    for node in model.graph.nodes:
        twin = _twin(node, there)
        if twin is None or not _is_computed(node) or _is_fused_with_next(twin):
            continue
        chosen[node] = (_dequantized(twin), _chain(node, there))
    taps: list[tuple[Tap, Node, Node]] = []
    for node, (twin, chain) in chosen.items():
        first = chain[0]
        source = source_of(first)
        tap = Tap(
            node.name,
            ", ".join(operator(n) for n in chain),
            source.module,
            source,
            _range(twin, quantized),
            tuple(n.name for n in _before(chain, chosen)),
        )
        taps.append((tap, node, twin))
    return taps


def _twin(node: Node, there: dict[str, Node]) -> Node | None:
    """The node with the same value in the other graph, where batch norms are folded into
    convolutions."""
    if operator(node) in _BATCH_NORMS and node.name not in there:
        before = node.args[0]
        return there.get(before.name) if isinstance(before, Node) else None
    if any(operator(user) in _BATCH_NORMS and user.name not in there for user in node.users):
        return None
    twin = there.get(node.name)
    return twin if twin is not None and operator(twin) == operator(node) else None


def _is_computed(node: Node) -> bool:
    value = node.meta.get("val")
    return (
        node.op == "call_function"
        and isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and operator(node).rstrip("_") not in _MOVEMENT
        and bool(node.users)
    )


def _quantizes(node: Node) -> bool:
    return operator(node).startswith("quantize_per_t")


def _is_fused_with_next(node: Node) -> bool:
    """Whether the only user is an activation that is fused with the node."""
    if len(node.users) != 1:
        return False
    [user] = node.users
    return user.op == "call_function" and operator(user) in _ACTIVATIONS and user.args[0] is node


def _dequantized(node: Node) -> Node:
    """The node whose value the program has: the dequantised one, if the value is quantised."""
    for user in node.users:
        if user.op == "call_function" and _quantizes(user):
            for back in user.users:
                if operator(back).startswith("dequantize"):
                    return back
    return node


def _chain(node: Node, there: dict[str, Node]) -> list[Node]:
    """The operators that are fused with `node`, which is the last."""
    chain = [node]
    while True:
        before = chain[0].args[0] if chain[0].args else None
        if not isinstance(before, Node) or before.op != "call_function":
            return chain
        twin = _twin(before, there)
        folded = operator(chain[0]) in _BATCH_NORMS and twin is None
        if not folded and (twin is None or not _is_fused_with_next(twin) or len(before.users) != 1):
            return chain
        chain.insert(0, before)


def _range(node: Node, quantized: GraphModule) -> Range | None:
    if not operator(node).startswith("dequantize_per_tensor"):
        return None
    numbers = []
    for arg in node.args[1:5]:
        if isinstance(arg, Node):
            if arg.op != "get_attr":
                return None
            arg = getattr(quantized, str(arg.target)).item()
        numbers.append(arg)
    scale, zero_point, low, high = numbers
    return Range(float(scale), int(zero_point), int(low), int(high))  # type: ignore[arg-type]


def _before(chain: Sequence[Node], chosen: dict[Node, tuple[Node, list[Node]]]) -> Iterator[Node]:
    """The taps that a chain of fused operators is computed from."""
    waiting = [n for node in chain for n in node.all_input_nodes if n not in chain]
    seen: set[Node] = set(waiting)
    while waiting:
        node = waiting.pop()
        if node in chosen:
            yield node
            continue
        fresh = [n for n in node.all_input_nodes if n not in seen]
        seen.update(fresh)
        waiting.extend(fresh)


def tapped(module: GraphModule, nodes: Sequence[Node]) -> GraphModule:
    """A module with the same weights whose results are the values of `nodes`, as a tuple."""
    graph = Graph()
    values: dict[Node, Node] = {}
    graph.graph_copy(module.graph, values)
    graph.output(tuple(values[n] for n in nodes))
    codegen = module.graph._codegen
    if isinstance(codegen, _PyTreeCodeGen):
        _, spec = tree_flatten((0,) * len(nodes))
        graph._codegen = _PyTreeCodeGen(codegen.pytree_info._replace(out_spec=spec))
    return GraphModule(module, graph)
