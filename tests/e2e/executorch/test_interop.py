"""Programs both ways with real ExecuTorch: it runs what we export, we run what it exports.

Small models in every test run; the rest, the seven full-size models among them, where long tests
are wanted (``make interop``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.utils import _pytree as pytree

import rushlight

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop

Arrays = list[npt.NDArray[Any]]

SMALL = ("dict_out", "unet_tiny", "minilm_tiny")
MORE = (
    *("linear_relu", "mlp", "conv_bn", "lstm2_tiny", "mobilenet_v2_tiny", "resnet50_tiny"),
    *("vit_b16_tiny", "gpt2_tiny"),
    *("mobilenet_v2", "resnet50", "vit_b16", "minilm", "gpt2", "lstm2", "unet"),
)
EVERY_MODEL = [*SMALL, *(pytest.param(name, marks=pytest.mark.full) for name in MORE)]


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_executorch_runs_our_program(
    name: str, models: ModuleType, executorch: ExecuTorch, tmp_path: Path
) -> None:
    case = models.build(name)
    _export_here(case, tmp_path / "ours.pte")
    _assert_equal(_run_there(executorch, tmp_path / "ours.pte", case.leaves()), _eager(case))


def test_executorch_runs_a_program_with_its_data_files(
    executorch: ExecuTorch, tmp_path: Path
) -> None:
    """What ties a data file to its program is nothing to ExecuTorch."""
    from rushlight.edge import ExecutorchBackendConfig

    model, x = torch.nn.Linear(3, 2).eval(), torch.randn(2, 3)
    config = ExecutorchBackendConfig(external_constants=lambda node: "weights")
    exported = torch.export.export(model, (x,))
    rushlight.to_edge(exported).to_executorch(config).save(tmp_path / "m.pte")
    np.savez(tmp_path / "in.npz", in0=x.numpy())
    executorch.call(
        "run",
        pte=tmp_path / "m.pte",
        ptd=tmp_path / "weights.ptd",
        data=tmp_path / "in.npz",
        outputs=tmp_path / "out.npz",
    )
    with np.load(tmp_path / "out.npz") as arrays:
        _assert_equal([arrays["out0"]], [model(x).detach().numpy()])


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_we_run_executorchs_program(
    name: str, models: ModuleType, executorch: ExecuTorch, tmp_path: Path
) -> None:
    case = models.build(name)
    _export_there(executorch, case, tmp_path / "theirs.pte")
    module = rushlight.load(tmp_path / "theirs.pte")
    _assert_equal(_flat(module(*_arrays(case.leaves()))), _eager(case))


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_our_arenas_are_not_larger_than_executorchs(
    name: str, models: ModuleType, executorch: ExecuTorch, tmp_path: Path
) -> None:
    case = models.build(name)
    lowered = rushlight.to_edge_transform_and_lower(case.export()).to_executorch()
    (tmp_path / "ours.pte").write_bytes(lowered.buffer)
    _export_there(executorch, case, tmp_path / "theirs.pte")
    ours = executorch.call("plan", pte=tmp_path / "ours.pte")
    theirs = executorch.call("plan", pte=tmp_path / "theirs.pte")
    assert 0 < sum(ours.values()) <= sum(theirs.values())


@pytest.mark.parametrize("batch", [1, 8])
def test_dynamic_shapes_both_ways(
    batch: int, models: ModuleType, executorch: ExecuTorch, tmp_path: Path
) -> None:
    case = models.build("mlp_dynamic")
    x = torch.randn(batch, 8)
    expected = _flat(case.module(x).detach())
    _export_here(case, tmp_path / "ours.pte")
    _export_there(executorch, case, tmp_path / "theirs.pte")
    _assert_equal(_run_there(executorch, tmp_path / "ours.pte", [x]), expected)
    _assert_equal(_flat(rushlight.load(tmp_path / "theirs.pte")(x.numpy())), expected)


def test_state_both_ways(models: ModuleType, executorch: ExecuTorch, tmp_path: Path) -> None:
    """A mutable buffer keeps what earlier calls left in it.

    ExecuTorch drops a buffer's initial value unless a pass of its own is asked for, so that its
    file is held to its own runtime, and ours to eager.
    """
    case = models.build("counter")
    _export_here(case, tmp_path / "ours.pte")
    _export_there(executorch, case, tmp_path / "theirs.pte")
    (x,) = case.leaves()
    eager = [case.module(x).clone() for _ in range(3)]
    assert not torch.equal(eager[0], eager[2])
    for name in ("ours.pte", "theirs.pte"):
        module = rushlight.load(tmp_path / name)
        for calls in (1, 2, 3):
            there = _run_there(executorch, tmp_path / name, [x], calls=calls)
            _assert_equal(_flat(module(x.numpy())), there)
            if name == "ours.pte":
                _assert_equal(there, _flat(eager[calls - 1]))


def test_branches_of_executorchs_program(
    models: ModuleType, executorch: ExecuTorch, tmp_path: Path
) -> None:
    case = models.build("cond")
    _export_there(executorch, case, tmp_path / "theirs.pte")
    module = rushlight.load(tmp_path / "theirs.pte")
    for x in (torch.ones(4), -torch.ones(4), torch.ones(4)):
        _assert_equal(_flat(module(x.numpy())), _flat(case.module(x)))


def test_executorch_runs_each_method_of_our_program(executorch: ExecuTorch, tmp_path: Path) -> None:
    body = torch.nn.Linear(4, 4)
    x = torch.randn(2, 4)
    methods = {
        "encode": torch.export.export(torch.nn.Sequential(body, torch.nn.ReLU()).eval(), (x,)),
        "decode": torch.export.export(torch.nn.Sequential(body, torch.nn.Tanh()).eval(), (x,)),
    }
    program = rushlight.export(methods, verify=False)
    (tmp_path / "ours.pte").write_bytes(program.buffer)
    y = body(x).detach()
    for method, expected in (("encode", y.relu()), ("decode", y.tanh())):
        there = _run_there(executorch, tmp_path / "ours.pte", [x], method=method)
        _assert_equal(there, _flat(expected))


def _export_here(case: Any, path: Path) -> None:
    program = rushlight.export(
        case.module,
        case.args,
        case.kwargs,
        dynamic_shapes=case.dynamic_shapes,
        backend="portable",
        verify=False,
    )
    path.write_bytes(program.buffer)


def _export_there(executorch: ExecuTorch, case: Any, path: Path) -> None:
    traced = path.with_suffix(".pt2")
    torch.export.save(case.export(), traced)
    executorch.call("export", program=traced, pte=path)
    traced.unlink()


def _run_there(
    executorch: ExecuTorch,
    path: Path,
    inputs: Sequence[torch.Tensor],
    *,
    method: str = "forward",
    calls: int = 1,
) -> Arrays:
    data, outputs = path.with_suffix(".in.npz"), path.with_suffix(".out.npz")
    np.savez(data, **{f"in{i}": x for i, x in enumerate(_arrays(inputs))})
    executorch.call("run", pte=path, data=data, outputs=outputs, method=method, calls=calls)
    with np.load(outputs) as arrays:
        return [arrays[f"out{i}"] for i in range(len(arrays))]


def _eager(case: Any) -> Arrays:
    with torch.no_grad():
        return _flat(case.module(*case.args, **case.kwargs))


def _arrays(tensors: Sequence[torch.Tensor]) -> Arrays:
    return [tensor.numpy() for tensor in tensors]


def _flat(outputs: Any) -> Arrays:
    return [np.asarray(leaf) for leaf in pytree.tree_leaves(outputs)]


def _assert_equal(actual: Arrays, expected: Arrays) -> None:
    """Equal within what another order of summation may change."""
    assert [(a.dtype, a.shape) for a in actual] == [(a.dtype, a.shape) for a in expected]
    for a, b in zip(actual, expected, strict=True):
        scale = float(np.abs(b).max(initial=0.0))
        assert np.isfinite(b).all() and scale > 0.0, "zeros would equal anything broken"
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=5e-5 * scale)
