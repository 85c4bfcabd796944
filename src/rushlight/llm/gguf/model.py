"""A GGUF file as a model of `transformers`, whose layers have the weights of the file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.ir.mapped_weights import to_file, were_read
from rushlight.llm.gguf.architectures import OUTPUT, Architecture, architecture_of
from rushlight.llm.gguf.facts import Facts
from rushlight.llm.gguf.file import GgufFile
from rushlight.llm.gguf.rope import TABLES
from rushlight.llm.gguf.texts import generation_of, special_tokens, template_of
from rushlight.llm.gguf.tokenizer import Vocabulary, tokenizer_of
from rushlight.llm.weights.layers import (
    QuantizedEmbedding,
    QuantizedLinear,
    QuantizedWeight,
    StoredEmbedding,
    StoredLinear,
)

Tensor = torch.Tensor


@dataclass(frozen=True)
class GgufModel:
    """A model and what its file says of texts.

    Attributes:
        file: the file.
        model: of `transformers`; its linear layers and embeddings are those of
            `rushlight.llm.weights.layers`, with the weights as the file has them.
        generation: what `generation_config.json` of a folder would say.
        template: the chat template; None if there is none.
        tokens: the texts of special tokens by their role.
    """

    file: GgufFile
    model: Any
    generation: dict[str, Any]
    template: str | None
    tokens: dict[str, str]

    @property
    def tokenizer(self) -> Any:
        """The `tokenizers.Tokenizer` of the file; None if there is none.

        Raises:
            ExportError: it is not supported.
        """
        vocabulary = Vocabulary(self.file)
        has_model = "tokenizer.ggml.model" in self.file.metadata
        return tokenizer_of(vocabulary) if vocabulary.texts and has_model else None

    @property
    def generation_file(self) -> Path:
        """Where `generation` is from."""
        return self.file.path

    def release(self) -> None:
        """Give back the memory of weights that were read."""
        self.file.release()

    def losses(self) -> list[str]:
        """What requantising lost, in words: a line for the tensors that lie alike in their layers.

        The lines are for the report of a program.
        """
        alike: dict[tuple[str, str, str], list[float]] = {}
        for loss in self.file.losses:
            key = (re.sub(r"^blk\.\d+\.", "", loss.tensor), loss.type, loss.stored)
            alike.setdefault(key, []).append(loss.decibels)
        return [
            f"{name} of {len(found)} layers, {kind} in the file, is stored as {stored}: "
            f"signal-to-noise ratio {min(found):.1f} dB or more"
            if len(found) > 1
            else f"{name}, {kind} in the file, is stored as {stored}: signal-to-noise ratio "
            f"{found[0]:.1f} dB"
            for (name, kind, stored), found in alike.items()
        ]


def read_gguf(path: Path) -> GgufModel:
    """Read a GGUF file.

    Raises:
        ExportError: the file is damaged, its architecture is not supported, or a tensor is missing,
            unexpected or of another shape.
    """
    file = GgufFile(path)
    if file.integer("split.count", 1) > 1:
        raise ExportError(
            f"{path} is one part of several: put them together first, with llama-gguf-split "
            f"--merge",
            code=Code.NOT_SUPPORTED,
        )
    facts = Facts(file, file.text("general.architecture"))
    architecture = architecture_of(facts)
    fields = architecture.config(facts)
    facts.refuse_others()
    model = _empty_model(fields, path)
    _Loader(file, architecture, model).load()
    vocabulary = Vocabulary(file)
    return GgufModel(
        file, model, generation_of(vocabulary), template_of(file), special_tokens(vocabulary)
    )


def _empty_model(fields: dict[str, Any], path: Path) -> Any:
    """The model of a configuration, without memory."""
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        config = AutoConfig.for_model(**fields)
        with torch.device("meta"):
            made: Any = AutoModelForCausalLM
            return made.from_config(config).eval()
    except Exception as error:  # transformers raises many kinds
        raise ExportError(
            f"transformers cannot make a model of the metadata of {path}: {error}",
            code=Code.INVALID_EXTERNAL_DATA,
        ) from error


class _Loader:
    """Gives a model without memory the weights of a file.

    Args:
        file: the file.
        architecture: of the file.
        model: of `transformers`, on the meta device.
    """

    def __init__(self, file: GgufFile, architecture: Architecture, model: Any) -> None:
        self._file, self._architecture, self._model = file, architecture, model
        self._wanted = model.state_dict()
        self._is_tied = OUTPUT not in file.tensors

    def load(self) -> None:
        """Load all tensors, one after the other."""
        names = self._names()
        self._check(names)
        for name, module in list(self._model.named_modules()):
            if _is_layer(module) and not self._shares(name):
                self._set_layer(name, module, names)
        for full, name in names.items():
            place, _, part = full.rpartition(".")
            module = self._model.get_submodule(place)
            if (
                isinstance(module._parameters.get(part), Tensor)
                and module._parameters[part].is_meta
            ):
                real = self._rows(name, self._file.real(name)) - self._offset(name)
                module._parameters[part] = torch.nn.Parameter(real, requires_grad=False)
        if self._is_tied:
            self._tie()

    def _names(self) -> dict[str, str]:
        """The tensors' names in the file by their names in the model."""
        names: dict[str, str] = {}
        for name in self._file.tensors:
            stem, _, part = name.rpartition(".")
            module = self._architecture.name(stem)
            full = f"{module}.{part}"
            if name in TABLES:
                continue
            if module is None or full not in self._wanted:
                kind = " (of a mixture of experts)" if "_exps" in name or "_inp" in name else ""
                raise ExportError(
                    f"{self._file.path} has a tensor {name!r}{kind}, which a "
                    f"{type(self._model).__name__} does not have",
                    code=Code.NOT_SUPPORTED,
                )
            names[full] = name
        return names

    def _check(self, names: dict[str, str]) -> None:
        tied = {f"{self._architecture.top['output']}.weight"} if self._is_tied else set()
        missing = sorted(set(self._wanted) - set(names) - tied)
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise ExportError(
                f"{self._file.path} has no tensor {self._name_of(missing[0])!r}{more}, which a "
                f"{type(self._model).__name__} needs: copy, download or convert the model again",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        for full, name in names.items():
            shape, wanted = self._file.tensors[name].shape, tuple(self._wanted[full].shape)
            if self._is_transposed(full):
                wanted = wanted[::-1]
            if shape != wanted:
                raise ExportError(
                    f"tensor {name!r} of {self._file.path} has the shape {list(shape)}, and the "
                    f"metadata asks for {list(wanted)}",
                    code=Code.INVALID_EXTERNAL_DATA,
                )

    def _name_of(self, full: str) -> str:
        """The name in files of a tensor of the model."""
        for stem, module in self._architecture.top.items():
            if full.startswith(f"{module}."):
                return stem + full.removeprefix(module)
        number, _, rest = full.removeprefix(f"{self._architecture.layers}.").partition(".")
        for stem, module in self._architecture.layer.items():
            if rest.startswith(f"{module}."):
                return f"blk.{number}.{stem}{rest.removeprefix(module)}"
        return full

    def _is_transposed(self, full: str) -> bool:
        """Whether it is a weight of GPT-2's linear layers, which have [in, out] elsewhere."""
        place, _, part = full.rpartition(".")
        return part == "weight" and _is_conv1d(self._model.get_submodule(place))

    def _shares(self, name: str) -> bool:
        return self._is_tied and name == self._architecture.top["output"]

    def _offset(self, name: str) -> float:
        return self._architecture.norm_offset if name.endswith("norm.weight") else 0.0

    def _set_layer(self, name: str, module: Any, names: dict[str, str]) -> None:
        """Put our layer with a weight of the file in place of one of the model."""
        own = names[f"{name}.weight"]
        weight = self._rows(own, self._file.weight(own))
        bias = names.get(f"{name}.bias")
        given = None if bias is None else self._rows(bias, self._file.real(bias)).float()
        self._model.set_submodule(name, _layer(module, weight, given))
        were_read()

    def _rows(self, name: str, weight: Any) -> Any:
        """The weight or bias with its rows in the order of `transformers`."""
        part = name.split(".")[-2]
        if not self._architecture.turns_pairs or part not in ("attn_q", "attn_k"):
            return weight
        config = self._model.config
        heads = config.num_attention_heads if part == "attn_q" else config.num_key_value_heads
        rows = torch.arange(heads * config.head_dim)
        order = rows.reshape(heads, config.head_dim // 2, 2).transpose(1, 2).reshape(-1)
        turned = weight[order]
        return turned.to_file() if isinstance(turned, QuantizedWeight) else to_file(turned)

    def _tie(self) -> None:
        """The output layer has the weight of the embedding."""
        embedding = self._model.get_input_embeddings()
        output = self._architecture.top["output"]
        self._model.set_submodule(output, _linear(embedding.weight, None))


def _is_layer(module: Any) -> bool:
    return isinstance(module, torch.nn.Linear | torch.nn.Embedding) or _is_conv1d(module)


def _is_conv1d(module: Any) -> bool:
    return type(module).__name__ == "Conv1D"


def _layer(module: Any, weight: Tensor | QuantizedWeight, bias: Tensor | None) -> torch.nn.Module:
    """Our layer in place of one of `transformers`."""
    if not isinstance(module, torch.nn.Embedding):
        return _linear(weight, bias)
    factor = getattr(module, "scalar_embed_scale", 1.0)  # of Gemma
    if isinstance(weight, QuantizedWeight):
        return QuantizedEmbedding(weight, factor)
    return StoredEmbedding(weight, factor)


def _linear(weight: Tensor | QuantizedWeight, bias: Tensor | None) -> torch.nn.Module:
    if isinstance(weight, QuantizedWeight):
        return QuantizedLinear(weight, bias, in_groups=True)
    return StoredLinear(weight, bias)
