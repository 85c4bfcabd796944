"""A Hugging Face folder: its configuration, its weights, and what it says of texts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.llm.exporter.checkpoint import Checkpoint, load_into
from rushlight.llm.exporter.encoders import encoder_weights, is_encoder, most_tokens
from rushlight.llm.exporter.families import family_of
from rushlight.llm.exporter.sentences import Sentences, read_sentences

_GENERATION = "generation_config.json"


@dataclass
class Folder:
    """A model and what lies beside it.

    Attributes:
        path: the folder.
        model: of `transformers`; its weights are those of the files, in their dtypes.
        checkpoint: the files of the weights.
        generation: `generation_config.json`; {} if there is none.
        template: the chat template; None if there is none.
        tokens: the texts of special tokens by their role.
        sentences: what a folder of sentence-transformers says of embeddings.
    """

    path: Path
    model: Any
    checkpoint: Checkpoint
    sentences: Sentences
    generation: dict[str, Any] = field(default_factory=dict)
    template: str | None = None
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def tokenizer(self) -> Path | None:
        """The folder, if it has a file of a tokenizer.

        Raises:
            ExportError: it has only a part of one.
        """
        names = ("tokenizer.json", "tokenizer.model")
        if any((self.path / name).is_file() for name in names):
            return self.path
        parts = [name for name in ("vocab.json", "merges.txt") if (self.path / name).is_file()]
        if parts:
            raise ExportError(
                f"{self.path} has {' and '.join(parts)}, and no tokenizer.json, which also says "
                f"how texts are split: write it there with "
                f"AutoTokenizer.from_pretrained(…).save_pretrained(…), or give tokenizer=",
                code=Code.NOT_SUPPORTED,
            )
        return None

    @property
    def generation_file(self) -> Path:
        """Where `generation` is from."""
        return self.path / _GENERATION

    @property
    def longest_text(self) -> int | None:
        """The most tokens that texts to embed have; None if the folder does not say."""
        most = self.sentences.context
        encodes = is_encoder(self.model.config.model_type)
        return min(most, most_tokens(self.model.config)) if most and encodes else most

    def release(self) -> None:
        """Give back the memory of weights that were read."""
        self.checkpoint.release()


def read_folder(path: Path) -> Folder:
    """Read a folder as `save_pretrained` of `transformers` or sentence-transformers writes it.

    Raises:
        ExportError: something is missing or damaged, or the architecture is not supported.
    """
    sentences = read_sentences(path)
    path = sentences.path
    config = _json_of(path / "config.json")
    if config is None:
        raise ExportError(
            f"{path} has no config.json: give a folder as save_pretrained of transformers writes "
            f"it",
            code=Code.NOT_FOUND,
        )
    if not isinstance(config.get("model_type"), str):
        raise ExportError(
            f"{path / 'config.json'} has no model_type, which says what architecture it is: copy "
            f"the model's own config.json there",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    encodes = is_encoder(config["model_type"])
    if not encodes:
        family_of(SimpleNamespace(**config))
    _refuse_quantised(config, path / "config.json")
    _check_tokens(config, path / "config.json")
    generation = _json_of(path / _GENERATION) or {}
    _check_tokens(generation, path / _GENERATION)
    checkpoint = Checkpoint(path)
    tensors = checkpoint.tensors
    _check_counts(config, len(tensors), path / "config.json")
    model = _empty_model(path, encodes)
    load_into(model, encoder_weights(model, tensors) if encodes else tensors, str(path))
    about = _json_of(path / "tokenizer_config.json") or {}
    return Folder(
        path,
        model,
        checkpoint,
        sentences,
        generation,
        _template_of(path, about),
        {name: text for name in _ROLES if (text := _text_of(about.get(name))) is not None},
    )


_MOST_LABELS = 100_000
_ROLES = ("bos_token", "eos_token", "unk_token", "pad_token")


def _empty_model(path: Path, encodes: bool) -> Any:
    """The model of a configuration, without memory: an encoder without heads, or a decoder."""
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        kind = AutoModel if encodes else AutoModelForCausalLM
        with torch.device("meta"):
            model: Any = kind.from_config(config)  # type: ignore[no-untyped-call]
        if encodes and hasattr(model, "pooler"):
            model.pooler = None
        return model.eval()
    except Exception as error:  # transformers raises many kinds
        raise ExportError(
            f"transformers cannot make a model of {path / 'config.json'}: {error}",
            code=Code.INVALID_EXTERNAL_DATA,
        ) from error


def _json_of(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None if there is no such file."""
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{path} is no JSON: {error}", code=Code.INVALID_EXTERNAL_DATA) from error
    if not isinstance(value, dict):
        raise ExportError(f"{path} is no JSON object", code=Code.INVALID_EXTERNAL_DATA)
    return value


def _check_counts(config: dict[str, Any], tensors: int, path: Path) -> None:
    """Refuse counts of parts that no weights can be for: to make them would take all memory."""
    limits = {"num_hidden_layers": tensors, "n_layer": tensors, "num_labels": _MOST_LABELS}
    for name, most in limits.items():
        count = config.get(name)
        if type(count) is int and count > most:
            raise ExportError(
                f"{name!r} of {path} is {count}, and {most} is the most for weights of {tensors} "
                f"tensors: copy the model's own config.json there",
                code=Code.INVALID_EXTERNAL_DATA,
            )


def _refuse_quantised(config: dict[str, Any], path: Path) -> None:
    """Refuse weights in the integers of another library."""
    how = config.get("quantization_config")
    if how is not None:
        kind = how.get("quant_method") if isinstance(how, dict) else how
        raise ExportError(
            f"the weights beside {path} are quantised, as its quantization_config says "
            f"({str(kind)[:40]}): export the model that they were made from, with quantize= for "
            f"integers, or a GGUF file",
            code=Code.NOT_SUPPORTED,
        )


def _check_tokens(config: dict[str, Any], path: Path) -> None:
    """Refuse tokens that are not given by their numbers."""
    for name in ("bos_token_id", "eos_token_id"):
        given = config.get(name)
        listed = given if isinstance(given, list) and name == "eos_token_id" else [given]
        if given is not None and not all(type(one) is int for one in listed):
            raise ExportError(
                f"{name!r} of {path} is {given!r}: write the number of a token there"
                + (", or a list of such" if name == "eos_token_id" else ""),
                code=Code.INVALID_EXTERNAL_DATA,
            )


def _template_of(path: Path, about: dict[str, Any]) -> str | None:
    """The chat template: a file of its own, or a part of the tokenizer's configuration."""
    file = path / "chat_template.jinja"
    if file.is_file():
        try:
            return file.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise ExportError(
                f"{file} is not UTF-8: {error}", code=Code.INVALID_EXTERNAL_DATA
            ) from error
    template = about.get("chat_template")
    if isinstance(template, list):  # several by name
        named = {one.get("name"): one.get("template") for one in template if isinstance(one, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _text_of(token: Any) -> str | None:
    """The text of a special token: a text, or an object that has it."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None
