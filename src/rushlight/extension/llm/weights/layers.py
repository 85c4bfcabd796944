"""Quantising the layers of a module in place, by torchao's `quantize_`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torchao.quantization import quantize_
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.quant_api import (
    Int4WeightOnlyConfig,
    Int8DynamicActivationIntxWeightConfig,
    IntxWeightOnlyConfig,
)

from rushlight.errors import Code, ExportError
from rushlight.exir.api_warnings import experimental
from rushlight.extension.llm.weights.nvfp4 import ExportableNVFP4Config
from rushlight.extension.llm.weights.packed import INT4

_SEARCH = "hqq_scale_only"
_DYNAMIC, _STORED = ("8da4w", "8da8w"), ("4w", "8w")
_LINEAR = (*_STORED, *_DYNAMIC, "nvfp4")
_EMBEDDING = (*_STORED, "nvfp4")


@experimental("quantize_model_() may change")
def quantize_model_(
    module: torch.nn.Module,
    qlinear_config: str | None = None,
    qlinear_group_size: int | None = None,
    qlinear_packing_format: str | None = None,
    qembedding_config: str | None = None,
    qembedding_group_size: int | None = None,
    tie_word_embeddings: bool = False,
    skip_incompatible_shapes: bool = False,
) -> None:
    """Quantise the linear layers and embeddings of a module in place.

    Args:
        module: changed.
        qlinear_config: of linear layers: "4w" or "8w", stored in integers; "8da4w" or "8da8w",
            with inputs that are quantised to 8 bits at run time; "nvfp4"; None: not at all.
        qlinear_group_size: how many neighbours of a row share a scale; 0: a row. Default: 32 for 4
            bits, 16 for nvfp4, 0 for 8 bits.
        qlinear_packing_format: of "4w", as torchao's `Int4WeightOnlyConfig` takes it.
        qembedding_config: of embeddings: "4w", "8w", "nvfp4" or None.
        qembedding_group_size: as for linear layers.
        tie_word_embeddings: share `model.embed_tokens.weight` with `lm_head` again, if both are
            quantised in the same way.
        skip_incompatible_shapes: leave layers out whose sizes the group does not divide, with a
            warning.

    Raises:
        ExportError: there is no such configuration, or a layer's sizes do not fit it.
    """
    kinds: tuple[tuple[Any, str | None, int | None, tuple[str, ...], str | None], ...] = (
        (
            torch.nn.Embedding,
            qembedding_config,
            qembedding_group_size,
            _EMBEDDING,
            None,
        ),
        (
            torch.nn.Linear,
            qlinear_config,
            qlinear_group_size,
            _LINEAR,
            qlinear_packing_format,
        ),
    )
    for kind, config, size, known, packing in kinds:
        if not config:
            continue
        group = _default_group(config) if size is None else size
        chosen = _config(config, group, known, packing, kind.__name__)
        quantize_(module, chosen, _filter(kind, config, group, skip_incompatible_shapes))
    if tie_word_embeddings and qlinear_config == qembedding_config:
        _tie(module)


def _default_group(config: str) -> int:
    return 16 if config == "nvfp4" else 0 if config in ("8w", "8da8w") else 32


def _config(
    config: str, group: int, known: tuple[str, ...], packing: str | None, layer: str
) -> Any:
    """What torchao's `quantize_` takes."""
    if config not in known:
        advice = ""
        if config == "fpa4w":
            advice = ": fpa4w needs torchao's kernels for Apple's GPUs"
        raise ExportError(
            f"{layer} cannot be quantised by {config!r}{advice}; give one of {known}",
            code=Code.INVALID_ARGUMENT,
        )
    if config == "nvfp4":
        if group != 16:
            raise ExportError(
                f"nvfp4 has groups of 16, not of {group}: leave the group size out",
                code=Code.INVALID_ARGUMENT,
            )
        return ExportableNVFP4Config(use_per_tensor_scale=False)
    if config == "4w" and packing:
        return Int4WeightOnlyConfig(
            group_size=group,
            int4_packing_format=packing,
            int4_choose_qparams_algorithm="hqq",
        )
    granularity = PerGroup(group) if group else PerAxis(0)
    dtype = INT4 if config.endswith("4w") else torch.int8
    if config in _DYNAMIC:
        return Int8DynamicActivationIntxWeightConfig(
            weight_dtype=dtype,
            weight_granularity=granularity,
            intx_choose_qparams_algorithm=_SEARCH,
        )
    return IntxWeightOnlyConfig(
        weight_dtype=dtype,
        granularity=granularity,
        intx_choose_qparams_algorithm=_SEARCH,
    )


def _filter(kind: Any, config: str, group: int, skip: bool) -> Callable[[Any, str], bool]:
    """Says which modules are quantised."""

    def is_chosen(module: Any, name: str) -> bool:
        if not isinstance(module, kind):
            return False
        sizes = module.weight.shape[-2:] if config == "nvfp4" else module.weight.shape[-1:]
        if not group or all(size % group == 0 for size in sizes):
            return True
        told = f"{name}: the weight is {list(module.weight.shape)}, which groups of {group} "
        told += f"({config}) do not divide"
        if not skip:
            raise ExportError(
                f"{told}: choose another group size, or skip_incompatible_shapes=True",
                code=Code.INVALID_ARGUMENT,
            )
        warnings.warn(f"{told}: it is not quantised", stacklevel=2)
        return False

    return is_chosen


def _tie(module: torch.nn.Module) -> None:
    embedding: Any = getattr(getattr(module, "model", None), "embed_tokens", None)
    head: Any = getattr(module, "lm_head", None)
    if embedding is not None and head is not None:
        head.weight = embedding.weight
