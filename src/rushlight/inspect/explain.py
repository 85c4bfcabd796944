"""Says what a report of a failure means: the operator, its arguments, and the lines of Python."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rushlight.errors import Code, Error
from rushlight.inspect.failure import (
    FailureEvent,
    FailureMemory,
    FailureReport,
    FailureValue,
    read_failure,
)
from rushlight.inspect.model import Method
from rushlight.inspect.program import methods_of
from rushlight.inspect.text import size_text
from rushlight.inspect.trace.origins import Origins, ProgramOrigins
from rushlight.runtime.load import open_program
from rushlight.runtime.source import map_file
from rushlight.schema import program as fb
from rushlight.schema.codec import Buffer
from rushlight.serialize.bundle import program_in

_SHOWN_EVENTS = 12
_SHOWN_NODES = 5
_OPERATIONS = {"move": "move", "jump": "jump_if_false", "free": "free"}  # of kinds without a name
_CAUSES = {
    Code.INVALID_STATE: "a method was asked for something at the wrong time",
    Code.NOT_SUPPORTED: "sizes beyond what the program was exported for, or a missing feature",
    Code.INVALID_ARGUMENT: "a value, dtype or size that the operator or the method does not take",
    Code.OPERATOR_MISSING: "the runtime on the device has no kernel for an operator",
    Code.NOT_FOUND: "a backend, or an entry of a data file, is missing on the device",
    Code.MEMORY_ALLOCATION_FAILED: "there was too little memory",
    Code.ACCESS_FAILED: "a file could not be read, or has changed",
    Code.INVALID_PROGRAM: "the program is damaged, or does what no program may",
    Code.INVALID_EXTERNAL_DATA: "the data file is damaged, or of another program",
    Code.OUT_OF_RESOURCES: "the memory limit does not allow it",
    Code.DELEGATE_INVALID_COMPATIBILITY: "a payload was made for another version of the backend",
}
_SIGNALS = {
    "SIGSEGV": "memory was accessed that is not there",
    "SIGBUS": "memory was accessed that cannot be, such as a mapped file that was cut",
    "SIGFPE": "an integer was divided by zero, or overflowed in a division",
    "SIGILL": "the processor does not have the instruction, or the code is damaged",
    "SIGABRT": "the process ended itself, as after a failed assertion",
}


@dataclass
class ExplainedValue:
    """An argument of the operator.

    Attributes:
        name: as the program names it.
        role: "input", "output" (of the method), "temporary", "state", "constant" or "literal".
        text: what it was when the run failed, such as "float32[2, 3]".
        allowed: what the program allows, such as "float32[≤8, 3]".
        written: the operator writes it.
        item: it is in the list before it.
        note: what is wrong with it; "" if nothing is known.
    """

    name: str
    role: str
    text: str
    allowed: str
    written: bool
    item: bool = False
    note: str = ""


@dataclass
class ExplainedNode:
    """A node of the model's graph that the operator comes from.

    Attributes:
        name: the node's.
        operator: its operator, such as "aten.linear.default".
        module: the path of the module that it is in.
        stack_trace: the lines of Python, the innermost last.
        handle: its debug handle; 0 if it is not known.
    """

    name: str
    operator: str
    module: str
    stack_trace: str
    handle: int = 0


@dataclass
class ExplainedEvent:
    """An instruction that began before the failure, in microseconds before it."""

    method: str
    instruction: int
    name: str
    run: int
    before_us: float
    line: str


@dataclass
class Explanation:
    """What a report means.

    Attributes:
        report: the report.
        doubts: what does not match: a damaged report, another program, no debug information.
        what: what failed, in words.
        why: the usual cause, in words; "" if there is none.
        operator: the operator that failed, or the backend; "" if none did.
        place: inside of the backend, by its own id.
        values: the operator's arguments.
        nodes: where it comes from in the model; empty if that is not known.
        events: the last instructions, the newest last.
    """

    report: FailureReport
    doubts: list[str] = field(default_factory=list)
    what: str = ""
    why: str = ""
    operator: str = ""
    place: str = ""
    values: list[ExplainedValue] = field(default_factory=list)
    nodes: list[ExplainedNode] = field(default_factory=list)
    events: list[ExplainedEvent] = field(default_factory=list)

    @property
    def message(self) -> str:
        """The error's text, without the place, which other fields name."""
        return _message(self.report)

    def to_json(self) -> dict[str, Any]:
        """The explanation as numbers, texts, lists and dictionaries."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def explain(
    report: str | os.PathLike[str] | Buffer | FailureReport,
    program: str | os.PathLike[str] | None = None,
    origins: Origins | None = None,
) -> Explanation:
    """Say what a report of a failure means.

    Args:
        report: the report, or its path or bytes.
        program: the path of the program that failed, which names its values and lines; without it,
            only what the report itself has is shown.
        origins: where instructions come from; None: the program's own debug map.

    Raises:
        LoadError: the report cannot be read or is none, or the program cannot be read.
    """
    read = report if isinstance(report, FailureReport) else read_failure(report)
    made = Explanation(read, list(read.problems), _what(read), _why(read), read.name, read.place)
    if program is None:
        made.values = [_plain_value(value) for value in _once(read.values)]
        made.events = [_event(event, None) for event in read.events]
        return made
    file, methods, _ = methods_of(program)
    _check_identity(read, program, made.doubts)
    method = _method_of(read, methods, made.doubts)
    if method is not None and not read.method:
        read = _with_names(read, method)
        made.report, made.what, made.operator = read, _what(read), read.name
    is_known = method is not None and _is_same_instruction(read, method, made.doubts)
    made.values = [_value(value, method if is_known else None) for value in _once(read.values)]
    if method is not None and read.phase == "input" and read.input is not None:
        made.values = _refused_input(read, method)
    if method is not None and is_known:
        plan = file.program.execution_plan[methods.index(method)]
        origins = origins or ProgramOrigins(program_in(map_file(program)))
        made.nodes = _nodes(read, method, plan, origins)
        if read.instruction is not None and not made.nodes:
            made.doubts.append(
                "the program has no debug information for this place: export it with a debug map "
                "to see its lines of Python"
            )
    made.events = [_event(event, methods) for event in read.events]
    return made


def _check_identity(
    report: FailureReport, program: str | os.PathLike[str], doubts: list[str]
) -> None:
    try:
        core = open_program(program)
        identity = core.identity()
        core.close()
    except Error as error:
        doubts.append(f"the program cannot be opened: {error}")
        return
    if report.program not in (0, identity):
        doubts.append(
            f"the report is of another program than {os.fspath(program)}: the one that failed has "
            f"{report.program_bytes:,} bytes and the identity {report.program:016x}, this one the "
            f"identity {identity:016x}. Names and lines are this one's, and may be wrong"
        )


def _method_of(
    report: FailureReport, methods: Sequence[Method], doubts: list[str]
) -> Method | None:
    for method in methods:
        # A long name was cut.
        if method.name == report.method or (
            len(report.method.encode()) == 63 and method.name.startswith(report.method)
        ):
            return method
    if not report.method and (report.method_index or 0) < len(methods):
        return None if report.method_index is None else methods[report.method_index]
    if report.method:
        have = ", ".join(method.name for method in methods) or "none"
        doubts.append(f"the program has no method {report.method!r}; it has {have}")
    return None


def _with_names(report: FailureReport, method: Method) -> FailureReport:
    """The report of a crash that was so bad that it has only numbers."""
    name = ""
    if report.instruction is not None and report.instruction < len(method.instructions):
        name = method.instructions[report.instruction].op
    elif report.delegate is not None and report.delegate < len(method.delegates):
        name = method.delegates[report.delegate].backend
    return replace(report, method=method.name, name=name)


def _is_same_instruction(report: FailureReport, method: Method, doubts: list[str]) -> bool:
    """Whether the program has the operator of the report where the report says that it is."""
    if report.instruction is None:
        return True
    if report.instruction >= len(method.instructions):
        doubts.append(
            f"{method.name} has {len(method.instructions)} instructions, and the report names "
            f"instruction {report.instruction}"
        )
        return False
    wanted = method.instructions[report.instruction].op
    actual = report.name or _OPERATIONS.get(report.kind, "")
    if not actual or wanted == actual or (len(actual) == 127 and wanted.startswith(actual)):
        return True
    doubts.append(
        f"instruction {report.instruction} of {method.name} is {wanted} in this program, and "
        f"{actual} in the report: its lines are not shown"
    )
    return False


# --- words ----------------------------------------------------------------------------------------


def _what(report: FailureReport) -> str:
    method = report.method or "a method"
    if report.signal:
        during = {
            "load": f"while {method} was loaded",
            "input": f"while an input of {method} was set",
        }.get(report.phase, f"while {method} ran")
        address = f", at address {report.address:#x}" if report.address else ""
        return f"the process crashed {during}: {_signal_name(report.signal)}{address}"
    code = _code_name(report.code)
    if report.phase == "load":
        return f"{method} could not be loaded: {code}"
    if report.phase == "input":
        which = "a call" if report.input is None else f"input {report.input}"
        return f"{which} of {method} was refused: {code}"
    if report.phase == "run":
        return f"{method} failed while it ran: {code}"
    return "nothing failed" if not report.code else f"{method} failed: {code}"


def _why(report: FailureReport) -> str:
    if report.signal:
        return _SIGNALS.get(_signal_name(report.signal), "")
    try:
        return _CAUSES.get(Code(report.code), "")
    except ValueError:
        return ""


def _code_name(code: int) -> str:
    try:
        return f"{Code(code).name} ({code:#04x})"
    except ValueError:
        return f"code {code:#04x}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# --- values, nodes, events ------------------------------------------------------------------------


def _once(values: Sequence[FailureValue]) -> Iterator[FailureValue]:
    """The arguments without those before their alias: operators name their result twice."""
    for i, value in enumerate(values):
        if i + 1 == len(values) or values[i + 1].value != value.value or not values[i + 1].written:
            yield value


def _plain_value(value: FailureValue) -> ExplainedValue:
    return ExplainedValue(
        f"value {value.value}", "", value.text, "", value.written, value.item, _note(value)
    )


def _note(value: FailureValue) -> str:
    if value.without_memory:
        return "nothing gave it memory"
    return "is a constant, which nothing may write" if value.constant and value.written else ""


def _value(value: FailureValue, method: Method | None) -> ExplainedValue:
    made = _plain_value(value)
    if method is None or value.value >= len(method.values):
        return made
    known = method.values[value.value]
    made.name, made.role, made.allowed = known.name or made.name, known.role, known.text
    for slot in method.inputs:
        if slot.value == value.value:
            made.name, made.allowed, made.role = slot.name or made.name, slot.text, "input"
    if value.kind != "tensor":
        made.allowed = known.text if known.kind not in ("list", value.kind) else ""
        made.text = known.text if known.kind == "list" and known.text else made.text
    return made


def _refused_input(report: FailureReport, method: Method) -> list[ExplainedValue]:
    if report.input is None or report.input >= len(method.inputs):
        return []
    slot = method.inputs[report.input]
    text = report.values[0].text if report.values else ""
    return [ExplainedValue(slot.name, "input", text, slot.text, False)]


def _nodes(
    report: FailureReport, method: Method, plan: fb.ExecutionPlan, origins: Origins
) -> list[ExplainedNode]:
    instruction = report.instruction
    if instruction is None and report.delegate is not None:  # it failed at load
        calls = (i for i, one in enumerate(method.instructions) if one.delegate == report.delegate)
        instruction = next(calls, None)
    if instruction is None or (report.chain or 0) != 0:
        return []
    origin = origins.origin(method.name, instruction, report.place or None)
    if origin is None or not origin.nodes:
        origin = origins.origin(method.name, instruction, None)
    nodes = [] if origin is None else origin.nodes
    made = [
        ExplainedNode(
            n.name, n.op, max(n.modules, key=len, default=""), n.stack_trace or "", n.handle
        )
        for n in nodes
        if n.stack_trace or n.name
    ]
    return made or _recorded_frames(plan, instruction)


def _recorded_frames(plan: fb.ExecutionPlan, instruction: int) -> list[ExplainedNode]:
    """The stack that ExecuTorch records in the program itself."""
    stacks = plan.chains[0].stacktrace or []
    if instruction >= len(stacks) or not stacks[instruction].items:
        return []
    text = "\n".join(
        f'File "{f.filename}", line {f.lineno}, in {f.name}\n    {f.context.strip()}'.rstrip()
        for f in stacks[instruction].items
    )
    return [ExplainedNode("", "", "", text)]


def _event(event: FailureEvent, methods: Sequence[Method] | None) -> ExplainedEvent:
    method, name, line = f"method {event.method}", "", ""
    if methods is not None and event.method < len(methods):
        known = methods[event.method]
        method = known.name
        if event.instruction < len(known.instructions):
            instruction = known.instructions[event.instruction]
            name = instruction.op
            line = "" if instruction.source is None else str(instruction.source)
    return ExplainedEvent(
        method, event.instruction, name, event.run, round(event.before_ns / 1000, 1), line
    )


# --- text -----------------------------------------------------------------------------------------


def _lines(made: Explanation) -> Iterator[str]:
    report = made.report
    yield from (f"note: {doubt}" for doubt in made.doubts)
    yield made.what
    if report.message:
        yield f"  {made.message}"
    if made.why:
        yield f"  usual cause: {made.why}"
    yield from _operator_lines(made)
    if report.memories:
        yield "memory"
        yield from (_memory_line(memory) for memory in report.memories)
    yield from _value_lines(made)
    if made.nodes and report.delegate is not None and not made.place:
        yield "the delegate computes what follows, and any of it may have failed"
    yield from _node_lines(made.nodes)
    yield from _event_lines(made.events, report.n_events)


def _message(report: FailureReport) -> str:
    text = report.message
    places = [report.method, f"instruction {report.instruction} ({report.name})"]
    if report.delegate is not None:
        places.append(f"delegate {report.delegate} ({report.name})")
    for place in (*places, f"at {report.place}"):
        text = text.removeprefix(f"{place}: ")
    return text


def _operator_lines(made: Explanation) -> Iterator[str]:
    report = made.report
    place = f", at {made.place} inside" if made.place else ""
    if report.instruction is not None:
        chain = f" of chain {report.chain}" if report.chain else ""
        name = made.operator or report.kind
        yield f"in instruction {report.instruction}{chain}, {name}{place}"
    elif report.delegate is not None:
        yield f"in delegate {report.delegate}, {made.operator}{place}"


def _memory_line(memory: FailureMemory) -> str:
    name = {"arena": f"arena {memory.id}", "limit": "the memory limit"}.get(
        memory.kind, memory.kind
    )
    enough = "" if memory.available >= memory.wanted else "  too little"
    return (
        f"  {name}: {size_text(memory.wanted)} ({memory.wanted:,} bytes) wanted, "
        f"{memory.available:,} there{enough}"
    )


def _value_lines(made: Explanation) -> Iterator[str]:
    if not made.values:
        return
    yield "input" if made.report.phase == "input" else "arguments"
    width = max(len(value.name) for value in made.values)
    for value in made.values:
        allowed = f"  (the program allows {value.allowed})" if value.allowed else ""
        mark = "→ " if value.written else "- " if value.item else "  "
        note = f"  {value.note}" if value.note else ""
        yield f"  {mark}{value.name:<{width}}  {value.text}{allowed}{note}"
    rest = made.report.n_values - len(made.report.values)
    if rest > 0:
        yield f"    and {rest} more"


def _node_lines(nodes: Sequence[ExplainedNode]) -> Iterator[str]:
    for node in nodes[:_SHOWN_NODES]:
        named = f"{node.name} ({node.operator})" if node.operator else node.name
        module = f", module {node.module}" if node.module else ""
        handle = f", debug handle {node.handle}" if node.handle else ""
        yield f"from {named}{module}{handle}" if named else "from"
        yield from (f"  {line}" for line in node.stack_trace.splitlines())
    if len(nodes) > _SHOWN_NODES:
        yield f"and from {len(nodes) - _SHOWN_NODES} more"


def _event_lines(events: Sequence[ExplainedEvent], count: int) -> Iterator[str]:
    if not events:
        return
    shown = events[-_SHOWN_EVENTS:]
    yield f"the last of {count:,} instructions that began"
    several = len({event.method for event in shown}) > 1
    for event in shown:
        method = f"{event.method} " if several else ""
        line = f"  {event.line}" if event.line else ""
        yield (
            f"  {_time_text(event.before_us):>11} before  run {event.run}  "
            f"{method}{event.instruction} {event.name}{line}"
        )


def _time_text(us: float) -> str:
    if us < 1e4:
        return f"{us:.1f} µs"
    return f"{us / 1e3:.1f} ms" if us < 1e7 else f"{us / 1e6:.1f} s"
