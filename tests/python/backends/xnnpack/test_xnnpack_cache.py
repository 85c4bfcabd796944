"""The file of packed weights beside a program: written at the first load, mapped at the next."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.backends.xnnpack import XnnpackPartitioner


def options(path: Path, **more: Any) -> dict[str, Any]:
    return {"backend_options": {"XnnpackBackend": {"packed_cache_path": str(path), **more}}}


def model_and_input() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 256, 300)
    )
    return model.eval(), torch.randn(1, 16, 16, 16)


def test_the_second_load_takes_no_memory_for_weights(tmp_path: Path) -> None:
    model, x = model_and_input()
    pte, packed = tmp_path / "model.pte", tmp_path / "model.packed"
    rl.export(model, (x,), backend="xnnpack").save(pte, quiet=True)
    plain = rl.load(pte)
    first = rl.load(pte, **options(packed))
    floats = sum(p.numel() for p in model.parameters())
    assert packed.stat().st_size > 4 * floats
    written = packed.stat().st_mtime_ns
    second = rl.load(pte, **options(packed))
    for module in (first, second, second.clone()):
        torch.testing.assert_close(module(x), plain(x), rtol=0, atol=0)
    assert plain.memory.peak - second.memory.peak > 4 * floats
    assert packed.stat().st_mtime_ns == written
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.packed", "model.pte"]


def test_the_file_may_only_be_read(tmp_path: Path) -> None:
    model, x = model_and_input()
    buffer = rl.export(model, (x,), backend="xnnpack").buffer
    packed = tmp_path / "packed"
    module = rl.load(buffer, **options(packed, save_weight_cache_on_disk=False))
    torch.testing.assert_close(module(x), model(x), rtol=1e-4, atol=1e-4)
    assert not packed.exists()


def test_methods_share_one_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    shared, own = nn.Linear(128, 64), nn.Linear(64, 128)
    x = torch.randn(3, 128)
    programs = {
        "one": torch.export.export(nn.Sequential(shared, nn.ReLU()), (x,)),
        "both": torch.export.export(nn.Sequential(shared, own), (x,)),
    }
    edge = rl.to_edge_transform_and_lower(programs, partitioner=[XnnpackPartitioner()])
    buffer = edge.to_executorch().buffer
    packed = tmp_path / "packed"
    expected = rl.load(buffer)
    times = []
    for _ in range(2):
        module = rl.load(buffer, **options(packed))
        for name in programs:
            torch.testing.assert_close(module[name](x), expected[name](x), rtol=0, atol=0)
        times.append(packed.stat().st_mtime_ns)
    assert times[0] == times[1]
    floats = 2 * 64 * 128  # what both have is there once
    assert 4 * floats < packed.stat().st_size < 1.1 * 4 * floats


def test_a_file_that_cannot_be_used_is_replaced(tmp_path: Path) -> None:
    model, x = model_and_input()
    buffer = rl.export(model, (x,), backend="xnnpack").buffer
    packed = tmp_path / "packed"
    rl.load(buffer, **options(packed))
    whole = packed.read_bytes()
    packed.write_bytes(whole[:-1])
    with pytest.warns(RuntimeWarning, match="packed' are not used: it is cut"):
        rl.load(buffer, **options(packed))
    assert packed.read_bytes() == whole
    with torch.no_grad():
        model[3].weight.mul_(2)
    changed = rl.export(model, (x,), backend="xnnpack").buffer
    with pytest.warns(RuntimeWarning, match="it was written for other weights"):
        module = rl.load(changed, **options(packed))
    torch.testing.assert_close(module(x), model(x), rtol=1e-4, atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rl.load(changed, **options(packed))


def test_a_path_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    model, x = model_and_input()
    buffer = rl.export(model, (x,), backend="xnnpack").buffer
    with pytest.warns(RuntimeWarning, match="cannot be written to .*No such file or directory"):
        module = rl.load(buffer, **options(tmp_path / "none" / "packed"))
    torch.testing.assert_close(module(x), model(x), rtol=1e-4, atol=1e-4)
    bad = {"backend_options": {"XnnpackBackend": {"packed_cache_path": 3}}}
    with pytest.raises(rl.LoadError, match="'packed_cache_path' must be text"):
        rl.load(buffer, **bad)["forward"]
