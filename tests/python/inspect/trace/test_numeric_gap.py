"""Distances between recorded values and those of the recorded program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.errors import RunError
from rushlight.inspect import Inspector, compare_results, parse_etrecord
from rushlight.inspect.trace.numeric_gap import distance_of
from rushlight.runtime import TraceOptions

LAST = "aten_linear_default_1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with values, and two records: without and with inputs."""
    folder = tmp_path_factory.mktemp("gaps")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3)).eval()
    x = torch.randn(2, 4)
    program = rl.export(model, (x,), backend="cpu", etrecord=folder / "m.etrecord")
    module = rl.load(program.buffer, trace=TraceOptions(values="all"))
    module(x.numpy())
    module.trace.save(folder / "m.etdp")
    record = parse_etrecord(folder / "m.etrecord")
    record.update_representative_inputs([x])
    record.save(folder / "inputs.etrecord")
    return folder


def inspector(folder: Path, record: str) -> Inspector:
    return Inspector(
        folder / "m.etdp", etrecord=folder / record, debug_buffer_path=folder / "m.etdp.values"
    )


def test_values_inside_a_delegate_are_near(folder: Path) -> None:
    ours = inspector(folder, "inputs.etrecord")
    gaps = ours.numeric_gaps("mse")
    assert [gap.aot_ops[-1] for gap in gaps] == ["relu", "native_layer_norm", LAST]
    assert all(gap.gap[0] < 1e-9 for gap in gaps)
    assert all(gap.gap[0] > 80 for gap in ours.numeric_gaps("SNR"))
    assert all(gap.gap[0] > 0.999 for gap in ours.numeric_gaps("cosine"))
    largest = ours.numeric_gaps(lambda wanted, value: float(np.abs(wanted - value).max()))
    assert all(gap.gap[0] < 1e-5 for gap in largest)
    captured = ours.numeric_gaps("L1", "exported_program")
    assert len(captured) == 3 and all(gap.gap[0] < 1e-3 for gap in captured)


class Decomposed(nn.Module):
    """Calls that become several ones of equal sizes, which share a debug handle."""

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        attended = nn.functional.scaled_dot_product_attention(q, k, k)
        return attended * 2, torch.tanh(nn.functional.silu(q))


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
@pytest.mark.parametrize("graph", [None, "exported_program"])
def test_values_inside_a_decomposed_call_are_not_taken_for_its_result(
    graph: str | None, backend: str, tmp_path: Path
) -> None:
    q, k = torch.randn(1, 2, 4, 4), torch.randn(1, 2, 4, 4)
    program = rl.export(Decomposed(), (q, k), backend=backend, etrecord=tmp_path / "m.etrecord")
    record = parse_etrecord(tmp_path / "m.etrecord")
    record.update_representative_inputs([q, k])
    module = rl.load(program.buffer, trace=TraceOptions(values="all"))
    module(q, k)
    dump, values = module.trace.to_bytes()
    gaps = Inspector(etdump_data=dump, debug_buffer=values, etrecord=record).numeric_gaps(
        lambda wanted, value: float(np.abs(wanted - value).max()), graph
    )
    assert len(gaps) >= 3 and all(gap.gap[0] < 1e-5 for gap in gaps)
    recorded = [torch.tensor(gap.runtime_intermediate_output) for gap in gaps]
    attended = nn.functional.scaled_dot_product_attention(q, k, k)
    for wanted in (attended, attended * 2, torch.tanh(nn.functional.silu(q))):
        assert any(torch.allclose(value.reshape(q.shape), wanted, atol=1e-5) for value in recorded)


class Parts(nn.Module):
    """The last part of a value is used, whose size is the first one's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, _, last = torch.split(x * 2, 2, -1)
        return first.sin() + last.cos()


@pytest.mark.parametrize("graph", [None, "exported_program"])
def test_one_of_several_results_is_not_taken_for_another(graph: str | None, tmp_path: Path) -> None:
    x = torch.randn(3, 6)
    program = rl.export(Parts(), (x,), etrecord=tmp_path / "m.etrecord")
    record = parse_etrecord(tmp_path / "m.etrecord")
    record.update_representative_inputs([x])
    module = rl.load(program.buffer, trace=TraceOptions(values="all"))
    module(x)
    dump, values = module.trace.to_bytes()
    inspector = Inspector(etdump_data=dump, debug_buffer=values, etrecord=record)
    gaps = inspector.numeric_gaps("MSE", graph)
    assert any("split" in name for gap in gaps for name in gap.aot_ops)
    assert all(gap.gap[0] < 1e-10 for gap in gaps)


def test_what_is_missing_is_said(folder: Path) -> None:
    with pytest.raises(RunError, match="has no representative inputs"):
        inspector(folder, "m.etrecord").numeric_gaps("MSE")
    with pytest.raises(RunError, match="distance='far': choose one of MSE, L1, SNR, COSINE"):
        inspector(folder, "inputs.etrecord").numeric_gaps("far")
    without = Inspector(folder / "m.etdp", etrecord=folder / "inputs.etrecord")
    with pytest.raises(RunError, match=r"has no values of operators .* as debug_buffer_path"):
        without.numeric_gaps("MSE")
    with pytest.raises(RunError, match=r"no graph 'mine'; it has .*edge_dialect"):
        inspector(folder, "inputs.etrecord").numeric_gaps("MSE", "mine")
    with pytest.raises(RunError, match="need an ETRecord"):
        Inspector(folder / "m.etdp").numeric_gaps("MSE")


def test_outputs_are_compared_by_all_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    wanted, got = [torch.tensor([3.0, 4.0]), 5, np.ones(2)], [np.array([3.0, 5.0]), 5, np.ones(2)]
    results = compare_results(wanted, got)
    assert results["mse"] == [0.5, None, 0.0]
    assert results["snr"] == [pytest.approx(10 * np.log10(25)), None, float("inf")]
    assert results["cosine_similarity"][0] == pytest.approx(29 / (5 * np.sqrt(34)))
    assert "mse: 0.5, -, 0" in capsys.readouterr().out
    assert list(compare_results(wanted, got, ["mse"])) == ["mse"]
    with pytest.raises(RunError, match="metrics has 'psnr': choose some of snr, mse"):
        compare_results(wanted, got, ["psnr"])
    with pytest.raises(RunError, match=r"sizes \[2\], none, and \[2\], none, \[2\] are expected"):
        compare_results(wanted, got[:2])


def test_nan_is_zero_to_named_distances() -> None:
    """As in ExecuTorch, so that both give the same figures."""
    wanted, value = np.array([3, 1, -3, np.nan]), np.array([np.nan, 0, -3, 2])
    assert distance_of("MSE")(wanted, value) == (9 + 1 + 0 + 4) / 4
    assert distance_of("L1")(wanted, value) == 6
    assert distance_of("MSE")(np.array([np.inf]), np.array([1.0])) == np.inf
