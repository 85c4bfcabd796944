"""The xnnpack backend on whole models in integers, beside real ExecuTorch's own exporter."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from xnnpack_models import left, nodes_of
from xnnpack_quantized import Quantizer, by_rows, lowered, nodes_in

from delegates import flat

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop


@pytest.fixture
def peer(executorch: ExecuTorch, tmp_path: Path) -> Quantizer:
    return Quantizer(executorch, tmp_path)


@pytest.mark.full
def test_resnet_in_integers(peer: Quantizer, models: ModuleType) -> None:
    """Between the first and the last node, all values are integers."""
    case = models.build("resnet50_tiny")
    images = tuple(case.leaves())
    program = peer.quantized_program(case.export(), images)
    nodes = peer.agree(program, images, [x * 2 for x in images])
    assert nodes[0] == nodes[-1] == "Convert" and nodes.count("Convert") == 2
    assert nodes.count("StaticTranspose") == 1


@pytest.mark.full
def test_mobilenet_in_integers(peer: Quantizer, models: ModuleType) -> None:
    """ExecuTorch's quantizer gives a pad another scale than what it pads: it is padding of the
    convolution all the same."""
    case = models.build("mobilenet_v2_tiny")
    images = tuple(case.leaves())
    nodes = peer.agree(peer.quantized_program(case.export(), images), images)
    assert "StaticConstantPad" not in nodes and nodes.count("StaticTranspose") == 1


@pytest.mark.parametrize(
    "name", ["mobilenet_v2_tiny", pytest.param("resnet50_tiny", marks=pytest.mark.full)]
)
def test_our_quantizer(peer: Quantizer, models: ModuleType, name: str) -> None:
    """Activations and pads are part of convolutions, and every result is that of the graph."""
    from rushlight.quantization import quantize

    case = models.build(name)
    images = tuple(case.leaves())
    program = quantize(case.module, images, calibrate=[images], recipe="int8")
    edge = lowered(program)
    nodes = nodes_of(edge)
    assert not left(edge) and {*nodes}.isdisjoint({"Clamp", "StaticConstantPad"})
    assert nodes.count("Convert") == 2 and nodes.count("StaticTranspose") == 1
    [result] = peer.results(bytes(edge.to_executorch().buffer), *images)
    [expected] = flat(program.module()(*images))
    errors = (result - expected).abs() / expected.abs().max() * 127
    assert float(errors.max()) < 4 and float((errors > 0.01).float().mean()) < 0.1


@pytest.mark.parametrize(("bits", "group"), [(8, 0), pytest.param(4, 32, marks=pytest.mark.full)])
def test_text_by_rows(peer: Quantizer, models: ModuleType, bits: int, group: int) -> None:
    """Real numbers may differ in their last digits, and so may integers computed from them."""
    case = models.build("minilm_tiny")
    by_rows(case.module, bits, group)
    program, inputs = case.export(), case.leaves()
    edge = lowered(program)
    ours, theirs = bytes(edge.to_executorch().buffer), peer.theirs(program)
    counts = [Counter(name for name, *_ in nodes_in(pte)) for pte in (ours, theirs)]
    assert counts[0]["FullyConnected"] == counts[1]["FullyConnected"] == 12
    assert counts[0]["Convert"] == 8  # queries, keys and values are of the same rows
    assert not any("quantize" in name for name in left(edge))
    for one, other in zip(peer.results(ours, *inputs), peer.results(theirs, *inputs), strict=True):
        assert float((one - other).abs().max()) <= 0.01 * float(other.abs().max())
