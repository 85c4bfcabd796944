"""`ExecutorchProgramManager`: a finished program, and how it becomes a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, BinaryIO, TypedDict

import torch
from torch.export import ExportedProgram

from rushlight.edge import ExecutorchBackendConfig
from rushlight.emit import EmittedProgram
from rushlight.errors import Code, ExportError
from rushlight.files import replacing_all
from rushlight.ir.kernels import registered
from rushlight.ir.mapped_weights import IN_MEMORY, files_of_weights, in_parts, weights_in_files
from rushlight.ir.spec import SCALAR_TYPES, dim_order_of, raw_bytes
from rushlight.lower import LoweredMethod
from rushlight.lower.check_kernels import operators_of, schemas_of
from rushlight.lower.show import shown_program
from rushlight.record.etrecord import ETRecord
from rushlight.record.maps import DelegateMetadata, Maps, maps_of
from rushlight.schema import program as schema
from rushlight.schema.codec import Buffer
from rushlight.schema.debug import DebugMap
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.schema.operators import SCHEMAS
from rushlight.serialize.data_files import DataFiles
from rushlight.serialize.debug_limit import with_debug
from rushlight.serialize.file import PTEFile, check_program_path
from rushlight.serialize.ptd import NamedTensor
from rushlight.serialize.pte import write_pte, write_pte_to
from rushlight.serialize.segments import Data


class ExecutorchProgramManager:
    """A finished program: its bytes, its plan and its debug maps."""

    def __init__(
        self,
        methods: dict[str, LoweredMethod],
        emitted: EmittedProgram,
        config: ExecutorchBackendConfig,
        contracts: Mapping[str, dict[str, Any]],
        config_methods: Sequence[str],
        etrecord: ETRecord | None = None,
    ) -> None:
        self._methods = methods
        self._emitted = emitted
        self._config = config
        self._contracts = dict(contracts)
        self._config_methods = list(config_methods)
        self._etrecord = etrecord
        self._more: dict[str, Data] = {}
        self._buffer: bytes | None = None
        self._external: DataFiles | None = None
        self._weights = files_of_weights()

    @property
    def methods(self) -> set[str]:
        """Names of the traced methods."""
        return set(self._methods)

    @property
    def config_methods(self) -> set[str]:
        """Names of the constant methods."""
        return set(self._config_methods)

    @property
    def config_methods_in_order(self) -> list[str]:
        """The constant methods in the order in which they were given."""
        return list(self._config_methods)

    @property
    def executorch_program(self) -> schema.Program:
        """The program as the schema's dataclasses."""
        return self._emitted.program

    @property
    def contracts(self) -> dict[str, dict[str, Any]]:
        """The shape contracts of the traced methods, for the file; a form has the contract of its
        method."""
        return dict(self._contracts)

    @cached_property
    def _maps(self) -> Maps:
        emitted = self._emitted
        return maps_of(
            *(emitted.program, self.methods, emitted.debug_handles),
            *(emitted.instruction_nodes, emitted.debug),
        )

    @property
    def debug_handle_map(self) -> dict[str, dict[int, int | list[int]]]:
        """{method: {instruction: debug handle, or those of its delegate's nodes}}."""
        return self._maps.handles

    @property
    def delegate_map(self) -> dict[str, dict[int, DelegateMetadata]]:
        """{method: {instruction: {"name": backend, "delegate_map": {place: debug handles}}}}."""
        return self._maps.delegates

    @property
    def instruction_id_to_num_outs_map(self) -> dict[str, dict[int, int]]:
        """{method: {instruction: how many values its delegate gives}}."""
        return self._maps.outputs

    @property
    def instruction_nodes(self) -> dict[str, dict[int, tuple[str, list[int]]]]:
        """{method: {instruction: (Edge node name, indices of the values it writes)}}."""
        return self._emitted.instruction_nodes

    def get_etrecord(self) -> ETRecord:
        """The record of the export.

        Raises:
            ExportError: the program was made without `generate_etrecord=True`.
        """
        if self._etrecord is None:
            raise ExportError(
                "the export was not recorded: pass generate_etrecord=True to to_edge or "
                "to_edge_transform_and_lower, or etrecord= to export",
                code=Code.INVALID_STATE,
            )
        if self._etrecord.debug_handle_map is None:
            self._etrecord.add_executorch_program(self)
        return self._etrecord

    def lowered_method(self, method_name: str = "forward") -> LoweredMethod:
        """The planned out-variant graph of the method `method_name`."""
        return self._methods[method_name]

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """The method `method_name` with its graph of out-variants; with control flow it cannot be
        run in Python."""
        return shown_program(self._methods[method_name])

    def _named_data(self) -> dict[str, Data]:
        contract = {"version": 1, "methods": self._contracts}
        named: dict[str, Any] = {"rushlight/contract": contract}
        libraries = self._libraries()
        if libraries:
            named["rushlight/kernels"] = {"version": 1, "libraries": libraries}
        store = self._emitted.named_data
        data = {k: store.buffers[e.buffer_index] for k, e in store.pte_data.items()}
        for key, value in named.items():
            data[key] = json.dumps(value, separators=(",", ":")).encode()
        schemas = self._schemas()
        if schemas:
            data[SCHEMAS] = "".join(f"{text}\n" for text in schemas).encode()
        return {**data, **self._data_files().named_data(), **self._more}

    @property
    def debug_map(self) -> DebugMap:
        """The whole map from instructions to Python lines; the file may have only a part of it."""
        return self._emitted.debug

    def add_named_data(self, key: str, value: Data) -> None:
        """Add the bytes `value` to the file, under `key` in its named data."""
        self._more[key] = value
        self._buffer = None

    @property
    def is_large(self) -> bool:
        """Whether its weights are too large for copies in memory: some lie in files, or many
        constants do in the model itself."""
        in_files = self._weights is not None and self._weights.is_used
        return in_files or sum(one.nbytes for one in self._emitted.constants) > IN_MEMORY

    @property
    def payloads(self) -> list[bytes]:
        """The payloads of all delegates."""
        return list(self._emitted.payloads)

    def _schemas(self) -> list[str]:
        """The schemas of the operators that are not the runtime's, which their kernels must fit."""
        methods = self._methods.values()
        return [
            text
            for _, text in sorted({k: v for m in methods for k, v in schemas_of(m).items()}.items())
        ]

    def _libraries(self) -> dict[str, str]:
        """The kernel libraries of the operators that the user registered, by operator."""
        used = sorted(set().union(*(operators_of(method) for method in self._methods.values())))
        kernels = ((name, registered(name)) for name in used)
        return {name: kernel.library for name, kernel in kernels if kernel is not None}

    def _file(self) -> PTEFile:
        file = PTEFile(
            program=self._emitted.program,
            constants=[b"", *self._emitted.constants],
            mutable_data=[b"", *self._emitted.mutable_data],
            named_data=self._named_data(),
            delegate_blobs=list(self._emitted.payloads),
        )
        return with_debug(file, self._emitted.debug, self._config.debug)

    def _alignments(self) -> _Alignments:
        config = self._config
        return {
            "segment_alignment": config.segment_alignment,
            "constant_alignment": config.constant_tensor_alignment or 16,
            "delegate_alignment": config.delegate_alignment or 1,
            "named_data_alignment": {
                k: e.alignment for k, e in self._emitted.named_data.pte_data.items()
            },
        }

    @property
    def buffer(self) -> bytes:
        """The .pte file."""
        if self._buffer is None:
            self._buffer = write_pte(self._file(), **self._alignments())
        return self._buffer

    def write_to_file(self, open_file: BinaryIO) -> None:
        """Write the .pte to `open_file`, which is open for binary writing."""
        if self._buffer is not None:
            open_file.write(self._buffer)
        else:  # directly from the tensors, without a copy of the weights
            with weights_in_files(self._weights):
                write_pte_to(_InParts(open_file), self._file(), **self._alignments())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the .pte to `path`, and each external data file beside it.

        Modules loaded from old files keep these; if a file cannot be written, all old files stay.

        Raises:
            ExportError: if `path` does not end in .pte, or cannot be written.
        """
        check_program_path(path)
        external = self._data_files()
        paths = [*external.paths(os.path.dirname(path)), path]
        try:
            with replacing_all(paths) as (*data, program):
                external.write_to(data)
                self.write_to_file(program)
        except OSError as error:
            raise ExportError(
                f"cannot write {os.fspath(path)!r}: {error.strerror}; check the path",
                code=Code.ACCESS_FAILED,
            ) from error

    def write_tensor_data_to_file(self, directory: str | os.PathLike[str]) -> None:
        """Write one `<tag>.ptd` into `directory` for each tag of external constants."""
        external = self._data_files()
        with replacing_all(external.paths(directory)) as files:
            external.write_to(files)

    def data_files(self) -> dict[str, bytes]:
        """External data: file name without extension to the bytes of its .ptd."""
        return self._data_files().images()

    def _data_files(self) -> DataFiles:
        if self._external is not None:
            return self._external
        store = self._emitted.named_data
        entries = [
            (tag, name, _named_tensor(tensor))
            for tag, tensors in self._emitted.external.items()
            for name, tensor in tensors.items()
        ]
        for tag, of_backends in store.external_data.items():
            for key, entry in of_backends.items():
                data = store.buffers[entry.buffer_index]
                entries.append((tag, key, NamedTensor(data, entry.tensor_layout, entry.alignment)))
        self._external = DataFiles(entries)
        return self._external


class _InParts:
    """A file that is written a part at a time, and the memory of what was written given back."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: Buffer) -> int:
        """Write all of it; returns the bytes."""
        return sum(self._file.write(part) for part in in_parts(data))


class _Alignments(TypedDict):
    segment_alignment: int
    constant_alignment: int
    delegate_alignment: int
    named_data_alignment: dict[str, int]


def _named_tensor(tensor: torch.Tensor) -> NamedTensor:
    dim_order = list(dim_order_of(tensor))
    layout = TensorLayout(SCALAR_TYPES[tensor.dtype], list(tensor.shape), dim_order)
    return NamedTensor(raw_bytes(tensor), layout, alignment=16)
