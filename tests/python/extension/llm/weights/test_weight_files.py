"""Weights that are quantised by recipes, written by torchao and safetensors, and read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import IntxUnpackedToInt8Tensor
from torchao.quantization.quantize_.workflows.int4.int4_tensor import Int4Tensor

from rushlight.extension.llm.weights.checkpoint import (
    assign_state_dict,
    iter_checkpoint,
    load_checkpoint,
)
from rushlight.extension.llm.weights.convert import (
    fuse_along_output,
    identity,
    maybe_cast,
    to_default,
)
from rushlight.extension.llm.weights.int4 import ExportableInt4Tensor
from rushlight.extension.llm.weights.quantize import (
    dequantize_weight,
    quantize_model,
    quantize_stream,
    quantize_weight,
)
from rushlight.extension.llm.weights.recipe import QuantConfig, QuantRecipe, QuantRule

INT4, INT8 = QuantConfig(4, 32, True, "min_max"), QuantConfig(8, 32, True, "min_max")


@pytest.mark.parametrize("method", ["min_max", "hqq"])
@pytest.mark.parametrize("bits", [4, 5, 6, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_numbers_are_within_a_step_of_the_weight(bits: int, symmetric: bool, method: str) -> None:
    weight = torch.randn(8, 64)
    config = QuantConfig(bits, 32, symmetric, method)
    if method == "hqq" and not symmetric and bits != 4:
        with pytest.raises(ValueError, match="no zero points"):
            quantize_weight(weight, config)
        return
    made = quantize_weight(weight, config)
    assert isinstance(made, Int4Tensor if bits == 4 else IntxUnpackedToInt8Tensor)
    groups = weight.unflatten(1, (-1, 32))
    # A scale in bfloat16 has 8 bits, and scales that are searched for clip the largest.
    step = 2 * groups.abs().amax(-1, keepdim=True) / (2**bits - 1)
    allowed = step * (0.6 if method == "min_max" else 2) + groups.abs() / 100 + 1e-3
    error = (dequantize_weight(made) - weight).unflatten(1, (-1, 32)).abs()
    assert bool((error <= allowed).all())


def test_the_first_rule_that_matches_counts() -> None:
    recipe = QuantRecipe(
        [
            QuantRule(r".*norm.*", None),
            QuantRule(r"layers\.\d+\.w", INT4, layers={0, 2}),
            QuantRule(r".*w", INT8),
        ]
    )
    found = [recipe.get_config(name) for name in ("norm.w", "layers.2.w", "layers.1.w", "b")]
    assert found == [None, INT4, INT8, None]


def test_what_does_not_exist_is_refused() -> None:
    weight = torch.randn(2, 64)
    for config, message in (
        (QuantConfig(3, 32, True, "min_max"), "bits=3"),
        (QuantConfig(4, 32, True, "best"), "method='best'"),
        (QuantConfig(4, 48, True, "min_max"), "group_size=48"),
    ):
        with pytest.raises(ValueError, match=message):
            quantize_weight(weight, config)
    with pytest.raises(TypeError, match="no quantised weight"):
        dequantize_weight(weight)


def test_outputs_are_joined() -> None:
    first, second = torch.randn(4, 64), torch.randn(2, 64)
    for config in (INT4, INT8):
        parts = [to_default("", quantize_weight(w, config)) for w in (first, second)]
        joined = fuse_along_output(parts)
        wanted = torch.cat([dequantize_weight(part) for part in parts])
        assert torch.equal(dequantize_weight(joined), wanted)
    assert torch.equal(fuse_along_output([first, second]), torch.cat([first, second]))
    packed: Any = to_default("", quantize_weight(first, INT4))
    with pytest.raises(TypeError, match="different forms"):
        fuse_along_output([first, packed])
    other = to_default("", quantize_weight(first, QuantConfig(4, 16, True, "min_max")))
    with pytest.raises(ValueError, match="group_size"):
        fuse_along_output([packed, other])
    with pytest.raises(ValueError, match="one or more"):
        fuse_along_output([])


class Tied(torch.nn.Module):
    """An embedding and an output layer of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(8, 64)
        self.head = torch.nn.Linear(64, 8, bias=False)
        self.register_buffer("counts", torch.arange(3))


RECIPE = QuantRecipe([QuantRule(r"table\.weight", INT4), QuantRule(r"head\.weight", INT8)])


def test_models_get_quantised_weights() -> None:
    model = Tied()
    made = quantize_model(model, RECIPE, dtype=torch.float32)
    assert isinstance(made["table.weight"], ExportableInt4Tensor)
    assert torch.equal(made["counts"], model.counts)
    tokens = torch.arange(8)
    wanted = model.head(model.table(tokens)).detach()
    assign_state_dict(model, made)
    found = model.head(model.table(tokens))
    assert float((found - wanted).abs().max()) < 0.2 * float(wanted.abs().max())
    assert not any(weight.requires_grad for weight in model.parameters())


def test_files_of_torchao_are_read_weight_by_weight(tmp_path: Path) -> None:
    model = Tied()
    weights = ((name, weight.data) for name, weight in model.named_parameters())
    stream = dict(quantize_stream(weights, RECIPE))
    tensors, metadata = flatten_tensor_state_dict(stream)
    save_file(tensors, tmp_path / "model.safetensors", metadata)
    raw = dict(iter_checkpoint(str(tmp_path), convert=identity))
    assert raw.keys() == stream.keys() and isinstance(raw["table.weight"], Int4Tensor)
    assert torch.equal(
        dequantize_weight(raw["head.weight"]), dequantize_weight(stream["head.weight"])
    )
    found = dict(iter_checkpoint(str(tmp_path), dtype=torch.float16))
    assert isinstance(found["table.weight"], ExportableInt4Tensor)
    assert found["table.weight"].dtype == torch.float16


def test_names_are_mapped_and_tied(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    weight = torch.randn(8, 64)
    save_file({"old.weight": weight, "unused": torch.ones(1)}, path)
    with torch.device("meta"):
        model = Tied()
    names = {"old.weight": "table.weight", "unused": None}
    with pytest.raises(RuntimeError, match=r"head\.weight is not in the checkpoint"):
        load_checkpoint(str(path), model, key_map=names.__getitem__)
    tie = {"table.weight": ("head.weight", True)}
    load_checkpoint(str(path), model, key_map=names.__getitem__, tie_map=tie)
    assert torch.equal(model.table.weight, weight) and torch.equal(model.head.weight, weight)
    assert model.table.weight.data_ptr() != model.head.weight.data_ptr()
    mine = [("a", torch.ones(2))]
    assert dict(iter_checkpoint("anywhere", raw_iter=lambda _: mine)).keys() == {"a"}
    with pytest.raises(ValueError, match="no checkpoint"):
        list(iter_checkpoint("m.bin"))
    with pytest.raises(RuntimeError, match="neither"):
        list(iter_checkpoint(str(tmp_path)))


def test_integers_are_not_cast() -> None:
    numbers = torch.arange(3)
    assert maybe_cast(numbers, torch.float16) is numbers
    assert maybe_cast(numbers.float(), torch.float16).dtype == torch.float16
