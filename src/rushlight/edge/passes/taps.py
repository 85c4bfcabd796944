"""Replace taps by what their reducers compute, after delegation: no backend computes it."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx

from rushlight.edge.constants import Constants
from rushlight.edge.decompositions import decomposition_table
from rushlight.edge.passes.dim_order import memory_format_to_dim_order
from rushlight.edge.passes.scalar_to_tensor import scalar_to_tensor
from rushlight.edge.passes.views_to_copies import views_to_copies
from rushlight.edge.to_edge import finish
from rushlight.errors import Code, ExportError
from rushlight.ir.custom_ops.tap import Reducer, get_reducer, tap
from rushlight.ir.programs import copy_program
from rushlight.ir.rewrite import KEPT_META, fake_mode_of
from rushlight.ir.source import source_of


def taps_to_values(program: ExportedProgram) -> ExportedProgram:
    """The Edge program with values in place of taps; `program` itself if it has none.

    Args:
        program: not changed; the result shares its tensors.

    Raises:
        ExportError: a reducer cannot be traced.
    """
    if not any(node.target is tap for node in program.graph.nodes):
        return program
    new = copy_program(program)
    constants = Constants(new)
    for node in list(new.graph.nodes):
        if node.target is tap:
            source, name = node.args
            value = _reduced(constants, node, source, get_reducer(str(name)))
            node.replace_all_uses_with(value, propagate_meta=False)
            new.graph.erase_node(node)
    scalar_to_tensor(constants)
    views_to_copies(new.graph)
    memory_format_to_dim_order(new.graph)
    finish(new)
    return new


def _reduced(constants: Constants, node: Node, source: Node, reducer: Reducer) -> Node:
    """What a reducer computes of `source`, before `node`."""
    value = source.meta["val"]
    try:
        with fake_mode_of(constants.graph), torch.no_grad():
            traced = make_fx(reducer.eager, decomposition_table())(value)
    except Exception as error:  # the caller's function raises what it likes
        reason = str(error).partition("\n")[0]
        raise ExportError(
            f"the reducer {reducer.name!r} cannot be traced for a value of {value.dtype} "
            f"{list(value.shape)}: {reason}; write it in operators of torch, or tap other nodes",
            code=Code.NOT_SUPPORTED,
            where=source.name,
            sources=[source_of(source)],
        ) from error
    return _copied(constants, traced, node, source)


def _copied(constants: Constants, traced: torch.fx.GraphModule, node: Node, source: Node) -> Node:
    graph: Graph = constants.graph
    copies: dict[Node, Any] = {}
    for one in traced.graph.nodes:
        if one.op == "placeholder":
            copies[one] = source
        elif one.op == "get_attr":
            copies[one] = constants.add(getattr(traced, str(one.target)), like=node)
        elif one.op == "output":
            return copies[one.args[0]]  # type: ignore[no-any-return]
        else:
            with graph.inserting_before(node):
                copies[one] = graph.node_copy(one, lambda arg: copies[arg])
            told = {key: node.meta[key] for key in KEPT_META if key in node.meta}
            copies[one].meta = {"val": one.meta["val"], **told}
    raise AssertionError("a traced graph has an output")
