"""Modules in several threads."""

from __future__ import annotations

import gc
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from runtime_programs import MethodBuilder, add, counter, program

import rushlight as rl


def test_one_module_in_several_threads() -> None:
    """Calls do not mix: each result is of its own inputs, and no count is lost."""
    module = rl.load(add(64, 64))
    state = rl.load(program(counter(), constants=[struct.pack("<f", 1.0)]))

    def work(k: int) -> list[float]:
        x = np.full((64, 64), k, np.float32)
        counts = []
        for _ in range(200):
            assert (module(x, x) == 2 * k).all()
            counts.append(float(state(np.ones(2, np.float32))[0]))
        return counts

    with ThreadPoolExecutor(4) as pool:
        counts = [c for part in pool.map(work, range(4)) for c in part]
    assert sorted(counts) == list(range(1, 801))


def test_clones_in_several_threads() -> None:
    module = rl.load(program(counter(), constants=[struct.pack("<f", 1.0)]))

    def work(clone: rl.Module) -> float:
        for _ in range(300):
            result = clone(np.ones(2, np.float32))
        return float(result[0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, [module.clone() for _ in range(4)])) == [300.0] * 4


def slow_module() -> rl.Module:
    """A call takes some tenths of a second."""
    method = MethodBuilder()
    x, out = method.tensor(1024, 1024), method.tensor(1024, 1024)
    for _ in range(60):
        method.call("aten::exp.out", x, out, out)
    method.inputs, method.outputs = [x], [out]
    return rl.load(program(method))


def test_the_gil_is_free_while_a_method_runs() -> None:
    module = slow_module()
    x = np.zeros((1024, 1024), np.float32)
    running, done = threading.Event(), threading.Event()

    def work() -> None:
        running.set()
        module(x)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    ticks = 0
    while not done.is_set():
        time.sleep(0.001)
        ticks += 1
    thread.join()
    assert ticks > 5  # a call that keeps the GIL leaves room for one or two


def test_waiting_for_the_module_does_not_keep_the_gil() -> None:
    module = slow_module()
    x = np.zeros((1024, 1024), np.float32)
    threads = [threading.Thread(target=module, args=(x,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    ticks = 0
    while any(t.is_alive() for t in threads):
        time.sleep(0.001)
        ticks += 1
    assert ticks > 15


def test_closing_waits_for_a_call() -> None:
    module = slow_module()
    x = np.zeros((1024, 1024), np.float32)
    results = []
    thread = threading.Thread(target=lambda: results.append(module(x)))
    thread.start()
    while not results and thread.is_alive():
        time.sleep(0.002)
        module.close()
    thread.join()
    # Either the call came first and finished, or it found the module closed.
    if results:
        assert (results[0] == 1).all()
    with pytest.raises(rl.RunError, match="closed"):
        module(x)


def test_a_finaliser_that_calls_the_module_does_not_wait_for_itself() -> None:
    """Making results may run the garbage collector, and that any code."""
    method = MethodBuilder()
    x, a, b = (method.tensor(2) for _ in range(3))
    method.call("aten::abs.out", x, a, a)
    method.call("aten::neg.out", x, b, b)
    method.inputs, method.outputs = [x], [a, b]
    module = rl.load(program(method))
    one = np.ones(2, np.float32)
    outcomes = []

    class Caller:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            try:
                outcomes.append(float(module(one)[0][0]))
            except rl.RunError as error:
                outcomes.append(str(error))

    def work() -> None:
        for _ in range(300):
            Caller()
            module(one)

    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert len(outcomes) == 300
    refused = "the module was called from within one of its own calls"
    assert all(o == 1.0 or refused in str(o) for o in outcomes)
