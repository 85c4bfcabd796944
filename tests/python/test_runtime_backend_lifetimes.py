"""When delegates of backends in Python are made and go, and whose exception an error tells of."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest
from backend_doubles import DEMO, Recorder, registered
from runtime_programs import delegated, program

import rushlight as rl
from rushlight import runtime

ONES = np.ones(2, np.float32)
DATA = program(delegated("Test", 2), blobs=[b"payload"])


def _load(backend: Any, **options: Any) -> rl.Module:
    with registered("Test", backend):
        return rl.load(DATA, **options)


def _raises(context: Any, *args: Any) -> None:
    context.fail_at("mul")
    raise ValueError("no more")


def test_a_fork_whose_backend_fails() -> None:
    demo = program(delegated(DEMO, 2), blobs=[b"demo 1\nin 1\n%1 = sin %0 : 2\nout %1\n"])
    other = rl.load(demo, backend_options={DEMO: {"fail_at": 0}})
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
