"""A load, a call or a run that fails leaves a report, and `explain` names the line that failed."""

from __future__ import annotations

import inspect
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim

import rushlight as rl
from rushlight import runtime
from rushlight.errors import Code
from rushlight.inspect.explain import Explanation, explain
from rushlight.serialize.pte import read_pte, write_pte

X = torch.arange(8.0).reshape(4, 2)
GOOD, BAD = torch.tensor([1, 3]), torch.tensor([1, 7])


class Part(torch.nn.Module):
    """What fails, in a module of its own."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return self.function(x, i)


class Model(torch.nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.part = Part(function)

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return self.part(x * 2 + 1, i).relu() - 1


def select(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return x.index_select(0, i)  # select


def embed(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.embedding(i, x)  # embed


def index(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return x[i]  # index


def divide(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return x * torch.div(i, i - 7, rounding_mode="floor").sum()  # divide


def in_cond(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    def taken(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.index_select(0, i)  # in_cond

    def other(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x[:2] + i[:, None]

    return torch.cond(i.sum() > 0, taken, other, (x, i))


def in_while(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    from torch._higher_order_ops.while_loop import while_loop

    def body(n: torch.Tensor, total: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return n + 1, total + x.index_select(0, n * i).sum()  # in_while

    return while_loop(lambda n, total: (n < 2).all(), body, (torch.zeros(1).long(), x.sum()))[1]


def in_map(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    from torch._higher_order_ops.map import map as mapped

    return mapped(lambda n, x: x.index_select(0, n[None]), i, x)  # in_map


FUNCTIONS = [select, embed, index, divide, in_cond, in_while, in_map]


def line_of(function: Callable[..., torch.Tensor]) -> set[str]:
    """The lines that a failure may name: what torch captures of a branch or a body is its call."""
    source, first = inspect.getsourcelines(function)
    marked = [
        k for k, text in enumerate(source) if text.rstrip().endswith(f"# {function.__name__}")
    ]
    calls = [k for k, text in enumerate(source) if "return" in text and "_loop(" in text]
    calls += [k for k, text in enumerate(source) if "torch.cond(" in text]
    return {f"line {first + k}," for k in (*marked, *calls)}


def saved(model: torch.nn.Module, path: Path, **options: Any) -> Path:
    rl.export(model.eval(), (X, GOOD), **options).save(path, quiet=True)
    return path


def failed(path: Path, *args: Any, **options: Any) -> Explanation:
    """What the report of a failing call of a program says."""
    report = path.with_suffix(".bin")
    module = rl.load(path, failure_report=report, **options)
    with pytest.raises(rl.RunError) as caught:
        module(*args)
    assert f"rushlight explain {report}" in caught.value.__notes__[0]
    made = explain(report, path)
    assert not made.doubts
    assert Code(made.report.code) is caught.value.code
    return made


CASES = [
    *((function, "cpu") for function in FUNCTIONS),
    *((f, backend) for f in (embed, divide, in_while) for backend in ("portable", "xnnpack")),
]


@pytest.mark.parametrize(
    ("function", "backend"), CASES, ids=lambda v: v if isinstance(v, str) else v.__name__
)
def test_runs(function: Callable[..., torch.Tensor], backend: str, tmp_path: Path) -> None:
    path = saved(Model(function), tmp_path / "m.pte", backend=backend)
    made = failed(path, X, torch.tensor([7, 1]) if function is divide else BAD)
    assert made.report.phase == "run" and made.report.instruction is not None
    traces = " ".join(node.stack_trace for node in made.nodes)
    assert any(line in traces for line in line_of(function)), str(made)
    assert "test_failure_reports.py" in str(made)
    assert made.values and all(
        value.allowed for value in made.values if value.text.startswith(("float", "int64["))
    )
    newest = made.events[-1]
    assert (newest.method, newest.instruction) == ("forward", made.report.instruction)
    json.dumps(made.to_json())


def test_inside_a_delegate(tmp_path: Path) -> None:
    path = saved(Model(embed), tmp_path / "m.pte", backend="cpu")
    made = failed(path, X, BAD)
    assert made.operator == "CpuBackend" and made.place and made.report.delegate == 0
    assert [node.operator for node in made.nodes] == ["aten.embedding.default"]
    assert [node.module for node in made.nodes] == ["part"]


class TwoRows(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 4), torch.nn.Linear(2, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        return torch.relu(hidden + self.second(y))


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_sizes_that_meet_inside_a_delegate(backend: str, tmp_path: Path) -> None:
    """A program without its contract, as ExecuTorch's are: no call is refused before it runs."""
    path = tmp_path / "m.pte"
    rows = {0: Dim("n", min=2, max=8)}
    program = rl.export(TwoRows().eval(), (X, X), dynamic_shapes=(rows, rows), backend=backend)
    file = read_pte(program.buffer)
    del file.named_data["rushlight/contract"]
    path.write_bytes(write_pte(file))
    made = failed(path, X, X[:3])
    assert made.report.phase == "run" and "(4, " in made.report.message
    assert "(3, " in made.report.message
    assert "hidden + self.second(y)" in " ".join(node.stack_trace for node in made.nodes)
    if backend == "xnnpack":
        assert made.operator == "XnnpackBackend" and made.place and made.report.delegate == 0
        assert {node.operator for node in made.nodes} >= {"aten.add.Tensor"}
        assert not any("linear" in node.operator for node in made.nodes)


def test_a_refused_call(tmp_path: Path) -> None:
    shapes = ({0: Dim("n", max=8)}, None)
    path = saved(Model(index), tmp_path / "m.pte", dynamic_shapes=shapes)
    made = failed(path, torch.zeros(9, 2), GOOD)
    assert made.report.phase == "input" and made.report.instruction is None
    assert "size 0 is 9, allowed" in made.report.message
    made = failed(path, X, GOOD.float())
    assert "int64" in made.report.message


def test_the_second_of_two_methods(tmp_path: Path) -> None:
    path = tmp_path / "two.pte"
    programs = {
        name: torch.export.export(Model(function).eval(), (X, GOOD))
        for name, function in (("first", in_map), ("second", index))
    }
    rl.export(programs).save(path, quiet=True)
    module = rl.load(path, failure_report=tmp_path / "r.bin")
    module.first(X, GOOD)
    with pytest.raises(rl.RunError):
        module.second(X, BAD)
    made = explain(tmp_path / "r.bin", path)
    assert made.report.method == "second" and made.nodes[0].module == "part"
    assert {event.method for event in made.events} == {"first", "second"}


class Raises:
    """A backend in Python that fails, maybe only when it runs."""

    def __init__(self, at_load: bool) -> None:
        self.at_load = at_load

    def init(self, context: Any) -> str:
        if self.at_load:
            raise ValueError("no such device")
        return "handle"

    def execute(self, context: Any, handle: Any, args: Any) -> None:
        raise ValueError("the device is gone")

    def destroy(self, handle: Any) -> None: ...


@pytest.mark.parametrize("at_load", [False, True])
def test_a_backend_in_python(at_load: bool, tmp_path: Path) -> None:
    path = saved(Model(index), tmp_path / "m.pte", backend="cpu")
    file = read_pte(path.read_bytes())
    for delegate in file.program.execution_plan[0].delegates:
        delegate.id = "Raises"
    path.write_bytes(write_pte(file))
    runtime.register_backend("Raises", Raises(at_load))
    try:
        report = tmp_path / "r.bin"
        with pytest.raises(rl.Error) as caught:
            rl.load(path, failure_report=report)(X, GOOD)
        made = explain(report, path)
        wanted = "no such device" if at_load else "the device is gone"
        assert wanted in str(caught.value) and wanted in made.report.message
        assert made.report.phase == ("load" if at_load else "run")
        assert made.operator == "Raises" and made.report.delegate == 0 and made.nodes
    finally:
        runtime.unregister_backend("Raises")


@pytest.fixture(scope="module")
def indexing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(Model(index), tmp_path_factory.mktemp("index") / "m.pte")


def test_what_keeps_a_program_from_loading(indexing: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.bin"
    with pytest.raises(rl.LoadError) as caught:
        rl.load(indexing, failure_report=report, memory_limit=1000)
    assert "rushlight explain" in caught.value.__notes__[0]
    made = explain(report, indexing)
    (memory,) = made.report.memories
    assert (memory.kind, memory.available) == ("limit", 1000) and "too little" in str(made)

    file = read_pte(indexing.read_bytes())
    file.program.execution_plan[0].operators[1].name = "my::missing"
    path = tmp_path / "missing.pte"
    path.write_bytes(write_pte(file))
    with pytest.raises(rl.LoadError):
        rl.load(path, failure_report=report)
    made = explain(report, path)
    assert made.report.phase == "load" and made.operator.startswith("my::missing")
    assert made.nodes and made.values and not made.events


def test_another_program(indexing: Path, tmp_path: Path) -> None:
    other = saved(Model(select), tmp_path / "other.pte")
    made = failed(indexing, X, BAD)
    wrong = explain(indexing.with_suffix(".bin"), other)
    assert "another program" in wrong.doubts[0] and "its lines are not shown" in wrong.doubts[1]
    assert not wrong.nodes and wrong.what == made.what and len(wrong.values) == len(made.values)
    # The same graph with other lines: they are shown, with a warning.
    file = read_pte(indexing.read_bytes())
    del file.named_data["rushlight/debug"]
    stripped = tmp_path / "stripped.pte"
    stripped.write_bytes(write_pte(file))
    bare = explain(indexing.with_suffix(".bin"), stripped)
    assert "another program" in bare.doubts[0] and "no debug information" in bare.doubts[1]
    assert bare.operator == made.operator and not bare.nodes
    alone = explain(indexing.with_suffix(".bin"))
    assert alone.operator == made.operator and alone.values[0].text == made.values[0].text


def test_the_same_program_elsewhere(indexing: Path, tmp_path: Path) -> None:
    """A copy, a bundled program and bytes have the identity of the file."""
    failed(indexing, X, BAD)
    report = indexing.with_suffix(".bin").read_bytes()
    bundle = tmp_path / "m.bpte"
    rl.bundle(indexing, {"forward": [(X.numpy(), GOOD.numpy())]}).save(bundle)
    assert not explain(report, bundle).doubts
    module = rl.load(indexing.read_bytes(), failure_report=tmp_path / "r.bin")
    with pytest.raises(rl.RunError):
        module(X, BAD)
    assert explain(tmp_path / "r.bin", indexing).report.program


def test_clones_and_threads_have_reports_of_their_own(indexing: Path, tmp_path: Path) -> None:
    module = rl.load(indexing, failure_report=tmp_path / "r.bin")
    others = [module.clone(), module.fork()]
    failures: list[rl.RunError] = []

    def run(one: rl.Module) -> None:
        for _ in range(20):
            one(X, GOOD)
            with pytest.raises(rl.RunError) as caught:
                one(X, BAD)
            failures.append(caught.value)

    threads = [threading.Thread(target=run, args=(one,)) for one in (module, *others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 60 and all(error.__notes__ for error in failures)
    made = explain(tmp_path / "r.bin", indexing)
    assert not made.doubts and made.report.n_events > 64


def test_a_report_that_cannot_be_written(indexing: Path, tmp_path: Path) -> None:
    module = rl.load(indexing, failure_report=tmp_path / "no" / "r.bin")
    with pytest.raises(rl.RunError) as caught:
        module(X, BAD)
    assert "cannot be written" in caught.value.__notes__[0]
    assert "index 7" in str(caught.value)
    without = rl.load(indexing)
    with pytest.raises(rl.RunError) as caught:
        without(X, BAD)
    assert not hasattr(caught.value, "__notes__")


CRASH = """
import ctypes, sys
import numpy as np
from rushlight import runtime
class Crashes:
    def init(self, context): return "handle"
    def execute(self, context, handle, args): ctypes.string_at(64)
    def destroy(self, handle): pass
runtime.register_backend("Crashes", Crashes())
runtime.install_crash_report(sys.argv[2])
module = runtime.load(sys.argv[1], failure_report="unused.bin")
module(np.zeros((4, 2), np.float32), np.array([1, 3]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_crash_in_python(indexing: Path, tmp_path: Path) -> None:
    cpu = saved(Model(index), tmp_path / "m.pte", backend="cpu")
    file = read_pte(cpu.read_bytes())
    for delegate in file.program.execution_plan[0].delegates:
        delegate.id = "Crashes"
    cpu.write_bytes(write_pte(file))
    report = tmp_path / "crash.bin"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", CRASH, cpu, report],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode < 0 and "Fatal Python error" in done.stderr  # faulthandler's
    made = explain(report, cpu)
    assert "SIGSEGV" in made.what and made.report.address == 64
    assert made.operator == "Crashes" and made.report.instruction == 0 and made.nodes
    with pytest.raises(rl.RunError, match="cannot be written"):
        runtime.install_crash_report(tmp_path / "no" / "r.bin")


@pytest.mark.parametrize("backend", ["cpu", "xnnpack"])
def test_a_payload_that_is_refused(backend: str, tmp_path: Path) -> None:
    class Linear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            return self.layer(x)[i]

    path = saved(Linear(), tmp_path / "m.pte", backend=backend)
    file = read_pte(path.read_bytes())
    for key in file.named_data:
        if not key.startswith("rushlight/"):
            file.named_data[key] = bytes(file.named_data[key])[:4]
    path.write_bytes(write_pte(file))
    report = tmp_path / "r.bin"
    with pytest.raises(rl.LoadError):
        rl.load(path, failure_report=report)
    made = explain(report, path)
    assert made.report.phase == "load" and made.report.delegate == 0
    assert "layer" in [node.module for node in made.nodes]
    assert not made.place and "any of it may have failed" in str(made)


CUT = """
import os, sys
import numpy as np
from rushlight import runtime
runtime.install_crash_report(sys.argv[2])
module = runtime.load(sys.argv[1], failure_report="unused.bin")
os.truncate(sys.argv[1], int(sys.argv[3]))
module(np.zeros((4, 512), np.float32))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a mapped file that is cut: SIGBUS on Linux")
@pytest.mark.parametrize("backend", ["portable", "cpu"])
@pytest.mark.parametrize("size", [8192, 0], ids=["weights", "everything"])
def test_a_file_that_is_cut_while_it_is_mapped(backend: str, size: int, tmp_path: Path) -> None:
    """A crash in a real kernel; if the program's names are gone as well, numbers are left."""
    model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(512, 256)).eval()
    path = tmp_path / "m.pte"
    rl.export(model, (torch.zeros(4, 512),), backend=backend).save(path, quiet=True)
    copy, report = tmp_path / "copy.pte", tmp_path / "crash.bin"
    copy.write_bytes(path.read_bytes())
    command = [sys.executable, "-c", CUT, copy, report, str(size)]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path)
    assert done.returncode == -signal.SIGBUS, done.stderr
    made = explain(report, path)
    assert "of forward was set" in made.what if size == 0 else "while forward ran" in made.what
    assert "SIGBUS" in made.what and not made.doubts
    if size > 0:
        assert made.operator == ("CpuBackend" if backend == "cpu" else "aten::linear.out")
        assert [node.module for node in made.nodes] == ["1"] and made.values
