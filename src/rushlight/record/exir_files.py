"""Files of exported programs as ExecuTorch's `exir` writes them: `save`, `load` and their parts.

A file holds a program of any stage: captured, of the Edge dialect, with lowered modules, or with
out-variants. ExecuTorch reads ours, and its files are read here. `torch.export.save` is for
programs without what ExecuTorch adds.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from typing import IO, Any

from torch._export.serde import schema
from torch._export.serde import serialize as serde
from torch._export.serde.serialize import SerializedArtifact
from torch.export import ExportedProgram

from rushlight.errors import Code, ExportError, LoadError
from rushlight.files import replacing
from rushlight.record.exir_json import (
    Parts,
    deserialized,
    document_of,
    parts_of,
    program_of,
    serialized,
)
from rushlight.record.exir_versions import VERSION

SCHEMA_VERSION = VERSION

_PROGRAM = "serialized_exported_program.json"
_ARCHIVES = (
    "serialized_state_dict.pt",
    "serialized_constants.pt",
    "serialized_example_inputs.pt",
)
_VERSION = "version"
_EXTRA = "extra_files/"
AnyFile = str | os.PathLike[str] | IO[bytes]


class ExportedProgramSerializer:
    """Makes torch's tables of a program, with what ExecuTorch's programs have besides.

    Args:
        opset_version: versions of libraries of operators, which are noted in the table.
    """

    def __init__(self, opset_version: Mapping[str, int] | None = None) -> None:
        self.opset_version = dict(opset_version or {})

    def serialize(self, exported_program: ExportedProgram) -> serde._SerializedProgram:
        """The table of a program, and its tensors as archives of torch.save.

        Raises:
            ExportError: it has something that the schema has no form for.
        """
        parts = parts_of(_program(exported_program), opset=self.opset_version)
        table = serde._dict_to_dataclass(schema.ExportedProgram, parts.document)
        held = (parts.state_dict, parts.constants, parts.example_inputs)
        return serde._SerializedProgram(table, *held)


class ExportedProgramDeserializer:
    """Makes programs of what `ExportedProgramSerializer` made."""

    def deserialize(
        self,
        exported_program: schema.ExportedProgram,
        state_dict: bytes,
        constants: bytes,
        example_inputs: bytes | None = None,
    ) -> ExportedProgram:
        """The program.

        Args:
            exported_program: its table.
            state_dict, constants, example_inputs: archives of torch.save.

        Raises:
            LoadError: it cannot be read.
        """
        table = document_of(exported_program)
        try:
            return program_of(Parts(table, state_dict, constants, example_inputs or b""))
        except (serde.SerializeError, KeyError, AssertionError) as error:
            raise LoadError(
                f"the table of a program cannot be read: {error}; give one that "
                "ExportedProgramSerializer made",
                code=Code.INVALID_EXTERNAL_DATA,
            ) from error


def serialize(
    exported_program: ExportedProgram, opset_version: Mapping[str, int] | None = None
) -> SerializedArtifact:
    """A program as JSON of version 5.4, and its tensors as archives of torch.save.

    Args:
        exported_program: not changed.
        opset_version: versions of libraries of operators, which are noted in the JSON.

    Raises:
        ExportError: it has something that the version has no form for.
    """
    return serialized(_program(exported_program), opset=opset_version)


def deserialize(artifact: SerializedArtifact) -> ExportedProgram:
    """The program that `serialize` wrote, or ExecuTorch's; no code of the file runs.

    Raises:
        LoadError: it is damaged, or calls operators that are not there.
    """
    return deserialized(artifact)


def save(
    ep_save: ExportedProgram,
    f: AnyFile,
    *,
    extra_files: Mapping[str, str] | None = None,
    opset_version: Mapping[str, int] | None = None,
) -> None:
    """Write a program.

    Args:
        ep_save: the program.
        f: a path, or an open binary file.
        extra_files: texts to store beside it, by name.
        opset_version: as in `serialize`.

    Raises:
        ExportError: as `serialize`; `ep_save` is no ExportedProgram.
        OSError: the file cannot be written.
    """
    artifact = serialize(ep_save, opset_version)
    contents: dict[str, str | bytes] = {
        _PROGRAM: artifact.exported_program,
        **dict(
            zip(
                _ARCHIVES,
                (artifact.state_dict, artifact.constants, artifact.example_inputs),
                strict=True,
            )
        ),
        _VERSION: ".".join(map(str, VERSION)),
        **{f"{_EXTRA}{name}": text for name, text in (extra_files or {}).items()},
    }
    if isinstance(f, str | os.PathLike):
        with replacing(f) as file:
            _write(file, contents)
    else:
        _write(f, contents)


def _write(file: IO[bytes], contents: Mapping[str, str | bytes]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def load(f: AnyFile, *, extra_files: dict[str, Any] | None = None) -> ExportedProgram:
    """Read a program that `save` wrote, or ExecuTorch's; no code of the file runs.

    Args:
        f: a path, or an open binary file.
        extra_files: gets the texts that were stored beside it, by name.

    Raises:
        LoadError: the file is damaged, or of another kind or version.
        OSError: it cannot be read.
    """
    try:
        with zipfile.ZipFile(f, "r") as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile as error:
        raise _unreadable(f"it is no archive ({error})") from error
    missing = [name for name in (_PROGRAM, *_ARCHIVES, _VERSION) if name not in contents]
    if missing:
        raise _unreadable(f"it has no {missing[0]}")
    version = contents[_VERSION].decode(errors="replace")
    if version.partition(".")[0] != str(VERSION[0]):
        written = ".".join(map(str, VERSION))
        raise _unreadable(f"it is of version {version}, and {written} is known")
    for name, content in contents.items():
        if extra_files is not None and name.startswith(_EXTRA):
            extra_files[name.removeprefix(_EXTRA)] = content.decode()
    return deserialize(SerializedArtifact(*(contents[one] for one in (_PROGRAM, *_ARCHIVES))))


def _program(value: Any) -> ExportedProgram:
    if not isinstance(value, ExportedProgram):
        raise ExportError(
            f"an ExportedProgram can be saved, not {type(value).__name__}: give what "
            "torch.export.export or EdgeProgramManager.exported_program returned",
            code=Code.INVALID_TYPE,
        )
    return value


def _unreadable(why: str) -> LoadError:
    return LoadError(
        f"the file cannot be read as a program: {why}. Files of torch.export.save are read by "
        "torch.export.load",
        code=Code.INVALID_EXTERNAL_DATA,
    )
