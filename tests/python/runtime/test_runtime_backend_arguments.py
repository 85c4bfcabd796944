"""Which arguments of a delegate's call are outputs, in files that no exporter of ours writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backend_doubles import Recorder, registered
from runtime_programs import MethodBuilder, program

import rushlight as rl
from rushlight.schema import program as fb

ONES = np.ones(2, np.float32)


def test_an_output_that_is_a_constant() -> None:
    method = MethodBuilder()
    x, weight = method.tensor(2), method.tensor(2, constant=1)
    method.delegate("Test", x, weight)
    method.inputs, method.outputs = [x], [weight]
    data = program(method, blobs=[b""], constants=[np.full(2, 5, np.float32).tobytes()])
    with registered("Test", Recorder()):
        module = rl.load(data)
    with pytest.raises(rl.RunError, match="output 0 is a constant, which nothing may write"):
        module(ONES)
    assert np.full(2, 5, np.float32).tobytes() in data  # which no call has changed


def test_lists_are_inputs() -> None:
    seen: list[list[bool]] = []

    def execute(context: Any, args: Any) -> None:
        seen.append([item.flags.writeable for item in args[0]])
        args[1][...] = args[0][0] + args[0][1]

    method = MethodBuilder()
    x, y, out = method.tensor(2), method.tensor(2), method.tensor(2)
    both = method.value(fb.TensorList([x, y]))
    method.delegate("Test", both, out)
    method.inputs, method.outputs = [x, y], [out]
    with registered("Test", Recorder(execute=execute)):
        module = rl.load(program(method, blobs=[b""]), check_backends=True)
    assert module(ONES, ONES).tolist() == [2, 2] and seen == [[False, False]]


def test_a_list_at_the_end_is_no_output() -> None:
    def execute(context: Any, args: Any) -> None:
        args[1][0][...] = 7

    method = MethodBuilder()
    x, weight = method.tensor(2), method.tensor(2, constant=1)
    method.delegate("Test", x, method.value(fb.TensorList([weight])))
    method.inputs, method.outputs = [x], [weight]
    with registered("Test", Recorder(execute=execute)):
        module = rl.load(program(method, blobs=[b""], constants=[ONES.tobytes()]))
    with pytest.raises(rl.RunError, match="assignment destination is read-only"):
        module(ONES)
