"""`tap_outputs`: a captured program that also returns values inside it."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument
from torch.fx import Node

from rushlight.errors import Code, ExportError
from rushlight.ir.custom_ops.tap import FULL_TENSOR, Reducer, SelectionError, get_reducer, tap
from rushlight.ir.programs import copy_program
from rushlight.ir.rewrite import KEPT_META, fake_mode_of
from rushlight.tap.selectors import NodeSelector, modules_of, select_all_call_function


@dataclass(frozen=True)
class Tap:
    """One value that a program returns as a further output.

    Attributes:
        node_name: the captured graph's node; of one with several results "name[index]".
        op_target: its operator, such as "aten.linear.default".
        output_index: where the value is among the method's outputs, flat.
        reducer_name: of the reducer that it went through.
        fields: the names of its elements; empty if it is the whole value.
        stack_trace: the lines of Python that the node comes from; None if not known.
        module_path, module_class: the innermost module that it is in; None if it is in none.
    """

    node_name: str
    op_target: str
    output_index: int
    reducer_name: str
    fields: tuple[str, ...]
    stack_trace: str | None = None
    module_path: str | None = None
    module_class: str | None = None


def tap_outputs(
    program: ExportedProgram,
    selector: NodeSelector | None = None,
    reducer: str | Reducer = FULL_TENSOR,
    *,
    max_taps: int | None = None,
) -> tuple[ExportedProgram, list[Tap]]:
    """Let a captured program also return the values of some of its nodes.

    The values are those of the program as it is lowered, quantised and delegated: a backend gives
    out what it computes. So a backend cannot fuse across a tap. Tap a program again to reduce other
    nodes in another way.

    Args:
        program: what torch.export captured; not changed.
        selector: which nodes; all calls by default. Nodes in branches and loops are not asked for.
        reducer: what is kept of a value: `FULL_TENSOR`, `STATS`, or a `Reducer` of yours.
        max_taps: at most so many, the first ones.

    Returns:
        The program, whose outputs are the earlier ones and then the taps; and the taps.

    Raises:
        SelectionError: no node with tensors is selected.
    """
    kept = get_reducer(reducer)
    selects = selector or select_all_call_function()
    new = copy_program(program)
    graph = new.graph
    outputs = list(_sequence(graph.output_node().args[0]))
    first = sum(s.kind == OutputKind.USER_OUTPUT for s in new.graph_signature.output_specs)
    taps: list[Tap] = []
    calls = [node for node in graph.nodes if node.op == "call_function" and node.target is not tap]
    selected = [value for node in calls if selects(node) for value in _values(node)]
    for node, name in selected:
        if max_taps is not None and len(taps) >= max_taps:
            break
        call = _call(node, kept)
        outputs.append(call)
        argument = TensorArgument(call.name)
        new.graph_signature.output_specs.append(OutputSpec(OutputKind.USER_OUTPUT, argument, None))
        taps.append(_told(node, name, kept, first + len(taps)))
    if not taps:
        raise SelectionError(
            f"the selector selects no call that gives tensors; of {len(calls)} calls the first are "
            f"{', '.join(list(dict.fromkeys(str(n.target) for n in calls))[:5]) or 'none'}",
            code=Code.NOT_FOUND,
        )
    graph.output_node().args = (tuple(outputs),)
    _add_outputs(new, len(taps))
    new.graph_module.recompile()
    return new, taps


def _sequence(returned: Any) -> tuple[Any, ...]:
    return tuple(returned) if isinstance(returned, tuple | list) else (returned,)


def _values(node: Node) -> Iterator[tuple[Node, str]]:
    """The nodes of a call's tensors: its own, or those that take one of its results."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        yield node, node.name
    elif isinstance(value, tuple | list):
        for user in list(node.users):
            if user.target is operator.getitem and isinstance(user.meta["val"], torch.Tensor):
                yield user, f"{node.name}[{user.args[1]}]"


def _call(node: Node, reducer: Reducer) -> Node:
    """A tap right behind `node`, before a later call writes into its value."""
    with node.graph.inserting_after(node):
        call = node.graph.call_function(tap, (node, reducer.name))
    call.meta = {key: node.meta[key] for key in KEPT_META if key in node.meta}
    try:
        with fake_mode_of(node.graph), torch.no_grad():
            call.meta["val"] = tap(node.meta["val"], reducer.name)
    except Exception as error:  # the caller's function raises what it likes
        reason = str(error).partition("\n")[0]
        raise ExportError(
            f"the reducer {reducer.name!r} fails on the value of {node.name}: {reason}; tap other "
            f"nodes, or use another reducer",
            code=Code.INVALID_ARGUMENT,
        ) from error
    return call


def _told(node: Node, name: str, reducer: Reducer, index: int) -> Tap:
    source = node.args[0] if node.target is operator.getitem else node
    assert isinstance(source, Node)
    path, kind = next(reversed(modules_of(source).values()), (None, None))
    return Tap(
        name,
        str(source.target),
        index,
        reducer.name,
        reducer.fields,
        source.meta.get("stack_trace"),
        path,
        kind,
    )


def _add_outputs(program: ExportedProgram, count: int) -> None:
    """Add the taps to the structure that the program returns: a tuple, which has them last."""
    whole = next(entry for entry in program.module_call_graph if entry.fqn == "")
    before = whole.signature
    assert before is not None
    results = pytree.tree_unflatten([0] * before.out_spec.num_leaves, before.out_spec)
    results = results if isinstance(results, tuple) else (results,)
    signature = dataclasses.replace(
        before,
        out_spec=pytree.tree_structure((*results, *([0] * count))),
        # Without names: run_decompositions gives nodes new ones, and looks for those that have one.
        outputs=[*before.outputs, *(TensorArgument("") for _ in range(count))],
    )
    program._module_call_graph = [
        dataclasses.replace(entry, signature=signature) if entry is whole else entry
        for entry in program.module_call_graph
    ]
