"""Graphs as torch serialises them, and what ExecuTorch's JSON says of their nodes besides.

torch has no form for a program's lowered modules, allocations, views and operators of the Edge
dialect. `ready` makes a copy without them and `add_own` puts them into its JSON; `take_own` takes
them out of a JSON and `restore` puts them into the graph that torch made of the rest.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._export.serde import serialize as serde
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from rushlight.edge.operators import backend_operator, edge_operator
from rushlight.ir.alloc import AllocSpec, alloc, et_view, free, view
from rushlight.ir.branches import attribute, branches
from rushlight.ir.programs import copy_program
from rushlight.ir.rewrite import KEPT_META, example, fake_mode_of
from rushlight.partition import LoweredBackendModule
from rushlight.record.exir_versions import (
    HIGHER_ORDER,
    OPS,
    Document,
    newer_dtype,
    no_form,
    older_dtype,
)

_CALL = f"{HIGHER_ORDER}executorch_call_delegate"
# Operators of ExecuTorch's dialects: how files and Python name them, and what wraps torch's.
_DIALECTS = {
    "executorch.exir.dialects.edge.": edge_operator,
    "executorch.exir.dialects.backend.": backend_operator,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "memory.alloc": alloc,
    "executorch.exir.memory.view": view,
    **{f"rushlight.ir.alloc.{one.__name__}": one for one in (free, et_view)},
}
_NAMES = {f"rushlight.ir.alloc.{one.__name__}": name for name, one in _FUNCTIONS.items()}
_FACTS = "rushlight"  # in a node's metadata: what other readers do without


@dataclass(frozen=True)
class Lowered:
    """A lowered module that a graph calls.

    Attributes:
        name: the attribute that holds it.
        module: the module.
    """

    name: str
    module: LoweredBackendModule


def ready(program: ExportedProgram) -> tuple[ExportedProgram, list[Lowered]]:
    """A copy of a program that torch can serialise, and the lowered modules that it calls, which
    calls name by their places in the list.

    Raises:
        ExportError: a branch has a constant whose elements differ.
    """
    copied = copy_program(program)
    lowered: list[Lowered] = []
    for module in branches(copied.graph_module):
        _fill_constants(module)
    for module in (*branches(copied.graph_module), copied.graph_module):
        calls = [node for node in module.graph.nodes if node.op == "call_function"]
        _add_examples(module, calls)
        for node in calls:
            if isinstance(node.meta["val"], list):
                node.meta["val"] = tuple(node.meta["val"])
            if node.target is alloc:
                node.args = (_text_of(node.args[0]),)
            elif node.target is executorch_call_delegate:
                held: Any = node.args[0]
                value: Any = attribute(held)
                lowered.append(Lowered(str(held.target), value))
                node.args = (len(lowered) - 1, *node.args[1:])
    return copied, lowered


def _add_examples(module: GraphModule, calls: Sequence[Node]) -> None:
    """Give the calls that have none their example values."""
    mode = fake_mode_of(module.graph)
    for node in calls:
        if "val" not in node.meta:
            function: Any = node.target
            with mode, torch.no_grad():
                node.meta["val"] = function(*example(node.args), **example(node.kwargs))


def _fill_constants(module: GraphModule) -> None:
    """Replace the constants of a branch by calls that fill them: torch's serialiser takes
    constants of whole programs only."""
    graph = module.graph
    for node in graph.find_nodes(op="get_attr"):
        tensor = attribute(node)
        if not isinstance(tensor, torch.Tensor):
            continue
        first = tensor.flatten()[:1]
        if not bool((tensor == first).all()):
            raise no_form(f"a constant of {tensor.numel()} elements in a branch of control flow")
        with graph.inserting_before(node):
            filled = graph.call_function(
                torch.ops.aten.full.default,
                (list(tensor.shape), first.item() if len(first) else 0),
                {"dtype": tensor.dtype},
            )
        filled.meta = dict(node.meta)
        filled.meta["val"] = node.meta.get("val", tensor)
        node.replace_all_uses_with(filled)
        graph.erase_node(node)


def _text_of(spec: Any) -> str:
    """An `AllocSpec` as ExecuTorch writes it, "(2, 3);7"; its dim order is in the facts."""
    if isinstance(spec, list):
        raise no_form("one call that allocates several tensors")
    number = serde._TORCH_TO_SERIALIZE_DTYPE[spec[1]].value
    return f"{tuple(spec[0])};{older_dtype(number)}"


def _spec_of(text: str, facts: Document) -> AllocSpec:
    sizes, _, number = text.partition(";")
    dtype = serde._SERIALIZE_TO_TORCH_DTYPE[newer_dtype(int(number))]
    shape = tuple(int(one) for one in sizes.strip("()").split(",") if one.strip())
    return (shape, dtype, *([facts["dim_order"]] if "dim_order" in facts else []))


def add_own(
    graph: Document, module: GraphModule, lowered: Sequence[tuple[Lowered, str]], edge: bool
) -> None:
    """Put into a graph's JSON what torch did not.

    Args:
        graph: what torch made of a `ready` graph; changed.
        module: the graph, of the program that `ready` was given.
        lowered: the lowered modules in the order of `ready`, each with its JSON.
        edge: whether torch's operators are to have the names of the Edge dialect.
    """
    nodes = {node.name: node for node in module.graph.nodes}
    for entry in graph["nodes"]:
        entry["target"] = _target(entry["target"], edge)
        node = nodes.get(entry["name"])
        facts: Document = {}
        if node is not None and "debug_handle" in node.meta:
            entry["metadata"]["debug_handle"] = str(node.meta["debug_handle"])
        if entry["target"] == _CALL:
            call, text = lowered[entry["inputs"][0]["arg"]["as_int"]]
            entry["inputs"][0] = {"name": call.name, "arg": {"as_string": text}}
            for number, argument in enumerate(entry["inputs"][1:]):
                argument["name"] = f"delegate_arg_{number}"
            facts = {**call.module.facts(), "handles": _handles_of_results(node)}
        elif node is not None and node.target is alloc:
            spec: Any = node.args[0]
            entry["inputs"][0]["name"] = "alloc_arg"
            facts = {"dim_order": list(spec[2])} if len(spec) > 2 else {}
        if facts:
            entry["metadata"][_FACTS] = json.dumps(facts)
        for argument in entry["inputs"]:
            branch = argument["arg"].get("as_graph")
            inside = branch and getattr(module, branch["name"], None)
            if isinstance(inside, GraphModule):
                add_own(branch["graph"], inside, lowered, edge)


def _handles_of_results(call: Node | None) -> dict[str, int]:
    """The handles of the nodes that take a delegate's results: of what computed each."""
    takers = call.users if call is not None else ()
    handles = {taker.name: taker.meta.get("debug_handle") for taker in takers}
    return {name: handle for name, handle in handles.items() if isinstance(handle, int)}


def _target(name: str, edge: bool) -> str:
    """How `exir` names what a node calls."""
    for dialect in _DIALECTS:
        if name.startswith(f"{dialect}_ops."):
            return f"{dialect}ops.{name.removeprefix(f'{dialect}_ops.')}"
    if edge and name.startswith(OPS) and not name.startswith(HIGHER_ORDER):
        return f"{next(iter(_DIALECTS))}ops.{name.removeprefix(OPS)}"
    return _NAMES.get(name, name)


@dataclass
class Own:
    """What a node's JSON had that torch does not read.

    Attributes:
        handle: its debug handle.
        facts: what Rushlight wrote about it.
        make: makes its operator of torch's.
        function: what it calls, if that is no operator.
        is_list: whether that makes a list of its arguments.
        lowered: the name and JSON of the lowered module that it calls.
        branches: those of the graphs that it calls, by their names.
    """

    handle: int | None = None
    facts: Document = field(default_factory=dict)
    make: Callable[[Any], Any] | None = None
    function: Callable[..., Any] | None = None
    is_list: bool = False
    lowered: tuple[str, str] | None = None
    branches: dict[str, dict[str, Own]] = field(default_factory=dict)


def take_own(graph: Document) -> dict[str, Own]:
    """Take from a graph's JSON what torch does not read; by the nodes' names."""
    return {entry["name"]: _take(entry) for entry in graph["nodes"]}


def _take(entry: Document) -> Own:
    metadata, inputs, target = entry["metadata"], entry["inputs"], entry["target"]
    handle = str(metadata.pop("debug_handle", ""))
    own = Own(
        handle=int(handle) if handle.isdecimal() else None,
        facts=json.loads(metadata.pop(_FACTS, "{}")),
    )
    for dialect, make in _DIALECTS.items():
        if target.startswith(f"{dialect}ops."):
            own.make, entry["target"] = make, OPS + target.removeprefix(f"{dialect}ops.")
    if target in _FUNCTIONS:  # torch's verifier takes calls of this operator with any arguments
        own.function, entry["target"] = _FUNCTIONS[target], _CALL
        own.is_list = any(argument["name"] == "alloc_list" for argument in inputs)
        entry["is_hop_single_tensor_return"] = True
    elif target == _CALL:
        first = inputs.pop(0)
        own.lowered = first["name"], first["arg"]["as_string"]
    if entry["target"] == _CALL:
        for argument in inputs:
            argument["name"] = ""
    for argument in inputs:
        branch = argument["arg"].get("as_graph")
        if branch:
            own.branches[branch["name"]] = take_own(branch["graph"])
    return own


def restore(
    module: GraphModule, own: dict[str, Own], read: Callable[[str, Document], LoweredBackendModule]
) -> None:
    """Put what `take_own` took into the graph that torch made.

    Args:
        module: changed.
        own: as `take_own` returned it.
        read: makes a lowered module of its JSON and the facts about it.
    """
    for node in list(module.graph.nodes):
        if isinstance(node.target, OpOverload):
            _make_positional(node)
        producer: Any = node
        while producer.target is operator.getitem:
            producer = producer.args[0]
        one = own.get(producer.name)
        if one is None:
            continue
        if node.name.startswith(f"{producer.name}_unused_"):  # a result that nothing takes
            module.graph.erase_node(node)
            continue
        handle = one.facts.get("handles", {}).get(node.name, one.handle)
        if handle is not None:
            node.meta["debug_handle"] = handle
        if producer is node:
            _restore_call(module, node, one, read)
    module.recompile()


def _make_positional(node: Node) -> None:
    """Give the arguments by position that can be: JSON does not say how they were given, and torch
    then gives those that have defaults by name."""
    target: Any = node.target
    args, kwargs = list(node.args), dict(node.kwargs)
    for argument in target._schema.arguments[len(args) :]:
        if argument.kwarg_only or argument.name not in kwargs:
            break
        args.append(kwargs.pop(argument.name))
    node.args, node.kwargs = tuple(args), kwargs


def _restore_call(
    module: GraphModule, node: Node, own: Own, read: Callable[[str, Document], LoweredBackendModule]
) -> None:
    if own.make is not None:
        node.target = own.make(node.target)
    elif own.function is not None:
        node.target = own.function
        if own.function is alloc:
            specs = [_spec_of(str(text), own.facts) for text in node.args]
            node.args = (specs if own.is_list else specs[0],)
    elif own.lowered is not None:
        name, text = own.lowered
        if not isinstance(getattr(module, name, None), LoweredBackendModule):
            setattr(module, name, read(text, own.facts))
        with module.graph.inserting_before(node):
            held = module.graph.get_attr(name)
        held.meta.update({key: node.meta[key] for key in KEPT_META if key in node.meta})
        node.args = (held, *node.args)
    for name, inside in own.branches.items():
        restore(getattr(module, name), inside, read)
