"""The table says of every kernel's tensors which dtypes they may have; here it is held to that.

What a kernel takes is tried, with every dtype for every argument that is a tensor (of operators
that take none, for the out). Export refuses what the table does not list, so both directions
matter: what is listed runs, and what is not is refused with the argument and the dtype.
"""

from __future__ import annotations

import re

import pytest

from rushlight.ir.kernels import manifest

from .dtypes import DTYPES, Probe, name_of
from .harness import OpCases, all_ops, listed, native

OPS = all_ops()
# What a message may call an argument of several operators, an item of a list, or a result.
OTHERWISE = ("an index", "the tensor", "the result", "the sequence", "input", "p")


@pytest.mark.parametrize("cases", OPS, ids=lambda cases: cases.op)
@pytest.mark.filterwarnings("ignore")
def test_kernels_take_what_the_table_lists(cases: OpCases) -> None:
    kernel = manifest().find(cases.op)
    assert kernel is not None
    probe = Probe(cases, kernel)
    wrong = []
    for argument in probe.inputs or probe.outs:
        listed_dtypes = kernel.takes(argument)
        assert listed_dtypes is not None
        for dtype in DTYPES:
            name = name_of(dtype)
            messages = probe.refusals(argument, dtype)
            if (messages is None) != (name in listed_dtypes):
                what = (
                    "is taken, but not listed" if messages is None else f"is refused: {messages[0]}"
                )
                wrong.append(f"{argument}: {name} {what}")
            elif messages is not None and not any(
                names(m, probe, argument, name) for m in messages
            ):
                wrong.append(f"{argument}: {name} is refused without its name: {messages[0]}")
    assert not wrong, "\n".join([f"{cases.op}: correct the kernel or ops/ops.yaml", *wrong])


def names(message: str, probe: Probe, argument: str, dtype: str) -> bool:
    """Whether a message tells the dtype, and what has it: the argument, or what follows from it."""
    things = {argument, *(probe.alike if argument in probe.alike else ()), *probe.outs, *OTHERWISE}
    told = any(re.search(rf"\b{re.escape(thing)}\b", message) for thing in things)
    return told and re.search(rf"\b{dtype}\b", message) is not None


def test_the_manifest_has_the_kernels_of_the_runtime() -> None:
    assert {kernel.name for kernel in manifest()} == set(native().kernel_signatures())
    assert {kernel.name for kernel in manifest()} == set(listed())
