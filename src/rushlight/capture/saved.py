"""Captured programs in files (.pt2): what `torch.export.save` wrote."""

from __future__ import annotations

import contextlib
import os
import zipfile
import zlib
from typing import BinaryIO

import torch
from torch.export import ExportedProgram

from rushlight.errors import Code, ExportError
from rushlight.ir.quiet import import_torchao

Saved = str | os.PathLike[str] | BinaryIO

# An archive has one of these records: that of today's format, or that of torch 2.6 and before.
_RECORDS = ("archive_format", "serialized_exported_program.json")


def load_exported(source: Saved) -> ExportedProgram:
    """Read a captured program.

    Args:
        source: a path, or a binary file that is open and can seek.

    Raises:
        ExportError: if it cannot be read or is something else, with what it seems to be.
    """
    if not isinstance(source, str | os.PathLike):
        return _read(source, "the file")
    where = os.fspath(source)
    try:
        with open(where, "rb") as file:
            return _read(file, repr(where))
    except OSError as error:
        raise ExportError(
            f"cannot read {where!r}: {error.strerror}; check the path", code=Code.ACCESS_FAILED
        ) from error


def _read(file: BinaryIO, name: str) -> ExportedProgram:
    """Checks the kind of file first: torch tries several formats and logs each failure."""
    start = file.tell()
    other = _something_else(file)
    if other is not None:
        raise ExportError(
            f"{name} is {other}, not an ExportedProgram; write one with "
            f"torch.export.save(torch.export.export(model, args), 'model.pt2')",
            code=Code.INVALID_ARGUMENT,
        )
    file.seek(start)
    if _has_quantized_operators(file):
        with contextlib.suppress(ModuleNotFoundError):
            import_torchao()  # registers them
    file.seek(start)
    try:
        return torch.export.load(file)
    except Exception as error:  # torch raises many kinds on a damaged archive
        raise ExportError(
            f"{name} cannot be read as an ExportedProgram: {error}; write it anew with "
            f"torch.export.save of this version of torch ({torch.__version__}), and import what "
            f"registers its operators, such as torchao for those of quantised programs",
            code=Code.ACCESS_FAILED,
        ) from error


def _has_quantized_operators(file: BinaryIO) -> bool:
    try:
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if name.endswith(".json")]
            return any(b"quantized_decomposed" in archive.read(name) for name in names)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError, zlib.error):
        return False


def _something_else(file: BinaryIO) -> str | None:
    """A description of the file, or None if it is an archive of a captured program."""
    if file.read(8)[4:6] == b"ET":
        return "a finished program (rushlight.load runs it)"
    try:
        with zipfile.ZipFile(file) as archive:
            records = {name.rpartition("/")[2] for name in archive.namelist()}
    except zipfile.BadZipFile:
        return "a damaged archive, or a file of another kind"
    if records.intersection(_RECORDS):
        return None
    if "constants.pkl" in records:
        return "a TorchScript module"
    return "a file of weights or a pickled module" if "data.pkl" in records else "another archive"
