"""Tensors of every type are what gguf's own reader makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf_files import random_blocks

from rushlight.errors import ExportError
from rushlight.llm.gguf.blocks import FORMS, OFFSET_FORMS, numbers_of
from rushlight.llm.gguf.file import GgufFile
from rushlight.llm.gguf.types import OTHERS, TYPES
from rushlight.llm.weights.layers import QuantizedWeight

FLOATS = ("F32", "F16", "BF16")
ROWS, DEPTH = 24, 512


def _file(tmp_path: Path, kind: str, data: np.ndarray) -> GgufFile:
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("odd", np.zeros(3, np.float32))  # so that the other does not lie first
    writer.add_tensor("weight", data, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return GgufFile(path)


def _bits(numbers: Any) -> np.ndarray:
    return np.asarray(numbers, np.float32).view(np.uint32)


def test_types_are_those_of_gguf() -> None:
    for number, kind in TYPES.items():
        known = gguf.GGMLQuantizationType(number)
        assert (kind.name, (kind.block, kind.block_bytes)) == (
            known.name,
            gguf.GGML_QUANT_SIZES[known],
        )
    known_names = {int(kind): kind.name for kind in gguf.GGMLQuantizationType}
    assert {**OTHERS, **{n: kind.name for n, kind in TYPES.items()}} == known_names


@pytest.mark.parametrize("kind", TYPES.values(), ids=lambda kind: kind.name)
def test_any_bytes_stand_for_the_numbers_of_gguf(kind: Any) -> None:
    blocks = np.random.randint(0, 256, (500, kind.block_bytes), dtype=np.uint8)
    with np.errstate(invalid="ignore"):
        wanted = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[kind.name])
    got = numbers_of(kind, blocks)
    is_none = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(got), is_none)
    np.testing.assert_array_equal(_bits(got[~is_none]), _bits(wanted[~is_none]))


@pytest.mark.parametrize("kind", FORMS)
def test_types_without_offsets_are_taken_as_they_are(kind: str, tmp_path: Path) -> None:
    data = random_blocks(kind, ROWS, DEPTH)
    file = _file(tmp_path, kind, data)
    weight = file.weight("weight")
    assert isinstance(weight, QuantizedWeight) and not file.losses
    assert weight.group_size == FORMS[kind].group
    wanted = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind])
    np.testing.assert_array_equal(_bits(weight.real()), _bits(wanted))


def test_every_type_has_a_form() -> None:
    assert {*FORMS, *OFFSET_FORMS, *FLOATS} == {kind.name for kind in TYPES.values()}


@pytest.mark.parametrize("kind", OFFSET_FORMS)
def test_other_types_are_requantised_and_the_loss_is_noted(kind: str, tmp_path: Path) -> None:
    data = random_blocks(kind, ROWS, DEPTH)
    file = _file(tmp_path, kind, data)
    weight = file.weight("weight")
    assert isinstance(weight, QuantizedWeight)
    wanted = torch.from_numpy(gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind]))
    error = (weight.real() - wanted).norm() / wanted.norm()
    [loss] = file.losses
    assert (loss.tensor, loss.type) == ("weight", kind)
    assert loss.decibels == pytest.approx(-20 * float(error.log10()), abs=0.01)
    assert loss.decibels > 45
    assert loss.stored == f"int8 in groups of {OFFSET_FORMS[kind].group}"


@pytest.mark.parametrize("kind", FLOATS)
def test_floats_keep_their_dtype(kind: str, tmp_path: Path) -> None:
    wanted = torch.randn(ROWS, DEPTH)
    number = gguf.GGMLQuantizationType[kind]
    weight = _file(tmp_path, kind, gguf.quants.quantize(wanted.numpy(), number)).weight("weight")
    dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind]
    assert torch.equal(weight, wanted.to(dtype))


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_1", "Q5_K"])
def test_scales_that_are_no_numbers_are_refused(kind: str, tmp_path: Path) -> None:
    data = random_blocks(kind, ROWS, DEPTH)
    data[3, 1] = 0x7C  # the first scale of row 3 is infinite
    data[3, 0] = 0
    with pytest.raises(ExportError, match="tensor 'weight' has NaN or infinite scales"):
        _file(tmp_path, kind, data).weight("weight")
