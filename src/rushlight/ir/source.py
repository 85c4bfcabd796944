"""Where a node came from: its Python line, its module path and its debug handle."""

from __future__ import annotations

import os
import re
import types
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch
from torch.fx import Graph, Node
from torch.fx.traceback import NodeSource

from rushlight.schema.source import Source, frames_in

# The folders of torch and of this package here, and a pattern of such folders for programs that
# were captured elsewhere. A user's own folder may match the pattern too.
_HERE = tuple(
    f"{folder}{os.sep}" for folder in (Path(torch.__file__).parent, Path(__file__).parents[1])
)
_ELSEWHERE = re.compile(r"[/\\](site|dist)-packages[/\\](torch|rushlight)[/\\]")
# The key of a lowered call's operator before it became an out-variant.
OPERATOR = "edge_operator"
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)


def _is_library(file: str) -> bool:
    """Whether a file belongs to torch or to this package, or is generated code and not a file."""
    return file.startswith(("<", *_HERE)) or _ELSEWHERE.search(file) is not None


def in_users_code(file: str) -> bool:
    """Whether a file is known and belongs neither to torch nor to this package."""
    return bool(file) and not _is_library(file)


@lru_cache(maxsize=65536)
def source_in(trace: str) -> Source:
    """The innermost frame of the user's code in a traceback's text, else the innermost frame."""
    chosen: Source | None = None
    for source in frames_in(trace):
        if chosen is None or not _is_library(source.file) or _is_library(chosen.file):
            chosen = source
    return chosen or Source()


def source_of(node: Node) -> Source:
    """The user's line, the module path, the operator and the debug handle of a node."""
    frame = source_in(node.meta.get("stack_trace") or "")
    stack = node.meta.get("nn_module_stack") or {}
    path = ""
    for name, _ in stack.values():
        if isinstance(name, str) and not name.startswith("_empty_nn_module_stack"):
            path = name.removeprefix("L['self'].").removeprefix("L['self']")
    operator = operator_of(node) if node.op == "call_function" else ""
    handle = int(node.meta.get("debug_handle", 0))
    return replace(frame, module=path, operator=operator, handle=handle)


def operator_of(node: Node) -> str:
    """The operator of the model's graph that a call computes: "aten.add.Tensor", or the name of a
    function of Python, such as "add" for a sum of sizes."""
    if OPERATOR in node.meta:
        return str(node.meta[OPERATOR])
    target = node.target
    return target.__name__ if isinstance(target, _FUNCTIONS) else str(target)


def debug_handles(graph: Graph) -> dict[str, int]:
    """The handles of a captured graph's calls: 1, 2, … in order, by node name."""
    calls = (n for n in graph.nodes if n.op == "call_function")
    return {node.name: handle for handle, node in enumerate(calls, start=1)}


def carry_debug_handles(captured: Graph, graph: Graph) -> None:
    """Give every node of a decomposed graph the handle of the captured node it came from.

    It is stored in `meta["debug_handle"]`, which passes copy to the nodes that they derive. What
    was decomposed may be a copy: `meta["from_node"]` names the captured graph in its place.
    """
    handles = debug_handles(captured)
    nodes = {node.name: node for node in captured.nodes}
    for node in graph.nodes:
        origin = next(iter(node.meta.get("from_node") or ()), None)
        while origin is not None and origin.name not in handles:
            origin = next(iter(origin.from_node or ()), None)
        if origin is not None and node.op == "call_function":
            node.meta["debug_handle"] = handles[origin.name]
            if origin.graph_id != id(captured):
                node.meta["from_node"] = [NodeSource(nodes[origin.name], "to_edge")]


def number_rest(graphs: Iterable[Graph]) -> None:
    """Give every call without a handle a new one: the calls in branches of control flow."""
    calls = [n for graph in graphs for n in graph.nodes if n.op == "call_function"]
    handle = max((n.meta.get("debug_handle", 0) for n in calls), default=0)
    for node in calls:
        if "debug_handle" not in node.meta:
            handle += 1
            node.meta["debug_handle"] = handle
