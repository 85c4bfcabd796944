"""Findings, with advice, for a program that cannot be loaded, fails, or departs from eager."""

from __future__ import annotations

from rushlight.check.fused import Fault
from rushlight.errors import REPORT_IT, Code, LoadError, RunError
from rushlight.ir.findings import Finding
from rushlight.ir.torch_release import text_of

_MEMORY = (Code.MEMORY_ALLOCATION_FAILED, Code.OUT_OF_RESOURCES)
_MISSING = (Code.OPERATOR_MISSING, Code.NOT_FOUND)
_OURS = f"This is an error of Rushlight or of the backend: {REPORT_IT}"


def eager_fails(error: Exception) -> Finding:
    """The finding for a model that refuses its own example inputs."""
    return Finding(
        "model-fails",
        f"the model itself fails on the example inputs: {type(error).__name__}: "
        f"{' '.join(text_of(error).split())}",
        "Give example inputs that it takes, or pass verify=False",
    )


def cannot_load(error: LoadError, *, has_varying_sizes: bool) -> Finding:
    """The finding for a program that was just made and does not load."""
    if error.code in _MEMORY:
        less = "Lower the max of sizes that vary" if has_varying_sizes else "Free memory"
        advice = f"{less}, or pass verify=False to make it for another machine"
    elif error.code in _MISSING:
        advice = "Pass verify=False to make it for a runtime that has what is missing"
    else:
        advice = _OURS
    # The error's own advice is for damaged or old files, and this one was just made.
    return Finding("not-lowered", f"the program cannot be loaded here: {error.problem}", advice)


def fails(error: RunError, inputs: str, *, has_varying_sizes: bool) -> Finding:
    """The finding for a program that fails where eager does not.

    Args:
        error: the error of the call.
        inputs: the shapes of the inputs, in words.
        has_varying_sizes: whether the program has dynamic sizes.
    """
    if error.__cause__ is not None:  # raised by a backend in Python
        advice = "Mend the backend that raised it, or export with backend='portable'"
    elif error.code in _MEMORY:
        advice = "Free memory, or pass verify=False to make it for another machine"
    elif has_varying_sizes:
        advice = (
            "Leave such sizes out with the min and max of their Dim in dynamic_shapes, or rewrite "
            "the line so that the program can run them, too"
        )
    else:
        advice = f"{_OURS}; until it is mended, write what fails with other operators"
    told = f"the program fails on inputs that eager takes, {inputs}: {error}"
    return Finding("not-lowered", told, advice)


def departs(output: int, reason: str, fault: Fault) -> Finding:
    """The finding for a program whose results are not eager's.

    Args:
        output: the index of the first output that departs.
        reason: how it departs.
        fault: the first node or fused operator that departs.
    """
    until = "write the line with other operators" if fault.source.file else "pass verify=False"
    whose, other = _OURS, ""
    if fault.backend:
        whose = (
            f"This is an error of the backend {fault.backend}, of a library that it uses, or of "
            f"Rushlight: {REPORT_IT}"
        )
        other = ", or export with backend='portable'"
    return Finding(
        "not-lowered",
        f"the program does not compute what eager does: output {output}: {reason}. {fault.text}",
        f"{whose}; until it is mended, {until}{other}",
        fault.source,
    )
