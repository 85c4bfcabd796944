"""Whether a trace is of a program: its calls are those of the program's instructions.

ExecuTorch's format has no field for the identity of a program, so that its content is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rushlight.inspect.trace.events import EventBlock
from rushlight.inspect.trace.origins import Origins

KERNEL = "native_call_"
_KINDS = {
    "OPERATOR_CALL": "kernel",
    "DELEGATE_CALL": "delegate",
    "MOVE_CALL": "move",
    "JF_CALL": "jump",
    "FREE_CALL": "free",
}


@dataclass(frozen=True)
class Fit:
    """Which method of a program a run is of.

    Attributes:
        method: its name.
        mismatch: why it is of none; "" if it fits.
    """

    method: str
    mismatch: str = ""


def fit_of(block: EventBlock, origins: Origins) -> Fit:
    """The method that a run is of: the one that the trace names, else the first that fits.

    Args:
        block: the run.
        origins: of the program, or of its record.
    """
    if block.method and block.method not in origins.methods:
        have = ", ".join(origins.methods) or "none"
        return Fit(block.method, f"it has a run of {block.method!r}; methods here: {have}")
    names = [block.method] if block.method else origins.methods
    fits = [Fit(name, next(_mismatches(block, name, origins), "")) for name in names]
    return next((fit for fit in fits if not fit.mismatch), fits[0] if fits else Fit(""))


def mismatches_of(blocks: Iterable[EventBlock], origins: Origins) -> list[str]:
    """Why runs are not of the program, in words; empty if all are."""
    runs = (block for block in blocks if block.name == "Execute")
    return list(dict.fromkeys(fit.mismatch for b in runs if (fit := fit_of(b, origins)).mismatch))


def _mismatches(block: EventBlock, method: str, origins: Origins) -> Iterator[str]:
    for event in block.events:
        at = event.instruction
        if at is None:
            continue
        known = origins.call(method, at)
        where = f"instruction {at} of {method!r}"
        if known is None:
            yield f"{where} is {event.name} in the trace, and is not there in this program"
        elif event.is_delegated_op:
            place = event.delegate_debug_identifier
            if known.kind not in ("", "delegate") or not known.has_place(place):
                yield f"{where} has a place {place!r} inside a delegate in the trace, and not here"
        elif event.name.startswith(KERNEL) and not known.is_of(event.name.removeprefix(KERNEL)):
            called = event.name.removeprefix(KERNEL)
            yield f"{where} is a call of {called} in the trace, and {known} in this program"
        elif event.backend and event.backend != known.backend and known.backend:
            yield f"{where} is a delegate of {event.backend} in the trace, and {known} here"
        elif event.name in _KINDS and known.kind not in ("", _KINDS[event.name]):
            yield f"{where} is a {_KINDS[event.name]} in the trace, and {known} in this program"
