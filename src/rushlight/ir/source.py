"""Where a node came from: its Python line, its module path and its debug handle."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch.fx import Graph, Node

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
# The folders of torch and of this package here, and a pattern of such folders for programs that
# were captured elsewhere. A user's own folder may match the pattern too.
_HERE = tuple(
    f"{folder}{os.sep}" for folder in (Path(torch.__file__).parent, Path(__file__).parents[1])
)
_ELSEWHERE = re.compile(r"[/\\](site|dist)-packages[/\\](torch|rushlight)[/\\]")


def _is_library(file: str) -> bool:
    """Whether a file belongs to torch or to this package, or is generated code and not a file."""
    return file.startswith(("<", *_HERE)) or _ELSEWHERE.search(file) is not None


@dataclass(frozen=True)
class Source:
    """A line of the user's Python; what is not known is 0 or ""."""

    file: str = ""
    line: int = 0
    function: str = ""
    text: str = ""
    module: str = ""

    @property
    def is_users(self) -> bool:
        """Whether the line is known and belongs neither to torch nor to this package."""
        return bool(self.file) and not _is_library(self.file)

    def __str__(self) -> str:
        if not self.file:
            return self.module and f"module {self.module}"
        place = f"{self.file}:{self.line} in {self.function}"
        return f"{place}: {self.text}" if self.text else place


@lru_cache(maxsize=65536)
def source_in(trace: str) -> Source:
    """The innermost frame of the user's code in a traceback's text, else the innermost frame."""
    lines = trace.splitlines()
    chosen: Source | None = None
    for at, text in enumerate(lines):
        frame = _FRAME.search(text)
        if not frame:
            continue
        code = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if _FRAME.search(code):
            code = ""
        source = Source(frame["file"], int(frame["line"]), frame["function"], code.rstrip("^~ "))
        if chosen is None or not _is_library(source.file) or _is_library(chosen.file):
            chosen = source
    return chosen or Source()


def source_of(node: Node) -> Source:
    """The user's line and the module path that `node` was traced from."""
    frame = source_in(node.meta.get("stack_trace") or "")
    stack = node.meta.get("nn_module_stack") or {}
    path = ""
    for name, _ in stack.values():
        if isinstance(name, str) and not name.startswith("_empty_nn_module_stack"):
            path = name.removeprefix("L['self'].").removeprefix("L['self']")
    return Source(frame.file, frame.line, frame.function, frame.text, path)


def debug_handles(graph: Graph) -> dict[str, int]:
    """The handles of a captured graph's calls: 1, 2, … in order, by node name."""
    calls = (n for n in graph.nodes if n.op == "call_function")
    return {node.name: handle for handle, node in enumerate(calls, start=1)}


def carry_debug_handles(handles: dict[str, int], graph: Graph) -> None:
    """Give every node of a decomposed graph the handle of the captured node it came from.

    It is stored in `meta["debug_handle"]`, which passes copy to the nodes that they derive.
    """
    for node in graph.nodes:
        origin = next(iter(node.meta.get("from_node") or ()), None)
        while origin is not None and origin.name not in handles:
            origin = next(iter(origin.from_node or ()), None)
        if origin is not None and node.op == "call_function":
            node.meta["debug_handle"] = handles[origin.name]


def number_rest(graphs: Iterable[Graph]) -> None:
    """Give every call without a handle a new one: the calls in branches of control flow."""
    calls = [n for graph in graphs for n in graph.nodes if n.op == "call_function"]
    handle = max((n.meta.get("debug_handle", 0) for n in calls), default=0)
    for node in calls:
        if "debug_handle" not in node.meta:
            handle += 1
            node.meta["debug_handle"] = handle
