"""Results written into the caller's arrays, and arrays that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_programs import LEAF, MethodBuilder, add, contract, program, tensor_value
from test_runtime_call import GRID, OUTPUTS, values_method

import rushlight as rl

torch = pytest.importorskip("torch")


def absolutes(*shapes: tuple[int, ...]) -> rl.Module:
    """The absolute values of each input."""
    method = MethodBuilder()
    method.inputs = [method.tensor(*map(int, shape)) for shape in shapes]
    method.outputs = [method.tensor(*map(int, shape)) for shape in shapes]
    for value, out in zip(method.inputs, method.outputs, strict=True):
        method.call("aten::abs.out", value, out, out)
    return rl.load(program(method))


@pytest.mark.parametrize("planned", [True, False])
def test_execute_into(planned: bool) -> None:
    module = rl.load(add(2, 3, planned=planned))
    out = np.zeros((2, 3), np.float32)
    assert module.execute_into(out, GRID, GRID) is None
    np.testing.assert_array_equal(out, GRID * 2)
    wide = np.zeros((2, 6), np.float32)
    module.execute_into(wide[:, ::2], GRID, GRID)
    np.testing.assert_array_equal(wide[:, ::2], GRID * 2)
    np.testing.assert_array_equal(wide[:, 1::2], 0)
    tensor = torch.zeros(2, 3)
    module.execute_into(tensor, GRID, GRID)
    np.testing.assert_array_equal(tensor.numpy(), GRID * 2)
    np.testing.assert_array_equal(module(GRID, GRID), GRID * 2)


@pytest.mark.parametrize("pack", [list, tuple])
def test_execute_into_takes_a_flat_list_of_one(pack: Any) -> None:
    out = np.zeros((2, 3), np.float32)
    rl.load(add(2, 3)).execute_into(pack([out]), GRID, GRID)
    np.testing.assert_array_equal(out, GRID * 2)


def strided(shape: tuple[int, ...], strides: tuple[int, ...], bytes: int) -> np.ndarray:
    memory = np.zeros(bytes, np.uint8)
    return np.ndarray(shape, np.float32, memory, 0, strides)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (lambda m: m[0], lambda m: m[0]),
        (lambda m: m.reshape(-1)[:6], lambda m: m.reshape(-1)[5:11]),
        (lambda m: m.reshape(-1)[0:12:2], lambda m: m.reshape(-1)[11::-2]),
        (lambda m: m.reshape(-1)[0:12:2], lambda m: m.reshape(-1)[4:10]),
        (lambda m: m[0].T.reshape(-1)[0:0], lambda m: m[0]),
        (lambda m: m.reshape(6, 2)[:, 0], lambda m: m.reshape(6, 2)[::-1, 1]),
        (lambda m: m.reshape(6, 2)[:, 0], lambda m: m.reshape(4, 3)[:2, :].reshape(-1)),
        (lambda m: torch.from_numpy(m[0]), lambda m: m[0]),
    ],
)
def test_overlapping_outputs_are_refused(a: Any, b: Any) -> None:
    """The oracle is `np.shares_memory`, which is exact."""
    memory = np.zeros((2, 6), np.float32)
    first, second = a(memory), b(memory)
    size = (len(first), len(second))
    module = absolutes((size[0],), (size[1],))
    inputs = [np.full(n, -1, np.float32) for n in size]
    if np.shares_memory(np.asarray(first), np.asarray(second)):
        with pytest.raises(rl.RunError, match="output 1 shares memory with that for output 0"):
            module.execute_into([first, second], *inputs)
        assert (memory == 0).all()
        module.execute_into([first, None], *inputs)
    else:
        module.execute_into([first, second], *inputs)
        assert (np.asarray(second) == 1).all()
    assert (np.asarray(first) == 1).all()


def test_drawn_layouts_overlap_as_numpy_says() -> None:
    draw = np.random.default_rng(0)
    counts = {True: 0, False: 0}
    for _ in range(400):
        memory = np.zeros(64, np.float32)
        views = []
        for _ in range(2):
            shape = draw.integers(1, 4, 2)
            strides = draw.integers(-6, 7, 2)
            start = int(sum(-(n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0))
            start += int(draw.integers(0, 24))
            views.append(
                np.lib.stride_tricks.as_strided(memory[start:], tuple(shape), tuple(strides * 4))
            )
        flat = [{v.__array_interface__["data"][0] + o for o in offsets(v)} for v in views]
        shared = len(flat[0] & flat[1]) > 0 or any(
            len(f) < v.size for f, v in zip(flat, views, strict=True)
        )
        inputs = [np.full(v.shape, -1, np.float32) for v in views]
        module = absolutes(*(v.shape for v in views))
        counts[shared] += 1
        if shared:
            with pytest.raises(rl.RunError, match=r"shares memory with that|overlaps itself"):
                module.execute_into(views, *inputs)
        else:
            module.execute_into(views, *inputs)
            assert all((v == 1).all() for v in views)
    assert min(counts.values()) > 50


def offsets(array: np.ndarray) -> list[int]:
    places = np.ndindex(array.shape)
    return [sum(i * s for i, s in zip(at, array.strides, strict=True)) for at in places]


@pytest.mark.parametrize(
    "out",
    [
        strided((2, 3), (0, 4), 12),
        strided((2, 3), (4, 4), 16),
        strided((2, 3), (8, 4), 24),
        strided((2, 3), (2, 4), 64),
        torch.zeros(3).expand(2, 3),
    ],
)
def test_outputs_that_overlap_themselves_are_refused(out: Any) -> None:
    module = rl.load(add(2, 3))
    with pytest.raises(rl.RunError, match="the array for the output overlaps itself"):
        module.execute_into(out, GRID, GRID)
    assert (np.asarray(out) == 0).all()


@pytest.mark.parametrize("planned", [True, False])
def test_outputs_that_overlap_inputs_are_refused(planned: bool) -> None:
    module = rl.load(add(2, 3, planned=planned))
    memory = np.ones((3, 3), np.float32)
    with pytest.raises(rl.RunError, match="the output shares memory with input 1: pass arrays"):
        module.execute_into(memory[:2], GRID, memory[1:])
    assert (memory == 1).all()


def test_execute_into_several() -> None:
    spec = {"t": "dict", "k": ["a", "b", "n", "f", "z"], "c": [LEAF] * 5}
    one = contract([tensor_value(2, name="x")], OUTPUTS, out_spec=spec)
    module = rl.load(program(values_method(), contract={"forward": one}))
    a, b, x = np.zeros(2, np.float32), np.zeros(2, np.float32), -np.ones(2, np.float32)
    module.execute_into({"a": a, "b": b, "n": None, "f": None, "z": None}, x)
    module.execute_into([None, b, None, None, None], x=x)
    np.testing.assert_array_equal(a, [-2, -2])
    np.testing.assert_array_equal(b, [1, 1])
    with pytest.raises(rl.RunError, match="output 'n' is not a tensor: pass None"):
        module.execute_into([a, b, a, None, None], x)
    with pytest.raises(rl.RunError, match="outputs: expected a dict"):
        module.execute_into([a, b], x)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((3, 2), np.float32), "another dtype or shape"),
        (np.zeros((2, 3), np.float64), "another dtype or shape"),
        (np.broadcast_to(np.float32(0), (2, 3)), "read-only"),
        (3, r"got an object of type int, expected a writable array to write float32\[2, 3\] to"),
        ([GRID, GRID], r"the output: got an object of type list, expected a writable array"),
        (np.zeros((2, 3), np.int8), r"is float32\[2, 3\], but .* is int8\[2, 3\], of another"),
    ],
)
def test_execute_into_what_does_not_fit(out: Any, message: str) -> None:
    module = rl.load(add(2, 3))
    with pytest.raises(rl.RunError, match=message):
        module.execute_into(out, GRID, GRID)
    np.testing.assert_array_equal(module(GRID, GRID), GRID * 2)
