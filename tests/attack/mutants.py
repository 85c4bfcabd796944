"""Mutants of a program and its data file, each made from its number alone.

Every way to damage takes another part: the tables of the program, of a payload and of the data
file, the JSON that travels as named data, and bytes anywhere.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import serialize_cases as cases

from attack import tables
from rushlight.backends.xnnpack.payload import read_payload, write_payload
from rushlight.errors import ExportError, LoadError
from rushlight.schema import cpu_engine, flat_tensor
from rushlight.serialize.pte import read_pte, write_pte
from rushlight.serialize.segments import as_bytes


class Files(NamedTuple):
    """A program, and its data file if it has one."""

    pte: bytes
    ptd: bytes | None = None


class Mutant(NamedTuple):
    """What a number makes."""

    way: str
    files: Files


class _Impossible(Exception):  # noqa: N818 - no error: the number is drawn anew
    """This way does not fit these files."""


def make(files: Files, number: int) -> Mutant:
    """Mutant `number` of these files, always the same."""
    chance = random.Random(number)
    while True:
        way = chance.choice(list(_WAYS))
        try:
            return Mutant(way, _WAYS[way](files, chance))
        except (_Impossible, ExportError, struct.error, LoadError):
            continue


# --- Bytes ---------------------------------------------------------------------------------------


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bits, bytes, words, a stretch that is moved, or an end that is cut off."""
    copy = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not copy:
            break
        # Heads, where the tables lead everywhere, as often as all the rest.
        at = chance.randrange(len(copy) if chance.random() < 0.5 else min(len(copy), 400))
        kind = chance.randrange(6)
        if kind == 0:
            copy[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            copy[at] = chance.randrange(256)
        elif kind == 2:
            del copy[at : at + chance.choice((1, 4, 16, len(copy)))]
        elif kind == 3:
            start = chance.randrange(len(copy))
            copy[at : at + 16] = copy[start : start + 16]
        else:
            number = chance.choice((*tables.LIMITS, chance.randrange(len(copy))))
            width = chance.choice((4, 8))
            word = (number % (1 << 8 * width)).to_bytes(width, "little")
            copy[at : at + width] = word[: len(copy) - at]
    return bytes(copy)


def _bytes(files: Files, chance: random.Random) -> Files:
    return files._replace(pte=damaged(files.pte, chance))


def _data_bytes(files: Files, chance: random.Random) -> Files:
    return files._replace(ptd=damaged(_data(files), chance))


# --- Tables --------------------------------------------------------------------------------------


def _tables(files: Files, chance: random.Random) -> Files:
    def change(root: Any) -> None:
        tables.mutate(chance.choice(([root], list(root.execution_plan))), chance)

    if files.pte[8:12] != b"eh00":
        raise _Impossible
    return files._replace(pte=cases.rewritten(files.pte, change))


def _data_tables(files: Files, chance: random.Random) -> Files:
    data = _data(files)
    _, _, offset, size, base, _ = struct.unpack_from("<4sIQQQQ", data, 8)
    root = flat_tensor.unpack(data[: offset + size])
    tables.mutate([root], chance)
    flatbuffer = flat_tensor.pack(root)
    new_base = -(-(len(flatbuffer) + 48) // 128) * 128
    head = int.from_bytes(flatbuffer[:4], "little") + 48
    header = struct.pack("<4sIQQQQ", b"FH01", 40, 48, len(flatbuffer), new_base, len(data) - base)
    whole = head.to_bytes(4, "little") + flatbuffer[4:8] + header.ljust(48, b"\0") + flatbuffer[8:]
    return files._replace(ptd=whole.ljust(new_base, b"\0") + data[base:])


def _data(files: Files) -> bytes:
    if files.ptd is None:
        raise _Impossible
    return files.ptd


# --- Payloads ------------------------------------------------------------------------------------


def _payload(files: Files, chance: random.Random) -> Files:
    pte = read_pte(files.pte)
    if not pte.delegate_blobs:
        raise _Impossible
    index = chance.randrange(len(pte.delegate_blobs))
    payload = bytes(as_bytes(pte.delegate_blobs[index]))
    if chance.random() < 0.2:
        pte.delegate_blobs[index] = damaged(payload, chance)
    elif payload[4:8] == b"RC01":
        engine = cpu_engine.unpack(payload)
        tables.mutate([engine], chance)
        pte.delegate_blobs[index] = cpu_engine.pack(engine)
    elif payload[4:8] == b"XH00":
        graph = read_payload(payload)
        tables.mutate([graph], chance)
        pte.delegate_blobs[index] = write_payload(graph)
    return files._replace(pte=write_pte(pte))


# --- Named data ----------------------------------------------------------------------------------

_DEEP = "deep"  # stands for arrays in arrays, which would break the writer
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1e308, -0.5, float("nan")),
    *(
        "",
        "x",
        "x" * 5000,
        "\ud800",
        "a\0b",
        "float32",
        "forward",
        [],
        {},
        [None],
        {"": None},
        _DEEP,
    ),
)


def _json(files: Files, chance: random.Random) -> Files:
    pte = read_pte(files.pte)
    keys = [key for key in pte.named_data if key.startswith("rushlight/")]
    if not keys:
        raise _Impossible
    key = chance.choice(keys)
    text = bytes(as_bytes(pte.named_data[key]))
    way = chance.randrange(8)
    if way == 0:
        pte.named_data[key] = damaged(text, chance)
    elif way == 1:
        del pte.named_data[key]
    elif way == 2:
        pte.named_data[key] = pte.named_data[chance.choice(keys)]
    else:
        try:
            document = json.loads(text)
        except ValueError:
            pte.named_data[key] = damaged(text, chance)
        else:
            pte.named_data[key] = changed(document, chance)
    return files._replace(pte=write_pte(pte))


def changed(document: Any, chance: random.Random) -> bytes:
    """The text of a document with one to three values replaced, taken out or doubled."""
    root = [document]
    for _ in range(chance.randint(1, 3)):
        places = [(box, key) for box in _boxes(root) for key in _keys(box)]
        if not places:
            break
        box, key = chance.choice(places)
        way = chance.randrange(5)
        if way == 0 and box is not root:
            del box[key]
        elif way == 1 and isinstance(box, list):
            box.insert(key, box[key])
        elif way == 2 and isinstance(box, dict):
            box[chance.choice(("", "x", "version", "forward"))] = box.pop(key)
        elif way == 3:
            other, there = chance.choice(places)
            # A copy: a box within itself has no end.
            box[key] = json.loads(json.dumps(other[there])) if there in _keys(other) else None
        else:
            box[key] = chance.choice(_VALUES)
    text = json.dumps(root[0]).replace(f'"{_DEEP}"', "[" * 20000 + "]" * 20000)
    return text.encode("utf-8", "surrogatepass")


def _boxes(box: Any) -> list[Any]:
    inside = box.values() if isinstance(box, dict) else box
    return [box] + [b for one in inside if isinstance(one, dict | list) for b in _boxes(one)]


def _keys(box: Any) -> list[Any]:
    return list(box) if isinstance(box, dict) else list(range(len(box)))


_WAYS: dict[str, Callable[[Files, random.Random], Files]] = {
    "bytes": _bytes,
    "tables": _tables,
    "payload": _payload,
    "json": _json,
    "data bytes": _data_bytes,
    "data tables": _data_tables,
}
