"""OpenVINO: programs with its delegates give what eager gives, and say what went wrong where."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import models
from torch import nn
from torch.utils import _pytree as pytree

import rushlight
from delegates import declined, lowered_modules
from rushlight.backends.openvino import PARTITIONER, OpenvinoPartitioner
from rushlight.backends.openvino.partitioner import OpenvinoOperatorsSupport
from rushlight.backends.openvino.payload import Payload, read_payload, write_payload
from rushlight.errors import ExportError, LoadError
from rushlight.partition import CompileSpec, LoweredBackendModule
from rushlight.pipeline import EdgeProgramManager, to_edge, to_edge_transform_and_lower


def lowered(module: nn.Module, args: tuple[Any, ...], **options: Any) -> EdgeProgramManager:
    shapes = options.pop("dynamic_shapes", None)
    captured = torch.export.export(module.eval(), args, dynamic_shapes=shapes)
    return to_edge_transform_and_lower(captured, partitioner=[OpenvinoPartitioner(**options)])


def delegates(manager: EdgeProgramManager) -> list[LoweredBackendModule]:
    return lowered_modules(manager.exported_program())


def left(manager: EdgeProgramManager) -> dict[str, str]:
    return declined(manager.exported_program(), "OpenvinoBackend")


def load(manager: EdgeProgramManager, **options: Any) -> rushlight.Module:
    return rushlight.load(manager.to_executorch().buffer, **options)


def same(got: Any, expected: Any, **tolerances: Any) -> None:
    pairs = zip(pytree.tree_leaves(got), pytree.tree_leaves(expected), strict=True)
    for mine, wanted in pairs:
        torch.testing.assert_close(torch.as_tensor(mine), wanted, **tolerances)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(self.norm(self.conv(x)))
        z = y.mean((2, 3))
        return self.linear(z), torch.softmax(z, -1), y[:, :, ::2]


IMAGE = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "name",
    [
        *("linear_relu", "mlp", "conv_bn", "dict_out", "lstm2_tiny", "mobilenet_v2_tiny"),
        *("resnet50_tiny", "vit_b16_tiny", "unet_tiny", "minilm_tiny", "gpt2_tiny"),
        *(pytest.param(n, marks=pytest.mark.full) for n in ("mobilenet_v2", "minilm", "gpt2")),
    ],
)
def test_models_give_what_eager_gives(name: str) -> None:
    case = models.build(name)
    manager = to_edge_transform_and_lower(case.export(), partitioner=[OpenvinoPartitioner()])
    assert delegates(manager)
    with torch.no_grad():
        expected = case.module(*case.args, **case.kwargs)
    with load(manager) as module:
        for _ in range(2):  # the second call finds the memory of the first one bound
            same(module(*case.args, **case.kwargs), expected, rtol=1e-4, atol=1e-4)


def test_the_package_names_its_partitioner() -> None:
    assert PARTITIONER is OpenvinoPartitioner


def test_sizes_may_change_from_call_to_call() -> None:
    batch = torch.export.Dim("batch", min=1, max=8)
    model = Small().eval()
    manager = lowered(model, (IMAGE,), dynamic_shapes=({0: batch},))
    assert len(delegates(manager)) == 1
    with load(manager) as module:
        for count in (2, 5, 1, 8):
            x = torch.randn(count, 3, 16, 16)
            same(module(x), model(x))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: torch.relu(x).mean(0),
        lambda x: torch.relu(x).mean(),
        lambda x: torch.relu(x).var((0, 1), correction=0, keepdim=True),
        lambda x: torch.relu(x).half().mean((0, 1)),
        lambda x: torch.softmax(x, 0) @ x.t(),
        lambda x: torch.cat([x, x.flip(0)]).sum(0),
    ],
)
def test_a_size_may_be_0(compute: Callable[[torch.Tensor], torch.Tensor]) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return compute(x)

    manager = lowered(
        Model(), (torch.rand(3, 4),), dynamic_shapes=({0: torch.export.Dim("rows", min=0, max=8)},)
    )
    assert len(delegates(manager)) == 1 and not left(manager)
    with load(manager) as module:
        for count in (0, 8, 0, 1):
            x = torch.rand(count, 4)
            same(module(x), Model()(x), equal_nan=True)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x, number: x.clamp(max=number),
        lambda x, number: x > number,
        lambda x, number: x * torch.full((4,), number),
    ],
)
def test_numbers_that_are_computed_are_no_sizes(compute: Callable[..., torch.Tensor]) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
            return compute(torch.relu(x), number.item())

    args = (torch.rand(3, 4), torch.tensor(0.5))
    manager = lowered(Model(), args)
    assert "it takes a number that is computed at run time, and OpenVINO takes sizes only" in set(
        left(manager).values()
    )
    with load(manager) as module:
        same(module(*args), Model()(*args))


def test_computed_sizes_stay_inside() -> None:
    class Flat(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x).reshape(x.shape[0] * 2, -1) * 3

    rows = torch.export.Dim("rows", min=1, max=8)
    manager = lowered(Flat(), (torch.randn(3, 4),), dynamic_shapes=({0: rows},))
    assert delegates(manager)
    with load(manager) as module:
        for count in (3, 1, 7):
            x = torch.randn(count, 4)
            same(module(x), Flat()(x))


def test_channels_last_inputs_are_read_where_they_lie() -> None:
    model = Small().eval()
    x = IMAGE.to(memory_format=torch.channels_last)
    manager = lowered(model, (x,))
    (delegate,) = delegates(manager)
    payload = read_payload(memoryview(delegate.processed_bytes))
    assert payload is not None and payload.inputs == [(0, 2, 3, 1)]
    with load(manager) as module:
        same(module(x), model(x))


def test_channels_last_outputs_are_written_as_the_program_wants_them() -> None:
    class Last(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x).to(memory_format=torch.channels_last)

    x = torch.randn(2, 3, 4, 5)
    with load(lowered(Last(), (x,))) as module:
        same(module(x), Last()(x))


def test_a_layout_that_the_graph_does_not_tell_is_copied() -> None:
    """torch lets a sum of mixed layouts follow one input, the program the other one."""

    class Mixed(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.relu(torch.erfinv(x + y))

    args = (
        torch.rand(2, 3, 4, 5) / 4,
        torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last) / 4,
    )
    for inputs in (args, args[::-1]):
        with load(lowered(Mixed(), inputs, op_types_to_skip={"aten.add.Tensor"})) as module:
            same(module(*inputs), Mixed()(*inputs))


def test_half_precision() -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).half()
    x = torch.randn(3, 16).half()
    manager = lowered(model, (x,))
    assert len(delegates(manager)) == 1
    with load(manager) as module:
        same(module(x), model(x), rtol=1e-2, atol=1e-2)


class Integers(nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.relu(x) + 1, n * n + 1


def test_integer_arithmetic_stays_here_with_its_reason() -> None:
    """OpenVINO would compute in 32 bits, or saturate; the program wraps around as eager does."""
    for dtype, big in ((torch.int64, 2**40 + 1), (torch.uint8, 200), (torch.int8, 100)):
        args = (torch.randn(3), torch.tensor([big, 3, 5], dtype=dtype))
        manager = lowered(Integers(), args)
        assert "aten.mul.Tensor" in left(manager) and len(delegates(manager)) == 1
        with load(manager) as module:
            same(module(*args), Integers()(*args))


def test_what_is_declined_has_its_reason() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return torch.erfinv(x), x.double() + 1, torch.relu(x)

    assert left(lowered(Model(), (torch.rand(3),))) == {
        "aten.erfinv.default": "OpenVINO has no counterpart of aten.erfinv.default that gives the "
        "same results",
        "dim_order_ops._to_dim_order_copy.default": "it converts float32 to float64, and "
        "OpenVINO saturates where eager wraps",
        "aten.add.Tensor": "it computes with float64, which OpenVINO does in float32",
    }


def test_operators_and_nodes_can_be_left_out() -> None:
    for name in ("aten._softmax.default", torch.ops.aten._softmax.default):
        manager = lowered(Small(), (IMAGE,), op_types_to_skip=[name])
        assert left(manager) == {
            "aten._softmax.default": "op_types_to_skip names aten._softmax.default"
        }
    model = Small().eval()
    manager = lowered(model, (IMAGE,), op_names_to_skip={"relu"})
    assert left(manager) == {"aten.relu.default": "op_names_to_skip names relu"}
    assert len(delegates(manager)) == 2
    with load(manager) as module:
        same(module(IMAGE), model(IMAGE))


def test_what_it_takes_can_be_asked_by_other_partitioners() -> None:
    graph = to_edge(torch.export.export(Integers(), (IMAGE, torch.arange(3)))).exported_program()
    calls = {node.name: node for node in graph.graph.nodes if node.op == "call_function"}

    def taken(**options: Any) -> set[str]:
        support = OpenvinoOperatorsSupport(**options)
        return {name for name, node in calls.items() if support.is_node_supported({}, node)}

    assert "relu" in taken() and "mul" not in taken()
    assert "relu" not in taken(op_types_to_skip={"aten.relu.default"})
    assert "relu" not in taken(op_names_to_skip={"relu"})
    assert "mul" in taken(enabled_ops_by_name={"mul"})


def test_buffers_that_the_model_writes_stay_with_the_program() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(torch.sin(x))
            return self.total * 2

    x = torch.randn(3)
    eager = Sum()
    with load(lowered(Sum(), (x,))) as module:
        for _ in range(3):
            same(module(x), eager(x))


def test_a_trace_tells_the_line_of_each_node() -> None:
    class Two(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x @ x
            return torch.softmax(y, -1)

    with load(lowered(Two(), (torch.randn(64, 64),)), trace=True) as module:
        module(torch.randn(64, 64))
        inside = [event for event in module.trace.events() if event.inside]
    lines = {event.inside.split("/")[0]: event.line for event in inside}
    assert "y = x @ x" in lines["mm"] and "torch.softmax(y, -1)" in lines["_softmax"]
    assert sum(event.ns for event in inside) > 0


# --- payloads and options -----------------------------------------------------------------------


def test_a_compiled_model_can_be_the_payload() -> None:
    """The form in which ExecuTorch stores it."""
    specs = [CompileSpec("payload", b"blob"), CompileSpec("device", b"CPU")]
    model = Small().eval()
    manager = lowered(model, (IMAGE,), compile_spec=specs)
    (delegate,) = delegates(manager)
    assert read_payload(memoryview(delegate.processed_bytes)) is None
    with load(manager) as module:
        same(module(IMAGE), model(IMAGE))


def test_options_of_a_load_reach_openvino() -> None:
    manager = lowered(Small(), (IMAGE,))
    with load(manager, backend_options={"OpenvinoBackend": {"INFERENCE_NUM_THREADS": 1}}) as module:
        module(IMAGE)
    with pytest.raises(LoadError, match="NO_SUCH_PROPERTY"):
        load(manager, backend_options={"OpenvinoBackend": {"NO_SUCH_PROPERTY": 1}})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (CompileSpec("payload", b"onnx"), "compile spec payload is 'onnx'; allowed are ir, blob"),
        (CompileSpec("speed", b"1"), "unknown compile spec 'speed'"),
        (CompileSpec("device", "CPU"), r"device is 'CPU', and must be text in bytes"),
        (CompileSpec("device", b"\xff"), r"device is b'\\xff', and must be text in bytes"),
        (("device", b"CPU"), r"\('device', b'CPU'\) is not a compile spec: write CompileSpec"),
    ],
)
def test_wrong_compile_specs_are_refused(spec: Any, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        OpenvinoPartitioner([spec])


@pytest.mark.parametrize("argument", ["op_types_to_skip", "op_names_to_skip"])
@pytest.mark.parametrize("names", ["aten.add.Tensor", 3])
def test_one_name_is_no_list_of_names(argument: str, names: Any) -> None:
    with pytest.raises(ExportError, match=rf"{argument} is {names!r}: give a list of names"):
        OpenvinoPartitioner(**{argument: names})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_threads": 2}, "unknown option 'num_threads' of OpenvinoBackend: allowed are device"),
        ({"device": 2}, "the option device is 2, and must be a name such as 'CPU'"),
        ({"device": ""}, "the option device is '', and must be a name such as 'CPU'"),
        ({"device": "TOASTER"}, r"cannot compile it for 'TOASTER'.*the devices here are .*CPU"),
        ({"INFERENCE_NUM_THREADS": "two"}, r"'INFERENCE_NUM_THREADS': 'two'.*non negative integer"),
    ],
)
def test_wrong_options_of_a_load_are_refused(options: dict[str, Any], message: str) -> None:
    manager = lowered(nn.ReLU(), (torch.rand(3),))
    with pytest.raises(
        LoadError, match=rf"(?s)forward: delegate 0 \(OpenvinoBackend\): .*{message}"
    ):
        load(manager, backend_options={"OpenvinoBackend": options})


def test_a_blob_for_a_device_that_is_missing_is_refused() -> None:
    with pytest.raises(ExportError, match=r"(?s)blob for 'TOASTER'.*devices here are .*CPU"):
        lowered(
            nn.ReLU(),
            (torch.rand(3),),
            compile_spec=[CompileSpec("payload", b"blob")],
            device="TOASTER",
        )


def test_a_blob_has_no_dim_orders() -> None:
    x = IMAGE.to(memory_format=torch.channels_last)
    with pytest.raises(ExportError, match=r"OpenvinoBackend: .*channels-last.*payload=ir"):
        lowered(Small(), (x,), compile_spec=[CompileSpec("payload", b"blob")])


@pytest.mark.parametrize("inputs", ["[[1e999]]", "[" * 5000, "[1]", "{}}"])
def test_a_damaged_header_is_refused(inputs: str) -> None:
    parts = '"parts": {"xml": ["0", "0"], "weights": ["0", "0"]}'
    header = f'{{{parts}, "inputs": {inputs}}}'.encode()
    with pytest.raises(ValueError, match="the payload's header is damaged"):
        read_payload(memoryview(struct.pack("<4sII", b"RLOV", 1, len(header)) + header))


def test_weights_are_read_in_place() -> None:
    payload = Payload(b"<net/>", b"w" * 100, [(), (0, 2, 3, 1)])
    data = memoryview(write_payload(payload))
    parsed = read_payload(data)
    assert parsed is not None and bytes(parsed.xml) == b"<net/>"
    assert parsed.inputs == [(), (0, 2, 3, 1)]
    assert parsed.weights.obj is data.obj
    offset = np.frombuffer(parsed.weights, np.uint8).ctypes.data
    assert (offset - np.frombuffer(data, np.uint8).ctypes.data) % 64 == 0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d[:8], "the payload is cut: it has 8 bytes"),
        (lambda d: d[:-40], "the payload is cut: weights ends at byte"),
        (lambda d: d[:4] + b"\x09" + d[5:], "has version 9, and this runtime reads 1"),
        (lambda d: d.replace(b'"parts"', b'"harts"'), "header is damaged"),
        (
            lambda d: d.replace(b": [[]]", b":[[9]]"),
            r"header is damaged: \(9,\) is not a dim order",
        ),
        (lambda d: d.replace(b": [[]]", b":[[0]]"), r"has the dim order \(0,\) for input 0"),
        (lambda d: d.replace(b"<net", b"<bad"), "cannot compile it for 'CPU'"),
        (lambda d: b"none of OpenVINO's", "cannot compile it for 'CPU'"),
    ],
)
def test_damaged_payloads_are_refused_at_load(
    damage: Callable[[bytes], bytes], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rushlight.backends.openvino import preprocess

    write = preprocess.write_payload
    monkeypatch.setattr(preprocess, "write_payload", lambda payload: damage(write(payload)))
    manager = lowered(Small(), (IMAGE,))
    with pytest.raises(LoadError, match=rf"(?s)OpenvinoBackend.*{message}"):
        load(manager)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("Unsupported operation of type: Sin name: sin/aten.sin.default/Sin\nDetails:", True),
        ("with friendly_name 'sin/aten.sin.default/Sin':\nShapes do not fit", True),
        ("while validating Softmax_7 (Sin sin/aten.sin.default/Sin[0]:f32[3])", False),
        ("with friendly_name 'Softmax_1630': axis out of range", False),
    ],
)
def test_a_failure_inside_leads_to_the_line(
    message: str, place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the ways in which OpenVINO's messages name a node."""
    import openvino

    class Lines(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(x)
            z = torch.sin(y)
            return z * 2

    def fail(*args: Any) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(openvino.Core, "compile_model", fail)
    with pytest.raises(LoadError) as caught:
        load(lowered(Lines(), (torch.rand(3),)))
    text = str(caught.value)
    assert "OpenvinoBackend" in text and message.strip() in text
    assert ("z = torch.sin(y)" in text) == place


def test_what_openvino_cannot_read_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator of the table that another release of OpenVINO has not."""
    from rushlight.backends.openvino import operators

    target = torch.ops.aten.special_bessel_j0.default
    monkeypatch.setitem(operators._TABLE, target, operators._TABLE[torch.ops.aten.relu.default])

    class Bessel(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.bessel_j0(x)

    with pytest.raises(ExportError) as caught:
        lowered(Bessel(), (torch.rand(3),))
    text = str(caught.value)
    assert "OpenvinoBackend: preprocess failed" in text and "forward: partition" in text
    assert "special_bessel_j0" in text and "return torch.special.bessel_j0(x)" in text
    assert "op_names_to_skip=['special_bessel_j0']" in text


def test_the_code_of_the_documentation_runs(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "backends-openvino.md"
    (code,) = re.findall(r"^```py\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "model.pte").exists()
