"""`rushlight profile`: times, facts about operators, lines, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from typer.testing import CliRunner

import rushlight as rl
from rushlight.backends.cpu.payload_reader import engine_nodes
from rushlight.cli import app
from rushlight.inspect.model import Work
from rushlight.inspect.profile import OperatorTime
from rushlight.inspect.work import flops_of, work_of
from rushlight.quantization import quantize
from rushlight.runtime.peaks import Peaks
from rushlight.schema import cpu_engine as engine
from rushlight.schema import program as fb
from rushlight.serialize.pte import read_pte, write_pte

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
BACKENDS = ["portable", "cpu", "xnnpack"]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1)
        self.head = nn.Linear(8 * 16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.conv(x))
        return torch.softmax(self.head(y.flatten(1)), dim=-1)


IMAGE = torch.randn(2, 4, 4, 4)
CONVOLUTION = 2 * (2 * 8 * 4 * 4) * (4 * 9)  # operations: for each result its terms
LINEAR = 2 * (2 * 10) * 128


def _save(path: Path, backend: str, *, is_integer: bool = False) -> Path:
    torch.manual_seed(0)
    model: Any = Net().eval()
    if is_integer:
        model = quantize(model, (IMAGE,), calibrate=[(IMAGE,)])
    rl.export(model, (IMAGE,), backend=backend, verify=False).save(path, quiet=True)
    return path


def _run(*args: str | Path) -> Any:
    return CliRunner().invoke(app, ["profile", *map(str, args)])


def _json(*args: str | Path) -> Any:
    result = _run(*args, "--json", "--repeat", "3")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("backend", BACKENDS)
def test_operators_with_what_they_do_and_where_they_come_from(tmp_path: Path, backend: str) -> None:
    report = _json(_save(tmp_path / "m.pte", backend), "--threads", "1")
    assert report["runs"] == 3 and report["peaks"]["threads"] == 1
    operators = report["operators"]
    times = [operator["ns"] for operator in operators]
    assert times == sorted(times, reverse=True) and times[-1] >= 0
    assert 0 <= report["outside_ns"] <= report["total_ns"]
    by_flops = {operator["flops"]: operator for operator in operators}
    assert set(by_flops) == {CONVOLUTION, LINEAR, None}
    linear = by_flops[LINEAR]
    rate = linear["flops"] / linear["ns"]
    assert linear["gflops"] == pytest.approx(rate)
    assert linear["of_flops"] == pytest.approx(rate * 1e9 / report["peaks"]["flops"])
    assert linear["of_bandwidth"] > 0
    # Rows, weights, bias and results; weights of the cpu backend are filled up to 16 columns.
    columns = 16 if backend == "cpu" else 10
    assert linear["bytes"] == 4 * (2 * 128 + 128 * columns + columns + 2 * 10)
    lines = [source["text"] for operator in operators for source in operator["sources"]]
    assert any("torch.softmax(" in line for line in lines)


def test_a_table_with_totals(tmp_path: Path) -> None:
    result = _run(_save(tmp_path / "m.pte", "cpu"), "--threads", "1", "--rows", "1")
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert re.search(r"[\d.]+ (ns|µs|ms) +[\d.]+%", text) and " more took " in text
    for part in ("a run", "in no operator", "all operators", "this machine's peak", "its memory"):
        assert part in text
    assert "1 thread," in text and "GFLOP/s" in text and "test_cli_profile.py" in text
    assert "GOP/s" not in text


@pytest.mark.parametrize("backend", ["cpu", "xnnpack"])
def test_operations_of_integers_are_a_share_of_the_peak_of_integers(
    tmp_path: Path, backend: str
) -> None:
    path = _save(tmp_path / "m.pte", backend, is_integer=True)
    report = _json(path, "--threads", "1")
    assert report["peaks"]["integer_ops"] > 1e8
    by_flops = {operator["flops"]: operator for operator in report["operators"]}
    assert set(by_flops) == {CONVOLUTION, LINEAR, None} and not by_flops[None]["is_integer"]
    for flops in (CONVOLUTION, LINEAR):
        operator = by_flops[flops]
        share = flops / operator["ns"] * 1e9 / report["peaks"]["integer_ops"]
        assert operator["is_integer"] and operator["of_flops"] == pytest.approx(share)
    text = _run(path, "--threads", "1").stdout
    assert re.search(r"share +GOP/s +of peak", text) and re.search(r"of integers +\d+ GOP/s", text)
    assert re.search(r"all operators +[\d.]+ GOP/s", text)


def test_each_operator_is_held_to_the_peak_of_its_numbers() -> None:
    peaks = Peaks(threads=1, flops=100e9, integer_ops=400e9, bandwidth=10e9)
    real = OperatorTime("Product", "forward", 0, "0", ns=20.0, calls=1, flops=1000)
    integer = OperatorTime(
        "QuantizedProduct", "forward", 0, "1", ns=20.0, calls=1, flops=1000, is_integer=True
    )
    copy = OperatorTime("Copy", "forward", 0, "2", ns=20.0, calls=1)
    assert [one.least_ns(peaks) for one in (real, integer, copy)] == [10.0, 2.5, 0.0]
    assert [one.of_flops(peaks) for one in (real, integer, copy)] == [0.5, 0.125, None]


def test_nodes_on_integers_are_named_by_their_sources() -> None:
    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = F.max_pool2d(F.hardswish(F.relu6(self.conv(x))), 2)
            return self.head(torch.relu(y + y.mul(y)).mean((2, 3)))

    x = torch.randn(1, 3, 8, 8)
    program = quantize(Chain().eval(), (x,), calibrate=[(x,)])
    made = rl.export(program, backend="cpu", verify=False)
    [work] = [one for one in work_of(made.buffer)["forward"] if one.nodes]
    nodes = [(node.name, *node.nodes[:-1]) for node in work.inside.values()]
    assert nodes == [
        ("Convert",),
        ("QuantizedConvolution", "convolution", "hardtanh"),
        ("Lookup", "dequantize_per_tensor", "hardswish"),
        ("QuantizedPooling", "max_pool2d_with_indices"),
        ("Lookup", "dequantize_per_tensor", "mul"),
        ("QuantizedBinary", "add", "relu"),
        ("QuantizedPooling", "mean"),
        ("QuantizedProduct", "linear"),
        ("Convert",),
    ]
    last = [node.nodes[-1] for node in work.inside.values()]
    assert last == ["quantize_per_tensor"] * 8 + ["dequantize_per_tensor"]


def test_given_inputs(tmp_path: Path) -> None:
    path = _save(tmp_path / "m.pte", "cpu")
    np.save(tmp_path / "x.npy", IMAGE.numpy())
    assert _json(path, "--input", tmp_path / "x.npy")["operators"]
    np.save(tmp_path / "x.npy", IMAGE.numpy()[:1])
    result = _run(path, "--input", tmp_path / "x.npy")
    assert result.exit_code == 1 and "float32[2, 4, 4, 4]" in result.stderr


def test_a_file_without_debug_information_has_no_lines(tmp_path: Path) -> None:
    path = _save(tmp_path / "m.pte", "cpu")
    pte = read_pte(path.read_bytes())
    del pte.named_data["rushlight/debug"]
    path.write_bytes(write_pte(pte))
    result = _run(path, "--repeat", "1")
    assert result.exit_code == 0, result.output
    assert "The file has no debug information" in result.stdout
    report = _json(path)
    assert {operator["flops"] for operator in report["operators"]} == {CONVOLUTION, LINEAR, None}
    assert not any(operator["sources"] for operator in report["operators"])


def test_nodes_of_xnnpack_that_run_as_one_are_one_operator(tmp_path: Path) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(torch.tanh(self.a(x)) * 2) @ torch.ones(8, 4)

    x = torch.randn(5, 16)
    path = tmp_path / "m.pte"
    rl.export(Two().eval(), (x,), backend="xnnpack").save(path, quiet=True)
    np.save(tmp_path / "x.npy", x.numpy())
    operators = _json(path, "--input", tmp_path / "x.npy")["operators"]
    by_name = {operator["name"]: operator for operator in operators}
    first = by_name["FullyConnected+"]
    assert first["flops"] == 2 * 5 * 16 * 32 and first["calls"] == 1
    # The input, filter and bias, and the result of what follows; a number may be a constant.
    assert 4 * (5 * 16 + 16 * 32 + 32 + 5 * 32) <= first["bytes"] <= 4 * (5 * 16 + 17 * 32 + 161)
    lines = {source["text"] for source in first["sources"]}
    assert len(first["nodes"]) >= 2 and any("torch.tanh" in line for line in lines)
    assert {operator["flops"] for operator in operators} >= {2 * 5 * 32 * 8, 2 * 5 * 8 * 4}


@pytest.mark.parametrize("backend", ["portable", "cpu"])  # of XNNPACK's nodes they are not known
def test_sizes_that_vary_are_those_of_the_run(tmp_path: Path, backend: str) -> None:
    batch = {"x": {0: torch.export.Dim("batch", min=1, max=8)}}
    path = tmp_path / "m.pte"
    program = rl.export(Net().eval(), (IMAGE,), dynamic_shapes=batch, backend=backend)
    program.save(path, quiet=True)
    np.save(tmp_path / "x.npy", torch.randn(3, 4, 4, 4).numpy())
    flops = {
        operator["flops"] for operator in _json(path, "--input", tmp_path / "x.npy")["operators"]
    }
    assert flops == {CONVOLUTION // 2 * 3, LINEAR // 2 * 3, None}
    unknown = [w for work in work_of(path)["forward"] for w in (work.whole, *work.inside.values())]
    assert unknown and all(work.flops is None and work.bytes is None for work in unknown)


def test_a_delegate_that_tells_no_nodes_is_one_operator(tmp_path: Path) -> None:
    class Sum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.exp(x + x)

    program = rl.export(Sum(), (torch.randn(4),), backend="demo")
    program.save(tmp_path / "m.pte", quiet=True)
    names = [operator["name"] for operator in _json(tmp_path / "m.pte")["operators"]]
    assert len(names) == 2 and "aten::exp.out" in names


def test_refusals(tmp_path: Path) -> None:
    path = _save(tmp_path / "m.pte", "portable")
    for args, code, message in (
        (("nothing.pte",), 1, "no such file"),
        ((path, "--method", "decode"), 1, "no method 'decode'"),
        ((path, "--repeat", "0"), 2, ""),
    ):
        result = _run(*args)
        assert result.exit_code == code and message in result.stderr, result.output


# --- what operators do ----------------------------------------------------------------------------


class Call(nn.Module):
    """A module that calls a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def _work(function: Any, *args: torch.Tensor, backend: str) -> list[Work]:
    module = function if isinstance(function, nn.Module) else Call(function)
    return _work_in(rl.export(module.eval(), args, backend=backend, verify=False))


def _work_in(program: rl.Program) -> list[Work]:
    works = []
    for work in work_of(program.buffer)["forward"]:
        works += list(work.inside.values()) if work.inside else [work.whole]
    return works


def _flops(function: Any, *args: torch.Tensor, backend: str) -> list[int]:
    works = _work(function, *args, backend=backend)
    return [work.flops for work in works if work.flops is not None]


@pytest.mark.parametrize("backend", BACKENDS)
def test_operations_of_products_and_convolutions(backend: str) -> None:
    flops = {
        2 * 6 * 5 * 7: (nn.Linear(5, 7), torch.randn(2, 3, 5)),
        2 * 3 * 4 * 5 * 6: (torch.bmm, torch.randn(3, 4, 5), torch.randn(3, 5, 6)),
        2 * (6 * 3 * 3) * (2 * 9): (nn.Conv2d(4, 6, 3, groups=2), torch.randn(1, 4, 5, 5)),
        2 * (4 * 5 * 5) * 9: (nn.Conv2d(4, 4, 3, padding=1, groups=4), torch.randn(1, 4, 5, 5)),
        2 * (4 * 5 * 5) * (6 * 4): (nn.ConvTranspose2d(4, 6, 2, stride=2), torch.randn(1, 4, 5, 5)),
        2 * (6 * 4) * (3 * 3): (nn.Conv1d(3, 6, 3), torch.randn(1, 3, 6)),
    }
    for expected, (function, *args) in flops.items():
        assert _flops(function, *args, backend=backend) == [expected], function


@pytest.mark.parametrize("backend", ["cpu", "xnnpack"])
def test_operations_of_integers(backend: str) -> None:
    layers = {
        2 * 6 * 5 * 7: (nn.Linear(5, 7), torch.randn(6, 5)),
        2 * (6 * 3 * 3) * (2 * 9): (nn.Conv2d(4, 6, 3, groups=2), torch.randn(1, 4, 5, 5)),
        2 * (4 * 5 * 5) * 9: (nn.Conv2d(4, 4, 3, padding=1, groups=4), torch.randn(1, 4, 5, 5)),
        2 * (7 * 5 * 5) * 4: (nn.Conv2d(4, 7, 1), torch.randn(1, 4, 5, 5)),
    }
    for expected, (layer, x) in layers.items():
        program = quantize(layer.eval(), (x,), calibrate=[(x,)])
        works = _work_in(rl.export(program, backend=backend, verify=False))
        flops = [(work.flops, work.is_integer) for work in works if work.flops is not None]
        assert flops == [(expected, True)], layer


@pytest.mark.parametrize(("recipe", "bits"), [("int8-dynamic", 8), ("int4-dynamic", 4)])
def test_operations_and_bytes_of_rows_that_are_quantised_at_run_time(
    recipe: str, bits: int
) -> None:
    x = torch.randn(5, 64)
    program = quantize(nn.Linear(64, 96).eval(), (x,), recipe=recipe)
    rows, weights, groups = 5 * 64, 64 * 96 * bits // 8, 1 if bits == 8 else 2
    around = 4 * (96 + 5 * 96)  # bias and results
    flops = 2 * 5 * 64 * 96
    first, product = _work_in(rl.export(program, backend="cpu", verify=False))
    parameters = 5 * 2 * 4  # a scale and a zero point for each row
    assert (first.name, first.bytes) == ("QuantizeRows", 4 * rows + rows + parameters)
    packed = parameters + weights + 4 * 96 * groups + 4 * 96  # scales and shares
    assert (product.name, product.flops) == ("DynamicProduct", flops) and product.is_integer
    assert product.bytes == rows + packed + around
    first, product = _work_in(rl.export(program, backend="xnnpack", verify=False))
    assert (first.name, first.bytes) == ("Convert", 4 * rows + rows)
    scales = 4 * 96 if bits == 8 else 2 * 96 * groups
    assert (product.name, product.flops) == ("FullyConnected", flops) and product.is_integer
    assert product.bytes == rows + weights + scales + around


def test_integer_nodes_of_files_that_executorch_wrote() -> None:
    [static] = work_of(GOLDEN / "xnnpack_integers.pte")["forward"]
    integer = {work.name: work.flops for work in static.inside.values() if work.is_integer}
    assert integer == {
        "Conv2d": 2 * (6 * 4 * 6) * (3 * 9),
        "DepthwiseConv2d": 2 * (6 * 4 * 6) * 9,
        "FullyConnected": 2 * 5 * 36,
    }
    [rows] = work_of(GOLDEN / "xnnpack_rows.pte")["forward"]
    products = [(work.flops, work.is_integer) for work in rows.inside.values() if work.flops]
    assert products == [(2 * 3 * 24 * 40, True), (2 * 3 * 40 * 7, True)]
    [images] = work_of(GOLDEN / "xnnpack_images.pte")["forward"]
    assert not any(work.is_integer for work in images.inside.values())


def test_operations_of_attention() -> None:
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8)
    attend = F.scaled_dot_product_attention
    assert _flops(attend, q, k, v, backend="cpu") == [2 * 2 * 4 * (5 * 6) * 16]
    causal = lambda q, k, v: attend(q, k, v, is_causal=True)  # noqa: E731
    assert _flops(causal, q, k[:, :, :5], v[:, :, :5], backend="cpu") == [2 * 2 * 4 * 15 * 16]


def test_bytes_are_those_of_each_value_once() -> None:
    table = nn.Embedding(50, 8)
    [gather] = [
        work
        for work in _work(table, torch.tensor([[1, 2, 3]]), backend="cpu")
        if work.name == "Gather"
    ]
    assert gather.bytes == 2 * 3 * 8 * 4 + 3 * 8  # the rows it takes, not the table
    x = torch.randn(16, 16)
    [chain] = _work(lambda x: torch.exp(x) * x + x, x, backend="cpu")
    assert chain.bytes == 2 * 16 * 16 * 4 and chain.flops is None
    [wide] = _work(lambda x, y: x + y, x, torch.randn(1, 16), backend="cpu")
    assert wide.bytes == (2 * 16 * 16 + 16) * 4  # a row that repeats is read once
    kernels = _work(lambda x: torch.exp(x) * x, x, backend="portable")
    assert [(w.name, w.bytes) for w in kernels] == [
        ("aten::exp.out", 2 * 16 * 16 * 4),
        ("aten::mul.out", 3 * 16 * 16 * 4),
    ]


def test_operations_of_a_whole_program(tmp_path: Path) -> None:
    for backend in BACKENDS:
        assert flops_of(_save(tmp_path / "m.pte", backend)) == CONVOLUTION + LINEAR


def test_work_in_a_damaged_payload_is_unknown(tmp_path: Path) -> None:
    pte = read_pte(_save(tmp_path / "m.pte", "cpu").read_bytes())
    [delegate] = pte.program.execution_plan[0].delegates
    assert isinstance(delegate, fb.BackendDelegate)
    pte.delegate_blobs[delegate.processed.index] = b"damaged"
    [work] = work_of(bytes(write_pte(pte)))["forward"]
    assert work.whole.name == "CpuBackend"
    assert all(node.flops is None and node.bytes is None for node in work.inside.values())


def test_sizes_of_a_payload_follow_from_what_its_inputs_are() -> None:
    kinds = engine.ExpressionKind

    def payload(dynamic: list[int]) -> bytes:
        rows = engine.Value(sizes=[8, 16], strides=[16, 1], dynamic_sizes=dynamic)
        out = engine.Value(sizes=[8, 16], strides=[16, 1], place=engine.Place.OUTPUT)
        out.dynamic_sizes = dynamic
        panels = engine.Value(sizes=[256], strides=[1], place=engine.Place.CONSTANT)
        expressions = [
            engine.Expression(kinds.INPUT_SIZE, 0, 1),
            engine.Expression(kinds.CONSTANT, 3),
            engine.Expression(kinds.FLOOR_DIVIDE, 0, 1),
            engine.Expression(kinds.INPUT_SIZE, 1, -1),
            engine.Expression(kinds.MAXIMUM, 2, 3),
            engine.Expression(kinds.MODULO, 0, 3),
        ]
        return engine.pack(
            engine.Graph(
                version=2,
                values=[rows, out, panels],
                constants=[engine.Constant("k", 1024)],
                nodes=[engine.Node(engine.Product(), [0, 2], [1])],
                n_inputs=2,
                n_outputs=1,
                expressions=expressions,
            )
        )

    def product(rows: int) -> list[Work]:
        return [Work("Product", 2 * rows * 16 * 16, (2 * rows * 16 + 256) * 4)]

    assert [node.work for node in engine_nodes(payload([-1, -1]))] == product(8)
    assert [node.work for node in engine_nodes(payload([4, -1]))] == [Work("Product")]
    assert [node.work for node in engine_nodes(payload([4, -1]), [(1, 17), 2])] == product(5)
    assert [node.work for node in engine_nodes(payload([4, -1]), [(1, 17), 7])] == product(7)
    assert [node.work for node in engine_nodes(payload([4, -1]), [(1, 17), None])] == [
        Work("Product")
    ]
    assert [node.work for node in engine_nodes(payload([5, -1]), [(1, 17), 0])] == [
        Work("Product")
    ]  # nothing by zero
    assert [node.work for node in engine_nodes(payload([99, -1]), [(1, 17), 2])] == [
        Work("Product")
    ]
