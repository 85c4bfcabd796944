"""Folders as `save_pretrained` of `peft` writes them: which layers an adapter changes, and how."""

from __future__ import annotations

import fnmatch
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.llm.exporter.checkpoint import Checkpoint

Tensor = torch.Tensor
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."
_NAME = re.compile(r"\^?([\w-]|\\?\.|\.\*)*\$?")
_KEY = re.compile(r"(?P<layer>.+)\.lora_(?P<part>[AB])\.weight")
MERGE = "merge the adapter into the model with merge_and_unload() and export that"
"""What to do with an adapter that no file can have."""
# Fields of the configuration that change more than what linear layers add up, and the advice.
_TRAIN = "train an adapter without it"
_REFUSED = {
    "use_dora": f"it scales the weights of the model's own layers, too: {MERGE}",
    "modules_to_save": f"it replaces whole layers of the model: {MERGE}",
    "lora_bias": f"its layers have biases: {MERGE}",
    "trainable_token_indices": f"it changes rows of the embedding: {MERGE}",
    "target_parameters": f"it changes parameters that are no linear layers: {MERGE}",
    "layer_replication": f"it changes the number of layers: {MERGE}",
    "use_qalora": f"it averages groups of inputs: {_TRAIN}",
    "use_bdlora": f"its matrices are made of blocks: {_TRAIN}",
    "alora_invocation_tokens": f"it begins in the middle of a text: {_TRAIN}",
    "arrow_config": f"it chooses among several adapters: {_TRAIN}",
    "lora_ga_config": f"it starts from changed weights of the model: {_TRAIN}",
}
# Initialisations that change the weights of the model which the adapter was trained with.
_OTHER_WEIGHTS = ("pissa", "olora", "corda", "loftq", "lora_ga")


@dataclass(frozen=True)
class Change:
    """What is added to a linear layer: a row x of its inputs adds (x A') B'.

    Attributes:
        a: [rank, in].
        b: [out, rank], with the scale of the adapter.
    """

    a: Tensor
    b: Tensor


@dataclass(frozen=True)
class PeftFolder:
    """An adapter of `peft`.

    Attributes:
        path: the folder.
        changes: by the names of layers as `peft` has them, without its own prefix.
        targets: the ends of names of all layers that were adapted; None where the configuration
            chooses them otherwise, so that it is not known which ones there were.
    """

    path: Path
    changes: Mapping[str, Change]
    targets: list[str] | None


def read_peft(path: Path) -> PeftFolder:
    """Read a folder.

    Args:
        path: of the folder.

    Raises:
        ExportError: a file is missing or damaged, or the adapter is of a kind that is not
            supported.
    """
    config = _config_of(path / CONFIG)
    _check(config, path / CONFIG)
    tensors = Checkpoint(path, single=WEIGHTS).tensors
    parts: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        match = _KEY.fullmatch(key)
        if match is None or tensor.dim() != 2 or not tensor.is_floating_point():
            raise ExportError(
                f"{path / WEIGHTS} has a tensor {key!r}, which is no matrix of a linear layer; "
                f"supported are lora_A and lora_B of such: {MERGE}",
                code=Code.NOT_SUPPORTED,
            )
        parts.setdefault(match["layer"].removeprefix(_PREFIX), {})[match["part"]] = tensor
    if not parts:
        raise ExportError(
            f"{path / WEIGHTS} has no tensors: save the adapter again",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    changes = {layer: _change(layer, one, config, path) for layer, one in parts.items()}
    return PeftFolder(path, changes, _targets(config))


def _config_of(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ExportError(
            f"{path.parent} has no {CONFIG}: give a folder as save_pretrained of peft writes it",
            code=Code.NOT_FOUND,
        )
    try:
        config = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{path} is no JSON: {error}", code=Code.INVALID_EXTERNAL_DATA) from error
    if not isinstance(config, dict):
        raise ExportError(f"{path} is no JSON object", code=Code.INVALID_EXTERNAL_DATA)
    return config


def _check(config: Mapping[str, Any], path: Path) -> None:
    """Refuse what is no plain LoRA."""
    kind = config.get("peft_type")
    if kind != "LORA":
        raise ExportError(
            f"{path} has peft_type {kind!r}; supported is 'LORA'", code=Code.NOT_SUPPORTED
        )
    for name, why in _REFUSED.items():
        if config.get(name):
            raise ExportError(f"{path} has {name}={config[name]!r}: {why}", code=Code.NOT_SUPPORTED)
    if config.get("bias", "none") != "none":
        raise ExportError(
            f"{path} has bias={config['bias']!r}: it changes biases of the model: {MERGE}",
            code=Code.NOT_SUPPORTED,
        )
    start = config.get("init_lora_weights")
    if isinstance(start, str) and start.lower().startswith(_OTHER_WEIGHTS):
        raise ExportError(
            f"{path} has init_lora_weights={start!r}: it was trained with changed weights of the "
            f"model: save it with path_initial_model_for_weight_conversion of peft",
            code=Code.NOT_SUPPORTED,
        )


def _change(
    layer: str, parts: Mapping[str, Tensor], config: Mapping[str, Any], path: Path
) -> Change:
    if set(parts) != {"A", "B"}:
        [part] = parts
        raise ExportError(
            f"{path / WEIGHTS} has lora_{part} of {layer!r} alone: the file is incomplete",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    a, b = parts["A"].float(), parts["B"].float()
    rank = a.shape[0]
    if b.shape[1] != rank or rank != _of_layer("r", "rank_pattern", layer, config, path):
        raise ExportError(
            f"{path / WEIGHTS} has lora_A {list(a.shape)} and lora_B {list(b.shape)} of {layer!r}, "
            f"whose ranks are not the one of {CONFIG}: the files are not of one adapter",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    alpha = _of_layer("lora_alpha", "alpha_pattern", layer, config, path)
    scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
    return Change(a, b * scale)


def _of_layer(name: str, pattern: str, layer: str, config: Mapping[str, Any], path: Path) -> float:
    """A number of the configuration, which may have another one for some layers."""
    values = config.get(pattern) or {}
    if not isinstance(values, dict):
        raise ExportError(
            f"{path / CONFIG} has {pattern} {values!r}, which is no object: save the adapter again",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    found = [value for key, value in values.items() if _matches(key, layer, path)]
    value = found[0] if found else config.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
        raise ExportError(
            f"{path / CONFIG} has {name} {value!r} for {layer!r}: give a positive number",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    return value


def _matches(key: str, layer: str, path: Path) -> bool:
    """Whether a key of a pattern is meant for a layer: a regular expression for its end.

    Such an expression of a file could take for ever, so that only names and `.*` are allowed.
    """
    if _NAME.fullmatch(key) is None:
        raise ExportError(
            f"{path / CONFIG} has a pattern with {key!r}: supported are names of layers, or their "
            f"ends, in which .* stands for any characters: list the layers there",
            code=Code.NOT_SUPPORTED,
        )
    name = key.removeprefix("^").removesuffix("$").replace(r"\.", ".").replace(".*", "*")
    names = (name,) if key.startswith("^") else (name, f"*.{name}")
    return any(fnmatch.fnmatchcase(layer, one) for one in names)


def _targets(config: Mapping[str, Any]) -> list[str] | None:
    """The ends of the names of all adapted layers, if that is how they were chosen."""
    targets = config.get("target_modules")
    chosen = ("layers_to_transform", "layers_pattern", "exclude_modules")
    is_plain = isinstance(targets, list) and all(isinstance(one, str) for one in targets)
    return targets if is_plain and not any(config.get(name) for name in chosen) else None
