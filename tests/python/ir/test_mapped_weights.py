"""Weights that are moved to a temporary file."""

from __future__ import annotations

import hashlib
import resource
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from rushlight.errors import ExportError
from rushlight.ir import mapped_weights
from rushlight.ir.mapped_weights import (
    Filled,
    WeightFiles,
    also_release,
    digest,
    own_bytes,
    to_file,
    weights_in_files,
    were_read,
)

MANY = 1 << 16


def _bytes(count: int) -> np.ndarray:
    return np.random.randint(0, 256, count, dtype=np.uint8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_elements_are_the_same_and_are_read_again(dtype: torch.dtype) -> None:
    weight = (torch.randn(301, 256) * 9).to(dtype)
    with weights_in_files():
        made = to_file(weight.t())
        were_read()
    assert made.dtype == dtype and made.shape == (256, 301) and torch.equal(made, weight.t())
    assert made.data_ptr() != weight.data_ptr()


def test_files_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_weights, "_CHUNK", 3 * MANY)
    parts = [_bytes(count) for count in (MANY, 2 * MANY - 7, MANY + 1, 5 * MANY, MANY)]
    files = WeightFiles()
    made = [files.add(part) for part in parts]
    files.release()
    for one, part in zip(made, parts, strict=True):
        assert files.holds(one.ctypes.data) and not files.holds(part.ctypes.data)
        np.testing.assert_array_equal(one, part)


def test_bytes_that_lie_there_are_not_written_again() -> None:
    with weights_in_files():
        made = to_file(torch.zeros(MANY))
        data = made.view(torch.uint8).numpy()
        assert own_bytes(data) is data


def test_small_weights_and_those_of_other_exports_are_copied_in_memory() -> None:
    data = _bytes(MANY)
    assert own_bytes(data) == data.tobytes()
    tensor = torch.zeros(MANY)
    assert to_file(tensor) is tensor
    with weights_in_files():
        assert own_bytes(data[:9]) == data[:9].tobytes()
        assert to_file(tensor[:9]).data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("rows", [1, 301])  # 301: in the file
def test_a_tensor_is_filled_in_parts(dtype: torch.dtype, rows: int) -> None:
    weight = torch.randn(rows, 256) * 9
    with weights_in_files():
        made = Filled([rows, 256], dtype)
        for part in weight.t().contiguous().t().split(100):
            made.add(part)
    assert torch.equal(made.tensor, weight.to(dtype))
    assert made.tensor.is_contiguous()


def test_a_large_weight_is_converted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_weights, "_AT_ONCE", 1000)
    weight = torch.randn(129, 700)
    with weights_in_files():
        for one in (weight, weight.t(), weight.view(1, -1)):
            assert torch.equal(to_file(one, torch.bfloat16), one.bfloat16())


def test_the_first_weights_may_stay_in_memory() -> None:
    files = WeightFiles(in_memory=3 * MANY)
    with weights_in_files(files):
        tensor = torch.zeros(MANY, dtype=torch.uint8)
        assert to_file(tensor) is tensor and own_bytes(tensor.numpy()) == bytes(MANY)
        assert not files.is_used
        large = Filled([2 * MANY], torch.uint8)
        assert files.is_used and files.holds(large.tensor.data_ptr())
        assert files.holds(to_file(tensor).data_ptr())


def test_a_digest_reads_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_weights, "_AT_ONCE", 1000)
    data = _bytes(MANY)
    assert digest(data) == hashlib.sha256(data).digest()
    assert digest(b"") == hashlib.sha256().digest()


def test_memory_is_given_back_when_much_was_read() -> None:
    releases = []
    with weights_in_files():
        also_release(lambda: releases.append(1))
        for _ in range(64):
            were_read(MANY)
        assert len(releases) == 1
        were_read()
        assert len(releases) == 2


def test_no_files_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with weights_in_files():
        to_file(torch.zeros(MANY))
        assert not list(tmp_path.iterdir())


def test_a_folder_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ExportError, match=r"weights to a temporary file in .*none.* set TMPDIR"):
        WeightFiles().add(_bytes(MANY))


def test_a_disk_that_fills_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_weights, "_CHUNK", 2 * MANY)
    files = WeightFiles()
    first = _bytes(MANY)
    made = files.add(first)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The system ends a write beyond this limit as one to a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (MANY + 100, before[1]))
    try:
        with pytest.raises(ExportError, match=r"cannot write 65536 bytes of weights .* make room"):
            files.add(_bytes(MANY))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    np.testing.assert_array_equal(made, first)
