"""Lowered modules as ExecuTorch's `exir` serialises them: JSON with bytes in base 64."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch._export.serde.serialize import SerializedArtifact
from torch.export import ExportedProgram

from rushlight.partition import LoweredBackendModule, NamedDataStoreOutput
from rushlight.partition.details import backend_class
from rushlight.partition.named_data import DataEntry
from rushlight.partition.registry import import_details
from rushlight.schema.common import ScalarType
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.schema.program import CompileSpec

Document = dict[str, Any]


@dataclass
class CompileSpecTable:
    """An option that a module was lowered with; `value` is in base 64."""

    key: str
    value: str


@dataclass
class LoweredTable:
    """A lowered module.

    Attributes:
        backend_id: the backend's id.
        processed_bytes: its payload, in base 64.
        compile_specs: its options.
        original_module: the program that it was made from: its JSON, as values of JSON.
        original_state_dict, original_constants: archives of torch.save, in base 64.
        named_data_store: JSON of its named data; None if it has none.
    """

    backend_id: str
    processed_bytes: str
    compile_specs: list[CompileSpecTable]
    original_module: Any
    original_state_dict: str
    original_constants: str
    named_data_store: str | None = None


def text_of(module: LoweredBackendModule, original: SerializedArtifact) -> str:
    """The JSON of a lowered module.

    Args:
        module: what is written.
        original: its `original_module`, serialised.
    """
    store = module.named_data_store_output
    table = LoweredTable(
        backend_id=module.backend_id,
        processed_bytes=_in_base_64(module.processed_bytes),
        compile_specs=[
            CompileSpecTable(spec.key, _in_base_64(spec.value)) for spec in module.compile_specs
        ],
        original_module=json.loads(original.exported_program),
        original_state_dict=_in_base_64(original.state_dict),
        original_constants=_in_base_64(original.constants),
        named_data_store=None if store is None else json.dumps(_store_document(store)),
    )
    return json.dumps(asdict(table))


def module_of(
    text: str, facts: Document, read: Callable[[SerializedArtifact], ExportedProgram]
) -> LoweredBackendModule:
    """The lowered module of a JSON.

    Args:
        text: the JSON.
        facts: `LoweredBackendModule.facts()`; of a module that Rushlight did not write, none.
        read: reads its program.
    """
    document = json.loads(text)
    original = SerializedArtifact(
        json.dumps(document["original_module"]).encode(),
        base64.b64decode(document["original_state_dict"]),
        base64.b64decode(document["original_constants"]),
        b"",
    )
    stored = document.get("named_data_store")
    backend_id = document["backend_id"]
    import_details(backend_id)
    known = backend_class(backend_id)
    module = LoweredBackendModule(
        read(original),
        backend_id,
        base64.b64decode(document["processed_bytes"]),
        [CompileSpec(s["key"], base64.b64decode(s["value"])) for s in document["compile_specs"]],
        None if stored is None else _store_of(json.loads(stored)),
        0 if known is None else known.overread,
    )
    module.take_facts(facts)
    return module


def _in_base_64(content: Any) -> str:
    return base64.b64encode(content).decode("ascii")


def _store_document(store: NamedDataStoreOutput) -> Document:
    return {
        "buffers": [_in_base_64(one) for one in store.buffers],
        "pte_data": {key: asdict(entry) for key, entry in store.pte_data.items()},
        "external_data": {
            name: {key: asdict(entry) for key, entry in entries.items()}
            for name, entries in store.external_data.items()
        },
    }


def _store_of(document: Document) -> NamedDataStoreOutput:
    return NamedDataStoreOutput(
        [base64.b64decode(one) for one in document["buffers"]],
        _entries_of(document["pte_data"]),
        {name: _entries_of(entries) for name, entries in document["external_data"].items()},
    )


def _entries_of(document: Mapping[str, Document]) -> dict[str, DataEntry]:
    entries = {}
    for key, entry in document.items():
        layout = entry["tensor_layout"]
        if layout is not None:
            dtype = ScalarType(layout["scalar_type"])
            layout = TensorLayout(dtype, list(layout["sizes"]), list(layout["dim_order"]))
        entries[key] = DataEntry(entry["buffer_index"], entry["alignment"], layout)
    return entries
