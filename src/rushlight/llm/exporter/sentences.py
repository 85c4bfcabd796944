"""Folders of sentence-transformers: where the model is, and how hidden states become embeddings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.llm.description import POOLINGS

MODULES = "modules.json"
_POOLINGS = {"lasttoken": "last", "mean": "mean", "cls": "cls"}
"""The poolings that there are, by sentence-transformers' names."""


@dataclass(frozen=True)
class Sentences:
    """What a folder of sentence-transformers says besides its model.

    Attributes:
        path: the folder of the model.
        pooling: one of `POOLINGS`; None if the folder is not one of sentence-transformers.
        context: the most tokens of a text; None if it does not say.
        lowers: whether texts are made lower case.
    """

    path: Path
    pooling: str | None = None
    context: int | None = None
    lowers: bool = False


def read_sentences(path: Path) -> Sentences:
    """Read the modules of a folder; those of another kind of folder are its model alone.

    Raises:
        ExportError: a file is damaged, or a module is not supported.
    """
    if not (path / MODULES).is_file():
        return Sentences(path)
    folder, pooling = path, None
    for module in _modules(path):
        kind = str(module.get("type", "")).rpartition(".")[2]
        place = path / str(module.get("path", ""))
        if kind == "Transformer":
            folder = place
        elif kind == "Pooling":
            pooling = _pooling(place / "config.json")
        elif kind != "Normalize":  # which `embed` does
            raise ExportError(
                f"{path / MODULES} has a module {kind!r}; supported are Transformer, Pooling and "
                f"Normalize: export the transformers model alone and apply the rest to its "
                f"embeddings",
                code=Code.NOT_SUPPORTED,
            )
    _refuse_default_prompt(path / "config_sentence_transformers.json")
    about = folder / "sentence_bert_config.json"
    options = _object(about) if about.is_file() else {}
    context = options.get("max_seq_length")
    if context is not None and (type(context) is not int or context < 1):
        raise ExportError(
            f"{about} has max_seq_length {context!r}: give a positive integer there, or null",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    return Sentences(folder, pooling, context, bool(options.get("do_lower_case")))


def _refuse_default_prompt(path: Path) -> None:
    name = _object(path).get("default_prompt_name") if path.is_file() else None
    if name is not None:
        raise ExportError(
            f"{path} puts the prompt {name!r} before every text, which a program does not do: set "
            f"default_prompt_name to null there, and begin the texts with the prompt",
            code=Code.NOT_SUPPORTED,
        )


def _modules(path: Path) -> list[dict[str, Any]]:
    modules = _read(path / MODULES)
    if not isinstance(modules, list) or not all(isinstance(one, dict) for one in modules):
        raise ExportError(
            f"{path / MODULES} is no list of modules", code=Code.INVALID_EXTERNAL_DATA
        )
    return modules


def _pooling(path: Path) -> str:
    config = _object(path)
    named = config.get("pooling_mode")
    modes = [named] if isinstance(named, str) else named or [
        name.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for name, value in config.items()
        if name.startswith("pooling_mode_") and value is True
    ]  # fmt: skip
    if not isinstance(modes, list) or not all(isinstance(mode, str) for mode in modes):
        raise ExportError(
            f"{path} has pooling_mode {named!r}: give a name there, or a list of names",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise ExportError(
            f"{path} asks for the pooling {' and '.join(modes) or 'of nothing'}; supported is one "
            f"of {', '.join(POOLINGS)}",
            code=Code.NOT_SUPPORTED,
        )
    return _POOLINGS[modes[0]]


def _object(path: Path) -> dict[str, Any]:
    value = _read(path)
    if not isinstance(value, dict):
        raise ExportError(f"{path} is no JSON object", code=Code.INVALID_EXTERNAL_DATA)
    return value


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ExportError(f"cannot read {path}: {error}", code=Code.NOT_FOUND) from error
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{path} is no JSON: {error}", code=Code.INVALID_EXTERNAL_DATA) from error
