"""Kernel calls as files, for tests/cpp/kernels/replay_cases.cpp, which runs them with sanitizers.

A file is a run of calls, in the machine's byte order. A call is the kernel's name, whether it was
refused, the bytes of scratch memory, and its arguments (a tag of cpp/core/evalue.h and the value;
an out has tag 100 and no data, an input that is written tag 101). Unless it was refused, for each
tensor that is written its rank, sizes and bytes follow. Texts and lists begin with their size.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO
from unittest.mock import patch

import torch

from rushlight.ir.spec import SCALAR_TYPES

from . import harness

FOLDER = Path(__file__).resolve().parents[2] / "build" / "cases"

MAX_BYTES = 1 << 18
# Numbers, and views of other memory: tests/cpp/program/fuzz_plans.cpp draws calls of these.
LEFT_OUT = "executorch_prim::"
_NONE, _TENSOR, _STRING, _DOUBLE, _INT, _BOOL = range(6)
_LISTS = {"B": 6, "D": 7, "I": 8, "T": 9, "W": 9, "O": 11}
_OUT, _UPDATED = 100, 101
_DTYPES = {
    **SCALAR_TYPES,
    torch.uint64: 29,
    torch.complex128: 10,
}


class Recorder:
    """Stands where ``run_kernel`` does, and writes to a file what is called and what came of it.

    Of a call that is made for several instruction sets and numbers of threads, one is written. Left
    out are those that write more than MAX_BYTES (the sanitizers are slow), and those with a seed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.calls = 0
        self.run = harness.native().run_kernel
        self.isas = (None, harness.native().kernel_isas()[0])
        self.letters = {
            op: [c for c in signature if c not in "?=r"]
            for op, signature in harness.native().kernel_signatures().items()
        }

    def run_kernel(self, op: str, args: list[Any], **options: Any) -> Any:
        """As the module's own."""
        is_first = options.get("isa") in self.isas and options.get("threads", 1) == 1
        if not is_first or "seed" in options or op.startswith(LEFT_OUT):
            return self.run(op, args, **options)
        pairs = list(zip(self.letters[op], args, strict=True))
        written = [t for letter, value in pairs if letter in "wW" for t in _tensors(value)]
        if sum(t.nbytes for t, _ in written) > MAX_BYTES:
            return self.run(op, args, **options)
        inputs = len(args) - sum(a.is_out for a in harness.out_schema(op).arguments)
        record = struct.pack("=II", options.get("scratch", 1 << 20), len(args))
        for i, (letter, value) in enumerate(pairs):
            tag = _TENSOR if letter not in "wW" else _UPDATED if i < inputs else _OUT
            record += _value(letter, value, tag)
        try:
            result = self.run(op, args, **options)
        except RuntimeError:
            self._write(_text(op) + b"\1" + record)
            raise
        shapes = [
            shape
            for (letter, value), actual in zip(pairs, result[1], strict=True)
            if letter in "wW" and value is not None
            for shape in (actual if isinstance(value, list) else [actual])
        ]
        results = [_result(*t, shape) for t, shape in zip(written, shapes, strict=True)]
        self._write(_text(op) + b"\0" + record + b"".join(results))
        return result

    def _write(self, call: bytes) -> None:
        self.file.write(call)
        self.calls += 1


@contextmanager
def recording(path: Path) -> Iterator[Recorder]:
    """While it lasts, the calls of kernels that the tests make are written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        recorder = Recorder(file)
        with patch.object(harness.native(), "run_kernel", recorder.run_kernel):
            yield recorder


def replay(path: Path, sanitized: Path) -> None:
    """Runs a file's calls under AddressSanitizer and UBSan, with the program of the fixture
    `sanitized`; AssertionError with what they say."""
    done = subprocess.run([sanitized / "replay_cases", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
    path.unlink()


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("=I", len(data)) + data


def _value(letter: str, value: Any, tag: int) -> bytes:
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
        return head + b"".join(_value("t", v, tag) for v in value)
    [(tensor, order)] = _tensors(value)
    rank = tensor.dim()
    head = struct.pack(f"=BBB{rank}i", tag, _DTYPES[tensor.dtype], rank, *tensor.shape)
    return head + bytes(order) + (b"" if tag == _OUT else _bytes(tensor, order))


def _tensors(value: Any) -> list[tuple[torch.Tensor, list[int]]]:
    """The tensors of an argument, each with its order of dimensions."""
    if isinstance(value, torch.Tensor):
        return [(value, harness.dim_order(value))]
    if isinstance(value, list):
        return [t for item in value for t in _tensors(item)]
    return [value] if isinstance(value, tuple) else []


def _result(tensor: torch.Tensor, order: list[int], shape: list[int]) -> bytes:
    """What was written to a tensor that ends with that shape."""
    data = _bytes(tensor, order)[: prod(shape) * tensor.element_size()]
    return struct.pack(f"=B{len(shape)}iQ", len(shape), *shape, len(data)) + data


def _bytes(tensor: torch.Tensor, order: list[int]) -> bytes:
    """The elements in the order in which they lie in memory."""
    flat = tensor.detach().permute(list(order)).contiguous()
    if flat.numel() == 0:
        return b""
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8).numpy().tobytes()
