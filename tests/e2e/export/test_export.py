"""rl.export: what it returns runs in the runtime and equals eager; what it refuses, it explains."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from benchmarks.models import MICRO, TINY, build

import rushlight as rl
from rushlight.edge import MemoryPlanningPass


def _assert_equal(ours: Any, eager: Any) -> None:
    for got, wanted in zip(pytree.tree_leaves(ours), pytree.tree_leaves(eager), strict=True):
        torch.testing.assert_close(torch.as_tensor(got), torch.as_tensor(wanted))


def _assert_equal_to_scale(ours: Any, eager: Any) -> None:
    """Of whole models: rounding is measured against the largest value of each tensor."""
    for got, wanted in zip(pytree.tree_leaves(ours), pytree.tree_leaves(eager), strict=True):
        atol = 2e-5 * float(wanted.abs().max())
        torch.testing.assert_close(torch.as_tensor(got), wanted, rtol=0, atol=atol)


@pytest.mark.parametrize("name", [n for n in (*MICRO, *TINY) if n != "cond"])
def test_shared_models(name: str) -> None:
    case = build(name)
    program = rl.export(case.module, case.args, case.kwargs, dynamic_shapes=case.dynamic_shapes)
    module = rl.load(program.buffer)
    with torch.no_grad():
        eager = build(name).module(*case.args, **case.kwargs)
    check = _assert_equal_to_scale if name in TINY else _assert_equal
    check(module(*case.args, **case.kwargs), eager)


def test_structures_come_back() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, pair: Any, *, flag: bool) -> Any:
            a, b = pair["a"], pair["b"][0]
            return OrderedDict(sum=x + a, rest=[b * 2, (None, 3, flag, x)])

    x = torch.randn(2)
    args = (x, {"a": torch.ones(2), "b": (torch.ones(1),)})
    program = rl.export(Model(), args, {"flag": True})
    ours = rl.load(program.buffer)(*args, flag=True)
    eager = Model()(*args, flag=True)
    assert list(ours) == ["sum", "rest"] and isinstance(ours["rest"], list)
    assert ours["rest"][1][:3] == (None, 3, True)
    _assert_equal(ours["sum"], eager["sum"])
    _assert_equal(ours["rest"][1][3], x)


def test_state_is_kept_between_calls_and_starts_as_it_was() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.tensor([5.0, 0.0]))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            before = self.count.clone()
            self.count.add_(x)
            return before, self.count * 1.0

    program = rl.export(Counter(), (torch.ones(2),))
    module = rl.load(program.buffer)
    for call in range(3):
        before, after = module(np.ones(2, np.float32))
        assert before.tolist() == [5.0 + call, call]
        assert after.tolist() == [6.0 + call, call + 1]


def test_methods_share_constants_and_constant_methods_answer() -> None:
    linear = torch.nn.Linear(64, 64)
    x = torch.randn(1, 64)
    one = torch.export.export(linear, (x,))
    two = torch.export.export(torch.nn.Sequential(linear, torch.nn.ReLU()), (x,))
    program = rl.export(
        {"encode": one, "decode": two}, constant_methods={"version": "1.2", "sizes": [64, 1]}
    )
    assert program.methods == ["decode", "encode", "version", "sizes"]
    assert len(program.buffer) < 1.5 * linear.weight.nbytes
    module = rl.load(program.buffer)
    _assert_equal(module.encode(x), linear(x))
    _assert_equal(module["decode"](x), torch.relu(linear(x)))
    assert module.version() == "1.2" and module.sizes() == [64, 1]


def test_dynamic_shapes_follow_their_range() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return (x @ y).reshape(x.shape[0] * 2, -1) * x.shape[0]

    batch = torch.export.Dim("batch", min=2, max=16)
    args = (torch.randn(4, 6), torch.randn(6, 8))
    program = rl.export(Model(), args, dynamic_shapes={"x": {0: batch}, "y": None})
    module = rl.load(program.buffer)
    for n in (2, 16, 5, 3):
        x = torch.randn(n, 6)
        _assert_equal(module(x, args[1]), Model()(x, args[1]))
    for n in (1, 17):
        with pytest.raises(rl.RunError, match=rf"'x'.*{n}.*2\.\.16"):
            module(torch.randn(n, 6), args[1])


@pytest.mark.parametrize("planned", [True, False])
def test_inputs_and_outputs_may_be_planned_or_not(planned: bool) -> None:
    planning = MemoryPlanningPass(alloc_graph_input=planned, alloc_graph_output=planned)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    x = torch.randn(3, 4)
    module = rl.load(rl.export(model, (x,), memory=planning).buffer)
    _assert_equal(module(x), model(x))


def test_save_and_load_from_a_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = rl.export(torch.nn.Linear(3, 2), (torch.randn(1, 3),))
    path = tmp_path / "model.pte"
    program.save(path)
    assert "portable" in capsys.readouterr().out
    assert path.read_bytes() == program.buffer
    assert rl.load(path)(np.zeros((1, 3), np.float32)).shape == (1, 2)
    with pytest.raises(rl.ExportError, match=r"must end in \.pte"):
        program.save(tmp_path / "model.bin")
    with pytest.raises(rl.ExportError, match="cannot write"):
        program.save(tmp_path / "nowhere" / "model.pte")


def test_memory_is_known_before_it_is_spent() -> None:
    model = torch.nn.Linear(64, 32)
    program = rl.export(model, (torch.randn(1, 64),))
    memory = program.memory["forward"]
    assert memory["arenas"] == 64 * 4 + 32 * 4
    assert memory["constants"] == (64 * 32 + 32) * 4
    assert memory["peak"] >= memory["arenas"]


def test_what_cannot_be_exported_says_why() -> None:
    x = torch.randn(2)
    with pytest.raises(rl.ExportError, match="unknown backend 'gpu'; installed are portable"):
        rl.export(torch.nn.ReLU(), (x,), backend="gpu")
    with pytest.raises(rl.ExportError, match="complex64"):
        rl.export(torch.nn.Tanh(), (torch.randn(2, dtype=torch.complex64),))

    class Unsupported(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvalsh(x)

    with pytest.raises(rl.ExportError) as caught:
        rl.export(Unsupported(), (torch.eye(3),))
    assert "_linalg_eigh" in str(caught.value)
    assert "torch.linalg.eigvalsh(x)" in str(caught.value)


def test_verification_names_the_first_node_that_departs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x.sin()
            z = y * 3.0
            return z.cos()

    from rushlight.emit import values

    def wrong(target: Any) -> str:
        name = original(target)
        return "aten::add.out" if name == "aten::sub.out" else name

    class Wrong(Model):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x.sin()
            z = y - 3.0
            return z.cos()

    original = values.runtime_name
    monkeypatch.setattr(values, "runtime_name", wrong)
    rl.export(Model(), (torch.randn(4),))
    with pytest.raises(rl.ExportError) as caught:
        rl.export(Wrong(), (torch.randn(4),))
    text = str(caught.value)
    assert "does not compute what eager does" in text
    assert "first node that departs is sub" in text and "z = y - 3.0" in text
    rl.export(Wrong(), (torch.randn(4),), verify=False)


def test_a_parameter_behind_a_gap_is_only_taken_by_keyword() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, a: Any = None, b: Any = None) -> torch.Tensor:
            return x + b if a is None else x * a

    x, b = torch.ones(2), torch.full((2,), 3.0)
    module = rl.load(rl.export(Model(), (x,), {"b": b}).buffer)
    assert module(x, b=b).tolist() == [4.0, 4.0]
    with pytest.raises(rl.RunError, match="'b' was given by position, not by keyword"):
        module(x, b)  # eager would take it for `a`
    both = rl.load(rl.export(Model(), (x,), {"a": b}).buffer)
    assert both(x, b).tolist() == both(x, a=b).tolist() == [3.0, 3.0]
