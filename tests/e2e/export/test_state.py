"""State: kept between calls as eager keeps it, and read, written, snapshotted, forked, reset."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.edge import ExecutorchBackendConfig, MemoryPlanningPass
from rushlight.schema import program as schema
from rushlight.serialize.pte import read_pte


class Counter(torch.nn.Module):
    """Two buffers that are written, one that is only read, one that is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor([5, 0]))
        self.register_buffer("sum", torch.zeros(2))
        self.register_buffer("step", torch.tensor(2))
        self.register_buffer("unused", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += self.step
        self.sum.add_(x)
        return self.sum * 1.0


class Cache(torch.nn.Module):
    """A cache of keys that each call writes one row of."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 8, 4))
        self.register_buffer("mask", torch.zeros(8, dtype=torch.bool))

    def forward(self, row: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(1, at, row)
        self.mask.index_fill_(0, at, True)
        return (self.keys * self.mask[None, :, None]).sum(1)


def row(value: float) -> torch.Tensor:
    return torch.full((1, 1, 4), value)


@pytest.fixture(scope="module")
def counter() -> bytes:
    return rl.export(Counter(), (torch.ones(2),)).buffer


@pytest.fixture(scope="module")
def cache() -> bytes:
    return rl.export(Cache(), (row(1.0), torch.tensor([0]))).buffer


@pytest.fixture(scope="module")
def methods() -> Callable[[bool], bytes]:
    """Two methods on one model, whose buffers they share or not."""

    class Wider(Counter):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.sum.mul_(2.0)
            return self.sum + x

    def build(share: bool) -> bytes:
        x = torch.ones(2)
        programs = {
            "add": torch.export.export(Counter(), (x,)),
            "double": torch.export.export(Wider(), (x,)),
        }
        memory = MemoryPlanningPass(share_mutable_buffers=share)
        return rl.export(programs, memory=memory, verify=False).buffer

    return build


def test_state_is_a_mapping_of_the_buffers_that_are_written(counter: bytes) -> None:
    state = rl.load(counter).state
    assert list(state) == ["count", "sum"] and len(state) == 2 and "step" not in state
    assert state["count"].tolist() == [5, 0] and state["count"].dtype == np.int64
    assert dict(state)["sum"].tolist() == [0, 0]
    assert "count: int64[2]" in repr(state)
    read = state.read("sum", as_torch=True)
    assert isinstance(read, torch.Tensor) and read.dtype == torch.float32


def test_reading_gives_a_copy_and_writing_changes_the_next_call(counter: bytes) -> None:
    module = rl.load(counter)
    copy = module.state["sum"]
    copy[:] = 100
    assert module.state["sum"].tolist() == [0, 0]
    module.state["sum"] = copy
    copy[:] = 0  # what was written is a copy as well
    assert module(np.ones(2, np.float32)).tolist() == [101, 101]
    module.state["sum"] = torch.tensor([1.0, 2.0, 3.0, 4.0])[::2]  # of any strides
    assert module(np.zeros(2, np.float32)).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(3, np.float32), r"'sum' is float32\[2\], got float32\[3\]"),
        (np.zeros(2), r"'sum' is float32\[2\], got float64\[2\]"),
        (np.zeros((1, 2), np.float32), r"'sum' is float32\[2\], got float32\[1, 2\]"),
        ([0.0, 0.0], "'sum' is float32.2., got list"),
        (None, "'sum' is float32.2., got NoneType"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    counter: bytes, value: Any, message: str
) -> None:
    state = rl.load(counter).state
    with pytest.raises(rl.RunError, match=message):
        state["sum"] = value
    assert state["sum"].tolist() == [0, 0]


def test_a_wrong_name_says_which_there_are(counter: bytes) -> None:
    state = rl.load(counter).state
    for access in (lambda: state["step"], lambda: state.__setitem__("step", np.zeros(2))):
        with pytest.raises(KeyError, match="no state 'step'; there is 'count', 'sum'"):
            access()
    stateless = rl.load(rl.export(torch.nn.ReLU(), (torch.ones(2),)).buffer)
    assert dict(stateless.state) == {}
    stateless.state.restore(stateless.state.snapshot())
    with pytest.raises(KeyError, match="keeps nothing between calls"):
        stateless.state["x"]


def test_snapshots_roll_back(cache: bytes) -> None:
    module = rl.load(cache)
    module(row(1.0), np.array([0]))
    before = module.state.snapshot()
    first = module(row(2.0), np.array([1]))
    module.state.restore(before)
    assert module.state["mask"].tolist() == [True] + [False] * 7
    again = module(row(2.0), np.array([1]))
    assert torch.equal(first, again)
    other = rl.load(cache)  # another module of the program, as in another process
    other.state.restore(pickle.loads(pickle.dumps(before)))
    assert torch.equal(other(row(2.0), np.array([1])), again)


def test_a_failed_run_can_be_rolled_back(cache: bytes) -> None:
    module = rl.load(cache)
    module(row(1.0), np.array([0]))
    before = module.state.snapshot()
    with pytest.raises(rl.RunError, match=r"8"):
        module(row(2.0), np.array([8]))
    module.state.restore(before)
    assert module.state.snapshot() == before
    assert module(row(2.0), np.array([1])).tolist() == [[3.0] * 4]


def test_snapshots_of_other_programs_are_refused(counter: bytes, cache: bytes) -> None:
    module, other = rl.load(counter), rl.load(cache)
    before = module.state["count"]
    for snapshot in (other.state.snapshot(), type(other.state.snapshot())(b"RLSTATE2")):
        with pytest.raises(rl.RunError, match="not a snapshot of this program's state"):
            module.state.restore(snapshot)
    with pytest.raises(rl.RunError, match="not bytes"):
        module.state.restore(b"")  # type: ignore[arg-type]
    assert module.state["count"].tolist() == before.tolist()


def test_forks_begin_with_the_state_and_go_their_own_way(counter: bytes) -> None:
    module = rl.load(counter)
    module(np.ones(2, np.float32))
    fork, clone = module.fork(), module.clone()
    assert fork.state["count"].tolist() == [7, 2] and clone.state["count"].tolist() == [5, 0]
    assert fork(np.ones(2, np.float32)).tolist() == [2, 2]
    assert module.state["sum"].tolist() == [1, 1]
    module.close()
    assert fork(np.ones(2, np.float32)).tolist() == [3, 3]
    with pytest.raises(rl.RunError, match="closed"):
        module.state["sum"]


def test_reset_gives_the_values_of_the_export(counter: bytes) -> None:
    module = rl.load(counter)
    for _ in range(3):
        module(np.ones(2, np.float32))
    module.state.reset()
    assert module.state["count"].tolist() == [5, 0] and module.state["sum"].tolist() == [0, 0]


def test_methods_share_an_entry(methods: Callable[[bool], bytes]) -> None:
    module = rl.load(methods(True))
    assert sorted(module.state) == ["count", "sum"]
    module.add(np.ones(2, np.float32))
    module.double(np.ones(2, np.float32))
    assert module.state["sum"].tolist() == [2, 2]
    fork = module.fork()
    module.state.reset()
    assert module.add(np.ones(2, np.float32)).tolist() == [1, 1]
    assert fork.double(np.zeros(2, np.float32)).tolist() == [4, 4]


def test_methods_that_do_not_share_have_an_entry_each(methods: Callable[[bool], bytes]) -> None:
    module = rl.load(methods(False))
    assert sorted(module.state) == ["add:sum", "count", "double:sum"]
    module.add(np.ones(2, np.float32))
    assert module.state["add:sum"].tolist() == [1, 1]
    assert module.state["double:sum"].tolist() == [0, 0]
    only = rl.load(methods(False), methods=["double"])
    assert list(only.state) == ["sum"]
    with pytest.raises(rl.RunError, match="same methods loaded"):
        only.state.restore(module.state.snapshot())


def test_half_precision_state() -> None:
    class Half(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.zeros(3, dtype=torch.bfloat16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.kept.add_(x)
            return self.kept.float()

    module = rl.load(rl.export(Half(), (torch.ones(3, dtype=torch.bfloat16),)).buffer)
    module.state["kept"] = torch.full((3,), 2.0, dtype=torch.bfloat16)
    assert module(torch.ones(3, dtype=torch.bfloat16)).tolist() == [3.0] * 3
    assert module.state.read("kept", as_torch=True).dtype == torch.bfloat16


def test_names_can_be_left_out_of_the_file_and_come_from_the_debug_map() -> None:
    edge = rl.to_edge(torch.export.export(Counter(), (torch.ones(2),)))
    config = ExecutorchBackendConfig(emit_mutable_buffer_names=False)
    program = edge.to_executorch(config).buffer
    (plan,) = read_pte(program).program.execution_plan
    tensors = [v.val for v in plan.values if isinstance(v.val, schema.Tensor)]
    assert all(tensor.extra_tensor_info is None for tensor in tensors)
    assert list(rl.load(program).state) == ["count", "sum"]


def updates() -> dict[str, tuple[torch.nn.Module, list[tuple[Any, ...]]]]:
    """Models that update buffers in place in different ways, with the inputs of their calls."""

    class Model(torch.nn.Module):
        def __init__(self, update: Callable[..., Any]) -> None:
            super().__init__()
            self.register_buffer("kept", torch.arange(12, dtype=torch.float32).reshape(3, 4))
            self.update = update

        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            self.update(self.kept, *args)
            return self.kept.sum(0)

    index = [(torch.tensor([i % 3]), torch.randn(1, 4)) for i in range(4)]
    rows = [(torch.randn(4),) for _ in range(4)]
    wholes = [(torch.randn(3, 4),) for _ in range(4)]
    return {
        "index_put_": (Model(lambda k, i, v: k.index_put_((i,), v)), index),
        "index_put_ adding": (
            Model(lambda k, i, v: k.index_put_((i,), v, accumulate=True)),
            index,
        ),
        "item assignment": (Model(lambda k, v: k.__setitem__(1, v)), rows),
        "slice assignment": (Model(lambda k, v: k[:, 1:3].copy_(v[:, :2])), wholes),
        "copy_": (Model(lambda k, v: k.copy_(k * 0.5 + v)), wholes),
        "copy_ that broadcasts": (Model(lambda k, v: k.copy_(v)), rows),
        "add_ and mul_": (Model(lambda k, v: k.add_(v).mul_(0.5)), wholes),
        "copy_ that converts": (Model(lambda k, v: k.copy_(v.to(torch.int32))), wholes),
        "shift by one": (Model(lambda k, v: k.copy_(torch.cat([k[1:], v[None]]))), rows),
        "masked_fill_": (Model(lambda k, v: k.masked_fill_(v > 0, -1.0)), wholes),
        "a view of it": (Model(lambda k, v: k.view(12)[::4].add_(v[:3])), rows),
        "transposed": (Model(lambda k, v: k.t().add_(v.t())), wholes),
        "zero_": (Model(lambda k, v: k.zero_().add_(v)), rows),
    }


@pytest.mark.parametrize("name", list(updates()))
def test_in_place_updates_equal_eager_over_several_calls(name: str) -> None:
    torch.manual_seed(0)
    model, calls = updates()[name]
    module = rl.load(rl.export(model, calls[0]).buffer)
    for args in calls:
        with torch.no_grad():
            wanted = model(*args)
        torch.testing.assert_close(module(*args), wanted)
        torch.testing.assert_close(module.state.read("kept", as_torch=True), model.kept)
