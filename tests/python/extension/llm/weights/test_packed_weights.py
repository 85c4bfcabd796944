"""Packed weights: torchao and the package gguf say which numbers they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from torch.nn import functional
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
from torchao.quantization import IntxUnpackedToInt8Tensor, IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerGroup

import rushlight
from rushlight.errors import ExportError, ExportNotImplementedError
from rushlight.extension.llm.weights.gguf import ExportableGGUFTensor, iter_gguf, merged_groups
from rushlight.extension.llm.weights.int4 import ExportableInt4Tensor
from rushlight.extension.llm.weights.layers import quantize_model_
from rushlight.extension.llm.weights.nvfp4 import ExportableNVFP4Config
from rushlight.extension.llm.weights.packed import INT4, PackedWeight

KINDS = {
    "q4_k": gguf.GGMLQuantizationType.Q4_K,
    "q5_k": gguf.GGMLQuantizationType.Q5_K,
    "q6_k": gguf.GGMLQuantizationType.Q6_K,
}


class Layer(torch.nn.Module):
    """A linear layer of a packed weight."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.weight)


def blocks_of(kind: str, rows: int = 3, columns: int = 512) -> torch.Tensor:
    """Random blocks whose scales are numbers."""
    size = gguf.GGML_QUANT_SIZES[KINDS[kind]][1]
    made = np.random.default_rng(0).integers(0, 256, (rows * columns // 256, size), np.uint8)
    at = (0, 2) if kind != "q6_k" else (208,)
    for first in at:
        made[:, first : first + 2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
    return torch.from_numpy(made.reshape(rows, -1))


def four_bits(rows: int = 8, columns: int = 64) -> Any:
    """Torchao's own weight of 4 bits."""
    layer = torch.nn.Linear(columns, rows, bias=False)
    quantize_(layer, IntxWeightOnlyConfig(weight_dtype=INT4, granularity=PerGroup(32)))
    return layer.weight


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_stand_for_what_gguf_says(kind: str) -> None:
    raw = blocks_of(kind)
    weight = ExportableGGUFTensor.from_raw(raw, kind)
    wanted = torch.from_numpy(gguf.dequantize(raw.numpy(), KINDS[kind]).copy())
    assert weight.shape == (3, 512) and weight.dtype == torch.bfloat16
    assert torch.equal(weight.dequantize(torch.float32), wanted)
    unpacked = weight.to_intx_unpacked_to_int8_tensor(scale_dtype=torch.float32)
    assert isinstance(unpacked, IntxUnpackedToInt8Tensor)
    torch.testing.assert_close(unpacked.dequantize(), wanted, atol=1e-4, rtol=1e-4)
    joined = weight.to_intx_unpacked_to_int8_tensor(max_group_size=128, scale_dtype=torch.float32)
    assert torch.equal(joined.dequantize(), unpacked.dequantize())
    x = torch.randn(2, 512)
    real = weight.to(torch.float32)
    assert torch.equal(functional.linear(x, real), functional.linear(x, wanted))
    rows = torch.tensor([2, 0])
    assert torch.equal(functional.embedding(rows, weight), wanted[rows].bfloat16())


def test_blocks_of_4_bits_are_packed_again() -> None:
    weight = ExportableGGUFTensor.from_raw(blocks_of("q4_k"), "q4_k", torch.float32)
    packed = weight.to_exportable_int4_tensor()
    torch.testing.assert_close(packed.dequantize(), weight.dequantize(), atol=1e-4, rtol=1e-4)
    with pytest.raises(ExportNotImplementedError, match="more than 4 bits"):
        ExportableGGUFTensor.from_raw(blocks_of("q6_k"), "q6_k").to_exportable_int4_tensor()


def test_equal_groups_are_joined() -> None:
    scales = torch.tensor([[1.0, 1.0, 2.0, 2.0]])
    size, joined, _ = merged_groups(scales, torch.zeros(1, 4), 32, 128)
    assert size == 64 and joined.tolist() == [[1.0, 2.0]]
    assert merged_groups(scales, torch.arange(4.0).reshape(1, 4), 32, 128)[0] == 32
    assert merged_groups(torch.ones(1, 4), torch.zeros(1, 4), 32, 64)[0] == 64


def test_4_bits_stand_for_what_torchao_says() -> None:
    theirs = four_bits()
    weight = ExportableInt4Tensor.from_intx_unpacked_to_int8_tensor(theirs)
    assert weight.qdata.shape == (8, 32) and weight.scale.shape == (2, 8)
    assert torch.equal(weight.dequantize(), theirs.dequantize())
    half = weight.to(torch.float16)
    assert half.dtype == half.scale.dtype == half.dequantize().dtype == torch.float16
    assert torch.equal(half.qdata, weight.qdata)
    with pytest.raises(AssertionError, match="a floating dtype"):
        weight.to(torch.int8)


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
def test_programs_multiply_by_packed_weights(backend: str) -> None:
    made = ExportableInt4Tensor.from_intx_unpacked_to_int8_tensor(four_bits())
    blocks = ExportableGGUFTensor.from_raw(blocks_of("q5_k"), "q5_k", torch.float32)
    for weight in (made, blocks):
        layer, x = Layer(weight), torch.randn(2, weight.shape[1])
        captured = torch.export.export(layer, (x,)).run_decompositions({})
        calls = {str(n.target) for n in captured.graph.nodes if n.op == "call_function"}
        assert any("torchao.dequantize" in call for call in calls)
        program = rushlight.export(captured, backend=backend)
        found = rushlight.load(program.buffer)(x)
        torch.testing.assert_close(found, functional.linear(x, weight.dequantize()))


def test_floats_of_4_bits_stand_for_what_torchao_says() -> None:
    layer = torch.nn.Linear(32, 16, bias=False)
    theirs = NVFP4Tensor.to_nvfp4(layer.weight.detach(), block_size=16)
    quantize_model_(layer, "nvfp4")
    weight: Any = layer.weight
    assert isinstance(weight, PackedWeight)
    torch.testing.assert_close(weight.dequantize(), theirs.dequantize(torch.float32))
    assert weight.to(torch.float16).dequantize().dtype == torch.float16
    whole = torch.nn.Linear(32, 16, bias=False)
    before = whole.weight.detach().clone()
    quantize_(whole, ExportableNVFP4Config())
    assert float((whole.weight.dequantize() - before).abs().max()) < 0.2 * float(before.abs().max())
    with pytest.raises(ExportError, match="multiples of 16"):
        quantize_(torch.nn.Linear(24, 16), ExportableNVFP4Config())


def test_layers_are_quantised_in_place() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(8, 64), torch.nn.Linear(64, 4))
    tokens = torch.arange(8)
    wanted = model(tokens).detach()
    quantize_model_(model, "8w", qembedding_config="4w")
    found = model(tokens).detach()
    assert 0 < float((found - wanted).abs().max()) < 0.3 * float(wanted.abs().max())
    odd = torch.nn.Sequential(torch.nn.Linear(33, 4))
    with pytest.raises(ExportError, match="skip_incompatible_shapes=True"):
        quantize_model_(odd, "8da4w")
    with pytest.warns(UserWarning, match="not quantised"):
        quantize_model_(odd, "8da4w", skip_incompatible_shapes=True)
    with pytest.raises(ExportError, match="Apple's GPUs"):
        quantize_model_(odd, "fpa4w")
    with pytest.raises(ExportError, match="Embedding cannot"):
        quantize_model_(odd, qembedding_config="8da4w")


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(str(path), "test")
    raw = blocks_of("q6_k")
    writer.add_tensor("w", raw.numpy(), raw_dtype=KINDS["q6_k"])
    writer.add_tensor("half", np.ones((2, 4), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = dict(iter_gguf(str(path)))
    assert torch.equal(found["w"].raw, raw) and found["w"].ggml_type == "q6_k"
    assert torch.equal(found["half"], torch.ones(2, 4, dtype=torch.float16))


def test_what_is_no_block_is_refused() -> None:
    raw = blocks_of("q4_k")
    with pytest.raises(ValueError, match="uint8"):
        ExportableGGUFTensor.from_raw(raw.float(), "q4_k")
    with pytest.raises(ValueError, match="whole blocks"):
        ExportableGGUFTensor.from_raw(raw[:, 1:], "q4_k")
    with pytest.raises(ExportNotImplementedError, match="q2_k"):
        ExportableGGUFTensor.from_raw(raw, "q2_k")
