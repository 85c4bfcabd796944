"""Looking at a method's values while it runs, instruction by instruction."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_programs import MethodBuilder, add, binary, contract, program, tensor_value

import rushlight as rl
from rushlight.runtime import Stepper
from rushlight.schema import program as fb

X = np.array([1, -2], np.float32)


def chain() -> MethodBuilder:
    """x -> -x -> |-x| -> |-x| + x"""
    method = MethodBuilder()
    x, a, b, c = (method.tensor(2) for _ in range(4))
    method.call("aten::neg.out", x, a, a)
    method.call("aten::abs.out", a, b, b)
    method.binary("aten::add.out", b, x, c)
    method.inputs, method.outputs = [x], [c]
    return method


def test_values_after_each_instruction() -> None:
    stepper = Stepper(program(chain()), "forward", [X])
    assert (stepper.n_instructions, stepper.n_values) == (3, 5)
    seen = {}
    for instruction in stepper:
        seen[instruction] = (stepper.instruction_name(instruction), stepper.value(instruction + 1))
    assert [seen[i][0] for i in range(3)] == ["aten::neg.out", "aten::abs.out", "aten::add.out"]
    np.testing.assert_array_equal(seen[0][1], [-1, 2])
    np.testing.assert_array_equal(seen[1][1], [1, 2])
    np.testing.assert_array_equal(seen[2][1], [2, 0])
    np.testing.assert_array_equal(stepper.outputs()[0], [2, 0])
    assert stepper.value(4) == 1  # alpha of the addition


def test_a_run_may_be_repeated() -> None:
    stepper = Stepper(program(chain()), "forward", [X])
    assert list(stepper) == list(stepper) == [0, 1, 2]
    assert stepper.step() == 0


def test_values_are_copies() -> None:
    stepper = Stepper(program(chain()), "forward", [X])
    stepper.step()
    first = stepper.value(1)
    first[:] = 9
    np.testing.assert_array_equal(stepper.value(1), [-1, 2])


def test_inputs_are_kept_for_the_run() -> None:
    method = binary("aten::add.out", 2, planned=False)
    stepper = Stepper(program(method), "forward", [X.copy(), X.copy()])
    junk = [np.full(2, 7, np.float32) for _ in range(100)]
    list(stepper)
    np.testing.assert_array_equal(stepper.value(2), X * 2)
    assert len(junk) == 100


def test_loops_show_each_instruction_that_ran() -> None:
    method = MethodBuilder()
    x, out = method.tensor(2), method.tensor(2)
    method.call("aten::abs.out", x, out, out)
    false = method.value(fb.Bool(False))
    method.instructions.append(fb.Instruction(fb.JumpFalseCall(false, 3)))
    method.call("aten::neg.out", out, out, out)
    method.inputs, method.outputs = [x], [out]
    stepper = Stepper(program(method), "forward", [X])
    assert list(stepper) == [0, 1]
    np.testing.assert_array_equal(stepper.value(out), [1, 2])


def test_what_does_not_fit() -> None:
    image = add(2)
    with pytest.raises(rl.RunError, match="got 1 flattened inputs, the method takes 2"):
        Stepper(image, "forward", [X])
    with pytest.raises(rl.RunError, match="input 1: got None"):
        Stepper(image, "forward", [X, None])
    with pytest.raises(rl.LoadError, match="backward"):
        Stepper(image, "backward", [X, X])
    stepper = Stepper(image, "forward", [X, X])
    for index in (stepper.n_values, 10**6):
        with pytest.raises(IndexError):
            stepper.value(index)
    with pytest.raises(IndexError):
        stepper.instruction_name(stepper.n_instructions)


def test_a_failing_instruction_is_named() -> None:
    dims = [{"min": 0, "max": 3}]
    one = contract(
        [tensor_value(*dims, name="x"), tensor_value(*dims, name="y")], [tensor_value(3)]
    )
    image = program(binary("aten::add.out", 3, dynamic=True), contract={"forward": one})
    stepper = Stepper(image, "forward", [X, np.ones(3, np.float32)])
    with pytest.raises(rl.RunError, match=r"forward: instruction 0 \(aten::add.out\)"):
        stepper.step()
