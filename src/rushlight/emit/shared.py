"""Data shared by a program's methods: constants, state, payloads, named data, debug map."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch.fx import Node

from rushlight.edge.config import ExecutorchBackendConfig
from rushlight.emit.constants import ConstantPool
from rushlight.emit.debug import DebugMapBuilder
from rushlight.ir.spec import raw_bytes
from rushlight.partition.lowered import LoweredBackendModule
from rushlight.partition.named_data import NamedDataStore
from rushlight.schema import program as schema


class ProgramEmitter:
    """Collects the data shared by the methods of one program while they are emitted."""

    def __init__(self, config: ExecutorchBackendConfig) -> None:
        self.config = config
        self.constants = ConstantPool()
        self.mutable_data: list[np.ndarray] = []
        self.external: dict[str, dict[str, torch.Tensor]] = {}
        self.payloads: list[bytes] = []
        self._payload_of: dict[bytes, int] = {}
        self.named_data = NamedDataStore()
        self.debug = DebugMapBuilder()

    def add_mutable(self, tensor: torch.Tensor) -> int:
        """Store a buffer's initial value; 0 if it is all zero, which the runtime sets by itself."""
        data = raw_bytes(tensor)
        if not data.any():
            return 0
        # A copy: a run of the eager model, to compare with, would change what is written later.
        self.mutable_data.append(data.copy())
        return len(self.mutable_data)

    def add_delegate(self, method: str, module: LoweredBackendModule) -> schema.BackendDelegate:
        """Store a payload, equal ones once, with its named data and debug map.

        Returns:
            The delegate for the method's plan.

        Raises:
            ExportError: if its named data contradict those of another delegate.
        """
        digest = hashlib.sha256(module.processed_bytes).digest()
        index = self._payload_of.setdefault(digest, len(self.payloads))
        if index == len(self.payloads):
            self.payloads.append(module.processed_bytes)
        if module.named_data_store_output is not None:
            where = f"{module.backend_id} in method {method!r}"
            self.named_data.merge_named_data_store(module.named_data_store_output, where)
        self.debug.add_delegate(method, module.sources())
        location = schema.DataLocation.INLINE
        if self.config.extract_delegate_segments:
            location = schema.DataLocation.SEGMENT
        place = schema.BackendDelegateDataReference(location, index)
        return schema.BackendDelegate(module.backend_id, place, module.compile_specs)

    def external_tag(self, node: Node) -> str | None:
        """The tag of the data file for the constant of `node`; None keeps it in the program."""
        wanted = self.config.external_constants
        if callable(wanted):
            return wanted(node)
        return "_default_external_constant" if wanted else None

    def add_external(self, tag: str, name: str, tensor: torch.Tensor) -> None:
        """Put a constant into the external file of `tag`, under its qualified name."""
        self.external.setdefault(tag, {})[name] = tensor
