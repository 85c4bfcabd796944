"""Programs that ExecuTorch wrote, and older payloads of our own, load here and compute what they
computed there."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import rushlight as rl
from rushlight import _core
from rushlight.errors import Code
from rushlight.runtime import Runtime
from rushlight.schema.sizes import dtype_name

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())


def same(result: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, list):
        scale = np.max(np.abs(expected))
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=tolerance * scale)
        return True
    return bool(result == expected) and type(result) is type(expected)


# Of equal elements either may come first: topk has a test of its own.
@pytest.mark.parametrize("case", sorted(set(EXPECTED) - {"topk.forward"}))
def test_ones_in(case: str) -> None:
    name, _, rest = case.partition(".")
    method_name, *shapes = rest.split(" ")
    program = Runtime.get().load_program(GOLDEN / f"{name}.pte")
    method = program.load_method(method_name)
    # Of the programs that attend to a runner's cache; others do not look at it.
    cache = _core.KvCache("float32", 2, 2, 8, 8, 2, 64)
    method._core.set_kv_cache(cache)
    meta = method.metadata
    inputs = [
        np.ones(
            [int(n) for n in shapes[i].split(",")] if shapes else meta.input_tensor_meta(i).sizes(),
            dtype_name(meta.input_tensor_meta(i).dtype()),
        )
        for i in range(meta.num_inputs())
    ]
    results = method.execute(inputs)
    assert len(results) == len(EXPECTED[case])
    # Sums of the engine are in the order of its instruction set.
    tolerance = 1e-5 if name.startswith("cpu_engine") else 0.0
    if name == "xnnpack_halves":  # XNNPACK rounds to float16 after each node
        tolerance = 4e-3
    assert all(same(r, e, tolerance) for r, e in zip(results, EXPECTED[case], strict=True))


def test_structures_of_executorch_are_rebuilt() -> None:
    result = rl.load(GOLDEN / "topk.pte")(np.arange(5, dtype=np.float32))
    assert list(result) == ["values", "indices", "constant"]
    np.testing.assert_array_equal(result["indices"], [4, 3])
    assert result["constant"] == 3.5


def test_state_and_methods() -> None:
    counter = rl.load(GOLDEN / "counter.pte")
    assert [float(counter(np.ones(2, np.float32))[0]) for _ in range(3)] == [2, 4, 6]
    methods = rl.load(GOLDEN / "methods.pte")
    assert methods.get_name() == "golden" and methods.get_size() == 7
    assert methods.get_scale() == 0.5 and methods.is_small() is True


def test_tensors_without_bound() -> None:
    module = rl.load(GOLDEN / "unbounded.pte")
    for kept in (6, 0, 2, 5):
        x = np.arange(1, 7, dtype=np.float32).reshape(2, 3) - (6 - kept)
        np.testing.assert_array_equal(module(x), 3 * x[x > 0])


def test_memory_limit_of_tensors_without_bound() -> None:
    image = (GOLDEN / "unbounded.pte").read_bytes()
    needed = rl.load(image).memory.peak
    module = rl.load(image, memory_limit=needed + 330)
    with pytest.raises(
        rl.RunError, match=r"the result has sizes \(6,\) .* there is no memory"
    ) as e:
        module(np.ones((2, 3), np.float32))
    assert e.value.code == Code.MEMORY_ALLOCATION_FAILED
    assert module(-np.ones((2, 3), np.float32)).shape == (0,)


def test_dynamic_shapes() -> None:
    module = rl.load(GOLDEN / "dynamic_view.pte")
    for rows in (2, 8, 3):
        x = np.random.default_rng(rows).random((rows, 6), np.float32)
        np.testing.assert_allclose(module(x), (x + 1).reshape(2 * rows, 3) * rows)
    with pytest.raises(rl.RunError, match=r"input 0: size 0 is 9, allowed 0\.\.8"):
        module(np.ones((9, 6), np.float32))
