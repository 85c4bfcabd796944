"""The forms of a fat program: which one a module uses, and the check of its known answer."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rushlight.runtime.identity import identity_of

KEY = "rushlight/forms"
PORTABLE = "portable"
SAMPLES = 64
"""The least number of values of each output in a known answer, if the output has as many."""
_GOLDEN = 0.6180339887498949  # multiples of it fill an interval evenly, whatever their number
TOLERANCE = 0.05  # of the largest value: enough for a form that computes in int8


def plan_name(method: str, form: str) -> str:
    """The name of a method's form in the file."""
    return method if form == PORTABLE else f"{method}@{form}"


@dataclass(frozen=True)
class Plan:
    """One form of one method."""

    form: str
    plan: str
    backends: tuple[str, ...]


class FormChoice(NamedTuple):
    """Why one form was chosen or left out when a program was loaded.

    Attributes:
        form: its name.
        chosen: whether the module uses it.
        why: the reason, in words.
    """

    form: str
    chosen: bool
    why: str


@dataclass(frozen=True)
class Index:
    """The index of the forms in a file.

    Attributes:
        id: distinguishes the file's forms from those of other files.
        order: the forms, the preferred one first.
        methods: the plans of each method, in that order.
        answers: the known answers of methods that have one.
    """

    id: str
    order: tuple[str, ...]
    methods: Mapping[str, tuple[Plan, ...]]
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def plan(self, method: str, form: str) -> Plan | None:
        """The form of a method; None if it has no such form."""
        return next((p for p in self.methods.get(method, ()) if p.form == form), None)

    def plans_of(self, method: str) -> list[str]:
        """The plans of all forms of a method; the method itself if the index does not list it."""
        return [p.plan for p in self.methods.get(method, ())] or [method]

    def hidden(self) -> set[str]:
        """Methods of the file that are only forms of other methods."""
        return {p.plan for m, plans in self.methods.items() for p in plans if p.plan != m}


def read_index(data: bytes | memoryview | None, names: Sequence[str]) -> Index | None:
    """The index of a program; None if it has none that fits its methods.

    Args:
        data: the file's named data under `KEY`.
        names: the methods of the file.
    """
    if not data:
        return None
    try:
        document = json.loads(bytes(data))
        methods = {
            str(name): tuple(
                Plan(str(p["form"]), str(p["plan"]), tuple(map(str, p["backends"])))
                for p in entry["forms"]
            )
            for name, entry in document["methods"].items()
        }
        answers = {n: e["answer"] for n, e in document["methods"].items() if "answer" in e}
        made = Index(str(document["id"]), tuple(map(str, document["order"])), methods, answers)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    plans = {p.plan for listed in methods.values() for p in listed}
    return made if plans | set(methods) <= set(names) else None


def answer_inputs(described: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """The inputs of a known answer: spread evenly over the range of the example's values."""
    for one in described:
        if "value" in one:
            yield one["value"]
            continue
        count = int(np.prod(one["shape"], dtype=np.int64))
        positions = np.arange(1, count + 1, dtype=np.float64) * _GOLDEN
        values = one["low"] + (one["high"] - one["low"]) * (positions - np.floor(positions))
        yield values.astype(_numpy_dtype(one["dtype"])).reshape(one["shape"])


def _numpy_dtype(name: str) -> Any:
    return np.float32 if name == "bfloat16" else np.dtype(name)


def wrong_answer(answer: Mapping[str, Any], results: Sequence[Any]) -> str | None:
    """How results differ from the known answer, in words; None if they do not.

    Args:
        answer: the method's known answer.
        results: the flattened results.
    """
    wanted = answer["outputs"]
    if len(results) != len(wanted):
        return f"it gives {len(results)} results, {len(wanted)} are right"
    for i, (result, known) in enumerate(zip(results, wanted, strict=True)):
        array = np.asarray(result)
        if list(array.shape) != known["shape"]:
            return f"output {i} has the shape {list(array.shape)}, {known['shape']} is right"
        got = array.astype(np.float64).reshape(-1)[:: known["step"]]
        values = np.asarray(known["values"], np.float64)
        if got.shape != values.shape or not np.isfinite(got).all():
            return f"output {i} has values that are not finite"
        difference = float(np.abs(got - values).max()) if values.size else 0.0
        allowed = TOLERANCE * max(float(known["largest"]), 1e-6)
        if difference > allowed:
            return f"output {i} is off by {difference:.3g}, {allowed:.3g} is allowed"
    return None


class Remembered:
    """Forms that gave their known answer before, by file, form, processor and the backends' code.

    They are kept in `$RUSHLIGHT_CACHE` or the user's cache folder; if there is none, the check runs
    at every load. It also does for backends whose code cannot be identified, such as objects that
    the process registered itself.
    """

    def __init__(self, index: Index, backends: Iterable[str]) -> None:
        """`backends` are the ids of the backends of the forms that are looked up."""
        parts = [identity_of(id) for id in sorted(set(backends))]
        self._can = None not in parts
        self._key = f"{index.id} {platform.machine()} {_processor()} {parts}"

    def _file(self, form: str) -> Path:
        home = os.environ.get("RUSHLIGHT_CACHE") or os.environ.get("XDG_CACHE_HOME")
        folder = Path(home) if home else Path.home() / ".cache"
        # Names come from the file and may hold any characters, even invalid ones: hash them.
        key = f"{self._key} {form}".encode("utf-8", "surrogatepass")
        return folder / "rushlight" / "answers" / hashlib.sha256(key).hexdigest()[:32]

    def __contains__(self, form: str) -> bool:
        try:
            return self._can and self._file(form).is_file()
        except (OSError, RuntimeError):
            return False

    def add(self, form: str) -> None:
        """Remember that a form gave its known answer here."""
        if not self._can:
            return
        try:
            path = self._file(form)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except (OSError, RuntimeError):
            pass


def _processor() -> str:
    """The processor's name, as far as the system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith(("model name", "CPU part")):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
