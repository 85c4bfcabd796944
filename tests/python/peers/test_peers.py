"""Turns of processes that are compared, their clients, and what benchmarks make of their times."""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rushlight.peers import runtimes, turns
from rushlight.peers.side import Side, SideError, drop_pages, measure_load

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

from tables.engine_tables import Speed


class FakeSide:
    """Takes a given number of seconds for each call, and records its calls."""

    def __init__(self, name: str, seconds: float, log: list[str]) -> None:
        self.name, self.seconds, self.log = name, seconds, log

    def call(self, command: str, calls: int, warmup: int) -> list[float]:
        assert command == "latency"
        self.log.append(f"{self.name} {warmup}+{calls}")
        return [self.seconds] * calls


def test_everybody_has_a_turn_before_anybody_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_REST", 0)
    log: list[str] = []
    sides: Any = {"a": FakeSide("a", 0.01, log), "b": FakeSide("b", 10.0, log)}
    times = turns.take_turns(sides, 3, between=lambda: log.append("between"), warmup=4, least=2)
    turn = ["between", "a 1+5", "b 1+2"]  # as many as take 50 ms, or the least
    assert log == ["a 4+2", "b 4+2", *turn, *turn, *turn]
    assert [len(calls) for calls in times["a"]] == [5, 5, 5] and len(times["b"]) == 3
    assert turns.middle([[1, 2, 9], [4], [3, 3]]) == 3


def test_ratio_to_the_best_peer_and_its_interval() -> None:
    rng = np.random.default_rng(0)

    def around(middle: float, spread: float) -> list[list[float]]:
        return [[x] for x in middle + spread * rng.standard_normal(30)]

    times = {"rushlight": around(1, 0.01), "b": around(1.2, 0.01), "c": around(3, 0.01)}
    ratio, low = Speed("m", 1, times, 0, 1, 1).ratio(["b", "c"])
    assert 1.15 < low <= ratio < 1.25
    assert Speed("m", 1, times, 0, 1, 1).ratio(["c"])[1] > 2.9
    noisy = {"rushlight": around(1, 0.5), "b": around(1.2, 0.5)}
    wide, lower = Speed("m", 1, noisy, 0, 1, 1).ratio(["b"])
    assert lower < wide - 0.1


def test_a_process_answers_and_tells_why_it_cannot() -> None:
    with Side(sys.executable, Path(runtimes.__file__)) as side:
        assert "eager" in side.call("installed")
        with pytest.raises(SideError) as caught:
            side.call("latency")
        assert caught.value.reason == "RuntimeError: no program is open"


def test_our_own_program_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    import rushlight as rl

    linear, x = torch.nn.Linear(4, 3), torch.randn(2, 4)
    rl.export(linear.eval(), (x,), backend="cpu").save(tmp_path / "m.pte", quiet=True)
    np.savez(tmp_path / "data.npz", in0=x.numpy())
    path = os.pathsep.join([str(Path(rl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    with Side(sys.executable, Path(runtimes.__file__), environment={"PYTHONPATH": path}) as side:
        arguments = {"file": str(tmp_path / "m.pte"), "data": str(tmp_path / "data.npz")}
        answer = side.call("open", runtime="rushlight", threads=1, cold=True, **arguments)
        assert 0 < answer["seconds"] < answer["first"]
        side.call("outputs", path=str(tmp_path / "out.npz"))
        assert len(side.call("latency", calls=3, warmup=1)) == 3
        peaks = side.call("peaks", threads=1)
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_allclose(out["out0"], linear(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert peaks["flops"] > 1e8 and peaks["integer_ops"] > 1e8
    assert peaks["bandwidth"] > 1e8 and peaks["threads"] == 1


def test_pages_that_were_dropped_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100_000)
    drop_pages([path])
    assert path.read_bytes() == b"x" * 100_000
    with pytest.raises(OSError):
        drop_pages([tmp_path / "nothing"])


def load_arrays() -> Any:
    kept = [np.ones(4_000_000, np.float32)]
    return lambda: kept.append(np.ones(2_000_000, np.float32))


def test_what_a_load_takes() -> None:
    # In a process of its own, which has no memory left from before to give to arrays.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        measured = fresh.submit(measure_load, load_arrays).result()
    assert 0 < measured["seconds"] <= measured["first"]
    if "resident" in measured:  # Linux
        assert measured["resident"] > 14e6 and measured["run_peak"] >= measured["peak"] > 14e6
        assert measured["run_peak"] > 22e6
