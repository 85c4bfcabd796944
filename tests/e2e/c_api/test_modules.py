"""Modules through the C interface give what ``rl.load`` gives, and refuse what it refuses."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from c_api_models import Counter, Loop, Net, Noise
from c_library import CError, CModule, Library, text_of
from torch.export import Dim

import rushlight as rl
from rushlight.errors import Code
from rushlight.inspect import Inspector
from rushlight.inspect.explain import explain


@pytest.fixture(scope="module")
def library() -> Library:
    return Library()


Nets = Callable[[str], tuple[Path, tuple[torch.Tensor, ...]]]


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Nets:
    """The program of Net for a backend, and its inputs at export."""
    return cache(partial(_export_net, tmp_path_factory.mktemp("nets")))


def _export_net(tmp_path: Path, backend: str) -> tuple[Path, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    batch = Dim("batch", min=2, max=9)
    inputs = torch.randn(4, 6), torch.tensor([1.0, 0.0, 2.0, 1.0])
    shapes = {"x": {0: batch}, "mask": {0: batch}}
    program = rl.export(Net().eval(), inputs, dynamic_shapes=shapes, backend=backend)
    path = tmp_path / f"{backend}.pte"
    program.save(path)
    return path, inputs


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_runs_as_load_does(library: Library, net: Nets, backend: str) -> None:
    path, _ = net(backend)
    expected, module = rl.load(path), library.open(path, threads=2)
    for batch in (2, 9, 4, 3):
        x = np.random.default_rng(batch).normal(size=(batch, 6)).astype(np.float32)
        mask = np.linspace(0, 1, batch, dtype=np.float32)
        wanted = expected(x, mask)
        for form in (x, np.asfortranarray(x), np.flip(np.flip(x, 0).copy(), 0)):
            for one, other in zip(module.run(form, mask), wanted, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
    module.close()


def test_describes_what_the_contract_says(library: Library, net: Nets) -> None:
    path, _ = net("portable")
    module = library.open(path)
    x, mask = module.inputs()
    assert (text_of(x.name), text_of(mask.name)) == ("x", "mask")
    assert list(x.min_sizes[:2]) == [2, 6] and list(x.max_sizes[:2]) == [9, 6]
    assert x.symbols[0] == mask.symbols[0] != 0 and x.symbols[1] == 0
    assert x.nbytes == 9 * 6 * 4 and list(x.dim_order[:2]) == [0, 1]
    assert [o.dtype for o in module.outputs()] == [6, 4, 11, 5]
    signature = rl.load(path).signature("forward")
    assert [str(v.name) for v in signature.inputs] == ["x", "mask"]
    module.close()


@pytest.mark.parametrize(
    ("x", "mask", "told"),
    [
        (
            np.zeros((1, 6), np.float32),
            np.zeros(1, np.float32),
            "input 'x': size 0 is 1, .* 2 to 9",
        ),
        (np.zeros((10, 6), np.float32), np.zeros(10, np.float32), "size 0 is 10"),
        (
            np.zeros((4, 6), np.float32),
            np.zeros(3, np.float32),
            "'mask': size 0 is 3, .* must be 4",
        ),
        (np.zeros((4, 6)), np.zeros(4, np.float32), "got float64, the method takes float32"),
        (np.zeros(6, np.float32), np.zeros(4, np.float32), "got 1 dimensions, the method takes 2"),
        (3, np.zeros(4, np.float32), "got an Int, the method takes a Tensor"),
    ],
)
def test_refuses_what_load_refuses(
    library: Library, net: Nets, x: Any, mask: Any, told: str
) -> None:
    path, _ = net("portable")
    module = library.open(path)
    with pytest.raises(CError, match=told):
        module.run(x, mask)
    with pytest.raises(rl.RunError):
        rl.load(path)(x, mask)
    assert len(module.run(np.zeros((4, 6), np.float32), np.zeros(4, np.float32))) == 4
    module.close()


def test_scalars_that_vary_and_those_that_do_not(library: Library, tmp_path: Path) -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor, n: int, flag: bool, how: str) -> torch.Tensor:
            return x * n if flag and how == "up" else x

    x = torch.ones(3)
    program = rl.export(Scaled(), (x, 2, True, "up"))
    path = tmp_path / "scaled.pte"
    program.save(path)
    module = library.open(path)
    kinds = [(i.kind, bool(i.is_fixed)) for i in module.inputs()]
    assert kinds[0][0] == 1 and kinds[1][0] == 4
    np.testing.assert_array_equal(
        module.run(x.numpy(), 2, True, "up")[0], np.full(3, 2, np.float32)
    )
    with pytest.raises(CError, match="exported with another value"):
        module.run(x.numpy(), 2, False, "up")
    if kinds[1][1]:
        with pytest.raises(CError, match="exported with another value"):
            module.run(x.numpy(), 3, True, "up")
    module.close()


@pytest.mark.parametrize("backend", ["portable", "cpu"])
def test_state(library: Library, tmp_path: Path, backend: str) -> None:
    path = tmp_path / "counter.pte"
    rl.export(Counter(), (torch.ones(3),), backend=backend).save(path)
    module, one = library.open(path), np.ones(3, np.float32)
    assert [module.run(one)[0][0] for _ in range(3)] == [1, 2, 3]
    count = ctypes.c_uint32()
    module.call("state_count", ctypes.byref(count))
    info = library.make("rl_state_info")
    module.call("state", 0, ctypes.byref(info))
    assert count.value == 1 and text_of(info.name) == "count" and list(info.sizes[:1]) == [3]
    fork, clone = module.copy("fork"), module.copy("clone")
    assert fork.run(one)[0][0] == 4 and clone.run(one)[0][0] == 1
    size = ctypes.c_size_t()
    module.call("snapshot", None, 0, ctypes.byref(size))
    saved = ctypes.create_string_buffer(size.value)
    module.call("snapshot", saved, size, None)
    assert module.run(one)[0][0] == 4
    fork.call("restore", saved, size)
    assert fork.run(one)[0][0] == 4
    module.call("reset_state")
    assert module.run(one)[0][0] == 1
    module.close()
    assert fork.run(one)[0][0] == 5
    fork.close()
    clone.close()


def test_seed(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "noise.pte"
    rl.export(Noise(), (torch.zeros(4),), verify=False).save(path)
    module, zeros = library.open(path), np.zeros(4, np.float32)
    module.call("seed", 7)
    torch.manual_seed(7)
    np.testing.assert_array_equal(module.run(zeros)[0], torch.rand(4).numpy())
    module.close()


@pytest.mark.parametrize("backend", ["portable", "cpu"])
def test_outputs_in_memory_of_the_caller(library: Library, net: Nets, backend: str) -> None:
    path, (x, mask) = net(backend)
    module, expected = library.open(path), rl.load(path)
    memory = np.zeros((9, 5), np.float32)
    module.call("set_output", b"forward", 0, memory.ctypes.data, memory.nbytes)
    module.run(x.numpy(), mask.numpy())
    wanted = expected(x.numpy(), mask.numpy())[0]
    np.testing.assert_array_equal(memory.reshape(-1)[:20].reshape(4, 5), wanted)
    module.call("set_output", b"forward", 0, memory.ctypes.data, 16)
    with pytest.raises(CError, match=r"output 0 has 80 bytes|greater|room"):
        module.run(x.numpy(), mask.numpy())
    with pytest.raises(CError, match="not aligned for float32"):
        module.call("set_output", b"forward", 0, memory.ctypes.data + 1, 100)
    module.call("set_output", b"forward", 0, None, 0)
    np.testing.assert_array_equal(module.run(x.numpy(), mask.numpy())[0], wanted)
    module.close()


def _cancel_until(module: CModule, is_over: threading.Event) -> None:
    while not is_over.is_set():
        module.call("cancel")


def test_cancels_a_run_on_another_thread(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "loop.pte"
    rl.export(Loop(), (torch.zeros(2),), verify=False).save(path)
    module = library.open(path, max_instructions=100_000_000)
    module.call("load", b"forward")
    module.call("cancel")  # of no run: nothing
    is_over = threading.Event()
    other = threading.Thread(target=_cancel_until, args=(module, is_over))
    other.start()
    with pytest.raises(
        CError, match=r"forward: instruction \d+ .*the run was cancelled"
    ) as failure:
        module.run(np.zeros(2, np.float32))
    is_over.set()
    other.join()
    assert failure.value.code == Code.CANCELLED and failure.value.instruction < 100
    module.close()


def test_trace_and_values(library: Library, net: Nets, tmp_path: Path) -> None:
    path, (x, mask) = net("portable")
    module = library.open(path)
    options = library.make("rl_trace_options", values=2)
    module.call("trace_start", ctypes.byref(options))
    module.run(x.numpy(), mask.numpy())
    module.call("trace_save", str(tmp_path / "m.etdp").encode())
    module.call("trace_stop")
    inspector = Inspector(tmp_path / "m.etdp")
    names = {event.name for block in inspector.event_blocks for event in block.events}
    assert any("native_layer_norm" in name for name in names)
    assert (tmp_path / "m.etdp.values").stat().st_size > 0
    pieces: list[bytes] = []

    def take(_: object, data: int, size: int) -> int:
        pieces.append(ctypes.string_at(data, size))
        return 0

    write = library.types["rl_write_fn"](take)
    module.call("trace_write", write, None)
    assert b"".join(pieces) == (tmp_path / "m.etdp").read_bytes()
    module.close()


def test_failure_report(library: Library, net: Nets, tmp_path: Path) -> None:
    path, (x, mask) = net("portable")
    module = library.open(path, reports_failures=1)
    with pytest.raises(CError):
        module.run(x.numpy(), mask.numpy()[:3])
    report = library.types["rl_bytes_v1"]()
    module.call("failure_report", ctypes.byref(report))
    saved = tmp_path / "m.rlfr"
    saved.write_bytes(ctypes.string_at(report.data, report.size))
    assert "mask" in str(explain(saved, path))
    module.close()


def test_log_goes_to_the_caller(library: Library, net: Nets) -> None:
    lines: list[str] = []

    def take(_: object, level: int, line: Any) -> None:
        lines.append(f"{level} {text_of(line)}")

    log = library.types["rl_log_fn"](take)
    library.call("rl_set_log", log, None)
    path, _ = net("portable")
    library.open(path, threads=200).close()  # more than there are
    library.call("rl_set_log", library.types["rl_log_fn"](), None)
    assert any("threads" in line for line in lines)


def test_many_clones_run_at_once(library: Library, net: Nets) -> None:
    path, (x, mask) = net("cpu")
    module = library.open(path)
    wanted = module.run(x.numpy(), mask.numpy())[0]
    results: list[np.ndarray] = []

    def work(copy: CModule) -> None:
        results.extend(copy.run(x.numpy(), mask.numpy())[0] for _ in range(20))
        copy.close()

    threads = [threading.Thread(target=work, args=(module.copy("clone"),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 80 and all(np.array_equal(r, wanted) for r in results)
    module.close()


def test_two_threads_on_one_module_are_refused(library: Library, net: Nets) -> None:
    path, (x, mask) = net("portable")
    module = library.open(path)
    refused: list[str] = []

    def work() -> None:
        for _ in range(200):
            try:
                module.run(x.numpy(), mask.numpy())
            except CError as error:
                assert error.code == Code.INVALID_STATE
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("in use by another call" in text for text in refused)
    assert len(module.run(x.numpy(), mask.numpy())) == 4
    module.close()


def test_two_copies_in_one_process(library: Library, net: Nets, tmp_path: Path) -> None:
    path, (x, mask) = net("cpu")
    copy = tmp_path / "librushlight_copy.so"
    copy.write_bytes(Path(library.dll._name).read_bytes())
    other = Library(copy)
    first, second = library.open(path), other.open(path)
    for one, two in zip(
        first.run(x.numpy(), mask.numpy()), second.run(x.numpy(), mask.numpy()), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    with pytest.raises(CError, match="not open"):
        CModule(other, ctypes.c_void_p((first.handle.value or 0) + (1 << 40))).run()
    second.close()
    assert len(first.run(x.numpy(), mask.numpy())) == 4
    first.close()


def test_codes_are_those_of_the_errors_module(library: Library, tmp_path: Path) -> None:
    with pytest.raises(CError) as failure:
        library.open(tmp_path / "none.pte")
    assert failure.value.code == Code.ACCESS_FAILED
    constants = library.header.constants
    assert all(constants[f"RL_{code.name}"] == code for code in Code)
