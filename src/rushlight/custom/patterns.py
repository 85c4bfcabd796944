"""`replace_pattern`: calls of an Edge program that compute a pattern become calls of something
else, such as an operator of the user's own."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from rushlight.edge import PassResult
from rushlight.edge.constants import tensor_named
from rushlight.errors import Code, ExportError
from rushlight.ir.programs import copy_graph_module
from rushlight.ir.rewrite import fake_mode_of, insert, remove_dead
from rushlight.pipeline import EdgeProgramManager, to_edge

Function = Callable[..., Any]


def replace_pattern(
    edge: EdgeProgramManager,
    pattern: Function,
    replacement: Function,
    example_inputs: Sequence[torch.Tensor] | None = None,
) -> EdgeProgramManager:
    """Replace what computes a pattern, in all methods of an Edge program.

    A match has the pattern's operators, with the same numbers, on any tensors. Values inside it,
    which are not among the pattern's results, must have no other users.

    Args:
        edge: the program, which is not changed.
        pattern: a function of tensors that computes what to look for, with operators of torch.
        replacement: a function of the same tensors that computes it in another way, such as by an
            operator of your own. It must call operators that an Edge program can have.
        example_inputs: tensors to capture the pattern with, if it depends on their ranks, sizes or
            dtypes. None: matrices of float32.

    Returns:
        The changed program. A UserWarning says so if the pattern was found nowhere.

    Raises:
        ExportError: the pattern cannot be captured, or the replacement gives other shapes or
            dtypes.
    """
    count = len(inspect.signature(pattern).parameters)
    examples = tuple(example_inputs or (torch.randn(2, 3) for _ in range(count)))
    wanted = _Pattern.of(pattern, examples)
    found: list[int] = []
    passes = {
        name: [_Replace(wanted, replacement, edge.exported_program(name), found)]
        for name in edge.methods
    }
    changed = edge.transform(passes)
    if not sum(found):
        warnings.warn("replace_pattern: the pattern was found nowhere", UserWarning, stacklevel=2)
    return changed


@dataclass(frozen=True)
class _Pattern:
    """An Edge graph: its inputs, results, and constants by node."""

    inputs: list[Node]
    results: list[Node]
    constants: dict[Node, torch.Tensor]

    @staticmethod
    def of(function: Function, examples: tuple[torch.Tensor, ...]) -> _Pattern:
        class Module(torch.nn.Module):
            def forward(self, *args: torch.Tensor) -> Any:
                return function(*args)

        program = to_edge(torch.export.export(Module(), examples)).exported_program()
        constants = _constants(program)
        nodes = program.graph.find_nodes(op="placeholder")
        results = [n for n in program.graph.output_node().args[0] if isinstance(n, Node)]
        inputs = [node for node in nodes if node not in constants]
        unused = next((i for i, node in enumerate(inputs) if not node.users), None)
        if unused is not None:
            raise ExportError(
                f"the pattern does not use its argument {unused}: leave it out",
                code=Code.INVALID_ARGUMENT,
            )
        if not results or any(node.op != "call_function" for node in results):
            raise ExportError(
                "the pattern must return what operators compute, and not its inputs",
                code=Code.INVALID_ARGUMENT,
            )
        return _Pattern(inputs, results, constants)


def _constants(program: ExportedProgram) -> dict[Node, torch.Tensor]:
    """The constants of a program by node; state that it writes is none."""
    signature = program.graph_signature
    written = set(signature.buffers_to_mutate.values())
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    return {
        nodes[spec.arg.name]: tensor_named(program, spec.target)
        for spec in signature.input_specs
        if spec.target is not None and spec.target not in written
    }


class _Replace:
    """The pass over one method."""

    def __init__(
        self, wanted: _Pattern, replacement: Function, program: ExportedProgram, found: list[int]
    ) -> None:
        self.wanted, self.replacement, self.found = wanted, replacement, found
        self.constants = {node.name: tensor for node, tensor in _constants(program).items()}

    def __call__(self, module: GraphModule) -> PassResult:
        """Replace all matches in a copy of `module`."""
        own = copy_graph_module(module)
        graph = own.graph
        order = {node: i for i, node in enumerate(graph.nodes)}
        matches = list(self._matches(graph, order))
        replaced: dict[Node, Node] = {}  # a match may begin with what another ends with
        for match in matches:
            self._apply(graph, match, order, replaced)
        remove_dead(graph)
        own.recompile()
        self.found.append(len(matches))
        return PassResult(own, bool(matches))

    def _matches(self, graph: Graph, order: Mapping[Node, int]) -> Iterator[dict[Node, Node]]:
        """Matches that share no call, as the graph's node for each of the pattern's."""
        taken: set[Node] = set()
        for node in graph.nodes:
            for match in self._extend([(self.wanted.results[0], node)], {}):
                calls = {match[p] for p in match if p.op == "call_function"}
                if taken.isdisjoint(calls) and self._is_whole(match, calls, order):
                    taken |= calls
                    yield match
                    break

    def _extend(
        self, pairs: list[tuple[Node, Node]], match: dict[Node, Node]
    ) -> Iterator[dict[Node, Node]]:
        """The match with `pairs`, and with all results of the pattern."""
        if not self._fits_all(pairs, match):
            return
        missing = next((r for r in self.wanted.results if r not in match), None)
        if missing is None:
            yield match
            return
        for node in pairs[0][1].graph.find_nodes(op="call_function", target=missing.target):
            yield from self._extend([(missing, node)], dict(match))

    def _fits_all(self, pairs: list[tuple[Node, Node]], match: dict[Node, Node]) -> bool:
        return all(self._fits(pattern, node, match) for pattern, node in pairs)

    def _fits(self, pattern: Any, value: Any, match: dict[Node, Node]) -> bool:
        """Whether an argument is what the pattern has there; adds its nodes to `match`."""
        if isinstance(pattern, list | tuple):
            same = isinstance(value, list | tuple) and len(value) == len(pattern)
            return same and all(
                self._fits(p, v, match) for p, v in zip(pattern, value, strict=True)
            )
        if not isinstance(pattern, Node):
            return type(pattern) is type(value) and pattern == value
        if not isinstance(value, Node):
            return False
        if pattern in match:
            return match[pattern] is value
        if pattern in self.wanted.constants:
            held = self.constants.get(value.name)
            fits = held is not None and _equal(held, self.wanted.constants[pattern])
        elif pattern.op == "placeholder":
            fits = isinstance(value.meta.get("val"), torch.Tensor)
        else:
            fits = (
                value.target == pattern.target
                and self._fits(pattern.args, value.args, match)
                and pattern.kwargs.keys() == value.kwargs.keys()
                and all(self._fits(pattern.kwargs[k], value.kwargs[k], match) for k in value.kwargs)
            )
        match[pattern] = value
        return fits

    def _is_whole(
        self, match: Mapping[Node, Node], calls: set[Node], order: Mapping[Node, int]
    ) -> bool:
        """Whether nothing else uses values inside of a match, and its results are used after it."""
        results = {match[result] for result in self.wanted.results}
        last = max(order[node] for node in calls)
        inside = all(calls.issuperset(node.users) for node in calls - results)
        users = {user for node in results for user in node.users if user not in calls}
        return inside and all(order[user] > last for user in users)

    def _apply(
        self,
        graph: Graph,
        match: Mapping[Node, Node],
        order: Mapping[Node, int],
        replaced: dict[Node, Node],
    ) -> None:
        results = [match[result] for result in self.wanted.results]
        inputs = [replaced.get(match[node], match[node]) for node in self.wanted.inputs]
        last = max(results, key=order.__getitem__)
        with fake_mode_of(graph):
            traced = make_fx(self.replacement)(*(node.meta["val"] for node in inputs))
        new = _inlined(traced.graph, inputs, last.next, last)
        if len(new) != len(results):
            raise ExportError(
                f"the replacement returns {len(new)} tensors, and the pattern {len(results)}",
                code=Code.INVALID_ARGUMENT,
            )
        for old, one in zip(results, new, strict=True):
            _check_like(old, one)
            old.replace_all_uses_with(one, propagate_meta=False)
            replaced[old] = one


def _inlined(traced: Graph, inputs: list[Node], before: Node, like: Node) -> list[Node]:
    """Insert the calls of a traced function before a node, with the source of another."""
    nodes = dict(zip(traced.find_nodes(op="placeholder"), inputs, strict=True))
    for node in traced.nodes:
        if node.op == "get_attr":
            raise ExportError(
                "the replacement makes a tensor of numbers: give it as an input of both functions",
                code=Code.INVALID_ARGUMENT,
            )
        if node.op == "call_function":
            args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), nodes.__getitem__)
            nodes[node] = insert(like.graph, node.target, args, kwargs, like=like)
            before.prepend(nodes[node])
    returned: Any = traced.output_node().args[0]
    return [nodes[n] for n in (returned if isinstance(returned, list | tuple) else [returned])]


def _check_like(old: Node, new: Node) -> None:
    was, now = old.meta["val"], new.meta["val"]
    if was.dtype == now.dtype and tuple(was.shape) == tuple(now.shape):
        return
    raise ExportError(
        f"the replacement gives {now.dtype} of sizes {tuple(now.shape)}, and what the pattern "
        f"matched ({old.name}) is {was.dtype} of sizes {tuple(was.shape)}",
        code=Code.INVALID_ARGUMENT,
    )


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool(torch.all(one.to(other.dtype) == other))
