"""What differs between two programs, as plain data: made by `compare.py` and `runs.py`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.inspect.trace.statistics import Change


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of both programs; None in one that does not have it.

    Attributes:
        name: what is counted.
        before, after: the numbers.
    """

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Text:
    """A text of both programs; "" in one that does not have it."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class OperatorCount:
    """How often a method's instructions call an operator, or its delegates have a node.

    Attributes:
        name: a kernel's name, a backend's, or that of a node in its payloads.
        dtype: of what it writes; "" if not known.
        place: the kernel library, "delegates", or the backend that a node is inside of.
        is_node: whether it is a node of a payload, and no instruction.
        before, after: the numbers of calls.
    """

    name: str
    dtype: str
    place: str
    is_node: bool
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the calls of one of the model's operators run.

    Attributes:
        op: the operator.
        before, after: the number of calls by backend; "portable" stands for the kernels.
    """

    op: str
    before: Mapping[str, int]
    after: Mapping[str, int]

    @property
    def kind(self) -> str:
        """ "same", "added", "removed", "moved" (as many calls, elsewhere) or "changed"."""
        if self.before == self.after:
            return "same"
        if not self.before or not self.after:
            return "removed" if self.before else "added"
        total = [sum(counts.values()) for counts in (self.before, self.after)]
        return "moved" if total[0] == total[1] else "changed"


@dataclass(frozen=True, slots=True)
class Delegation:
    """How much of a method delegates take.

    Attributes:
        partitions: the number of delegates by backend.
        share: of the estimated work in delegates, from 0 to 1; None if the file does not tell what
            was delegated.
        stayed: by operator and reason, the number of calls that no backend took.
    """

    partitions: Mapping[str, int]
    share: float | None
    stayed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class OutputDiff:
    """One output of both programs on the same inputs.

    Attributes:
        name: its path in the result.
        before, after: its type in each program; "" if it has no such output.
        max_error: the greatest difference; nan if they cannot be compared.
        relative: the same, in proportion to the greatest magnitude before.
        sqnr: the signal-to-noise ratio in dB; inf for equal outputs.
        cosine: of the angle between them as vectors.
        where: the index of the greatest difference.
        departs: whether they differ by more than roundings of their dtype.
    """

    name: str
    before: str
    after: str
    max_error: float = math.nan
    relative: float = math.nan
    sqnr: float = math.nan
    cosine: float = math.nan
    where: tuple[int, ...] = ()
    departs: bool = True


@dataclass(slots=True)
class RunDiff:
    """Both programs on the same inputs.

    Attributes:
        inputs: their types, and whether they were made up.
        outputs: each output of both.
        latency: the median times of a run in milliseconds, and the ratio of neighbouring runs; None
            if they were not timed.
        after_interval: the confidence interval of the time after, in milliseconds.
        runs: how often each was timed.
        kinds: the same of parts of a run, such as operators.
        kinds_note: how these were timed; "" as the runs.
        note: why something was not compared; "" if all was.
    """

    inputs: str = ""
    outputs: list[OutputDiff] = field(default_factory=list)
    latency: Change | None = None
    after_interval: tuple[float, float] = (math.nan, math.nan)
    runs: int = 0
    kinds: list[Change] = field(default_factory=list)
    kinds_note: str = ""
    note: str = ""

    @property
    def first_departing(self) -> OutputDiff | None:
        """The first output that departs; None if none does."""
        return next((output for output in self.outputs if output.departs), None)


@dataclass(slots=True)
class MethodDiff:
    """One method of both programs.

    Attributes:
        name: its name before.
        after_name: its name after, if it was renamed.
        contract: what of its contract differs.
        weak: which program has no contract, so that tensors alone are compared; "" if both do.
        operators: how often each operator is called.
        placements: where each of the model's operators runs; empty if a file does not tell it.
        delegation: before and after.
        memory: bytes of each memory, and of what else a run needs.
        run: both on the same inputs; None if they were not run.
    """

    name: str
    after_name: str
    contract: list[Text]
    weak: str
    operators: list[OperatorCount]
    placements: list[Placement]
    delegation: tuple[Delegation, Delegation]
    memory: list[Amount]
    run: RunDiff | None = None


@dataclass(slots=True)
class ProgramDiff:
    """Two programs beside each other.

    Attributes:
        before, after: the names of the files.
        sizes: bytes of the file, by kind, of each payload, and of constants by dtype.
        methods: those of both.
        removed, added: the signatures of methods of one program alone, by name.
    """

    before: str
    after: str
    sizes: list[Amount]
    methods: list[MethodDiff]
    removed: dict[str, str] = field(default_factory=dict)
    added: dict[str, str] = field(default_factory=dict)

    @property
    def contract_changed(self) -> bool:
        """Whether a caller sees a difference."""
        changed = any(m.contract or m.name != m.after_name for m in self.methods)
        return changed or bool(self.removed or self.added)

    def to_json(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers; None for what is no finite number."""
        made: dict[str, Any] = _plain(dataclasses.asdict(self))
        for method, shown in zip(self.methods, made["methods"], strict=True):
            for placement, entry in zip(method.placements, shown["placements"], strict=True):
                entry["kind"] = placement.kind
        return {**made, "contract_changed": self.contract_changed}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
