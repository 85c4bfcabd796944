"""`rushlight.llm.adapter`: from a folder of `peft` to a file for the sessions of a program."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from rushlight.backends.cpu.graph.panels import PANEL, panels
from rushlight.errors import Code, ExportError, LoadError
from rushlight.files import replacing
from rushlight.llm.adapters.peft_folder import MERGE, Change, PeftFolder, read_peft
from rushlight.llm.description import KEY, MOST_RANK, Adapters, Site
from rushlight.llm.weights.mapped_file import mapped
from rushlight.schema.common import ScalarType
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.serialize.ptd import NamedTensor, write_ptd_to
from rushlight.serialize.pte import read_pte

Tensor = torch.Tensor
ENTRY = "rushlight/adapter"
"""The key of what a file says of its adapter."""
VERSION = 1
_ALIGNMENT = 64
_DTYPES = {
    "float16": (torch.float16, ScalarType.HALF),
    "float32": (torch.float32, ScalarType.FLOAT),
}
# What may stand before the name of a layer, by the class that was trained.
_PREFIXES = ("", "model.", "transformer.")


def adapter(
    folder: str | os.PathLike[str],
    *,
    base: str | os.PathLike[str],
    out: str | os.PathLike[str],
    dtype: str = "float16",
) -> None:
    """Turn an adapter (LoRA) of `peft` into a file for `Runner.load_adapter`.

    Args:
        folder: as `save_pretrained` of `peft` writes it.
        base: the program of the model that it was trained with, which `rushlight.llm.export` made
            with `adapters=`.
        out: the file to write, usually named .ptd.
        dtype: what its matrices are stored in: "float16" or "float32".

    Raises:
        ExportError: a file is missing or damaged, the adapter is of a kind that is not supported,
            or it does not fit the program.
    """
    if dtype not in _DTYPES:
        raise ExportError(
            f"dtype={dtype!r}: give one of {', '.join(_DTYPES)}", code=Code.INVALID_ARGUMENT
        )
    adapters = _adapters_of(Path(base))
    peft = read_peft(Path(folder))
    changes: dict[str, Change] = {}
    for name, change in _by_site(peft, adapters, str(base)):
        if name in changes:
            raise ExportError(
                f"{peft.path} has matrices for {name!r} twice, with different prefixes: save the "
                f"adapter again",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        changes[name] = change
    _check_complete(peft, changes, adapters, str(base))
    tensors = {ENTRY: NamedTensor(_description(peft, changes, adapters))}
    for name, change in changes.items():
        _check_finite(change, name, dtype, peft.path)
        for part, matrix in (("a", _padded(change.a)), ("b", _in_panels(change.b))):
            tensors[f"lora/{name}/{part}"] = _stored(matrix, dtype)
    try:
        with replacing(out) as file:
            write_ptd_to(file, tensors)
    except OSError as error:
        raise ExportError(
            f"cannot write {os.fsdecode(out)}: {error.strerror}", code=Code.ACCESS_FAILED
        ) from error


def _adapters_of(path: Path) -> Adapters:
    """What a program says of the adapters that it takes."""
    try:
        about = json.loads(bytes(read_pte(memoryview(mapped(path))).named_data[KEY]))
    except (OSError, ValueError, RecursionError) as error:
        raise ExportError(f"cannot read {path}: {error}", code=Code.ACCESS_FAILED) from error
    except LoadError as error:
        raise ExportError(f"{path}: {error}", code=error.code) from error
    except KeyError:
        raise ExportError(
            f"{path} is no language model: give a program that rushlight.llm.export made",
            code=Code.NOT_SUPPORTED,
        ) from None
    told = about.get("adapters") if isinstance(about, dict) else None
    if told is None:
        raise ExportError(
            f"{path} takes no adapters: export it with adapters= and the greatest rank that one "
            f"may have, for backend='cpu'",
            code=Code.NOT_SUPPORTED,
        )
    try:
        sites = [Site(str(one["name"]), *map(int, (one["inputs"], one["outputs"])))
                 for one in told["sites"]]  # fmt: skip
        return Adapters(int(told["rank"]), str(told["base"]), sites)
    except (KeyError, TypeError, ValueError) as error:
        raise ExportError(
            f"{path} is damaged: its description of adapters is not complete ({error}); export it "
            f"again",
            code=Code.INVALID_PROGRAM,
        ) from error


def _by_site(peft: PeftFolder, adapters: Adapters, base: str) -> Iterator[tuple[str, Change]]:
    """The changes by the program's names of layers."""
    sites = {site.name: site for site in adapters.sites}
    for layer, change in peft.changes.items():
        names = [layer.removeprefix(one) for one in _PREFIXES if layer.startswith(one)]
        site = next((sites[name] for name in names if name in sites), None)
        if site is None:
            raise ExportError(
                f"{peft.path} changes {layer!r}, which is none of the layers of {base} that "
                f"adapters may change, such as {adapters.sites[0].name!r}: it is of another model, "
                f"or changes the embedding or the output layer: train it with other target_modules",
                code=Code.INVALID_ARGUMENT,
            )
        rank, inputs, outputs = *change.a.shape, change.b.shape[0]
        if (inputs, outputs) != (site.inputs, site.outputs):
            raise ExportError(
                f"{peft.path} has matrices for {layer!r} with {inputs} inputs and {outputs} "
                f"outputs, and {base} has {site.inputs} and {site.outputs}: it is of another model",
                code=Code.INVALID_ARGUMENT,
            )
        if rank > adapters.rank:
            advice = f"export it with adapters={rank}"
            if rank > MOST_RANK:
                advice = f"{MOST_RANK} is the most that a program takes; {MERGE}"
            raise ExportError(
                f"{peft.path} has rank {rank} for {layer!r}, and {base} takes adapters up to rank "
                f"{adapters.rank}: {advice}",
                code=Code.INVALID_ARGUMENT,
            )
        yield site.name, change


def _check_complete(
    peft: PeftFolder, changes: dict[str, Change], adapters: Adapters, base: str
) -> None:
    """Refuse an adapter of a model with fewer layers."""
    targets = peft.targets or []
    for site in adapters.sites:
        is_target = any(f".{site.name}".endswith(f".{target}") for target in targets)
        if is_target and site.name not in changes:
            raise ExportError(
                f"{peft.path} changes all layers named {', '.join(targets)}, and has no matrices "
                f"for {site.name!r} of {base}: it is of another model, or incomplete",
                code=Code.INVALID_ARGUMENT,
            )


def _check_finite(change: Change, name: str, dtype: str, path: Path) -> None:
    most = torch.finfo(_DTYPES[dtype][0]).max
    for matrix in (change.a, change.b):
        if not bool(torch.isfinite(matrix).all()):
            raise ExportError(
                f"{path} has NaN or infinite elements for {name!r}: train it again",
                code=Code.INVALID_ARGUMENT,
            )
        if float(matrix.abs().max()) > most:
            raise ExportError(
                f"{path} has elements beyond {most:g} for {name!r}, the greatest of {dtype}: give "
                f"dtype='float32'",
                code=Code.INVALID_ARGUMENT,
            )


def _description(peft: PeftFolder, changes: dict[str, Change], adapters: Adapters) -> bytes:
    record: dict[str, Any] = {
        "version": VERSION,
        "name": peft.path.resolve().name,
        "rank": max(change.a.shape[0] for change in changes.values()),
        "base": adapters.base,
        "sites": list(changes),
    }
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def _padded(a: Tensor) -> Tensor:
    """A [rank, in], each row filled up with zeros to a multiple of 16."""
    return functional.pad(a, (0, -a.shape[1] % PANEL))


def _in_panels(b: Tensor) -> Tensor:
    """B [out, rank] as [panels of 16 outputs, rank, 16]."""
    return panels(b.t()).view(-1, b.shape[1], PANEL)


def _stored(matrix: Tensor, dtype: str) -> NamedTensor:
    number, kind = _DTYPES[dtype]
    data = matrix.to(number).contiguous().numpy().tobytes()
    layout = TensorLayout(kind, list(matrix.shape), list(range(matrix.dim())))
    return NamedTensor(data, layout, _ALIGNMENT)
