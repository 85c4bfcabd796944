"""Layers that adapters (LoRA) may change: which there are, and what is put beside them."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.ir.custom_ops import adapter as _definition  # noqa: F401  # defines the operator
from rushlight.llm.description import MOST_RANK, Adapters, Description, Site
from rushlight.llm.exporter.families import Decoder
from rushlight.llm.exporter.rows import rows_of_step
from rushlight.llm.exporter.step import Step
from rushlight.llm.weights.layers import QuantizedLinear, QuantizedWeight, StoredLinear

Tensor = torch.Tensor


class AdaptedLinear(torch.nn.Module):
    """A linear layer, and what the adapters of its rows add.

    Args:
        layer: the layer.
        number: of the site.
        site: its sizes.
        rank: the greatest of an adapter.
    """

    def __init__(self, layer: torch.nn.Module, number: int, site: Site, rank: int) -> None:
        super().__init__()
        self.layer = layer
        self._arguments = [number], [site.outputs], rank

    def forward(self, x: Tensor) -> Tensor:
        """The layer's results with what is added."""
        made: Tensor = torch.ops.rushlight.adapter(
            self.layer(x), x, rows_of_step().sequences, *self._arguments
        )
        return made


def adapters_of(step: Step, about: Description, rank: int) -> Adapters:
    """The layers of a model that adapters may change: the linear ones of the decoder.

    Args:
        step: the model as it was read.
        about: the model.
        rank: the greatest of an adapter.

    Raises:
        ExportError: the rank is not possible, or there are no such layers.
    """
    if isinstance(rank, bool) or not isinstance(rank, int) or not 1 <= rank <= MOST_RANK:
        raise ExportError(
            f"adapters={rank!r}: give the greatest rank that an adapter may have, from 1 to "
            f"{MOST_RANK}",
            code=Code.INVALID_ARGUMENT,
        )
    if about.is_encoder:
        raise ExportError(
            "adapters=: an encoder takes none: merge the adapter into the model first, with "
            "merge_and_unload() of peft",
            code=Code.NOT_SUPPORTED,
        )
    layers = _layers(step, about)
    if not layers:
        raise ExportError(
            "adapters=: the model has no linear layers besides its output layer: leave it out",
            code=Code.INVALID_ARGUMENT,
        )
    digest = hashlib.sha256()
    sites = []
    for name, layer in layers.items():
        outputs, inputs = _sizes(layer)
        sites.append(Site(name, inputs, outputs))
        digest.update(f"{name} {inputs} {outputs} ".encode())
        digest.update(_sample(layer.weight))
    return Adapters(rank, digest.hexdigest()[:32], sites)


def adapt_layers(step: Step, adapters: Adapters) -> None:
    """Put an operator beside each layer that adapters may change.

    Args:
        step: is changed; its layers are converted already.
        adapters: from `adapters_of`.
    """
    decoder = _decoder(step)
    for number, site in enumerate(adapters.sites):
        layer = decoder.get_submodule(site.name)
        decoder.set_submodule(site.name, AdaptedLinear(layer, number, site, adapters.rank))


def _decoder(step: Step) -> Any:
    """The module whose layers are named as those of the model that adapters are trained with."""
    return step.decoder.base if isinstance(step.decoder, Decoder) else step.decoder


def _layers(step: Step, about: Description) -> dict[str, Any]:
    """The linear layers by their names, without the output layer of a module of one's own."""
    kinds = torch.nn.Linear | StoredLinear | QuantizedLinear
    layers = {
        name: layer
        for name, layer in _decoder(step).named_modules()
        if isinstance(layer, kinds) or type(layer).__name__ == "Conv1D"
    }
    if isinstance(step.decoder, Decoder):
        return layers
    return {name: one for name, one in layers.items() if _sizes(one)[0] != about.vocabulary}


def _sizes(layer: Any) -> tuple[int, int]:
    """The outputs and inputs of a linear layer."""
    weight = layer.weight
    shape = (weight.integers if isinstance(weight, QuantizedWeight) else weight).shape
    first, second = shape
    return (second, first) if type(layer).__name__ == "Conv1D" else (first, second)


def _sample(weight: Any) -> bytes:
    """A few of the numbers of a weight, which tell models of equal sizes apart."""
    if isinstance(weight, QuantizedWeight):
        weight = weight.integers[:1].float() * weight.scales[:1].mean()
    sample: bytes = weight[0].detach().float().numpy().tobytes()
    return sample
