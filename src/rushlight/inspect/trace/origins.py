"""Where the events of a trace come from: an ETRecord, or the debug map of a program."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rushlight.inspect.origin import debug_of
from rushlight.schema import program as fb
from rushlight.schema.codec import Buffer
from rushlight.schema.debug import DebugMap, DebugNode
from rushlight.schema.etrecord import EDGE
from rushlight.serialize.etrecord import RecordArchive, Source, map_in
from rushlight.serialize.pte import read_pte

_HANDLES = "debug_handle_map"
_DIALECT = "executorch.exir.dialects.edge.ops."


@dataclass(frozen=True)
class OriginNode:
    """A node of the model's graph.

    Attributes:
        name: the node's.
        op: its operator, such as "aten.linear.default".
        stack_trace: the Python lines that it comes from, the innermost last; None if not known.
        modules: the paths of the modules that it is in, from the outermost, with their types.
    """

    name: str
    op: str
    stack_trace: str | None = None
    modules: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Origin:
    """Where an event comes from.

    Attributes:
        nodes: the nodes that it was made from.
        handles: their debug handles; None without an ETRecord.
        backend: of an event of a delegate, or of its call.
        num_outputs: how many values the instruction gives.
    """

    nodes: Sequence[OriginNode] = ()
    handles: int | Sequence[int] | None = None
    backend: str | None = None
    num_outputs: int = 1


class Origins(Protocol):
    """Tells where events come from."""

    def origin(self, method: str, instruction: int, place: int | str | None) -> Origin | None:
        """The origin of an instruction, or of a place inside its delegate; None if not known."""


class ProgramOrigins:
    """The debug map of a program of Rushlight.

    Args:
        pte: the program's bytes.

    Raises:
        LoadError: it is no program.
    """

    def __init__(self, pte: Buffer) -> None:
        file = read_pte(pte)
        self._plans = {plan.name: plan for plan in file.program.execution_plan}
        self._debug: DebugMap = debug_of(file.named_data)

    def origin(self, method: str, instruction: int, place: int | str | None) -> Origin | None:
        """See `Origins`. Without a method's name the program must have one method."""
        name = method or (next(iter(self._plans)) if len(self._plans) == 1 else "forward")
        plan, debug = self._plans.get(name), self._debug.method(name)
        if plan is None or not plan.chains:
            return None
        instructions = plan.chains[0].instructions
        if not 0 <= instruction < len(instructions):
            return None
        call = instructions[instruction].instr_args
        backend = index = None
        if isinstance(call, fb.DelegateCall) and call.delegate_index < len(plan.delegates):
            index = call.delegate_index
            backend = plan.delegates[index].id
        if index is None or not (index < len(debug.delegates)):
            known = debug.instructions[instruction : instruction + 1]
        elif place is None:
            known = [node for nodes in debug.delegates[index].values() for node in nodes]
        else:
            known = list(debug.delegates[index].get(str(place), ()))
        nodes = list(dict.fromkeys(known))
        return Origin([_of_debug(node) for node in nodes], None, backend)


def _of_debug(node: DebugNode) -> OriginNode:
    trace = node.source.as_frame or None
    parts = node.module.split(".") if node.module else []
    modules = {".".join(parts[: i + 1]): "" for i in range(len(parts))}
    return OriginNode(node.name, node.operator, trace, modules)


class RecordOrigins:
    """An ETRecord (a zip archive that begins with `ETRECORD_V0`), read without torch.

    Args:
        source: the archive's path, or an open binary file.
        graph: which of its graphs has the nodes; the edge program before delegation by default.

    Raises:
        LoadError: it cannot be read, or lacks what it needs, which is named.
    """

    def __init__(self, source: Source, graph: str = EDGE) -> None:
        with RecordArchive(source) as archive:
            self._handles = map_in(archive, _HANDLES)
            if not self._handles:
                _warn(archive, f"entry {_HANDLES!r}")
            self._delegates = map_in(archive, "delegate_map")
            self._counts = map_in(archive, "instruction_id_to_num_outs_map")
            self._nodes = _nodes_in(archive, graph)

    def stack_traces(self) -> dict[str, str]:
        """By debug handle, as text: the lines of Python that led to the operator."""
        traces = {str(handle): nodes[0].stack_trace for handle, nodes in self._nodes.items()}
        return {handle: trace for handle, trace in traces.items() if trace}

    def origin(self, method: str, instruction: int, place: int | str | None) -> Origin | None:
        """See `Origins`."""
        name = method or "forward"
        at = str(instruction)
        handles = self._handles.get(name, {}).get(at)
        if handles is None:
            return None
        delegate = self._delegates.get(name, {}).get(at)
        if place is not None and delegate is not None:
            inside = delegate.get("delegate_map") or {}
            handles = inside.get(str(place))
            if handles is None:
                # As ExecuTorch does: a key that the id of the event contains.
                handles = next((v for k, v in inside.items() if k in str(place)), None)
        nodes = [
            node
            for handle in ([handles] if isinstance(handles, int) else handles or [])
            for node in self._nodes.get(handle, ())
        ]
        return Origin(
            nodes,
            handles,
            None if delegate is None else delegate.get("name", ""),
            self._counts.get(name, {}).get(at, 1),
        )


def _nodes_in(archive: RecordArchive, graph: str) -> dict[int, list[OriginNode]]:
    """The nodes of a record's graph by their debug handles; of one that it lacks, none."""
    names = archive.names
    methods = [n for n in names if n.startswith(f"{graph}/") and f"{n}_state_dict" in names]
    entry = next((n for n in (graph, f"{graph}/forward", *sorted(methods)) if n in names), None)
    if entry is None and graph != EDGE:
        graphs = sorted({n.removesuffix("_state_dict") for n in names if n.endswith("_state_dict")})
        raise archive.damaged(f"it has no program {graph!r}; it has {', '.join(graphs) or 'none'}")
    if entry is None:
        _warn(archive, f"program {graph!r}")
        return {}
    return _nodes(archive.json(entry), archive)


def _warn(archive: RecordArchive, lacking: str) -> None:
    warnings.warn(
        f"the ETRecord {archive.where} has no {lacking}: the trace is shown without operators, "
        "modules and lines; save the record with its edge program and the finished one",
        stacklevel=5,
    )


def _nodes(program: Any, archive: RecordArchive) -> dict[int, list[OriginNode]]:
    """The nodes of a serialised program, and of its branches, by their debug handles."""
    nodes: dict[int, list[OriginNode]] = {}
    try:
        for node in _with_branches(program["graph_module"]["graph"]):
            metadata = node["metadata"]
            handle, trace = metadata.get("debug_handle"), metadata.get("stack_trace")
            if not handle:
                continue
            name = node["name"] or node["outputs"][0]["as_tensor"]["name"]
            made = OriginNode(
                f"{name}_",  # as ExecuTorch's Inspector names nodes
                str(node["target"]).removeprefix(_DIALECT),
                None if trace is None else str(trace),
                _modules(metadata.get("nn_module_stack", "")),
            )
            nodes.setdefault(int(handle), []).append(made)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise archive.damaged(f"its program is not one of torch.export ({error!r})") from None
    return nodes


def _with_branches(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = [graph]
    while waiting:
        for node in waiting.pop()["nodes"]:
            yield node
            arguments = (argument["arg"] for argument in node["inputs"])
            waiting += [a["as_graph"]["graph"] for a in arguments if "as_graph" in a]


def _modules(stack: str) -> dict[str, Any]:
    """A path of modules as torch.export writes it: "key,path,type;…"."""
    modules = {}
    for part in stack.split(";"):
        key, _, rest = part.partition(",")
        if key:
            modules[key] = tuple(rest.rsplit(",", 1))
    return modules
