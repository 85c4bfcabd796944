"""Named data, which delegates can share: bytes by key; equal bytes are stored once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import lcm

import numpy as np
import torch

from rushlight.errors import Code, ExportValueError
from rushlight.ir.mapped_weights import digest, own_bytes
from rushlight.ir.spec import SCALAR_TYPES, dim_order_of, raw_bytes
from rushlight.schema.flat_tensor import TensorLayout


@dataclass(frozen=True)
class DataEntry:
    """The place of a key's bytes.

    Attributes:
        buffer_index: the index into the store's buffers.
        alignment: the alignment of the bytes in the file.
        tensor_layout: dtype, sizes and dim order, if the bytes are a tensor.
    """

    buffer_index: int
    alignment: int
    tensor_layout: TensorLayout | None = None


@dataclass
class NamedDataStoreOutput:
    """The content of a store.

    Attributes:
        buffers: the distinct values.
        pte_data: the data in the program file: {key: entry}.
        external_data: the data in other files: {file name without .ptd: {key: entry}}.
    """

    buffers: list[bytes | np.ndarray] = field(default_factory=list)
    pte_data: dict[str, DataEntry] = field(default_factory=dict)
    external_data: dict[str, dict[str, DataEntry]] = field(default_factory=dict)


class NamedDataStore:
    """Collects the data that a backend stores outside its payloads.

    A key names one value, in the program and in all files beside it. Several keys may name equal
    bytes, which are stored once.
    """

    def __init__(self) -> None:
        self._output = NamedDataStoreOutput()
        self._keys: dict[str, int] = {}
        self._by_content: dict[bytes, int] = {}

    def add_named_data(
        self,
        key: str,
        data: bytes | np.ndarray | torch.Tensor,
        alignment: int | None = 1,
        external_tag: str | None = None,
        tensor_layout: TensorLayout | None = None,
    ) -> None:
        """Add a value.

        Args:
            key: the key with which the backend's runtime looks it up.
            data: bytes, an array of them in one piece, or a dense tensor.
            alignment: the alignment of the bytes in the file; if a key is added again, the least
                common multiple is used.
            external_tag: the name of the `.ptd` file that holds it; None is the program itself.
            tensor_layout: the layout, if the bytes are a tensor's; of a tensor it is known.

        Raises:
            ExportValueError: if the key names other bytes already, or the layout is not the
                tensor's.
        """
        if key.startswith("rushlight/"):
            raise ExportValueError(
                f"named data {key!r}: keys that begin with rushlight/ are the compiler's own; "
                f"begin with the backend's name",
                code=Code.INVALID_ARGUMENT,
            )
        alignment = alignment or 1
        if alignment < 1:
            raise ExportValueError(
                f"named data {key!r}: the alignment must be positive, got {alignment}",
                code=Code.INVALID_ARGUMENT,
            )
        if isinstance(data, torch.Tensor):
            order = list(dim_order_of(data))
            layout = TensorLayout(SCALAR_TYPES[data.dtype], list(data.shape), order)
            if tensor_layout not in (None, layout):
                raise ExportValueError(
                    f"named data {key!r}: the layout is {tensor_layout}, but the tensor's is "
                    f"{layout}: leave it out",
                    code=Code.INVALID_ARGUMENT,
                )
            tensor_layout = layout
            data = raw_bytes(data)
        if not isinstance(data, np.ndarray):
            data = bytes(data)
        self._put(key, self._index(key, data, ""), alignment, external_tag, tensor_layout)

    def _put(
        self, key: str, index: int, alignment: int, tag: str | None, layout: TensorLayout | None
    ) -> None:
        home = self._output.pte_data
        if tag is not None:
            home = self._output.external_data.setdefault(tag, {})
        if key in home:
            alignment = lcm(alignment, home[key].alignment)
        home[key] = DataEntry(index, alignment, layout)

    def _index(self, key: str, data: bytes | np.ndarray, where: str) -> int:
        content = digest(data)
        index = self._by_content.get(content, len(self._output.buffers))
        if self._keys.setdefault(key, index) != index:
            old = len(self._output.buffers[self._keys[key]])
            raise ExportValueError(
                f"named data {key!r} is there twice with different bytes, {old} and {len(data)} "
                f"of them: give each value a key of its own, such as one with a hash of its bytes",
                code=Code.INVALID_ARGUMENT,
                where=where,
            )
        if index == len(self._output.buffers):
            self._by_content[content] = index
            self._output.buffers.append(data if isinstance(data, bytes) else own_bytes(data))
        return index

    def merge_named_data_store(self, other: NamedDataStoreOutput, where: str = "") -> None:
        """Add the whole content of another store.

        Args:
            other: the store.
            where: the owner of the store, for messages.

        Raises:
            ExportValueError: if a key names other bytes already.
        """
        homes = [(None, other.pte_data), *other.external_data.items()]
        for tag, entries in homes:
            for key, entry in entries.items():
                data = other.buffers[entry.buffer_index]
                index = self._index(key, data, where)
                self._put(key, index, entry.alignment, tag, entry.tensor_layout)

    def get_named_data_store_output(self) -> NamedDataStoreOutput:
        """The content that was added so far."""
        return self._output


def merged(outputs: Iterable[NamedDataStoreOutput]) -> NamedDataStoreOutput:
    """One store with the content of all."""
    store = NamedDataStore()
    for output in outputs:
        store.merge_named_data_store(output)
    return store.get_named_data_store_output()


def fault_of_store(output: NamedDataStoreOutput) -> str | None:
    """The fault in a store that was not made by `NamedDataStore`; None if there is none."""
    for home in (output.pte_data, *output.external_data.values()):
        for key, entry in home.items():
            if not isinstance(entry, DataEntry):
                return f"{key!r} is {entry!r}, not a DataEntry: fill it with a NamedDataStore"
            if not 0 <= entry.buffer_index < len(output.buffers):
                return f"{key!r} is buffer {entry.buffer_index} of {len(output.buffers)}"
    return None
