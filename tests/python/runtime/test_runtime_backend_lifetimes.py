"""When delegates of Python backends are created and destroyed, and which exception is reported."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backend_doubles import DEMO, Recorder, registered
from runtime_programs import delegated, program

import rushlight as rl
from rushlight import runtime
from rushlight.errors import Code
from rushlight.runtime.stepping import Stepper

torch = pytest.importorskip("torch")

ONES = np.ones(2, np.float32)
DATA = program(delegated("Test", 2), blobs=[b"payload"])
DEMO_DATA = program(delegated(DEMO, 2), blobs=[b"demo 1\nin 1\n%1 = sin %0 : 2\nout %1\n"])


def _load(backend: Any, **options: Any) -> rl.Module:
    with registered("Test", backend):
        return rl.load(DATA, **options)


def _raises(context: Any, *args: Any) -> None:
    context.fail_at("mul")
    raise ValueError("no more")


def test_a_fork_whose_backend_fails() -> None:
    other = rl.load(DEMO_DATA, backend_options={DEMO: {"fail_at": 0}})
    backend = Recorder()
    with registered("Test", backend):
        module = rl.load(DATA)
        backend.on_init = _raises
        with pytest.raises(rl.LoadError) as caught:
            module.fork()
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value) == (
        "program in memory: forward: delegate 0 (Test), at mul inside: ValueError: no more"
    )
    # What was raised is not told of as the cause of what fails next.
    with pytest.raises(rl.RunError, match=r"sin: it was told to fail here") as run:
        other(ONES)
    assert run.value.__cause__ is None
    with pytest.raises(rl.LoadError, match=r"  Test\n    for forward: delegate 0"):
        module.fork()  # the backend is not there any more


def test_an_interrupt_in_a_fork_stays_one() -> None:
    def interrupted(context: Any) -> None:
        raise KeyboardInterrupt

    backend = Recorder()
    with registered("Test", backend):
        module = rl.load(DATA)
        backend.on_init = interrupted
        with pytest.raises(KeyboardInterrupt):
            module.fork()


def test_destroyed_while_an_exception_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loud(Recorder):
        def destroy(self, handle: Any) -> None:
            super().destroy([len(str(n)) for n in range(3)])
            raise LookupError("nobody hears of it")

    heard: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: heard.append(told.exc_type))
    backend = Loud()
    with pytest.raises(IndexError, match="list index out of range"):
        [_load(backend)][5]  # the only reference goes once the exception is set
    assert backend.destroyed == [[1, 1, 1]] and heard == [LookupError]


@pytest.mark.parametrize("fails", [False, True])
def test_a_backend_that_takes_itself_out_in_init(fails: bool) -> None:
    def init(context: Any) -> str:
        runtime.unregister_backend("Test")
        if fails:
            raise ValueError("gone")
        return "handle"

    backend = Recorder(init=init)
    runtime.register_backend("Test", backend)
    if fails:
        with pytest.raises(rl.LoadError, match="ValueError: gone"):
            rl.load(DATA)
        assert backend.destroyed == []
        return
    module = rl.load(DATA)
    assert module(ONES).tolist() == [2, 2]
    module.close()
    assert backend.destroyed == ["handle"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda context: context.event(2**70, 0, 1), f"a number of 64 bits, not {2**70}"),
        (lambda context: context.event(1.5, 0, 1), "a number of 64 bits, not 1.5"),
        (lambda context: context.fail_at("\ud800"), r"a number of 64 bits, not '\ud800'"),
        (lambda context: context.release_payload(), "release_payload() is for init()"),
    ],
)
def test_what_a_context_refuses(call: Any, message: str) -> None:
    module = _load(Recorder(execute=lambda context, args: call(context)), trace=True)
    with pytest.raises(rl.RunError, match=re.escape(message)) as caught:
        module(ONES)
    assert isinstance(caught.value.__cause__, rl.RunError)
    assert caught.value.code == caught.value.__cause__.code


# ---- What a backend keeps ----

KEEPERS: dict[str, Any] = {
    "the arguments": lambda context, args: args,
    "an input": lambda context, args: args[0],
    "an output": lambda context, args: args[1],
    "a slice of a view": lambda context, args: args[1].reshape(1, 2)[:, 1:],
    "a transposed view": lambda context, args: args[1].reshape(1, 2).T,
    "what a view lies over": lambda context, args: args[1].base,
    "the memory": lambda context, args: args[1].base.base,
    "a slice of the memory": lambda context, args: memoryview(args[1].base.base)[4:],
    "a buffer": lambda context, args: memoryview(args[1]),
    "an array over a buffer": lambda context, args: np.frombuffer(args[1], np.uint8),
    "a tensor of torch": lambda context, args: torch.from_numpy(args[1]).view(1, 2),
    "a capsule": lambda context, args: args[1].__dlpack__(),
    "a matrix": lambda context, args: args[1].view(np.matrix),
    "another shape": lambda context, args: context.resize(1, (2,)),
    "a function": lambda context, args: lambda: args[1],
}


class Keeper(Recorder):
    """A backend that keeps references to chosen objects of each call."""

    def __init__(self, keep: Any) -> None:
        super().__init__(execute=self.run)
        self.keep = keep
        self.kept: list[Any] = []

    def run(self, context: Any, args: Any) -> None:
        args[1][...] = args[0] + 1
        self.kept.append(self.keep(context, args))


@pytest.mark.parametrize("what", KEEPERS)
def test_what_is_lent_for_a_call_is_not_kept(what: str) -> None:
    backend = Keeper(KEEPERS[what])
    module = _load(backend)
    with pytest.raises(
        rl.RunError, match=r"\(Test\): it kept args\[[01]\], which is lent"
    ) as caught:
        module(ONES)
    assert "keep a copy (args[" in str(caught.value) and caught.value.code == Code.INVALID_STATE
    with pytest.raises(rl.RunError, match=r"the backend Test still has args\[[01]\] of an earlier"):
        module(ONES)
    with pytest.raises(rl.RunError, match="the backend Test still has"):
        module.execute_into(np.zeros(2, np.float32), ONES)
    assert len(backend.kept) == 1
    backend.kept.clear()
    backend.keep = lambda context, args: args[1].copy()
    assert module(ONES).tolist() == [2, 2]
    assert module(ONES).tolist() == [2, 2]


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("close", [True, False])
def test_what_was_kept_may_be_touched_after_the_module(planned: bool, close: bool) -> None:
    count = 1 << 18  # memory of its own, which is unmapped with the module
    data = program(delegated("Test", count, planned=planned), blobs=[b"payload"])
    backend = Keeper(lambda context, args: args)
    with registered("Test", backend):
        module = rl.load(data)
    x = np.full(count, 3, np.float32)
    with pytest.raises(rl.RunError, match="it kept args"):
        module(x)
    if close:
        module.close()
        with pytest.raises(rl.RunError, match="closed"):
            module(x)
    del module, x
    gc.collect()
    [(argument, out)] = backend.kept
    assert (argument == 3).all() and (out == 4).all()
    with pytest.raises(ValueError, match="read-only"):
        out[...] = 5
    assert (out == 4).all()
    assert backend.destroyed == []
    del argument, out
    backend.kept.clear()
    rl.load(DEMO_DATA)  # the next load frees what was let go of
    assert backend.destroyed == ["handle"]


@pytest.fixture(autouse=True, scope="module")
def _collections_are_quick() -> None:
    """Hide all earlier objects from the garbage collector: a call that fails because a backend kept
    an object searches all objects for it."""
    gc.collect()
    gc.freeze()


# How what is kept of an output is written to afterwards.
REVOKED: dict[str, tuple[Any, Any]] = {
    "an output": (lambda args: args[1], lambda kept: kept.fill(7)),
    "a later slice": (lambda args: args[1], lambda kept: kept[1:].fill(7)),
    "a later buffer": (lambda args: args[1], lambda kept: memoryview(kept).cast("B")[:1]),
    "what a view lies over": (lambda args: args[1].base, lambda kept: kept.fill(7)),
    "the memory": (
        lambda args: args[1].base.base,
        lambda kept: np.frombuffer(kept, np.uint8).fill(7),
    ),
    "made writable again": (lambda args: args[1], lambda kept: kept.setflags(write=True)),
}
SAFE: dict[str, tuple[Any, Any]] = {
    "a slice": (lambda args: args[1][1:], lambda kept: kept.fill(7)),
    "another type": (lambda args: args[1].view(np.int32), lambda kept: kept.fill(7)),
    "a buffer": (
        lambda args: memoryview(args[1]).cast("B"),
        lambda kept: kept.__setitem__(slice(None), bytes(len(kept))),
    ),
    "a tensor of torch": (lambda args: torch.from_numpy(args[1]), lambda kept: kept.fill_(7)),
}


@pytest.mark.parametrize("what", [*REVOKED, *SAFE])
@pytest.mark.parametrize("close", [True, False])
def test_writing_to_what_was_kept(what: str, close: bool) -> None:
    keep, write = {**REVOKED, **SAFE}[what]
    count = 1 << 18
    data = program(delegated("Test", count), blobs=[b"payload"])
    backend = Keeper(lambda context, args: keep(args))
    with registered("Test", backend):
        module, other = rl.load(data), rl.load(DEMO_DATA)
    before = other(ONES)
    with pytest.raises(rl.RunError, match="read-only from now on"):
        module(np.zeros(count, np.float32))
    if close:
        del module
        gc.collect()
    more = [np.zeros(count, np.float32) for _ in range(4)]  # where freed memory would be
    if what in REVOKED and what != "a later buffer":
        with pytest.raises(ValueError, match=r"read-only|cannot set WRITEABLE"):
            write(backend.kept[0])
    elif what in REVOKED:
        assert write(backend.kept[0]).readonly
    else:
        write(backend.kept[0])
    assert not any(array.any() for array in more)
    assert (other(ONES) == before).all()


def test_arrays_are_writable_again_in_the_next_call() -> None:
    backend = Keeper(lambda context, args: args[1])
    module = _load(backend)
    with pytest.raises(rl.RunError, match="read-only from now on"):
        module(ONES)
    backend.kept.clear()
    backend.keep = lambda context, args: None
    for _ in range(2):
        assert module(ONES).tolist() == [2, 2]


def test_what_was_kept_of_a_call_that_raises() -> None:
    backend = Keeper(lambda context, args: args)
    module = _load(backend)

    def fails(context: Any, args: Any) -> None:
        backend.kept.append(args)
        raise ValueError("no more")

    backend.on_execute = fails
    with pytest.raises(rl.RunError, match="ValueError: no more"):
        module(ONES)
    backend.on_execute = Recorder.add_one
    with pytest.raises(rl.RunError, match="the backend Test still has"):
        module(ONES)
    backend.kept.clear()
    assert module(ONES).tolist() == [2, 2]


def test_rings_of_references_are_no_keeping() -> None:
    def in_a_ring(context: Any, args: Any) -> None:
        def again(k: int) -> None:
            args[1][...] = args[0] + k
            if k < 3:
                again(k + 1)

        again(0)

    module = _load(Recorder(execute=in_a_ring))
    for _ in range(3):
        assert module(ONES).tolist() == [4, 4]


def test_in_steps() -> None:
    backend = Keeper(lambda context, args: args[0])
    with registered("Test", backend):
        stepper = Stepper(DATA, "forward", [ONES])
    with pytest.raises(rl.RunError, match=r"it kept args\[0\]"):
        stepper.step()
    with pytest.raises(rl.RunError, match="the backend Test still has"):
        stepper.step()
    backend.kept.clear()
    backend.keep = lambda context, args: None
    assert list(stepper) == [0]
    assert stepper.outputs()[0].tolist() == [2, 2]


@pytest.mark.parametrize("from_file", [True, False])
def test_payload_and_named_data_stay_while_they_are_looked_at(
    from_file: bool, tmp_path: Path
) -> None:
    payload, more = bytes(range(256)) * 4096, b"named" * 100_000
    data = program(delegated("Test", 2), blobs=[payload], named_data={"weights": more})
    kept: list[Any] = []

    def init(context: Any) -> None:
        kept.append(np.frombuffer(context.payload, np.uint8)[1:])
        kept.append(context.named_data("weights"))
        kept.append(context)

    path = tmp_path / "model.pte"
    path.write_bytes(data)
    with registered("Test", Recorder(init=init)):
        module = rl.load(path if from_file else data)
    module.close()
    del module, data
    gc.collect()
    array, named, context = kept
    assert array.tobytes() == payload[1:] and bytes(named) == more
    assert context.payload is None
    with pytest.raises(rl.RunError, match="the delegate is gone"):
        context.named_data("weights")
