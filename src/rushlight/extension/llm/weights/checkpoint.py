"""Reading the weights of a file or folder into a model, one by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.extension.llm.weights.convert import Convert, maybe_cast, to_default
from rushlight.extension.llm.weights.gguf import iter_gguf
from rushlight.llm.exporter.checkpoint import INDEX, SINGLE

Tensor = torch.Tensor
Pair = tuple[str, Tensor]
"""A name and its tensor."""
KeyMap = Callable[[str], str | None]
"""Takes a name of a file; returns the one in the model, or None to leave the tensor out."""
TieMap = dict[str, tuple[str, bool]]
"""Names of weights, each with that of another which is the same, and whether it is a copy."""
RawIter = Callable[[str], Iterable[Pair]]
"""Takes a path; returns the names and tensors that are there."""


def iter_checkpoint(
    path: str,
    *,
    key_map: KeyMap | None = None,
    convert: Convert = to_default,
    tie_map: TieMap | None = None,
    dtype: torch.dtype | None = None,
    raw_iter: RawIter | None = None,
) -> Iterator[Pair]:
    """The names and weights of a file or folder, with one weight in memory at a time.

    Args:
        path: a GGUF file, a safetensors file, or a folder with such and their index. Weights that
            torchao saved are made whole again.
        key_map: names of the model for those of the file; None: the same.
        convert: changes the form of each weight; it is given the name in the model.
        tie_map: weights that are given a second time, if their other name is not in the file.
        dtype: of converted weights, as `maybe_cast` takes it.
        raw_iter: reads `path` instead.

    Raises:
        ExportError: there is no such file, or it is damaged.
        ValueError: the path names neither.
    """
    seen: set[str] = set()
    owed: dict[str, Tensor] = {}
    ties = tie_map or {}
    for found, weight in (raw_iter or _reader_of(path))(path):
        name = key_map(found) if key_map is not None else found
        if name is None:
            continue
        made = maybe_cast(convert(name, weight), dtype)
        seen.add(name)
        yield name, made
        if name in ties:
            other, is_copy = ties[name]
            owed[other] = made.clone() if is_copy else made
    yield from ((name, weight) for name, weight in owed.items() if name not in seen)


def load_checkpoint(
    path: str,
    model: torch.nn.Module,
    *,
    key_map: KeyMap | None = None,
    convert: Convert = to_default,
    tie_map: TieMap | None = None,
    dtype: torch.dtype | None = None,
    raw_iter: RawIter | None = None,
) -> None:
    """Put the weights of a file or folder into a model.

    Args:
        path, key_map, convert, tie_map, dtype, raw_iter: as for `iter_checkpoint`.
        model: changed; its weights may be on the meta device.

    Raises:
        RuntimeError: a parameter of the model is not in the file.
    """
    pairs = iter_checkpoint(
        path, key_map=key_map, convert=convert, tie_map=tie_map, dtype=dtype, raw_iter=raw_iter
    )
    for name, weight in pairs:
        assign_one(model, name, weight)
    assert_all_materialized(model)


def assign_state_dict(
    model: torch.nn.Module, state_dict: dict[str, Tensor], convert: Convert = to_default
) -> None:
    """Put weights by their names into a model, as parameters without gradients.

    Args:
        model: changed; its weights may be on the meta device.
        state_dict: weights by name, such as those of `quantize_model`.
        convert: changes the form of each weight.

    Raises:
        RuntimeError: a parameter of the model is not there.
    """
    for name, weight in state_dict.items():
        assign_one(model, name, convert(name, weight))
    assert_all_materialized(model)
    model.requires_grad_(False)


def assign_one(model: torch.nn.Module, fqn: str, value: Tensor) -> None:
    """Put a weight into a model: as a parameter where there is one, or else as a buffer.

    Args:
        model: changed.
        fqn: the weight's name, with those of the modules that hold it.
        value: the weight.
    """
    owner, _, name = fqn.rpartition(".")
    module = model.get_submodule(owner)
    if isinstance(getattr(module, name, None), torch.nn.Parameter):
        setattr(module, name, torch.nn.Parameter(value, requires_grad=False))
    else:
        module.register_buffer(name, value)


def assert_all_materialized(model: torch.nn.Module) -> None:
    """Check that no parameter of a model is on the meta device.

    Raises:
        RuntimeError: one is; the error names it.
    """
    for name, weight in model.named_parameters():
        if weight.device.type == "meta":
            raise ExportError(
                f"the model's {name} is not in the checkpoint: the file is of another model, or a "
                f"name of it needs an entry of key_map or tie_map",
                code=Code.NOT_FOUND,
            )


def _reader_of(path: str) -> RawIter:
    if path.endswith(".gguf"):
        return iter_gguf
    if path.endswith(".safetensors") or Path(path).is_dir():
        return _iter_safetensors
    raise ValueError(
        f"{path} is no checkpoint that is known: give a .gguf file, a .safetensors file, or a "
        f"folder with safetensors files"
    )


def _iter_safetensors(path: str) -> Iterator[Pair]:
    """The names and weights of safetensors files; those that torchao saved as one tensor each."""
    from safetensors import safe_open

    with ExitStack() as stack:
        where: dict[str, Any] = {}
        metadata: dict[str, str] = {}
        whole: dict[str, None] = {}
        for file in _files_of(Path(path)):
            opened: Any = stack.enter_context(safe_open(file, framework="pt"))
            facts = opened.metadata() or {}
            metadata |= facts
            whole |= dict.fromkeys(json.loads(facts.get("tensor_names", "[]")))
            where |= dict.fromkeys(opened.keys(), opened)
        if not whole:
            yield from ((name, opened.get_tensor(name)) for name, opened in where.items())
        for name in whole:
            parts = {key: where[key].get_tensor(key) for key in where if _is_part(key, name)}
            yield from _joined(parts, metadata).items()


def _is_part(key: str, name: str) -> bool:
    """Whether a tensor is a weight of torchao's, or one of those that it consists of."""
    owner, dot, last = name.rpartition(".")
    return key == name or key.startswith(f"{owner}{dot}_{last}_")


def _joined(parts: dict[str, Tensor], metadata: dict[str, str]) -> dict[str, Tensor]:
    from torchao.prototype.safetensors.safetensors_support import unflatten_tensor_state_dict

    made: dict[str, Tensor] = unflatten_tensor_state_dict(parts, metadata)[0]
    return made


def _files_of(path: Path) -> list[Path]:
    """The safetensors files of a path."""
    if not path.is_dir():
        return [path]
    index = path / INDEX
    if index.is_file():
        named = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return [path / name for name in sorted(set(named.values()))]
    if (path / SINGLE).is_file():
        return [path / SINGLE]
    raise ExportError(
        f"{path} has neither {INDEX} nor {SINGLE}: give a folder with safetensors files",
        code=Code.NOT_FOUND,
    )
