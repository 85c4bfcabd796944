"""The version of a payload: the least one that has all that the payload uses."""

from __future__ import annotations

import typing
from dataclasses import fields
from pathlib import Path

import pytest

from rushlight.backends.cpu.graph import operations
from rushlight.backends.cpu.preprocess import least_version
from rushlight.schema import cpu_engine as fb
from rushlight.serialize.pte import read_pte
from rushlight.serialize.segments import as_bytes

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
FLOAT, HALF, BFLOAT16 = fb.ScalarType.FLOAT, fb.ScalarType.HALF, fb.ScalarType.BFLOAT16


def graph(operation: fb.Operation, n_inputs: int = 1, dtype: fb.ScalarType = FLOAT) -> fb.Graph:
    """A node over values of this dtype; the last value is its output."""
    values = [fb.Value(dtype, [4], [1]) for _ in range(n_inputs + 1)]
    node = fb.Node(operation=operation, inputs=list(range(n_inputs)), outputs=[n_inputs])
    return fb.Graph(values=values, nodes=[node])


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("cpu_engine_v*.pte")), ids=lambda p: p.stem)
def test_golden_payloads_have_their_least_version(path: Path) -> None:
    pte = read_pte(path.read_bytes())
    payloads = [fb.unpack(as_bytes(blob)) for blob in pte.delegate_blobs]
    assert payloads
    for payload in payloads:
        assert least_version(payload) == payload.version
    assert f"_v{max(p.version for p in payloads)}_" in path.name


@pytest.mark.parametrize(
    ("payload", "version"),
    [
        (graph(fb.Softmax()), 1),
        (graph(fb.Convolution()), 1),
        (graph(fb.Convolution(kind=fb.ConvolutionKind.DEPTHWISE)), 1),
        (graph(fb.Convolution(kind=fb.ConvolutionKind.WINOGRAD)), 2),
        (graph(fb.Convert()), 3),
        (graph(fb.DynamicProduct()), 3),
        (graph(fb.QuantizedProduct(requantize=fb.Requantize())), 3),
        (graph(fb.QuantizedProduct(residual=fb.QuantizedResidual())), 4),
        (graph(fb.Softmax(), dtype=HALF), 5),
        (graph(fb.Copy(), dtype=BFLOAT16), 5),
        (graph(fb.Gather(), 2, BFLOAT16), 5),
        (graph(fb.Gather(columns=4), 2, BFLOAT16), 1),
        (graph(fb.Product(), 3), 1),
        (graph(fb.Product(), 4), 5),
    ],
)
def test_operations_and_dtypes_need_a_version(payload: fb.Graph, version: int) -> None:
    assert least_version(payload) == version


def test_dynamic_sizes_and_weights_in_halves_need_the_second_version() -> None:
    dynamic = [graph(fb.Softmax()) for _ in range(5)]
    dynamic[0].expressions = [fb.Expression()]
    dynamic[1].arguments = [0, 1]
    dynamic[2].values[0].dynamic_sizes = [0]
    dynamic[3].values[0].dynamic_offset = 0
    dynamic[4].values.append(fb.Value(BFLOAT16, [4], [1], fb.Place.CONSTANT))
    assert [least_version(payload) for payload in dynamic] == [2] * 5


def test_a_newer_field_deep_inside_is_seen_among_many_nodes() -> None:
    payload = graph(fb.Softmax())
    payload.nodes += graph(fb.QuantizedConvolution(residual=fb.QuantizedResidual())).nodes
    payload.nodes += graph(fb.Norm()).nodes
    assert least_version(payload) == 4


@pytest.mark.parametrize(
    ("field", "union"),
    [
        ("epilogue", operations.WithEpilogue),
        ("residual", operations.WithResidual),
        ("kind", operations.AnyConvolution | fb.Reduction | fb.QuantizedBinary),
    ],
)
def test_unions_name_all_operations_that_have_a_field(field: str, union: object) -> None:
    having = {c for c in typing.get_args(fb.Operation) if field in {f.name for f in fields(c)}}
    assert having == set(typing.get_args(union))


def test_programs_and_epilogues_are_found() -> None:
    program = fb.TileProgram([1, 2, 3])
    epilogue = fb.Epilogue(program=program)
    assert operations.program_of(fb.Elementwise(program)) is program
    assert operations.program_of(fb.Product(epilogue=epilogue)) is program
    assert operations.program_of(fb.Softmax()) is None
    assert operations.program_of(fb.Product()) is None
    assert operations.epilogue_of(fb.Convolution(epilogue=epilogue)) is epilogue
    assert operations.epilogue_of(fb.Elementwise(program)) is None
    residual = fb.QuantizedResidual()
    assert operations.residual_of(fb.QuantizedConvolution(residual=residual)) is residual
    assert operations.residual_of(fb.DynamicProduct()) is None
