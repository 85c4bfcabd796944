"""The xnnpack backend on whole models in integers, beside real ExecuTorch's own exporter."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
import torch
from xnnpack_models import left
from xnnpack_quantized import Quantizer, lowered, nodes_in

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop


@pytest.fixture
def peer(executorch: ExecuTorch, tmp_path: Path) -> Quantizer:
    torch.manual_seed(0)  # whatever was drawn before
    return Quantizer(executorch, tmp_path)


@pytest.mark.parametrize(
    "name", ["resnet50_tiny", pytest.param("mobilenet_v2_tiny", marks=pytest.mark.full)]
)
def test_images_in_integers(peer: Quantizer, models: ModuleType, name: str) -> None:
    """No number in between is real."""
    case = models.build(name)
    program = peer.quantized_program(case.export(), tuple(case.leaves()))
    edge = lowered(program)
    print(left(edge))
    ours, theirs = bytes(edge.to_executorch().buffer), peer.theirs(program)
    a, b = (Counter(n for n, _, _ in nodes_in(p)) for p in (ours, theirs))
    print(a)
    print(b)
    print(len(ours), len(theirs))
    for one, other in zip(peer.results(ours, *case.leaves()), peer.results(theirs, *case.leaves())):
        print((one - other).abs().max(), one.abs().max(), other.abs().max())
    assert 0


def test_text_by_rows(peer: Quantizer, models: ModuleType) -> None:
    case = models.build("minilm_tiny")
    program = peer.quantized_program(case.export(), tuple(case.leaves()), dynamic=True)
    edge = lowered(program)
    print(left(edge))
    ours, theirs = bytes(edge.to_executorch().buffer), peer.theirs(program)
    a, b = (Counter(n for n, _, _ in nodes_in(p)) for p in (ours, theirs))
    print(a)
    print(b)
    print(len(ours), len(theirs))
    for one, other in zip(peer.results(ours, *case.leaves()), peer.results(theirs, *case.leaves())):
        print((one - other).abs().max(), one.abs().max(), other.abs().max())
    assert 0
