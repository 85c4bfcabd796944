"""Modules that several threads use, and the number of a module's own threads."""

from __future__ import annotations

import gc
import os
import platform
import struct
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from runtime_programs import MethodBuilder, add, counter, program

import rushlight as rl

OTHER = "avx2" if platform.machine() in ("aarch64", "arm64") else "neon"  # of other processors


def test_one_module_in_several_threads() -> None:
    """Calls do not mix: each result belongs to its own inputs, and no count is lost."""
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


def exponentials(count: int, size: int) -> bytes:
    """A program that computes the exponentials of a matrix several times."""
    method = MethodBuilder()
    x, out = method.tensor(size, size), method.tensor(size, size)
    for _ in range(count):
        method.call("aten::exp.out", x, out, out)
    method.inputs, method.outputs = [x], [out]
    return program(method)


def slow_module() -> rl.Module:
    """A call takes some tenths of a second."""
    return rl.load(exponentials(60, 1024), threads=1)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_results_do_not_depend_on_threads() -> None:
    x = normal(0, 300, 300)
    image = exponentials(3, 300)
    expected = rl.load(image, threads=1)(x).tobytes()
    for threads in (2, 4, None):
        module = rl.load(image, threads=threads)
        assert all(module(x).tobytes() == expected for _ in range(20))


def test_modules_on_threads_at_once() -> None:
    """One module owns the pool of threads; the others run in the threads that call them."""
    modules = [rl.load(exponentials(5, 300), threads=n) for n in (2, 3, 4)]

    def work(k: int) -> bool:
        x = normal(k, 300, 300)
        expected = modules[k](x)
        return all((modules[k](x) == expected).all() for _ in range(50))

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(work, range(3)))


def test_threads_by_default() -> None:
    """By default there are as many threads as cores that the process may use."""
    run_python(
        """
        import os
        allowed = len(os.sched_getaffinity(0))
        assert 1 <= rl.load(image).threads <= allowed
        """
    )
    run_python(
        """
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        assert rl.load(image).threads == 1
        assert len(os.listdir("/proc/self/task")) == 1
        module = rl.load(image, threads=3)
        assert len(os.listdir("/proc/self/task")) == 3
        """
    )


def test_threads_below_one() -> None:
    """There is a warning, and the default number is used."""
    usual = rl.load(exponentials(1, 8)).threads
    for threads in (0, -3, -(1 << 70)):
        with pytest.warns(RuntimeWarning, match=rf"threads={threads}: there must be 1 at least"):
            module = rl.load(exponentials(1, 8), threads=threads)
        assert module.threads == usual
        assert (module(np.zeros((8, 8), np.float32)) == 1).all()


def test_more_threads_than_cores() -> None:
    """There is one warning for each such number, and that many are used, up to 256."""
    run_python(
        """
        import os, warnings
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        x = np.ones((300, 300), np.float32)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            expected = rl.load(image, threads=1)(x)
            for threads in (3, 3, 1 << 70):
                module = rl.load(image, threads=threads)
                assert module.threads == min(threads, 256)
                assert (module(x) == expected).all()
        texts = [str(w.message) for w in caught]
        assert len(texts) == 2, texts
        assert "threads=3: 3 are used; the cores that this process may use are 1," in texts[0]
        assert "256 are used" in texts[1]
        assert all(w.category is RuntimeWarning and w.filename == "<string>" for w in caught)
        """
    )


def test_threads_that_the_system_refuses() -> None:
    """There is a warning, and the caller's thread does the work. Root's processes have no limit."""
    run_python(
        """
        import os, resource, warnings
        x = np.ones((300, 300), np.float32)
        expected = rl.load(image, threads=1)(x)
        if os.getuid() == 0:
            os.setresuid(65534, 65534, 65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = rl.load(image, threads=3)
        wanted = "threads=3: the system started 0 of the 2 threads beside the caller's"
        assert sum(wanted in str(w.message) for w in caught) == 1, caught
        assert module.threads == 3 and (module(x) == expected).all()
        """
    )


@pytest.mark.parametrize("name", ["sse9", "x" * 100, OTHER])
def test_an_instruction_set_that_is_not_there(name: str) -> None:
    """There is a warning, and the best one is used."""
    run_python(
        """
        import os, warnings
        from rushlight import _core
        x = np.ones((300, 300), np.float32)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                module = rl.load(image, threads=1)
                module(x)
        wish = os.environ["RUSHLIGHT_CPU"]
        [text] = [str(w.message) for w in caught]
        assert text.startswith(f"RUSHLIGHT_CPU={wish[:32]} is "), text
        assert text.endswith("; using " + _core.kernel_isas()[-1]), text
        """,
        RUSHLIGHT_CPU=name,
    )


def test_fork() -> None:
    """The child computes with its own threads, and both processes end cleanly."""
    run_python(
        """
        import os
        module = rl.load(image, threads=3)
        x = np.ones((300, 300), np.float32)
        expected = module(x)
        child = os.fork()
        assert all((module(x) == expected).all() for _ in range(20))
        if child != 0:
            assert os.waitpid(child, 0)[1] == 0
        """
    )


def run_python(code: str, **variables: str) -> None:
    """Runs code in a process of its own that has no threads but ours."""
    start = "import numpy as np, rushlight as rl, sys\nimage = sys.stdin.buffer.read()\n"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", start + textwrap.dedent(code)],
        input=exponentials(3, 300),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **variables},
        check=True,
        timeout=120,
    )


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
    """Creating results may run the garbage collector, which may run arbitrary code."""
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
    gc.collect()
    gc.freeze()  # what other tests left would be looked through each time
    gc.set_threshold(1, 1, 1)
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    gc.collect()
    assert len(outcomes) == 300
    refused = "the module was called from within one of its own calls"
    assert all(o == 1.0 or refused in str(o) for o in outcomes)


@pytest.mark.parametrize("wait", [0.0, 0.05])
def test_daemon_threads_at_the_end_of_the_program(wait: float) -> None:
    """The daemon threads are in the middle of runs, or wait for the module."""
    run_python(
        f"""
        import threading, time
        module = rl.load(image)
        x = np.ones((300, 300), np.float32)
        def work():
            while True:
                module(x)
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep({wait})
        """
    )
