"""The operators inside delegates in a report: how they are connected, and where they come from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.inspect import Inspector, report_of
from rushlight.inspect.model import Delegate, Method
from rushlight.inspect.trace.times import times_of

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


class Residual(nn.Module):
    """A value that two operators read, a concatenation, and a result from the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a = torch.softmax(self.first(x), -1)
        b = torch.softmax(self.second(y), -1)
        c = torch.cat([a, b], 0)
        return c, torch.softmax(a * b, -1)


def _delegate(method: Method) -> Delegate:
    [delegate] = method.delegates
    return delegate


def _graph(delegate: Delegate) -> dict[str, list[str]]:
    """By node's operators, those of the nodes and the arguments that it reads."""

    def name(at: int) -> str:
        if at < 0:
            return f"argument {-1 - at}"
        node = delegate.nodes[at]
        ops = [source.operator.split(".")[1] for source in node.sources]
        return f"{'+'.join(ops) or node.name} {at}"

    return {name(i): sorted(map(name, node.inputs)) for i, node in enumerate(delegate.nodes)}


@pytest.mark.parametrize("backend", ["cpu", "xnnpack"])
def test_every_value_comes_from_what_computed_it(backend: str, tmp_path: Path) -> None:
    args = (torch.randn(2, 8), torch.randn(2, 8))
    path = tmp_path / "m.pte"
    rl.export(Residual().eval(), args, backend=backend).save(path, quiet=True)
    [method] = report_of(path).methods
    delegate = _delegate(method)
    graph = _graph(delegate)
    reads = {at: set() for at in graph}
    for at, inputs in graph.items():  # nodes are in the order in which they run
        for one in inputs:
            reads[at] |= {one} | reads.get(one, set())
    [x] = [at for at, inputs in graph.items() if at.startswith("linear") and "argument 0" in inputs]
    [y] = [at for at, inputs in graph.items() if at.startswith("linear") and "argument 1" in inputs]
    last = list(graph)[-1]
    results = [at for at, node in zip(graph, delegate.nodes, strict=True) if node.outputs]
    both = {x, y, "argument 0", "argument 1"}
    together = set().union(*({at} | reads[at] for at in results))
    assert both <= together and both <= reads[last]
    assert y not in reads[x] and x not in reads[y]
    written = sorted(arg for node in delegate.nodes for arg in node.outputs)
    assert set(written) == {2, 3}
    assert all(node.results for node in delegate.nodes)
    handles = [s.handle for node in delegate.nodes for s in node.sources]
    assert handles and min(handles) > 0


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*_v*_*.pte")), ids=lambda path: path.stem)
def test_nodes_read_from_nodes_before_them(path: Path) -> None:
    for method in report_of(path).methods:
        for delegate in method.delegates:
            args = {len(method.instructions[at].args) for at in delegate.calls}
            assert all(node.results for node in delegate.nodes)
            # Only constants are copied without an input.
            assert {node.name for node in delegate.nodes if not node.inputs} <= {"Copy"}
            for i, node in enumerate(delegate.nodes):
                assert all(-max(args) <= at < i for at in node.inputs)
                assert all(0 <= arg < max(args) for arg in node.outputs)


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
def test_times_of_a_trace(backend: str, tmp_path: Path) -> None:
    args = (torch.randn(2, 8), torch.randn(2, 8))
    path, dump = tmp_path / "m.pte", tmp_path / "m.etdp"
    rl.export(Residual().eval(), args, backend=backend).save(path, quiet=True)
    module = rl.load(path, trace=True)
    for _ in range(3):
        module(*(arg.numpy() for arg in args))
    module.trace.save(dump)
    report = report_of(path)
    inspector = Inspector(dump, program=path)
    [times] = times_of(inspector)
    assert times.method == "forward" and times.runs == 3 and times.unknown == []
    # XNNPACK's runtime splits some nodes, and reports several times.
    assert all(one.calls >= 1 and one.calls % 1 == 0 for one in times.timings)
    total = sum(one.ms for one in times.timings)
    assert 0 < total <= times.ms * 1.001
    if all(one.calls == 1 for one in times.timings):
        assert total == pytest.approx(sum(group.time for group in inspector.group_by("operator")))
    order = [one.ms for one in times.timings]
    assert order == sorted(order, reverse=True)
    [method] = report.methods
    places = {node.place for delegate in method.delegates for node in delegate.nodes}
    assert {one.place for one in times.timings} - {""} <= places


def test_a_trace_of_another_program_is_told(tmp_path: Path) -> None:
    x = torch.randn(2, 8)
    for name, model in {"a": nn.Sequential(nn.Tanh(), nn.Sigmoid()), "b": nn.Tanh()}.items():
        rl.export(model, (x,)).save(tmp_path / f"{name}.pte", quiet=True)
    module = rl.load(tmp_path / "a.pte", trace=True)
    module(x.numpy())
    module.trace.save(tmp_path / "a.etdp")
    with pytest.warns(RuntimeWarning, match="the trace is of another program"):
        [times] = times_of(Inspector(tmp_path / "a.etdp", program=tmp_path / "b.pte"))
    [unknown] = times.unknown
    assert unknown.startswith("instruction 1 of 'forward' is native_call_sigmoid.out in the trace")
    assert [one.instruction for one in times.timings] == [0]  # what fits is kept
