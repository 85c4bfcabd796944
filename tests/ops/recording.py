"""Kernel calls as files, for tests/cpp/replay_cases.cpp, which runs them under the sanitizers.

A file is a run of calls, in the machine's byte order. A call is the kernel's name, whether values
are compared, its arguments (a tag of cpp/core/evalue.h and the value; an out has tag 100 and no
data), then for each out its rank, sizes and bytes. Texts and lists begin with their size.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch

from rushlight.ir.spec import SCALAR_TYPES

from . import harness

ROOT = Path(__file__).resolve().parents[2]
REPLAY = ROOT / "build" / "sanitize" / "tests" / "cpp" / "replay_cases"
FOLDER = ROOT / "build" / "cases"

MOST_BYTES = 1 << 18
_NONE, _TENSOR, _STRING, _DOUBLE, _INT, _BOOL = range(6)
_LISTS = {"B": 6, "D": 7, "I": 8, "T": 9, "W": 9, "O": 11}
_OUT = 100
_DTYPES = {**SCALAR_TYPES, torch.complex64: 9, torch.complex128: 10}


class Recorder:
    """Writes calls to a file."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.calls = 0

    def call(
        self, op: str, args: list[Any], outs: list[Any], expected: list[torch.Tensor], values: bool
    ) -> None:
        """One call: its arguments as run_kernel takes them, and what each out must be.

        Left out are calls whose results take more than MOST_BYTES: the sanitizers are slow.
        """
        if sum(e.numel() * e.element_size() for e in expected) > MOST_BYTES:
            return
        tensors = [a for a in outs for a in (a if isinstance(a, list) else [a])]
        parts = [_text(op), struct.pack("=BI", values, len(args) + len(outs))]
        letters = [c for c in harness.native().kernel_signatures()[op] if c not in "?=r"]
        for index, (letter, value) in enumerate(zip(letters, [*args, *outs], strict=True)):
            # What a kernel writes besides its outs, such as a cache, it reads as well.
            parts.append(_value(letter, value, index >= len(args)))
        for (_, order), e in zip(tensors, expected, strict=True):
            data = _bytes(e, order)
            parts.append(struct.pack(f"=B{e.dim()}iQ", e.dim(), *e.shape, len(data)) + data)
        self.file.write(b"".join(parts))
        self.calls += 1


@contextmanager
def recording(path: Path) -> Iterator[Recorder]:
    """While it lasts, every call of an operator with outs that the harness makes is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        harness.recorder = Recorder(file)
        try:
            yield harness.recorder
        finally:
            harness.recorder = None


def replay(path: Path) -> None:
    """Runs a file's calls under AddressSanitizer and UBSan; AssertionError with what they say."""
    if not REPLAY.exists():
        from filelock import FileLock

        with FileLock(str(FOLDER / "sanitize.lock")):
            subprocess.run(["make", "sanitize"], cwd=ROOT, check=True)
    done = subprocess.run([REPLAY, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    path.unlink()


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("=I", len(data)) + data


def _value(letter: str, value: Any, written: bool) -> bytes:
    if value is None:
        return struct.pack("=B", _NONE)
    if isinstance(value, bool):
        return struct.pack("=Bq", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("=Bq", _INT, value)
    if isinstance(value, float):
        return struct.pack("=Bd", _DOUBLE, value)
    if isinstance(value, str):
        return struct.pack("=B", _STRING) + _text(value)
    if isinstance(value, list):
        head = struct.pack("=BI", _LISTS[letter], len(value))
        if letter in "BD":
            return head + struct.pack(f"={len(value)}{'d' if letter == 'D' else 'B'}", *value)
        return head + b"".join(_value("t", v, written) for v in value)
    tensor, order = value if isinstance(value, tuple) else (value, harness.dim_order(value))
    tag = _OUT if written else _TENSOR
    rank = tensor.dim()
    head = struct.pack(f"=BBB{rank}i", tag, _DTYPES[tensor.dtype], rank, *tensor.shape)
    return head + bytes(order) + (b"" if written else _bytes(tensor, order))


def _bytes(tensor: torch.Tensor, order: list[int]) -> bytes:
    """The elements in the order in which they lie in memory."""
    flat = tensor.detach().permute(list(order)).contiguous()
    if flat.numel() == 0:
        return b""
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8).numpy().tobytes()
