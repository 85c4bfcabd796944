"""Damaged headers are refused with errors that name the field; sound ones are gguf's."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf_files import write_gguf
from llm_models import small_model

from rushlight.errors import ExportError
from rushlight.llm.gguf.header import MAGIC, Header, read_header
from rushlight.llm.gguf.model import read_gguf


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _entry(key: str, kind: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + value


def _tensor(name: str, sizes: list[int], kind: int = 0, offset: int = 0) -> bytes:
    shape = struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
    return _text(name) + shape + struct.pack("<IQ", kind, offset)


def _file(
    entries: list[bytes], tensors: list[bytes], data: int = 0, *, version: int = 3, **counts: int
) -> bytes:
    numbers = (counts.get("n_tensors", len(tensors)), counts.get("n_entries", len(entries)))
    head = MAGIC + struct.pack("<IQQ", version, *numbers) + b"".join(entries + tensors)
    return head + bytes(-len(head) % 32) + bytes(data)


def _read(data: bytes) -> Header:
    return read_header(memoryview(data), "m.gguf")


_HUGE = 2**63 - 1
_COUNT = struct.pack("<IQ", 4, _HUGE)
DAMAGED = {
    "empty": (b"", "is no GGUF file"),
    "other file": (b"PK\x03\x04" + bytes(40), "is no GGUF file: it begins with b'PK"),
    "cut version": (MAGIC + b"\x03", "the version needs 4 bytes at byte 4, and the file has 5"),
    "old version": (_file([], [], version=1), "version 1.*supported are little-endian"),
    "big-endian": (_file([], [], version=3 << 24), "numbers are big-endian"),
    "entries": (_file([], [], n_entries=_HUGE), "the number of metadata entries is 92233"),
    "tensors": (_file([], [], n_tensors=_HUGE), "the number of tensors is 92233"),
    "key": (_file([_text("k")[:-1] + b"\xff" + bytes(20)], []), "entry 0 is not UTF-8"),
    "key length": (
        _file([struct.pack("<Q", _HUGE) + bytes(20)], []),
        "the key of metadata entry 0",
    ),
    "kind": (_file([_entry("k", 77, bytes(8))], []), "'k' has values of the type 77"),
    "nested": (_file([_entry("k", 9, struct.pack("<IQ", 9, 1))], []), "values of the type 9"),
    "array": (_file([_entry("k", 9, _COUNT)], []), "number of elements of 'k' is 92233"),
    "twice": (_file([_entry("k", 0, b"\1")] * 2, []), "the metadata has 'k' twice"),
    "alignment": (
        _file([_entry("general.alignment", 4, struct.pack("<I", 12))], []),
        "'general.alignment' is 12, and must be a power of two",
    ),
    "alignment type": (_file([_entry("general.alignment", 8, _text("a"))], []), "is 'a', and must"),
    "rank": (_file([], [_tensor("w", [2] * 5)], 128), "tensor 'w' has 5 dimensions"),
    "type": (_file([], [_tensor("w", [2], 99)], 128), "unknown type, 99; supported are F32"),
    "refused type": (_file([], [_tensor("w", [256], 16)], 128), "'w' of m.gguf is IQ2_XXS; supp"),
    "two": (_file([], [_tensor("w", [2])] * 2, 128), "two tensors 'w'"),
    "offset": (_file([], [_tensor("w", [2], 0, 8)], 128), "offset 8 of tensor 'w' is no multiple"),
    "beyond": (_file([], [_tensor("w", [2], 0, 128)], 128), "needs 8 bytes at byte 192"),
    "cut": (_file([], [_tensor("w", [64])], 255), "tensor 'w' needs 256 bytes at byte 64"),
    "product": (_file([], [_tensor("w", [_HUGE, _HUGE])], 64), "tensor 'w' needs 3402823"),
    "blocks": (_file([], [_tensor("w", [40], 2)], 64), "rows of Q4_0 are multiples of 32"),
    "no elements": (_file([], [_tensor("w", [0])], 64), "has the shape .0."),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_headers_are_refused_by_name(case: str) -> None:
    data, message = DAMAGED[case]
    with pytest.raises(ExportError, match=message):
        _read(data)


def _sound(path: Path) -> Path:
    tokens = [f"t{i}" for i in range(320)]
    entries: dict[str, Any] = {
        "tokenizer__ggml__tokens": tokens,
        "tokenizer__ggml__scores": [0.5] * 320,
        "general__name": "small",
        "general__file_type": 7,
        "llama__attention__causal": True,
    }
    sizes = {"vocab_size": 320, "hidden_size": 32, "intermediate_size": 32, "head_dim": 16}
    model = small_model("llama", num_attention_heads=2, num_hidden_layers=1, **sizes)
    return write_gguf(model, path / "m.gguf", "Q8_0", **entries)


def test_headers_are_read_as_gguf_reads_them(tmp_path: Path) -> None:
    path = _sound(tmp_path)
    header, peer = _read(path.read_bytes()), gguf.GGUFReader(path)
    fields = {k: f.contents() for k, f in peer.fields.items() if not k.startswith("GGUF.")}
    assert set(header.metadata) == set(fields)
    for key, value in header.metadata.items():
        assert (value.tolist() if isinstance(value, np.ndarray) else value) == fields[key]
    assert set(header.tensors) == {one.name for one in peer.tensors}
    for one in peer.tensors:
        info = header.tensors[one.name]
        assert info.type.name == one.tensor_type.name
        assert info.shape == tuple(reversed(one.shape.tolist()))
        assert (info.offset, info.size) == (one.data_offset, one.n_bytes)


@pytest.mark.parametrize("rounds", [1000, pytest.param(30_000, marks=pytest.mark.full)])
def test_no_mutation_does_worse_than_an_error(rounds: int, tmp_path: Path) -> None:
    """Whatever bytes a file has, it is read or refused with an error of ours."""
    sound = _sound(tmp_path).read_bytes()
    header = max(sound.find(b"output_norm"), 2000)  # mutations there reach most checks
    draw = random.Random(rounds)
    path = tmp_path / "mutant.gguf"
    refused = 0
    for _ in range(rounds):
        path.write_bytes(_mutated(sound, header, draw))
        try:
            read_gguf(path)
        except ExportError:
            refused += 1
    assert refused > rounds // 2


def _mutated(sound: bytes, header: int, draw: random.Random) -> bytes:
    data = bytearray(sound)
    kind = draw.randrange(4)
    at = draw.randrange(header if draw.random() < 0.9 else len(data))
    if kind == 0:
        return bytes(data[:at])
    if kind == 1:
        data[at] = draw.randrange(256)
    elif kind == 2:
        value = draw.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, draw.randrange(2**16)])
        data[at : at + 8] = struct.pack("<Q", value)
    else:
        del data[at : at + draw.randrange(1, 9)]
    return bytes(data)


def test_reading_takes_no_more_memory_than_the_bytes_that_are_there() -> None:
    data = _file([_entry("k", 9, struct.pack("<IQ", 4, 10**6) + bytes(4 * 10**6))], [])
    value = _read(data).metadata["k"]
    assert isinstance(value, np.ndarray) and value.base is not None  # the file's own memory
