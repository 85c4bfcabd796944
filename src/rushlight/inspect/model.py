"""The contents of a program file as plain data: read by `program.py`, shown in terminal and page.

Indices of values and instructions are those of the file. All fields are numbers, strings and lists
of them, so that :meth:`ProgramContents.to_json` is the whole report.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from rushlight.schema.finding import ExportFinding
from rushlight.schema.source import Source

Actual = tuple[int, ...] | int
"""A value in a run: a tensor's sizes, or a number."""


@dataclass(slots=True)
class Value:
    """One value of a method.

    Attributes:
        kind: "tensor", "int", "bool", "double", "string", "none" or "list".
        name: the name of the graph node, parameter, buffer or input; made up if the file has none.
        text: the type of a tensor ("float32[1, 3, 64, 64]"), else the value itself.
        role: "input", "output", "temporary" (planned), "state" (planned, keeps its content between
            calls), "caller" (memory given by the caller), "constant", "external" or "literal".
        dtype, shape, bytes: for a tensor; upper bounds if `dynamic`.
        constant: the index of its constant or initial content; 0 is none.
        memory_id: the arena in which it is planned; 0 is none.
        offset: bytes from the start of that arena.
        base: the value of which it is a view; None if it has its own bytes.
    """

    kind: str
    name: str
    text: str
    role: str = "literal"
    dtype: str = ""
    shape: list[int] = field(default_factory=list)
    bytes: int = 0
    dynamic: bool = False
    constant: int = 0
    memory_id: int = 0
    offset: int = 0
    base: int | None = None


@dataclass(slots=True)
class Instruction:
    """One instruction of a method.

    Attributes:
        kind: "kernel", "delegate", "move", "jump" or "free".
        op: the operator's runtime name, the backend's name, or "move", "jump_if_false", "free".
        name: the graph node's name; "" if it is not known.
        args: all arguments, as indices of values.
        reads, writes: the tensors and computed numbers among them, with the items of lists.
        delegate: the index of the called delegate; -1 if no delegate is called.
        target: the instruction that a jump goes to; -1 if it is not a jump.
        source: where it comes from; None if it is not known.
        flops, bytes: its work, see `Work`; None if it is not known.
        cost: its estimated microseconds on one core, by its work; 0 if that is not known.
    """

    kind: str
    op: str
    name: str
    args: list[int]
    reads: list[int]
    writes: list[int]
    delegate: int = -1
    target: int = -1
    source: Source | None = None
    flops: int | None = None
    bytes: int | None = None
    cost: float = 0.0


@dataclass(slots=True)
class Work:
    """The work of an operator, computed from the sizes in the file; None if it is not known.

    Attributes:
        name: the name of the operator, or of a node in a delegate; "+" for one with an epilogue.
        flops: multiplications and additions of a product, a convolution or attention by its
            definition, whatever algorithm and dtype compute it; None for other operators.
        bytes: the bytes of all values that it reads and writes, each once.
        nodes: the operators of the model that it was made from.
        sources: their Python lines, each once; empty if they are not known.
        is_integer: whether it multiplies integers.
    """

    name: str
    flops: int | None = None
    bytes: int | None = None
    nodes: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    is_integer: bool = False


@dataclass(slots=True)
class Block:
    """A planned range of an arena and its lifetime.

    Attributes:
        value: the index of the value that it was planned for.
        name, text, role: the fields of that value.
        offset, bytes: its range in the arena, with views that reach further.
        first, last: the instructions of its lifetime, both inclusive.
        views: the values that are views of it.
        writer: the instruction that writes it first; -1 for inputs and state.
    """

    value: int
    name: str
    text: str
    role: str
    offset: int
    bytes: int
    first: int
    last: int
    views: list[int] = field(default_factory=list)
    writer: int = -1


@dataclass(slots=True)
class Arena:
    """One memory of a method.

    Attributes:
        memory_id: counted from 1.
        bytes: its size in the file.
        lower_bound: the most bytes that are live at one instruction; no plan can need less.
        peak_at: the first instruction at which that many are live.
        live: (instruction, bytes live from there on), where they change. Sizes of blocks are
            rounded up to the alignment of the plan, here and in the lower bound.
        overlap: two values whose blocks share bytes while both are live; empty in a valid plan.
    """

    memory_id: int
    bytes: int
    lower_bound: int
    peak_at: int
    live: list[tuple[int, int]]
    blocks: list[Block]
    overlap: list[int] = field(default_factory=list)


@dataclass(slots=True)
class DelegateNode:
    """An operator inside a delegate, as its backend runs it.

    Attributes:
        place: the backend's id for it, as in its events.
        name: its kind, such as "Product+" for a product with an epilogue; its id if that is not
            known.
        inputs: what it reads: the indices of nodes of the delegate that computed it, or -1 - i for
            argument i of the call; empty if that is not known.
        results: the types of what it computes, at upper bounds.
        outputs: the arguments of the call that it writes.
        nodes: the names of the nodes of the model's graph that it was made from.
        sources: where they come from, one for each.
        flops, bytes, cost: as those of `Instruction`.
    """

    place: str
    name: str
    inputs: list[int] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    flops: int | None = None
    bytes: int | None = None
    cost: float = 0.0


@dataclass(slots=True)
class Delegate:
    """A part of a method that a backend runs.

    Attributes:
        backend: the backend's registered name.
        bytes: the size of its payload.
        scratch: the bytes of scratch that it needs besides; 0 if its payload does not say it.
        shared: whether another delegate uses the same payload.
        calls: the instructions that call it.
        specs: its compile specs: each key, and the number of bytes of its value.
        nodes: its operators; empty if they are not known.
    """

    backend: str
    bytes: int
    scratch: int
    shared: bool
    calls: list[int]
    specs: list[tuple[str, int]]
    nodes: list[DelegateNode] = field(default_factory=list)


@dataclass(slots=True)
class Covered:
    """One operator call of the method before it was partitioned.

    Attributes:
        name: the node's name.
        op: its operator.
        backend: the backend that took it; "" if it stayed.
        part: the index of its partition in the method; -1 if it stayed.
        cost: estimated microseconds on one core, from which shares are computed.
        reasons: for a call that stayed, why each backend did not take it; for a delegated call, a
            note of its backend, if there is one.
        source: the Python line; None if it is not known.
    """

    name: str
    op: str
    backend: str
    part: int
    cost: float
    reasons: dict[str, str] = field(default_factory=dict)
    source: Source | None = None


@dataclass(slots=True)
class Slot:
    """One input or output as the signature shows it."""

    name: str
    text: str
    value: int


@dataclass(slots=True)
class Method:
    """One method.

    Attributes:
        signature: "forward(x: float32[s0 in 2..8, 6]) -> float32[12, 6]".
        weak: the signature is made from the tensors alone, since the file has no contract.
        relations: the conditions between the inputs' sizes, in words.
        constant_bytes: the size of the constants that it uses.
        delegate_bytes: the size of the payloads that it uses.
        caller_bytes: the size of inputs and outputs whose memory the caller provides.
        coverage: each operator call and its backend; empty if there was no partitioner.
    """

    name: str
    signature: str
    weak: bool
    relations: list[str]
    inputs: list[Slot]
    outputs: list[Slot]
    values: list[Value]
    instructions: list[Instruction]
    arenas: list[Arena]
    delegates: list[Delegate]
    constant_bytes: int
    delegate_bytes: int
    caller_bytes: int
    coverage: list[Covered] = field(default_factory=list)

    @property
    def arena_bytes(self) -> int:
        """Bytes of all arenas."""
        return sum(arena.bytes for arena in self.arenas)


@dataclass(slots=True)
class Constant:
    """Constant data of the program.

    Attributes:
        index: its number in the file, from 1; 0 for a tensor in a data file beside the program.
        name: the name of the first tensor that uses it.
        uses: the tensors that use it, as "method: name".
        kind: "constant", "initial state" or "external".
    """

    index: int
    name: str
    dtype: str
    shape: list[int]
    bytes: int
    uses: list[str]
    kind: str


@dataclass(slots=True)
class Operator:
    """An operator of the program.

    Attributes:
        name: its name in the runtime, or the backend's name.
        calls: the number of instructions that call it, in all methods.
        kind: "kernel" or "delegate".
        executorch: whether ExecuTorch 1.4.1 has it.
        library: the kernel library that runs it here: "portable", or the one named at export; ""
            for a delegate, or if it is not known.
    """

    name: str
    calls: int
    kind: str
    executorch: bool
    library: str = ""


@dataclass(slots=True)
class NamedData:
    """Bytes under a key. `shared`: another key has the same bytes in the file."""

    key: str
    bytes: int
    shared: bool


@dataclass(slots=True)
class FormUse:
    """One form of a fat program.

    Attributes:
        name: its name for `rushlight.load(backend=...)`.
        methods: its methods in the file.
        backends: the backends that it needs.
        constant_bytes: the size of the constants that it uses; forms share these.
        payload_bytes: the size of its payloads, with the weights in them.
    """

    name: str
    methods: list[str]
    backends: list[str]
    constant_bytes: int
    payload_bytes: int


@dataclass(slots=True)
class Timing:
    """The time of an operator in a trace.

    Attributes:
        instruction: the index of the instruction.
        place: the backend's id of the operator inside a delegate; "" for a kernel, and for a
            delegate that tells of no operators.
        ms: milliseconds in one run: the mean.
        calls: the number of calls in one run: the mean.
    """

    instruction: int
    place: str
    ms: float
    calls: float


@dataclass(slots=True)
class MethodTimes:
    """The times of a method in a trace.

    Attributes:
        method: its name.
        runs: the number of runs in the trace.
        ms: milliseconds of a whole run: the mean; 0 if the trace does not tell.
        timings: its operators, the slowest first.
        unknown: what of the trace does not fit the method, in words.
    """

    method: str
    runs: int
    ms: float
    timings: list[Timing]
    unknown: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ValueGap:
    """How far a value of a trace is from that of the recorded program.

    Attributes:
        method: the method's name.
        node: the node of the model's graph whose value it is.
        metric: what `gap` is, such as "SNR".
        gap: the distance; a text ("inf", "nan") if it is no finite number.
    """

    method: str
    node: str
    metric: str
    gap: float | str


@dataclass(slots=True)
class FailedCall:
    """What failed on a device, from a report of the runtime.

    Attributes:
        method: the method's name.
        instruction: its index; -1 if none had begun.
        place: inside its delegate, by the backend's own id; "" if it is not known.
        what: what failed, in words.
        message: the error's text.
        why: the usual cause, in words.
    """

    method: str
    instruction: int
    place: str
    what: str
    message: str
    why: str


@dataclass(slots=True)
class ProgramContents:
    """The contents of a program file, as far as they can be read without running it; or the
    graphs of a model that is no program yet.

    Attributes:
        name: the name of the file, "" for bytes.
        bytes: the size of the file; 0 if there is none.
        by_kind: the bytes of the file by kind; they sum to `bytes`.
        executorch: why ExecuTorch 1.4.1 cannot run the file; empty if it can.
        executorch_needs: what ExecuTorch needs besides the file to run it.
        needs: what must be linked into a runtime besides the portable kernels, in words.
        forms: the forms of a fat program, the preferred one first.
        debug_left_out: the parts of the debug map that were left out to keep the file small.
        quantization: the loss by quantization that the export measured, in words; not in the file.
        times: how long methods and their operators took, from a trace; not in the file.
        stacks: by method and debug handle (as text), the lines of Python that led to the operator,
            from an ETRecord; not in the file.
        gaps: how far values of a trace are from those of an ETRecord; not in the file.
        failures: what reports of failed runs tell; not in the file.
        findings: what `rushlight doctor` found in the model; not in the file.
    """

    name: str
    bytes: int
    by_kind: dict[str, int]
    methods: list[Method]
    operators: list[Operator]
    constants: list[Constant]
    named_data: list[NamedData]
    executorch: list[str]
    executorch_needs: list[str]
    needs: list[str] = field(default_factory=list)
    forms: list[FormUse] = field(default_factory=list)
    debug_left_out: list[str] = field(default_factory=list)
    quantization: list[str] = field(default_factory=list)
    times: list[MethodTimes] = field(default_factory=list)
    stacks: dict[str, dict[str, str]] = field(default_factory=dict)
    gaps: list[ValueGap] = field(default_factory=list)
    failures: list[FailedCall] = field(default_factory=list)
    findings: list[ExportFinding] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers."""
        return dataclasses.asdict(self)

    def memory(self) -> dict[str, dict[str, int]]:
        """Bytes per method.

        Returns:
            For each method `arenas` (planned memory), `constants` (that it uses), `delegates`
            (payloads of its delegates), `scratch` (of its delegates), `io` (inputs and outputs that
            the caller provides) and `peak`, the sum of all.
        """
        by_method = {}
        for method in self.methods:
            parts = {
                "arenas": method.arena_bytes,
                "constants": method.constant_bytes,
                "delegates": method.delegate_bytes,
                "scratch": sum(delegate.scratch for delegate in method.delegates),
                "io": method.caller_bytes,
            }
            by_method[method.name] = {**parts, "peak": sum(parts.values())}
        return by_method
