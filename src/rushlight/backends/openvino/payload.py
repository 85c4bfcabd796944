"""The payload of an OpenVINO delegate, for its compiler and its runtime: a header, then the parts.

    "RLOV", version, length of the header (u32, little-endian), the header in JSON, parts

The header has the name, offset and size of each part, and the dim order in which the model takes
each input. Bytes that do not begin like this are a compiled model as OpenVINO exports it, which is
what ExecuTorch stores.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MAGIC = b"RLOV"
VERSION = 1
_HEAD = struct.Struct("<4sII")
_ALIGNMENT = 64  # OpenVINO reads weights in place

Order = tuple[int, ...]


@dataclass
class Payload:
    """A model in OpenVINO's intermediate representation.

    Attributes:
        xml: the graph.
        weights: the constants, at the offsets that `xml` names.
        inputs: the dim order in which the model takes each; () is row-major.
    """

    xml: bytes | memoryview
    weights: bytes | memoryview
    inputs: Sequence[Order] = field(default_factory=tuple)


def write_payload(payload: Payload) -> bytes:
    """The bytes of a payload."""
    header: dict[str, object] = {"inputs": [list(o) for o in payload.inputs]}
    parts = {"xml": payload.xml, "weights": payload.weights}
    # Offsets are written with a fixed width, so that the header's length does not depend on them.
    places = {name: [f"{0:010}", f"{len(part):010}"] for name, part in parts.items()}
    length = len(json.dumps(header | {"parts": places}).encode())
    at = _HEAD.size + length
    for name, part in parts.items():
        at = _aligned(at)
        places[name][0] = f"{at:010}"
        at += len(part)
    text = json.dumps(header | {"parts": places}).encode()
    out = bytearray(_HEAD.pack(MAGIC, VERSION, len(text)) + text)
    for part in parts.values():
        out += bytes(_aligned(len(out)) - len(out))
        out += part
    return bytes(out)


def read_payload(data: memoryview) -> Payload | None:
    """The parts of a payload, not copied; None if the bytes are a compiled model.

    Raises:
        ValueError: if it is damaged, or has another version.
    """
    if bytes(data[:4]) != MAGIC:
        return None
    if len(data) < _HEAD.size:
        raise ValueError(f"the payload is cut: it has {len(data)} bytes")
    _, version, length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ValueError(
            f"the payload has version {version}, and this runtime reads {VERSION}: export the "
            f"model anew, or use the version of Rushlight that it was exported with"
        )
    try:
        header = json.loads(bytes(data[_HEAD.size : _HEAD.size + length]))
        places: Mapping[str, Sequence[str]] = header["parts"]
        spans = {name: (int(places[name][0]), int(places[name][1])) for name in ("xml", "weights")}
        orders = [tuple(map(int, order)) for order in header["inputs"]]
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"the payload's header is damaged: {error}") from None
    for name, (offset, size) in spans.items():
        if offset < 0 or size < 0 or offset + size > len(data):
            raise ValueError(
                f"the payload is cut: {name} ends at byte {offset + size} of {len(data)}"
            )
    for order in orders:
        if sorted(order) != list(range(len(order))):
            raise ValueError(f"the payload's header is damaged: {order} is not a dim order")
    xml, weights = (data[at : at + size] for at, size in spans.values())
    return Payload(xml, weights, orders)


def _aligned(at: int) -> int:
    return -(-at // _ALIGNMENT) * _ALIGNMENT
