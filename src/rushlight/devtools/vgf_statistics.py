"""Neural statistics that ExecuTorch's VGF backend writes into a trace: JSON with its blobs in
base64."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from rushlight.errors import Code, LoadError

DelegateMetadataBytes: TypeAlias = bytes | bytearray | str
"""A backend's metadata of an event."""

SCHEMA = "executorch.vgf.neural_statistics"
SCHEMA_VERSION = 1
"""What the JSON has as "schema" and "schema_version"."""

_BLOBS = ("debug_database", "statistics_info", "statistics_memory")


class StatisticsError(LoadError, ValueError):
    """Statistics cannot be read; ExecuTorch raises a ValueError here."""


def parse_vgf_neural_statistics_metadata(metadata: DelegateMetadataBytes) -> dict[str, Any]:
    """The statistics in an event's metadata, with the bytes of each available blob as "raw_data".

    Args:
        metadata: the JSON.

    Raises:
        StatisticsError: it is no JSON of this schema and version, or a blob is not in base64.
    """
    told = _json(metadata)
    if not isinstance(told, dict) or told.get("schema") != SCHEMA:
        raise _error("it has another schema, or none")
    if told.get("schema_version") != SCHEMA_VERSION:
        raise _error(f"its version is {told.get('schema_version')!r}")
    segments = [
        {key: _blob(value) if key in _BLOBS else value for key, value in segment.items()}
        for segment in told.get("segments", ())
    ]
    return {**told, "segments": segments}


def parse_vgf_neural_statistics_delegate_metadata(
    delegate_metadata_list: Iterable[DelegateMetadataBytes | None],
) -> list[dict[str, Any]]:
    """The statistics among the metadata of events; what other backends wrote is left out.

    Args:
        delegate_metadata_list: as `Event.delegate_debug_metadatas` has them.

    Raises:
        StatisticsError: metadata names the schema and cannot be read.
    """
    of_text = (m for m in delegate_metadata_list if isinstance(m, bytes | bytearray | str))
    ours = (m for m in of_text if (SCHEMA in m if isinstance(m, str) else SCHEMA.encode() in m))
    return [parse_vgf_neural_statistics_metadata(m) for m in ours if _names_schema(_json(m))]


def _names_schema(told: Any) -> bool:
    return isinstance(told, dict) and told.get("schema") == SCHEMA


def _json(metadata: DelegateMetadataBytes) -> Any:
    try:
        return json.loads(metadata)
    except ValueError as error:
        raise _error(f"it is no JSON ({error})") from None


def _blob(blob: Any) -> Any:
    if not isinstance(blob, dict):
        return blob
    if not blob.get("available", False):
        return {"raw_data": b"", **blob}
    if blob.get("encoding") != "base64":
        raise _error(f"a blob has the encoding {blob.get('encoding')!r}, not base64")
    try:
        return {**blob, "raw_data": base64.b64decode(blob.get("data", ""), validate=True)}
    except (binascii.Error, TypeError, ValueError):
        raise _error("a blob is not in base64") from None


def _error(what: str) -> StatisticsError:
    return StatisticsError(
        f"metadata is not {SCHEMA} of version {SCHEMA_VERSION}: {what}; give the metadata of "
        "events of ExecuTorch's VGF backend",
        code=Code.INVALID_EXTERNAL_DATA,
    )
