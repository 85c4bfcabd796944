"""The weights of a Hugging Face folder: safetensors files, mapped and read where they lie."""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from rushlight.errors import Code, ExportError
from rushlight.ir.mapped_weights import give_back
from rushlight.llm.weights.mapped_file import mapped

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_MOST_DIMENSIONS, _MOST_ELEMENTS = 64, 2**62
_MOST_HEADER = 100_000_000  # bytes, as safetensors has it


class Checkpoint:
    """The tensors of a folder by name. Their memory is that of the files.

    Args:
        folder: with `model.safetensors`, or several files and their index.
        single: the name of the file in place of `model.safetensors`; then there is no index.

    Raises:
        ExportError: a file is missing or damaged, or a tensor has a dtype that is not supported.
    """

    def __init__(self, folder: Path, single: str = SINGLE) -> None:
        self._maps: list[mmap.mmap] = []
        self.tensors: dict[str, torch.Tensor] = {}
        index = _index_of(folder) if single == SINGLE else None
        files = dict.fromkeys(index.values()) if index is not None else {single: None}
        missing = [name for name in files if not (folder / name).is_file()]
        if missing:
            raise ExportError(
                f"{folder} has no {', '.join(missing)}, which {INDEX if index else 'a model'} "
                f"needs: copy the missing files of the model there",
                code=Code.NOT_FOUND,
            )
        for name in files:
            self._read(folder / name)
        lost = sorted(set(index or ()) - set(self.tensors))
        if lost:
            assert index is not None
            raise ExportError(
                f"{folder / index[lost[0]]} has no tensor {lost[0]!r}{_more(lost)}, which {INDEX} "
                f"says is there: the file is of another model, or incomplete",
                code=Code.INVALID_EXTERNAL_DATA,
            )

    def release(self) -> None:
        """Give back the memory of the pages that were read; they are read again when needed."""
        for one in self._maps:
            give_back(one)

    def _read(self, path: Path) -> None:
        size = path.stat().st_size
        if size < 8:
            raise _damaged(path, "it ends within its header")
        whole = mapped(path)
        length = int.from_bytes(whole[:8], "little")
        if length > size - 8:
            raise _damaged(path, f"its header of {length} bytes reaches beyond its end")
        if length > _MOST_HEADER:
            raise _damaged(path, f"its header has {length} bytes, more than {_MOST_HEADER}")
        try:
            header = json.loads(whole[8 : 8 + length], object_pairs_hook=_without_repeats)
        except (ValueError, RecursionError) as error:
            raise _damaged(path, f"its header is no JSON ({error})") from None
        self._maps.append(whole)
        for name, shape, dtype, first, last in _entries(path, header, size - 8 - length):
            if name in self.tensors:
                raise _damaged(path, f"it has tensor {name!r}, which another file has, too")
            count = (last - first) // dtype.itemsize
            start = 8 + length + first
            flat = (
                torch.frombuffer(whole, dtype=dtype, count=count, offset=start)
                if count
                else torch.empty(0, dtype=dtype)
            )
            self.tensors[name] = flat.reshape(shape)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ValueError: a name is there twice.
    """
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in made if names.count(name) > 1)
        raise ValueError(f"{repeated!r} is there twice")
    return made


def _index_of(folder: Path) -> dict[str, str] | None:
    """The file of each tensor, if there are several files."""
    path = folder / INDEX
    if not path.is_file():
        if not (folder / SINGLE).is_file():
            raise _no_weights(folder)
        return None
    try:
        index = json.loads(path.read_text("utf-8"), object_pairs_hook=_without_repeats)
        files = index["weight_map"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, f"it has no weight_map ({error})") from None
    if not isinstance(files, dict) or not all(
        isinstance(name, str) and Path(name).name == name for name in files.values()
    ):
        raise _damaged(path, "its weight_map is not from names of tensors to files beside it")
    return files


def _no_weights(folder: Path) -> ExportError:
    other = next((p.name for p in sorted(folder.glob("*.bin"))), None)
    advice = (
        f"{other} is a pickle, which may run code when it is read: convert the model with "
        f"AutoModelForCausalLM.from_pretrained(…).save_pretrained(…)"
        if other
        else "a folder has the files that save_pretrained of transformers writes"
    )
    return ExportError(f"{folder} has neither {SINGLE} nor {INDEX}: {advice}", code=Code.NOT_FOUND)


def _entries(
    path: Path, header: Any, size: int
) -> Iterator[tuple[str, list[int], torch.dtype, int, int]]:
    """Name, shape, dtype and place of each tensor that a header lists."""
    if not isinstance(header, dict):
        raise _damaged(path, "its header is no table of tensors")
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            shape, (first, last), kind = entry["shape"], entry["data_offsets"], entry["dtype"]
        except (KeyError, TypeError, ValueError):
            raise _damaged(path, f"its header does not say where {name!r} lies") from None
        if not _is_shape(shape) or not all(type(one) is int for one in (first, last)):
            raise _damaged(path, f"its header does not say where {name!r} lies")
        if not isinstance(kind, str) or kind not in _DTYPES:
            raise ExportError(
                f"{path}: tensor {name!r} is {kind}; supported are {', '.join(_DTYPES)}: convert "
                f"the model to one of these first",
                code=Code.NOT_SUPPORTED,
            )
        dtype, count = _DTYPES[kind], math.prod(shape)
        if not 0 <= first <= last <= size or last - first != count * dtype.itemsize:
            raise _damaged(path, f"tensor {name!r} has other bytes than its shape, or none")
        yield name, shape, dtype, first, last


def _is_shape(shape: Any) -> bool:
    """Whether it is a list of sizes that a tensor can have."""
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        return False
    if not all(type(n) is int and n >= 0 for n in shape):
        return False
    return bool(math.prod(n for n in shape if n) <= _MOST_ELEMENTS)


def _damaged(path: Path, reason: str) -> ExportError:
    return ExportError(
        f"{path} is damaged: {reason}; copy or download it again", code=Code.INVALID_EXTERNAL_DATA
    )


def load_into(model: Any, tensors: Mapping[str, torch.Tensor], where: str) -> None:
    """Give a model without memory (on the meta device) its weights.

    Args:
        model: of `transformers`.
        tensors: by the names of a checkpoint.
        where: the folder, for messages.

    Raises:
        ExportError: a tensor is missing, unexpected or has another shape.
    """
    wanted = model.state_dict()
    prefix = f"{model.base_model_prefix}."
    given = {
        name if name in wanted or prefix + name not in wanted else prefix + name: tensor
        for name, tensor in tensors.items()
        if not name.endswith(_COMPUTED)
    }
    tied = dict(model._tied_weights_keys or {}) if model.config.tie_word_embeddings else {}
    missing = sorted(set(wanted) - set(given) - set(tied))
    if missing:
        raise ExportError(
            f"{where} has no tensor {missing[0]!r}{_more(missing)}: copy the missing files there, "
            f"or mend config.json if it is of another model",
            code=Code.NOT_FOUND,
        )
    unexpected = sorted(set(given) - set(wanted))
    if unexpected:
        raise ExportError(
            f"{where} has a tensor {unexpected[0]!r}{_more(unexpected)}, which a "
            f"{type(model).__name__} of its config.json does not have: config.json is of another "
            f"model, or adapters are to be merged first",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    for name, tensor in given.items():
        if tensor.shape != wanted[name].shape or not tensor.is_floating_point():
            raise ExportError(
                f"tensor {name!r} of {where} is {_spec(tensor)}, and config.json asks for "
                f"{list(wanted[name].shape)} of a floating dtype: config.json is of another model",
                code=Code.INVALID_EXTERNAL_DATA,
            )
    for name in set(tied) & set(given):
        if not torch.equal(given[name], given[tied[name]]):
            raise ExportError(
                f"{where} has a tensor {name!r} that differs from {tied[name]!r}, but config.json "
                f"says that they are one: write tie_word_embeddings: false there to use both",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        del given[name]
    model.load_state_dict(given, strict=False, assign=True)
    model.tie_weights()


_COMPUTED = (".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq", "embeddings.position_ids")
"""Ends of names of tensors that old checkpoints have and that models compute."""


def _more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def _spec(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
