"""A process that is forked while other threads run modules: the child gets a working module, or an
error that says what to do, and never waits."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from runtime_programs import MethodBuilder, delegated, program

from rushlight.schema import program as fb

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
START = """
import os, signal, sys, threading, time
import numpy as np
import rushlight as rl
from rushlight import runtime

image = sys.stdin.buffer.read()

def keep_running(call):
    def work():
        started.set()
        while True:
            call()
    started = threading.Event()
    threading.Thread(target=work, daemon=True).start()
    started.wait()
    time.sleep(0.02)

def in_child(check):
    # Runs `check` in a child, which is killed if it hangs.
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        code = 1
        try:
            check()
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
"""


def run(code: str, image: bytes) -> None:
    """Runs code in a process that has no threads but its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START + textwrap.dedent(code)],
        input=image,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()


def exponentials() -> bytes:
    """A program that takes long enough for a fork to happen while it runs."""
    method = MethodBuilder()
    x, out = method.tensor(300, 300), method.tensor(300, 300)
    for _ in range(20):
        method.call("aten::exp.out", x, out, out)
    method.inputs, method.outputs = [x], [out]
    return program(method)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_module_that_another_thread_runs(threads: int) -> None:
    run(
        f"""
        modules = [rl.load(image, threads={threads}) for _ in range(3)]
        x = np.ones((300, 300), np.float32)
        wanted = modules[0](x)
        def check():
            for module in modules:
                assert (module(x) == wanted).all()
                assert (module.clone()(x) == wanted).all()
                assert (rl.load(image)(x) == wanted).all()
                assert "forward" in module.memory.arenas
            workers = [threading.Thread(target=modules[0], args=(x,)) for _ in range(3)]
            for worker in workers: worker.start()
            for worker in workers: worker.join()
            modules[0].close()
            in_child(lambda: modules[1](x))  # of a child of a child
        for module in modules[:2] * 2:
            keep_running(lambda: module(x))
        for _ in range(20):
            in_child(check)
        assert (modules[0](x) == wanted).all()  # the parent goes on
        """,
        exponentials(),
    )


def test_a_child_that_only_closes_or_drops_the_module() -> None:
    run(
        """
        modules = [rl.load(image), rl.load(image, trace=True)]
        x = np.ones((300, 300), np.float32)
        for module in modules:
            keep_running(lambda: module(x))
        for _ in range(10):
            in_child(lambda: [module.close() for module in modules])
            in_child(modules.clear)
        def trace():
            modules[1](x)
            assert len(modules[1].trace.events()) == 20
        in_child(trace)
        """,
        exponentials(),
    )


def counter_and_backend() -> bytes:
    """Counts calls in a buffer `count`; what it returns went through the backend Test."""
    method = MethodBuilder()
    x, count, out = method.tensor(2), method.tensor(2), method.tensor(2)
    tensor = method.values[count].val
    tensor.extra_tensor_info = fb.ExtraTensorInfo(fully_qualified_name="count")
    method.binary("aten::add.out", count, x, count)
    method.delegate("Test", count, out)
    method.inputs, method.outputs = [x], [out]
    return program(method, blobs=[b"payload"])


def test_state_that_may_be_half_written_is_not_used() -> None:
    run(
        """
        class Backend:
            def init(self, context): pass
            def execute(self, context, handle, args):
                args[1][...] = args[0]
                if threading.current_thread() is not threading.main_thread():
                    inside.set()
                    leave.wait()
        runtime.register_backend("Test", Backend())
        inside, leave = threading.Event(), threading.Event()
        module = rl.load(image)
        x = np.ones(2, np.float32)
        module(x)
        before = module.state.snapshot()
        def refused():
            state = module.state
            for use in (lambda: module(x), lambda: state["count"], module.fork, state.snapshot,
                        lambda: state.__setitem__("count", x)):
                try:
                    use()
                except rl.RunError as error:
                    assert "state.reset()" in str(error) and "clone()" in str(error), error
                else:
                    raise AssertionError(use)
            assert list(state) == ["count"]
        def check():
            refused()
            assert module.clone()(x).tolist() == [1, 1]
            assert rl.load(image)(x).tolist() == [1, 1]
            module.state.restore(before)
            assert module(x).tolist() == [2, 2]
        def check_reset():
            refused()
            module.state.reset()
            assert module(x).tolist() == [1, 1]
        thread = threading.Thread(target=module, args=(x,))
        thread.start()
        inside.wait()
        in_child(check)
        in_child(check_reset)
        leave.set()
        thread.join()
        assert module(x).tolist() == [3, 3]
        in_child(lambda: module(x))  # nothing was cut off here
        """,
        counter_and_backend(),
    )


@pytest.mark.parametrize("name", ["cpu_engine_v5_weights", "xnnpack_images", "xnnpack_sequence"])
def test_delegates_of_the_runtime(name: str) -> None:
    run(
        f"""
        module = rl.load({str(GOLDEN / name)!r} + ".pte")
        spec = module.signature().inputs
        x = [np.ones([d.max for d in v.shape], v.dtype) for v in spec]
        def flat(result):
            return result if isinstance(result, (list, tuple)) else [result]
        wanted = flat(module(*x))
        def check():
            for taken in (module, module.clone()):
                for a, b in zip(flat(taken(*x)), wanted):
                    np.testing.assert_array_equal(a, b)
        keep_running(lambda: module(*x))
        for _ in range(20):
            in_child(check)
        """,
        b"",
    )


def test_a_backend_in_python() -> None:
    """The process is forked while the backend waits in execute(), and in init()."""
    run(
        """
        class Backend:
            slow = True
            def init(self, context): return bytes(context.payload)
            def execute(self, context, handle, args):
                if self.slow and threading.current_thread() is not threading.main_thread():
                    time.sleep(0.05)
                args[1][...] = args[0] + len(handle)
        runtime.register_backend("Test", Backend())
        module = rl.load(image)
        x = np.ones(2, np.float32)
        def check():
            Backend.slow = False
            for taken in (module, module.clone(), rl.load(image)):
                assert taken(x).tolist() == [8, 8]
        keep_running(lambda: module(x))
        for _ in range(20):
            in_child(check)
        """,
        program(delegated("Test", 2), blobs=[b"payload"]),
    )


def test_a_backend_that_forks_in_the_middle_of_a_call() -> None:
    run(
        """
        class Backend:
            children = []
            def init(self, context): return None
            def execute(self, context, handle, args):
                args[1][...] = args[0] + 1
                if self.children is not None:
                    self.children.append(os.fork())
        backend = Backend()
        runtime.register_backend("Test", backend)
        module = rl.load(image)
        x = np.ones(2, np.float32)
        assert module(x).tolist() == [2, 2]  # in both
        child = backend.children[0]
        backend.children = None
        assert module(x).tolist() == [2, 2]
        thread = threading.Thread(target=module, args=(x,))
        thread.start()
        thread.join()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
        program(delegated("Test", 2), blobs=[b"payload"]),
    )


def test_a_pool_of_forked_processes() -> None:
    run(
        """
        import multiprocessing
        module = rl.load(image, threads=2)
        x = np.ones((300, 300), np.float32)
        wanted = module(x)
        def work(k):
            return bool((module(x) == wanted).all())
        keep_running(lambda: module(x))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert all(pool.map_async(work, range(8)).get(60))
        """,
        exponentials(),
    )
