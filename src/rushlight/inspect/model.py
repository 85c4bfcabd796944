"""What a program file holds, as plain data: made by `program.py`, shown in terminal and page.

Indices of values and instructions are those of the file. Everything here is numbers, strings and
lists of them, so that :meth:`ProgramContents.to_json` is the whole report.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

Actual = tuple[int, ...] | int
"""What a value was in a run: a tensor's sizes, or a number."""


@dataclass(slots=True)
class Source:
    """The Python line that an instruction was traced from; what is not known is "" or 0.

    Attributes:
        file: path as it was recorded at export.
        line: counted from 1.
        function: the function that holds the line.
        text: the line itself.
        module: path of the `nn.Module`, such as "encoder.layers.0.norm1".
    """

    file: str = ""
    line: int = 0
    function: str = ""
    text: str = ""
    module: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else ""
        return ": ".join(part for part in (place, self.text) if part)


@dataclass(slots=True)
class Value:
    """One value of a method.

    Attributes:
        kind: "tensor", "int", "bool", "double", "string", "none" or "list".
        name: of the graph node, parameter, buffer or input; made up where the file has none.
        text: the type of a tensor ("float32[1, 3, 64, 64]"), else the value itself.
        role: "input", "output", "temporary" (planned), "state" (planned, keeps its content between
            calls), "caller" (memory given by the caller), "constant", "external" or "literal".
        dtype, shape, bytes: of a tensor; upper bounds if `dynamic`.
        constant: index of its constant or initial content; 0 is none.
        memory_id: arena it is planned in; 0 is none.
        offset: bytes from the start of that arena.
        base: the value whose bytes it shows under other sizes; None if it has its own.
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
    """One step of a method.

    Attributes:
        kind: "kernel", "delegate", "move", "jump" or "free".
        op: the operator's runtime name, the backend's name, or "move", "jump_if_false", "free".
        name: of the graph node; "" if the file does not tell.
        args: all arguments, as indices of values.
        reads, writes: the tensors and computed numbers among them, lists opened up.
        delegate: index into the method's delegates; -1 if it is no delegate call.
        target: the instruction that a jump goes to; -1 if it is no jump.
        source: the Python line; None if the file does not tell.
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


@dataclass(slots=True)
class Work:
    """What an operator does, from the sizes in the file; None is what they do not tell.

    Attributes:
        name: of the operator, or of a step inside a delegate; "+": with what follows it.
        flops: multiplications and additions of a product, a convolution or attention by its
            definition, whatever algorithm computes it, and of whatever numbers; None of other
            operators.
        bytes: of everything that it reads and writes, each value once.
        nodes: the operators of the model that it was made from.
        sources: their Python lines, each once; empty if the file does not tell.
        is_integer: it multiplies integers.
    """

    name: str
    flops: int | None = None
    bytes: int | None = None
    nodes: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    is_integer: bool = False


@dataclass(slots=True)
class Block:
    """A planned range of an arena and the time it is needed.

    Attributes:
        value: index of the value that it was planned for.
        name, text, role: those of the value.
        offset, bytes: where it lies; views that reach further are counted in.
        first, last: instructions between which its content matters, both inclusive.
        views: values that show the same bytes under other sizes.
        writer: the instruction that fills it first; -1 for inputs and state.
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
        overlap: two values whose blocks share bytes while both are live; empty in a sound plan.
    """

    memory_id: int
    bytes: int
    lower_bound: int
    peak_at: int
    live: list[tuple[int, int]]
    blocks: list[Block]
    overlap: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Delegate:
    """A part of a method that a backend runs.

    Attributes:
        backend: its registered name.
        bytes: of its payload.
        scratch: bytes that it allocates beside it, as far as its payload says that.
        shared: whether another delegate uses the same payload.
        calls: instructions that run it.
        specs: its compile specs, key and bytes of the value.
    """

    backend: str
    bytes: int
    scratch: int
    shared: bool
    calls: list[int]
    specs: list[tuple[str, int]]


@dataclass(slots=True)
class Covered:
    """One operator call of the method as it was before it was partitioned.

    Attributes:
        backend: who took it; "" if it stayed.
        part: counts the method's delegates; -1 if it stayed.
        cost: estimated microseconds on one core, which tell the call's share.
        reasons: of one that stayed, {backend: why it did not take it}; of another one, what its
            backend says of it, if anything.
        source: the Python line; None if the file does not tell.
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
        relations: what must hold between the inputs' sizes, in words.
        constant_bytes: of the constants that it uses.
        delegate_bytes: of the payloads that it uses.
        caller_bytes: of inputs and outputs whose memory the caller provides.
        coverage: what became of each operator call; empty if no partitioner was asked.
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
        name: of the first tensor that uses it.
        uses: tensors that use it, as "method: name".
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
        name: as the runtime registers it, or the backend's name.
        calls: instructions that run it, over all methods.
        kind: "kernel" or "delegate".
        executorch: whether ExecuTorch 1.4.1 has it.
        library: the kernel library that runs it here: "portable", or what the exporter named; ""
            if that is not known, and of a delegate.
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
        name: as `rushlight.load(backend=...)` takes it.
        methods: its methods in the file.
        backends: that must be there.
        constant_bytes: of constants that it uses, which forms share.
        payload_bytes: of what its backends stored, with weights of their own or none.
    """

    name: str
    methods: list[str]
    backends: list[str]
    constant_bytes: int
    payload_bytes: int


@dataclass(slots=True)
class ProgramContents:
    """All that can be said about a program file without running it.

    Attributes:
        name: of the file, "" for bytes.
        bytes: of the file.
        by_kind: bytes of the file by what they are; they sum to `bytes`.
        executorch: why ExecuTorch 1.4.1 cannot run the file; empty if it can.
        executorch_needs: what it needs beside the file to run it.
        needs: what must be linked into a runtime beside the portable kernels, in words.
        forms: of a fat program, the preferred one first.
        debug_left_out: what the file does not tell of where it came from, to stay small.
        quantization: what its export found out about what quantization loses, in words; the file
            does not hold it.
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

    def to_json(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers."""
        return dataclasses.asdict(self)

    def memory(self) -> dict[str, dict[str, int]]:
        """Bytes per method.

        Returns:
            For each method `arenas` (planned memory), `constants` (that it uses), `delegates`
            (payloads of its delegates), `scratch` (what backends say they need beside it), `io`
            (inputs and outputs that the caller provides) and `peak`, the sum of all.
        """
        found = {}
        for method in self.methods:
            parts = {
                "arenas": method.arena_bytes,
                "constants": method.constant_bytes,
                "delegates": method.delegate_bytes,
                "scratch": sum(delegate.scratch for delegate in method.delegates),
                "io": method.caller_bytes,
            }
            found[method.name] = {**parts, "peak": sum(parts.values())}
        return found
