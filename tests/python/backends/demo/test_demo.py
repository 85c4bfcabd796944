"""The demo backend: ExecuTorch's documented flows, down to running files; what it says no to."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import rushlight as rl
from delegated_models import AddMul, Sine
from delegates import flat, lowered_modules
from rushlight import runtime
from rushlight.backends.demo import (
    AddMulPartitionerDemo,
    BackendWithCompilerDemo,
    DemoPartitioner,
)
from rushlight.errors import Code, ExportError
from rushlight.inspect import report_of
from rushlight.partition import CompileSpec, LoweredBackendModule, registry, to_backend

NAME = "BackendWithCompilerDemo"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSHLIGHT_CACHE", str(tmp_path))


def edge_of(model: torch.nn.Module, *args: Any, **more: Any) -> rl.EdgeProgramManager:
    return rl.to_edge(torch.export.export(model.eval(), args, **more))


def runs_like(file: bytes, model: torch.nn.Module, *args: Any) -> rl.Module:
    module = rl.load(file, check_backends=True)
    with torch.no_grad():
        for ours, eager in zip(flat(module(*args)), flat(model(*args)), strict=True):
            torch.testing.assert_close(ours, eager)
    return module


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.sin(self.first(x)))

    inputs = (torch.randn(2, 4),)


# --- the three flows -----------------------------------------------------------------------------


def test_a_program_is_lowered_whole_and_saved_by_itself(tmp_path: Path) -> None:
    x = torch.randn(3)
    specs = [CompileSpec("max_value", bytes([1]))]
    lowered = to_backend(NAME, edge_of(Sine(), x).exported_program(), specs)
    assert isinstance(lowered, LoweredBackendModule) and lowered.compile_specs == specs
    assert lowered.processed_bytes == b"demo 1\nin 1\n%1 = sin %0 : 3\nout %1\n"
    assert torch.equal(lowered(x), torch.sin(x))
    path = tmp_path / "sine.pte"
    path.write_bytes(lowered.buffer())
    torch.testing.assert_close(rl.load(path)(x), torch.sin(x))


def test_a_lowered_module_in_a_model_is_one_delegate_however_often_it_is_called() -> None:
    x = torch.randn(3)
    lowered = to_backend(NAME, edge_of(Sine(), x).exported_program(), [])

    class Composite(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lowered = lowered

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cos(self.lowered(x)) - self.lowered(x * 2)

    file = edge_of(Composite(), x).to_executorch().buffer
    module = rl.load(file)
    wanted = torch.cos(torch.sin(x)) - torch.sin(x * 2)
    torch.testing.assert_close(module(x), wanted)
    [delegate] = report_of(file).methods[0].delegates
    assert delegate.backend == NAME and len(delegate.calls) == 2


def test_a_partitioner_takes_additions_and_products() -> None:
    lowered = edge_of(AddMul(), *AddMul.inputs).to_backend(AddMulPartitionerDemo())
    first, second = lowered_modules(lowered.exported_program())
    head = "demo 1\nin 3\n"
    assert first.processed_bytes.decode().startswith(head)
    assert [m.processed_bytes.decode().count(" = ") for m in (first, second)] == [2, 2]
    assert [s.key for s in first.compile_specs] == ["max_value"]
    left = [
        str(n.target) for n in lowered.exported_program().graph.nodes if "aten" in str(n.target)
    ]
    assert left == ["aten.sub.Tensor"]
    runs_like(lowered.to_executorch().buffer, AddMul(), *AddMul.inputs)


def test_by_partitioner_while_lowering_and_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Network().eval()
    exported = torch.export.export(model, model.inputs)
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[DemoPartitioner()])
    [module] = lowered_modules(edge.exported_program())
    assert module.processed_bytes.decode().count(" = linear ") == 2
    runs_like(edge.to_executorch().buffer, model, *model.inputs)
    [value] = [p for p in _declared() if p[0] == "demo"]
    point = metadata.EntryPoint(*value, registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    program = rl.export(model, model.inputs, backend="demo")
    assert [c.backend for c in program.report().methods[0].coverage] == [NAME] * 3
    runs_like(program.buffer, model, *model.inputs)
    fat = rl.export(model, model.inputs, backend=["demo"])
    assert [(f.form, f.chosen) for f in rl.load(fat.buffer).forms] == [
        ("demo", True),
        ("portable", False),
    ]


def _declared() -> list[tuple[str, str]]:
    """The entry points of pyproject.toml, whatever is installed."""
    text = (Path(__file__).resolve().parents[4] / "pyproject.toml").read_text(encoding="utf-8")
    table = text.split(f'[project.entry-points."{registry.GROUP}"]\n')[1].split("\n[")[0]
    return re.findall(r'^(\w+) = "(.+)"$', table, re.M)


# --- payloads ------------------------------------------------------------------------------------


def test_payload_with_weights_beside_it() -> None:
    model = Network().eval()
    lowered = to_backend(NAME, edge_of(model, *model.inputs).exported_program(), [])
    lines = lowered.processed_bytes.decode().splitlines()
    assert lines[:2] == ["demo 1", "in 1"] and lines[-1] == f"out %{len(lines) - 3}"
    data = [line.split() for line in lines if line.startswith("data")]
    assert sorted(words[3:] for words in data) == [["3", "8"], ["8"], ["8", "4"]]
    assert [line.split(" = ")[1].split()[0] for line in lines if " = " in line] == [
        "linear",
        "sin",
        "linear",
    ]
    assert len(lowered.processed_bytes) < 300  # no weights in it
    assert set(lowered.named_data_store_output.pte_data) == {words[2] for words in data}
    assert list(lowered.meta["debug_handle_map"]) == [0, 1, 2]


def test_methods_share_data() -> None:
    class Halved(torch.nn.Module):
        def __init__(self, network: Network) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(self.network.first(x))

    model = Network().eval()
    both = {"forward": model, "halved": Halved(model).eval()}
    edge = rl.to_edge(
        {name: torch.export.export(m, Network.inputs) for name, m in both.items()}
    ).to_backend(DemoPartitioner())
    finished = edge.to_executorch()
    keys = [k for k in finished._named_data() if k.startswith("demo/")]
    assert len(keys) == 3  # two weights and a bias
    module = rl.load(finished.buffer)
    for name, one in both.items():
        torch.testing.assert_close(getattr(module, name)(*Network.inputs), one(*Network.inputs))


def test_a_dynamic_batch() -> None:
    model = Network().eval()
    batch = torch.export.Dim("batch", min=1, max=16)
    edge = edge_of(model, torch.randn(3, 4), dynamic_shapes=({0: batch},))
    lowered = edge.to_backend(DemoPartitioner())
    [part] = lowered_modules(lowered.exported_program())
    text = part.processed_bytes.decode()
    assert ": 128\n" in text and ": 48\n" in text  # the most that there can be
    module = rl.load(lowered.to_executorch().buffer, check_backends=True)
    for size in (1, 7, 16):
        x = torch.randn(size, 4)
        torch.testing.assert_close(module(x), model(x).detach())


def test_asking_for_support_makes_no_size_special() -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * y + x

    shapes = ({0: torch.export.Dim("batch", min=1, max=8)}, None)
    edge = edge_of(Sum(), torch.randn(4), torch.randn(1), dynamic_shapes=shapes)
    lowered = edge.to_backend(DemoPartitioner())
    assert len(lowered_modules(lowered.exported_program())) == 1
    file = lowered.to_executorch().buffer
    for size in (1, 3, 8):
        runs_like(file, Sum(), torch.randn(size), torch.randn(1))


def test_one_element_lends_its_rank() -> None:
    class Ranks(torch.nn.Module):
        def forward(self, x: torch.Tensor, one: torch.Tensor) -> Any:
            return x + one, one * x, one + one, x

    args = torch.randn(3), torch.randn(1, 1)
    lowered = edge_of(Ranks(), *args).to_backend(DemoPartitioner())
    assert lowered_modules(lowered.exported_program())
    runs_like(lowered.to_executorch().buffer, Ranks(), *args)


# --- what it leaves out --------------------------------------------------------------------------

X = torch.randn(2, 3)


@pytest.mark.parametrize(
    ("call", "args", "reason"),
    [
        (torch.cos, (X,), "it has no instruction for aten.cos.default"),
        (lambda x: torch.add(x, x, alpha=2), (X,), "its alpha is not 1"),
        (lambda x: x + x, (X.int(),), "is not a float32 tensor"),
        (lambda x: x + x, (X.double(),), "is not a float32 tensor"),
        (torch.sin, (torch.randn(1, 1, 1, 1, 2),), "has more than 4 dimensions"),
        (torch.add, (X, torch.randn(3)), "it does not broadcast [2, 3] and [3]"),
        (torch.add, (X, torch.randn(2, 1)), "it does not broadcast [2, 3] and [2, 1]"),
        (F.linear, (X, torch.randn(3)), "its weight does not have 2 dimensions"),
    ],
)
def test_reasons(call: Any, args: Any, reason: str) -> None:
    class Call(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            return call(*args)

    program = edge_of(Call(), *args).exported_program()
    result = DemoPartitioner().partition(program)
    assert any(reason in text for text in result.declined.values()), result.declined
    with pytest.raises(ExportError) as caught:
        to_backend(NAME, edge_of(Call(), *args).exported_program(), [])
    assert reason in str(caught.value) and "return call(*args)" in str(caught.value)


def test_what_the_partitioner_leaves_and_the_backend_would_take() -> None:
    result = AddMulPartitionerDemo().partition(edge_of(Sine(), X).exported_program())
    assert list(result.declined.values()) == ["the partitioner does not take aten.sin.default"]


def test_it_keeps_no_state() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(2, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return self.total * x

    with pytest.raises(ExportError, match="it keeps no state, and the partition writes 'total'"):
        to_backend(NAME, edge_of(Counter(), X).exported_program(), [])
    lowered = edge_of(Counter(), X).to_backend(DemoPartitioner())
    module, wanted = rl.load(lowered.to_executorch().buffer), Counter()
    for _ in range(3):
        torch.testing.assert_close(module(X), wanted(X))


# --- failures ------------------------------------------------------------------------------------


def test_lines_of_python_when_an_instruction_fails() -> None:
    file = edge_of(AddMul(), *AddMul.inputs).to_backend(AddMulPartitionerDemo())
    buffer = file.to_executorch().buffer
    module = rl.load(buffer, backend_options={NAME: {"fail_at": 1}})
    with pytest.raises(rl.RunError) as caught:
        module(*AddMul.inputs)
    text = str(caught.value)
    assert "add: it was told to fail here (option fail_at)" in text
    assert NAME in text and "z = y + b" in text and "y = torch.mm" not in text
    with pytest.raises(rl.LoadError) as refused:
        rl.load(buffer, backend_options={NAME: {"fail_init_at": 0}})
    text = str(refused.value)
    assert "mm: it was told to fail here (option fail_init_at)" in text
    assert "y = torch.mm(a, x)" in text and "z = y + b" not in text
    assert refused.value.code == Code.DELEGATE_INVALID_COMPATIBILITY


def test_a_payload_of_another_version() -> None:
    lowered = to_backend(NAME, edge_of(Sine(), X).exported_program(), [])
    newer = LoweredBackendModule(
        lowered.original_module,
        NAME,
        lowered.processed_bytes.replace(b"demo 1", b"demo 2"),
        [],
    )
    with pytest.raises(rl.LoadError, match=r"line 1 of the payload: it is not of version 1"):
        rl.load(newer.buffer())


def test_it_is_always_there() -> None:
    assert NAME in runtime.backend_registry.registered_backend_names
    assert runtime.backend_registry.is_available(NAME)
    assert BackendWithCompilerDemo.__name__ == NAME
