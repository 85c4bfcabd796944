"""Passes that give nodes debug handles, and one that prints graphs."""

from __future__ import annotations

import logging
import re
from collections import Counter
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.exir.graph_passes.base import graphs_in
from rushlight.exir.planning.nodes import get_node_tensor_specs
from rushlight.files import write_text

_logger = logging.getLogger(__name__)


def _calls(graph_module: GraphModule) -> list[Node]:
    """The nodes that have handles: of the graph, then of branches and bodies."""
    return [
        node
        for module in graphs_in(graph_module)
        for node in module.graph.nodes
        if node.op not in ("placeholder", "output")
    ]


def _first_source(node: Node) -> Any:
    """The node of the captured graph that a node was made of, through all passes."""
    sources = node.meta.get("from_node") or []
    if not sources:
        return (id(node.graph), node.name)
    source = sources[-1]
    while source.from_node:
        source = source.from_node[-1]
    return (source.graph_id, source.name)


class DebugHandleGeneratorPass(PassBase):
    """Numbers all calls from 1, as `meta["debug_handle"]`; calls of one source have one number."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Write the numbers."""
        numbers: dict[Any, int] = {}
        for node in _calls(graph_module):
            number = numbers.setdefault(_first_source(node), len(numbers) + 1)
            node.meta["debug_handle"] = number
        return PassResult(graph_module, True)


def generate_missing_debug_handles(ep: ExportedProgram) -> None:
    """Give calls without a debug handle new ones, above all others."""
    nodes = _calls(ep.graph_module)
    greatest = max((node.meta.get("debug_handle") or 0 for node in nodes), default=0)
    for node in nodes:
        if not node.meta.get("debug_handle"):
            greatest += 1
            node.meta["debug_handle"] = greatest


class DebugPass(PassBase):
    """Writes a graph to the log, at the level DEBUG, and to a file.

    Args:
        msg: written first.
        enable_debug_pass: False writes nothing.
        show_src: write the lines of Python too, from which nodes come.
        show_full_path: with whole paths.
        show_all_frames: with all frames, not only the last one.
        path_filter: a regular expression; frames of other files are left out.
        show_spec: write the specs of nodes too.
        log_filename: a file that is written anew.
    """

    def __init__(
        self,
        msg: str = "",
        enable_debug_pass: bool = True,
        show_src: bool = False,
        show_full_path: bool = False,
        show_all_frames: bool = False,
        path_filter: str | None = None,
        show_spec: bool = False,
        log_filename: str | None = None,
    ) -> None:
        self.msg = msg
        self.enable_debug_pass = enable_debug_pass
        self.show_src = show_src
        self.show_full_path = show_full_path
        self.show_all_frames = show_all_frames
        self.path_filter = re.compile(path_filter or "")
        self.show_spec = show_spec
        self.log_filename = log_filename

    def call(self, graph_module: GraphModule) -> PassResult:
        """Write the graph, which is not changed."""
        if self.enable_debug_pass:
            lines = self._lines(graph_module)
            for line in lines:
                _logger.debug(line)
            if self.log_filename is not None:
                write_text(Path(self.log_filename), "\n".join([*lines, ""]))
        return PassResult(graph_module, False)

    def _lines(self, graph_module: GraphModule) -> list[str]:
        graph_module.recompile()
        lines = [self.msg] if self.msg else []
        lines += [graph_module.code.rstrip(), ""]
        nodes = list(graph_module.graph.nodes)
        for i, node in enumerate(nodes):
            lines.append(f"{i:4}: {node.format_node()}")
            if self.show_spec:
                lines += [f"      {spec.debug()}" for spec in get_node_tensor_specs(node)]
                lines.append(f"      val: {node.meta.get('val')}")
            if self.show_src:
                lines += [f"      {frame}" for frame in self._frames(node)]
        counts = Counter(str(n.target) if n.op == "call_function" else n.op for n in nodes)
        return [*lines, "", *(f"{count:4} {what}" for what, count in counts.most_common())]

    def _frames(self, node: Node) -> list[str]:
        """The lines of Python that a node comes from."""
        found = re.findall(r'File "(.+?)", line (\d+), in (\S+)\n\s*(.*)', node.stack_trace or "")
        frames = [
            f"{path if self.show_full_path else Path(path).name}:{line} in {name}: {text}"
            for path, line, name, text in found
            if self.path_filter.search(path)
        ]
        return frames if self.show_all_frames else frames[-1:]
