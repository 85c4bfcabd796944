"""Whether a trace is of a program: its calls are those of the program's instructions.

ExecuTorch's format has no field for the identity of a program, so that its content is compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rushlight.inspect.trace.cut import is_lost
from rushlight.inspect.trace.events import Event, EventBlock
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
    if not origins.methods:  # of a record without its maps
        return Fit(block.method)
    if block.method and block.method not in origins.methods:
        have = ", ".join(origins.methods) or "none"
        return Fit(block.method, f"it has a run of {block.method!r}; methods here: {have}")
    names = [block.method] if block.method else origins.methods
    fits = [
        Fit(name, next(filter(None, (mismatch_of(e, name, origins) for e in block.events)), ""))
        for name in names
    ]
    return next((fit for fit in fits if not fit.mismatch), fits[0] if fits else Fit(""))


def mismatches_of(blocks: Iterable[EventBlock], origins: Origins) -> list[str]:
    """Why runs are not of the program, in words; empty if all are."""
    runs = (block for block in blocks if block.name == "Execute")
    return list(dict.fromkeys(fit.mismatch for b in runs if (fit := fit_of(b, origins)).mismatch))


def mismatch_of(event: Event, method: str, origins: Origins) -> str:
    """Why an event is not of a method, in words; "" if it may be of it.

    Args:
        event: of a run.
        method: one of `origins`.
        origins: of the program, or of its record.
    """
    at = event.instruction
    if at is None:
        return ""
    known = origins.call(method, at)
    where = f"instruction {at} of {method!r}"
    if known is None:
        return f"{where} is {event.name} in the trace, and is not there in this program"
    if event.is_delegated_op:
        place = event.delegate_debug_identifier
        if is_lost(str(place)):
            return ""
        if known.kind not in ("", "delegate") or not known.has_place(place):
            return f"{where} has a place {place!r} inside a delegate in the trace, and not here"
        return ""
    called = event.name.removeprefix(KERNEL)
    if called != event.name and not known.is_of(called):
        return f"{where} is a call of {called} in the trace, and {known} in this program"
    if event.backend and event.backend != known.backend and known.backend:
        return f"{where} is a delegate of {event.backend} in the trace, and {known} here"
    if event.name in _KINDS and known.kind not in ("", _KINDS[event.name]):
        return f"{where} is a {_KINDS[event.name]} in the trace, and {known} in this program"
    return ""
