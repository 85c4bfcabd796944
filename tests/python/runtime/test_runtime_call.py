"""Calling programs: the arguments that are accepted, the results, and who owns their memory."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import struct
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime_programs import (
    LEAF,
    TYPES,
    MethodBuilder,
    add,
    binary,
    contract,
    counter,
    program,
    tensor_value,
)

import rushlight as rl
from rushlight.errors import Code
from rushlight.schema import program as fb

torch = pytest.importorskip("torch")

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
GRID = np.arange(6, dtype=np.float32).reshape(2, 3)


def one_op(operator: str, *sizes: int, **tensor: Any) -> rl.Module:
    method = MethodBuilder()
    x, out = method.tensor(*sizes, **tensor), method.tensor(*sizes, **tensor)
    method.call(operator, x, out, out)
    method.inputs, method.outputs = [x], [out]
    return rl.load(program(method))


# ---- What may be passed ----


@pytest.mark.parametrize("dtype", sorted(set(TYPES) - {"bfloat16", "bool"}))
def test_dtypes_of_numpy(dtype: str) -> None:
    x = np.array([[1, 2], [3, 4]], dtype)
    result = rl.load(add(2, 2, dtype=dtype))(x, x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x + x)


@pytest.mark.parametrize("dtype", sorted(set(TYPES) - {"bool"}))
def test_dtypes_of_torch(dtype: str) -> None:
    x = torch.tensor([[1, 2], [3, 4]], dtype=getattr(torch, dtype))
    result = rl.load(add(2, 2, dtype=dtype))(x, x)
    assert isinstance(result, torch.Tensor) and result.dtype == x.dtype
    assert torch.equal(result, x + x)


def test_bool() -> None:
    module = rl.load(program(binary("aten::logical_and.out", 2, dtype="bool")))
    x, y = np.array([True, False]), np.array([True, True])
    np.testing.assert_array_equal(module(x, y), [True, False])
    assert module(torch.tensor([True, True]), y).dtype == torch.bool


def test_bfloat16_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1, 2], ml_dtypes.bfloat16)
    result = rl.load(add(2, dtype="bfloat16"))(x, x)
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result.astype(np.float32), [2, 4])


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.asfortranarray(GRID),
        lambda: np.repeat(GRID, 2, axis=1)[:, ::2],
        lambda: GRID[::-1, ::-1],
        lambda: np.broadcast_to(GRID[:1], (2, 3)),
        lambda: np.broadcast_to(np.float32(7), (2, 3)),
        lambda: np.frombuffer(b"x" + GRID.tobytes(), np.float32, offset=1).reshape(2, 3),
        lambda: GRID.view(np.recarray).view(np.ndarray),
        lambda: np.ma.array(GRID),
    ],
    ids=["fortran", "step", "reversed", "rows", "scalar", "misaligned", "view", "subclass"],
)
@pytest.mark.parametrize("planned", [True, False])
def test_layouts_of_numpy(make: Any, planned: bool) -> None:
    x = make()
    module = rl.load(add(2, 3, planned=planned))
    np.testing.assert_array_equal(module(x, GRID), np.asarray(x) + GRID)


def test_layouts_of_torch() -> None:
    module = rl.load(add(2, 3))
    x = torch.arange(6.0).reshape(3, 2).T
    assert torch.equal(module(x, x), x + x)
    assert torch.equal(module(torch.nn.Parameter(x), x), x + x)
    lazy = (torch.ones(2, 3) * 2j).conj().imag  # memory holds the opposite
    assert lazy.is_neg()
    assert torch.equal(module(lazy, lazy), lazy + lazy)

    class Sub(torch.Tensor):
        pass

    assert torch.equal(module(x.as_subclass(Sub), x), x + x)


def test_a_program_cannot_write_into_its_inputs() -> None:
    """Not even into one that it reads where it lies."""
    method = MethodBuilder()
    x = method.tensor(2, planned=False)
    out = method.tensor(2)
    method.call("aten::abs.out", x, x, x)
    method.call("aten::abs.out", x, out, out)
    method.inputs, method.outputs = [x], [out]
    array = np.array([-1, -2], np.float32)
    with pytest.raises(rl.RunError, match=r"aten::abs\.out"):
        rl.load(program(method))(array)
    np.testing.assert_array_equal(array, [-1, -2])


def test_anything_with_dlpack() -> None:
    class Lender:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    class Liar:
        def __dlpack__(self) -> Any:
            return 3

    module = rl.load(add(2, 3))
    result = module(Lender(GRID.copy().T.copy().T), Lender(torch.ones(2, 3)))
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, GRID + 1)
    with pytest.raises(rl.RunError, match="does not return a DLPack capsule"):
        module(Liar(), GRID)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.ones(2, 3, device="meta"), "input 0: torch does not lend"),
        (lambda: torch.ones(2, 3).to_sparse(), "input 0: torch does not lend"),
        (lambda: torch.ones(2, 3, dtype=torch.complex64), "dtype is complex64"),
    ],
)
def test_tensors_that_cannot_be_passed(make: Any, message: str) -> None:
    with pytest.raises(rl.RunError, match=message) as caught:
        rl.load(add(2, 3))(make(), GRID)
    assert "frame #" not in str(caught.value)


def test_numpy_scalars_are_rank_0() -> None:
    module = rl.load(add())
    result = module(np.float32(2), np.array(3, np.float32))
    assert isinstance(result, np.ndarray) and result.shape == () and result == 5
    with pytest.raises(rl.RunError, match=r"got a float \(2.0\), expected a tensor"):
        module(2.0, np.float32(3))


def test_empty_tensors() -> None:
    module = rl.load(add(4, 3, dynamic=True))
    assert module(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)).shape == (0, 3)
    empty = torch.zeros(0, 3)
    assert module(empty, empty).shape == (0, 3)


# ---- What comes back ----


def test_torch_if_any_input_is() -> None:
    module = rl.load(add(2, 3))
    assert isinstance(module(GRID, GRID), np.ndarray)
    assert isinstance(module(torch.ones(2, 3), GRID), torch.Tensor)
    assert isinstance(module(GRID, torch.ones(2, 3)), torch.Tensor)


@pytest.mark.parametrize("planned", [True, False])
def test_results_own_their_memory(planned: bool) -> None:
    module = rl.load(add(2, 3, planned=planned))
    first, tensor = module(GRID, GRID), module(torch.ones(2, 3), GRID)
    kept, kept_tensor = first.copy(), tensor.clone()
    module(GRID * 9, GRID)
    first_again = module(GRID, GRID)
    module.close()
    del module
    np.testing.assert_array_equal(first, kept)
    assert torch.equal(tensor, kept_tensor)
    first += 1  # writable, and nobody else's
    tensor += 1
    np.testing.assert_array_equal(first_again, kept)


def test_inputs_are_read_at_the_call_only() -> None:
    module = rl.load(add(2, 3, planned=False))
    x = GRID.copy()
    before = sys.getrefcount(x)
    result = module(x, x)
    x[:] = 99
    assert sys.getrefcount(x) == before
    np.testing.assert_array_equal(result, GRID * 2)


def test_channels_last() -> None:
    module = one_op("aten::neg.out", 1, 2, 3, 4, dim_order=[0, 2, 3, 1])
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    result = module(x)
    np.testing.assert_array_equal(result, -x)
    assert result.transpose(0, 2, 3, 1).flags.c_contiguous
    for t in (torch.tensor(x), torch.tensor(x).to(memory_format=torch.channels_last)):
        result = module(t)
        assert torch.equal(result, -t)
        assert result.is_contiguous(memory_format=torch.channels_last)


def values_method() -> MethodBuilder:
    """Takes x, returns x + x, abs(x), an int, a float, None."""
    method = MethodBuilder()
    x, a, b = method.tensor(2), method.tensor(2), method.tensor(2)
    method.binary("aten::add.out", x, x, a)
    method.call("aten::abs.out", x, b, b)
    rest = [method.value(fb.Int(3)), method.value(fb.Double(0.5)), method.value(fb.Null())]
    method.inputs, method.outputs = [x], [a, b, *rest]
    return method


OUTPUTS = [
    tensor_value(2),
    tensor_value(2),
    {"kind": "int", "value": 3},
    {"kind": "float", "value": 0.5},
    {"kind": "none"},
]


@pytest.mark.parametrize("kind", ["tuple", "list"])
def test_flat_structures(kind: str) -> None:
    spec = {"t": kind, "c": [LEAF] * 5}
    one = contract([tensor_value(2, name="x")], OUTPUTS, out_spec=spec)
    result = rl.load(program(values_method(), contract={"forward": one}))(-np.ones(2, np.float32))
    assert type(result).__name__ == kind
    np.testing.assert_array_equal(result[0], [-2, -2])
    np.testing.assert_array_equal(result[1], [1, 1])
    assert list(result[2:]) == [3, 0.5, None]
    assert [type(v) for v in result[2:4]] == [int, float]


def test_nested_structures() -> None:
    inner = {"t": "namedtuple", "name": "Pair", "k": ["n", "f"], "c": [LEAF, LEAF]}
    outer = {
        "t": "object",
        "name": "Out",
        "k": ["a", "b", "p", "z"],
        "c": [LEAF, LEAF, inner, LEAF],
    }
    one = contract([tensor_value(2, name="x")], OUTPUTS, out_spec=outer)
    module = rl.load(program(values_method(), contract={"forward": one}))
    result = module(np.ones(2, np.float32))
    np.testing.assert_array_equal(result.a, [2, 2])
    assert result["p"].f == 0.5 and result.p == (3, 0.5) and result.z is None
    assert list(result) == ["a", "b", "p", "z"]
    flat = module["forward"].call_flat((np.ones(2, np.float32),), {})
    np.testing.assert_array_equal(flat[0], [2, 2])
    assert flat[2:] == [3, 0.5, None]


def test_text_and_lists() -> None:
    method = MethodBuilder()
    numbers = [method.value(fb.Int(i)) for i in (4, 5)]
    method.outputs = [
        method.value(fb.String("äpfel")),
        method.value(fb.IntList(numbers)),
        method.value(fb.DoubleList([0.5, 1.5])),
        method.value(fb.BoolList([True, False])),
        method.value(fb.Bool(True)),
    ]
    assert rl.load(program(method))() == ("äpfel", [4, 5], [0.5, 1.5], [True, False], True)


def test_dynamic_results_have_their_own_shapes() -> None:
    module = rl.load(add(8, 3, dynamic=True))
    for n in (1, 8, 3):
        x = np.full((n, 3), n, np.float32)
        np.testing.assert_array_equal(module(x, x), 2 * x)
        t = torch.full((n, 3), float(n))
        assert torch.equal(module(t, t), 2 * t)


# ---- State, methods, clones ----


def counting() -> rl.Module:
    return rl.load(program(counter(), constants=[struct.pack("<f", 1.0)]))


def test_state_stays_and_clones_have_their_own() -> None:
    module = counting()
    x = np.ones(2, np.float32)
    assert [float(module(x)[0]) for _ in range(3)] == [1, 2, 3]
    other = module.clone()
    assert [float(other(x)[0]) for _ in range(2)] == [1, 2]
    assert float(module(x)[0]) == 4
    module.close()
    assert float(other(x)[0]) == 3


def test_methods_by_name() -> None:
    times = binary("aten::mul.out", 2, 3)
    times.name = "times"
    size = MethodBuilder(name="get_size", arenas=[0])
    size.outputs = [size.value(fb.Int(7))]
    module = rl.load(program(binary("aten::add.out", 2, 3), times, size))
    assert module.methods == ("forward", "times", "get_size")
    np.testing.assert_array_equal(module.times(GRID, GRID), GRID * GRID)
    np.testing.assert_array_equal(module["times"](GRID, GRID), GRID * GRID)
    assert module.get_size() == 7
    assert "times" in dir(module) and "times(input 0" in repr(module)
    with pytest.raises(AttributeError, match="no method 'minus'; methods: forward, times"):
        _ = module.minus
    with pytest.raises(rl.RunError, match="no method 'minus'"):
        _ = module["minus"]


# ---- Tracing ----


def test_trace() -> None:
    lines = [["n", "o", 0, 3 + i, "forward", f"y{i}", ""] for i in range(2)]
    debug = {"version": 1, "files": ["m.py"], "methods": {"forward": lines}}
    module = rl.load(program(values_method(), debug=debug), trace=True)
    assert module.trace.events() == []
    for _ in range(2):
        module(np.ones(2, np.float32))
    events = module.trace.events()
    assert [(e.method, e.instruction, e.kind, e.name) for e in events] == [
        ("forward", 0, "kernel", "aten::add.out"),
        ("forward", 1, "kernel", "aten::abs.out"),
    ]
    assert all(0 < e.ns < 10**9 for e in events)
    assert events[1].line == "m.py:4 in forward: `y1`"
    with pytest.raises(rl.RunError, match="trace=True cannot be cloned"):
        module.clone()
    with pytest.raises(rl.RunError, match="load the program with trace=True") as caught:
        rl.load(add(2)).trace.events()
    assert caught.value.code == Code.INVALID_STATE


# ---- Copies ----


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_can_be_copied(copied: Any) -> None:
    module = rl.load(GOLDEN / "counter.pte")
    for what in (module, module["forward"], module.state):
        with pytest.raises(TypeError, match=r"cannot be pickled or copied: .* module.clone\(\)"):
            copied(what)
    for what in (module.state.snapshot(), module.signature(), module.memory):
        made = copied(what)
        assert (pickle.loads(made) if copied is pickle.dumps else made) == what


# ---- Leaks ----


def grown_by_calls() -> tuple[int, int]:
    """The bytes and objects by which a process grows in 60 rounds of calls."""
    import psutil

    big = np.ones((256, 1024), np.float32)  # 1 MiB
    tensor = torch.ones(256, 1024)
    module = rl.load(add(256, 1024))
    strided = np.ones((256, 2048), np.float32)[:, ::2]

    def work(n: int) -> None:
        for _ in range(n):
            module(big, strided)
            module(tensor, big)
            with pytest.raises(rl.RunError):
                module(big, None)
            with pytest.raises(rl.RunError):
                module(big, big[:2])

    process = psutil.Process()
    work(30)
    gc.collect()
    before, objects = process.memory_info().rss, len(gc.get_objects())
    work(60)
    gc.collect()
    return process.memory_info().rss - before, len(gc.get_objects()) - objects


def test_calls_do_not_leak() -> None:
    # In a process of its own, whose memory nothing else has made holes in.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        size, objects = fresh.submit(grown_by_calls).result()
    assert size < 8 << 20  # one leaked array per call were 60 MiB
    assert objects < 50


def test_modules_do_not_leak() -> None:
    import psutil

    image = program(counter(), constants=[struct.pack("<f", 1.0)])
    x = np.ones(2, np.float32)

    def work(n: int) -> None:
        for _ in range(n):
            module = rl.load(image)
            module(x)
            module.clone()(x)
            with pytest.raises(rl.LoadError):
                rl.load(image[:300])

    process = psutil.Process()
    work(50)
    gc.collect()
    before = process.memory_info().rss
    work(200)
    gc.collect()
    assert process.memory_info().rss - before < 4 << 20
