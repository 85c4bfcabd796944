"""Recipes: in what the weights of a language model are stored, and how they are computed with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.ir.mapped_weights import to_file, were_read
from rushlight.llm.weights.layers import (
    QuantizedEmbedding,
    QuantizedLinear,
    QuantizedWeight,
    StoredEmbedding,
    StoredLinear,
)
from rushlight.llm.weights.rounding import quantised

Tensor = torch.Tensor
GROUP_SIZES = (32, 64, 128, 256)
DEFAULT_GROUP = 32
FLOATS = {"float32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
BITS = {"int8": 8, "8da4w": 4}
NAMES = (*FLOATS, *BITS)
EMBEDDINGS = {"int8": 8, "int4": 4}


@dataclass(frozen=True)
class Recipe:
    """How a language model is stored.

    Attributes:
        name: one of `NAMES`, or None: the weights in the dtypes that the model has. Computed is
            always in float32, or with rows of 8 bits in `int8` and `8da4w`.
        group_size: of weights of 4 bits: how many neighbouring ones of a row share a scale; None
            for `DEFAULT_GROUP`.
        embedding: "int8" or "int4" for the embedding of tokens in integers; None for floats.
    """

    name: str | None = None
    group_size: int | None = None
    embedding: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None and self.name not in NAMES:
            raise ExportError(
                f"quantize={self.name!r}: give one of {', '.join(NAMES)}, or None for the dtypes "
                f"that the model has",
                code=Code.NOT_FOUND,
            )
        if self.group_size is not None and self.group_size not in GROUP_SIZES:
            raise ExportError(
                f"group_size={self.group_size!r}: give one of {', '.join(map(str, GROUP_SIZES))}",
                code=Code.INVALID_ARGUMENT,
            )
        if self.embedding is not None and self.embedding not in EMBEDDINGS:
            raise ExportError(
                f"quantize_embedding={self.embedding!r}: give one of {', '.join(EMBEDDINGS)}, or "
                f"None",
                code=Code.NOT_FOUND,
            )
        if self.group_size is not None and 4 not in (self.bits, self.embedding_bits):
            raise ExportError(
                f"group_size={self.group_size}: only weights of 4 bits have groups: give "
                f"quantize='8da4w' or quantize_embedding='int4', or leave group_size out",
                code=Code.INVALID_ARGUMENT,
            )

    @property
    def dtype(self) -> torch.dtype | None:
        """In what weights that stay floats are stored; None for the dtype that they have."""
        return FLOATS.get(self.name or "")

    @property
    def bits(self) -> int | None:
        """Of the weights of linear layers; None for floats."""
        return BITS.get(self.name or "")

    @property
    def embedding_bits(self) -> int | None:
        """Of the embedding of tokens; None for floats."""
        return EMBEDDINGS.get(self.embedding or "")

    def group_of(self, bits: int) -> int:
        """How many neighbours of a row share a scale in weights of so many bits; 0 if all do."""
        return (self.group_size or DEFAULT_GROUP) if bits == 4 else 0


def convert_layers(model: torch.nn.Module, recipe: Recipe, *, embedding: Any = None) -> None:
    """Replace the layers of `model` by those of a recipe, one after the other.

    A weight that layers share is stored once. What is left is computed in float32.

    Args:
        model: is changed.
        recipe: how layers are stored.
        embedding: the layer that has a row for each token, if the recipe says how it is stored.

    Raises:
        ExportError: the embedding is the output layer, too, or a weight is infinite or NaN.
    """
    layers = [(name, layer) for name, layer in model.named_modules() if _is_layer(layer)]
    outputs = {id(layer.weight) for _, layer in layers if _is_linear(layer)}
    rows = None if embedding is None else id(embedding.weight)
    if rows in outputs:
        raise ExportError(
            f"quantize_embedding={recipe.embedding!r}: the model's embedding is tied to its output "
            f"layer, and stored once, as quantize= has that layer: leave quantize_embedding out, "
            f"and give quantize='int8' or '8da4w' for integers",
            code=Code.INVALID_ARGUMENT,
        )
    made: dict[tuple[int, int | None], Tensor | QuantizedWeight] = {}
    kept = []  # so that no other tensor gets the id of one that was replaced
    for name, layer in layers:
        # Other tables, such as those of positions, stay floats.
        of_tokens = recipe.embedding_bits if id(layer.weight) == rows else None
        bits = recipe.bits if id(layer.weight) in outputs else of_tokens
        key = id(layer.weight), bits
        if key not in made:
            kept.append(layer.weight)
            made[key] = _stored(layer, bits, recipe, name)
        model.set_submodule(name, _layer(layer, made[key], recipe))
        were_read()
    for part in model.modules():
        if not isinstance(part, StoredLinear | StoredEmbedding):
            _make_single(part)


def _is_layer(layer: Any) -> bool:
    kinds = torch.nn.Embedding | StoredEmbedding | QuantizedEmbedding
    return _is_linear(layer) or isinstance(layer, kinds)


def _is_linear(layer: Any) -> bool:
    kinds = torch.nn.Linear | StoredLinear | QuantizedLinear
    return isinstance(layer, kinds) or type(layer).__name__ == "Conv1D"


def _stored(layer: Any, bits: int | None, recipe: Recipe, name: str) -> Tensor | QuantizedWeight:
    weight = layer.weight
    if isinstance(weight, QuantizedWeight) and _is_kept(weight, bits, recipe):
        return weight
    if bits is not None:
        return quantised(_rows(layer), bits, recipe.group_of(bits), name)
    if isinstance(weight, QuantizedWeight):
        weight = weight.converted(recipe.dtype or torch.float32)
    else:
        weight = _rows(layer)
        own = torch.float32 if weight.dtype == torch.float64 else weight.dtype
        dtype = recipe.dtype or own
        weight = weight if dtype == weight.dtype else to_file(weight, dtype)
    return torch.nn.Parameter(weight, requires_grad=False)


def _rows(layer: Any) -> Any:
    """The weight with a row for each output: of GPT-2's linear layer, [in, out], the transpose."""
    weight = layer.weight
    if isinstance(weight, Tensor):
        weight = weight.detach()
    return weight.t() if type(layer).__name__ == "Conv1D" else weight


def _is_kept(weight: QuantizedWeight, bits: int | None, recipe: Recipe) -> bool:
    """Whether weights that come in integers are stored as they are."""
    if bits is None:
        return recipe.dtype is None
    return (weight.bits, weight.group_size) == (bits, recipe.group_of(bits))


def _layer(layer: Any, weight: Tensor | QuantizedWeight, recipe: Recipe) -> torch.nn.Module:
    """The layer that computes with a stored weight."""
    if _is_linear(layer):
        bias = None if layer.bias is None else layer.bias.detach().float()
        if isinstance(weight, QuantizedWeight):
            return QuantizedLinear(weight, bias, in_groups=recipe.bits is None)
        return StoredLinear(weight, bias)
    factor = getattr(layer, "factor", 1.0)
    if isinstance(weight, QuantizedWeight):
        return QuantizedEmbedding(weight, factor)
    return StoredEmbedding(weight, factor)


def _make_single(part: torch.nn.Module) -> None:
    """Make a module's own parameters and buffers of other floating dtypes float32."""
    for name, tensor in [*part._parameters.items(), *part._buffers.items()]:
        if tensor is None or not tensor.is_floating_point() or tensor.dtype == torch.float32:
            continue
        single = tensor.detach().float()
        if name in part._parameters:
            part._parameters[name] = torch.nn.Parameter(single, requires_grad=False)
        else:
            part._buffers[name] = single
