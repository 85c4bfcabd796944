"""Where the events of a trace come from: an ETRecord, or the debug map of a program."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rushlight.inspect.effects import operator_name
from rushlight.inspect.origin import debug_of
from rushlight.schema import program as fb
from rushlight.schema.codec import Buffer
from rushlight.schema.debug import DebugMap, DebugNode
from rushlight.schema.etrecord import EDGE
from rushlight.serialize.etrecord import RecordArchive, Source, map_in
from rushlight.serialize.pte import read_pte

_HANDLES = "debug_handle_map"
_LONGEST = 100  # characters of a kernel's name that are compared, since traces cut long ones
_DIALECT = "executorch.exir.dialects.edge.ops."
_CONTROL_FLOW = "torch.ops.higher_order."


@dataclass(frozen=True)
class OriginNode:
    """A node of the model's graph.

    Attributes:
        name: the node's.
        op: its operator, such as "aten.linear.default".
        stack_trace: the Python lines that it comes from, the innermost last; None if not known.
        modules: the paths of the modules that it is in, from the outermost, with their types.
        handle: its debug handle; 0 if it is not known.
    """

    name: str
    op: str
    stack_trace: str | None = None
    modules: Mapping[str, Any] = field(default_factory=dict)
    handle: int = 0


@dataclass(frozen=True)
class Origin:
    """Where an event comes from.

    Attributes:
        nodes: the nodes that it was made from.
        handles: their debug handles; None if they are not known.
        backend: of an event of a delegate, or of its call.
        num_outputs: how many values the instruction gives.
    """

    nodes: Sequence[OriginNode] = ()
    handles: int | Sequence[int] | None = None
    backend: str | None = None
    num_outputs: int = 1


@dataclass(frozen=True)
class Call:
    """What an instruction of a program calls, as far as it is known.

    Attributes:
        kind: "kernel", "delegate", "move", "jump" or "free"; "" if not known.
        backend: a delegate's; "" if not known.
        operators: the kernel ("aten::add.out"), or the operators of the model that it computes
            ("aten.add.Tensor"); empty if not known.
        places: the delegate's ids of the places inside it; empty if not known.
    """

    kind: str = ""
    backend: str = ""
    operators: Sequence[str] = ()
    places: Collection[str] = ()

    def is_of(self, kernel: str) -> bool:
        """Whether it may be a call of a kernel of this name."""
        if self.kind not in ("", "kernel"):
            return False
        return not self.operators or any(_computes(kernel, name) for name in self.operators)

    def has_place(self, place: int | str | None) -> bool:
        """Whether there may be such a place inside the delegate."""
        if not self.places or str(place) in self.places:
            return True
        texts = [known for known in self.places if not known.isdecimal()]
        if not texts:  # a name that the backend gave when it ran cannot be compared with numbers
            return not str(place).isdecimal()
        # As ExecuTorch does: an id may contain a text that the map knows.
        return any(text in str(place) for text in texts)

    def __str__(self) -> str:
        called = [self.backend] if self.backend else self.operators
        names = f" of {', '.join(called)}" if called else ""
        return f"a {self.kind or 'call'}{names}"


def _computes(kernel: str, operator: str) -> bool:
    """Whether a kernel, "add.out", may compute an operator, "aten::add.out" of a program or
    "aten.add.Tensor" of a record."""
    if "::" in operator:
        return operator.rpartition("::")[2][:_LONGEST] == kernel[:_LONGEST]
    # Views and copies of the runtime's own stand for several operators.
    return kernel.startswith("et_") or kernel.partition(".")[0] in operator.split(".")


class Origins(Protocol):
    """Tells where events come from."""

    @property
    def methods(self) -> Sequence[str]:
        """The names of all methods."""

    def call(self, method: str, instruction: int) -> Call | None:
        """What an instruction calls; None if there is no such instruction."""

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

    @property
    def methods(self) -> Sequence[str]:
        """See `Origins`; with the forms of a fat program."""
        return list(self._plans)

    def call(self, method: str, instruction: int) -> Call | None:
        """See `Origins`."""
        plan, debug = self._plans[method], self._debug.method(method)
        instructions = plan.chains[0].instructions if plan.chains else []
        if not 0 <= instruction < len(instructions):
            return None
        call = instructions[instruction].instr_args
        if isinstance(call, fb.KernelCall):
            called = plan.operators[call.op_index : call.op_index + 1]
            return Call("kernel", operators=list(map(operator_name, called)))
        if isinstance(call, fb.DelegateCall):
            index = call.delegate_index
            if not 0 <= index < len(plan.delegates):
                return Call("delegate")
            inside = debug.delegates[index] if index < len(debug.delegates) else {}
            return Call("delegate", plan.delegates[index].id, places=list(inside))
        if isinstance(call, fb.MoveCall):
            return Call("move")
        return Call("jump" if isinstance(call, fb.JumpFalseCall) else "free")

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
        handles = [node.handle for node in nodes if node.handle]
        one = backend is None and len(handles) == 1
        return Origin(
            [_of_debug(node) for node in nodes], handles[0] if one else handles or None, backend
        )


def _of_debug(node: DebugNode) -> OriginNode:
    trace = node.source.as_frame or None
    parts = node.module.split(".") if node.module else []
    modules = {".".join(parts[: i + 1]): "" for i in range(len(parts))}
    return OriginNode(node.name, node.operator, trace, modules, node.handle)


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
            self._graphs = _graphs_in(archive, graph)
        if len(self._graphs) == 1 == len(self._handles):  # whatever the record calls its method
            self._graphs = dict(zip(self._handles, self._graphs.values(), strict=True))

    def stack_traces(self) -> dict[str, dict[str, str]]:
        """By method, with the forms of a fat program, and debug handle, as text: the lines of
        Python that led to the operator."""
        return {
            method: {str(h): trace for h, nodes in graph.items() if (trace := nodes[0].stack_trace)}
            for method, graph in self._graphs.items()
        }

    @property
    def methods(self) -> Sequence[str]:
        """See `Origins`."""
        return list(self._handles)

    def call(self, method: str, instruction: int) -> Call:
        """See `Origins`. Instructions that come from no node of the model are not in records, nor
        are those of branches in ExecuTorch's."""
        by_instruction = self._handles.get(method, {})
        delegate = self._delegates.get(method, {}).get(str(instruction))
        if delegate is not None:
            places = list(delegate.get("delegate_map") or {})
            return Call("delegate", str(delegate.get("name") or ""), places=places)
        handles = by_instruction.get(str(instruction))
        operators = [node.op for node in self._nodes(method, handles)]
        if any("." not in operator for operator in operators):
            return Call()  # of a branch or a loop: a jump, a move or a copy
        is_kernel = operators and method in self._delegates
        return Call("kernel" if is_kernel else "", operators=operators)

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
                # As ExecuTorch does: a key that the id of the event contains, the last one; but a
                # number in "Convolution #1" is no key.
                texts = [k for k in inside if not k.isdecimal() and k in str(place)]
                handles = inside[texts[-1]] if texts else None
        return Origin(
            self._nodes(name, handles),
            handles,
            None if delegate is None else delegate.get("name", ""),
            self._counts.get(name, {}).get(at, 1),
        )

    def _nodes(self, method: str, handles: Any) -> list[OriginNode]:
        """The nodes of a method's graph that have these handles, or this one."""
        graph = self._graphs.get(method, {})
        some = [handles] if isinstance(handles, int) else handles or []
        return [node for handle in some for node in graph.get(handle, ())]


def _graphs_in(archive: RecordArchive, graph: str) -> dict[str, dict[int, list[OriginNode]]]:
    """By method the nodes of a record's graph by their debug handles; of one that it lacks, none.

    Args:
        archive: the record.
        graph: the name of a graph of all methods, or of one method, "NAME/METHOD".
    """
    names = archive.names
    methods = [n for n in names if n.startswith(f"{graph}/") and f"{n}_state_dict" in names]
    entries = {n.rpartition("/")[2]: n for n in sorted(methods)}
    if graph in names:
        entries = {graph.partition("/")[2] or "forward": graph}
    if not entries and graph != EDGE:
        graphs = sorted({n.removesuffix("_state_dict") for n in names if n.endswith("_state_dict")})
        raise archive.damaged(f"it has no program {graph!r}; it has {', '.join(graphs) or 'none'}")
    if not entries:
        _warn(archive, f"program {graph!r}")
    return {method: _nodes(archive.json(entry), archive) for method, entry in entries.items()}


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
                str(node["target"]).removeprefix(_DIALECT).removeprefix(_CONTROL_FLOW),
                None if trace is None else str(trace),
                _modules(metadata.get("nn_module_stack", "")),
                int(handle),
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
