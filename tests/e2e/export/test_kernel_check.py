"""Export accepts what the runtime runs: operators and dtypes, by the manifest of kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import rushlight as rl
from rushlight.ir.kernels import Manifest, manifest


def test_all_offenders_are_named_at_once(tmp_path: Path) -> None:
    """A manifest with fewer kernels and dtypes stands for a smaller runtime."""
    document = manifest().to_json()
    del document["operators"]["aten::mm.out"]
    document["operators"]["aten::avg_pool2d.out"]["dtypes"] = "int64"
    path = tmp_path / "small.json"
    path.write_text(json.dumps(document))

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
            pooled = torch.nn.functional.avg_pool2d(x, 2)
            return pooled, y @ y

    args = (torch.randn(1, 2, 4, 4), torch.randn(3, 3))
    with pytest.raises(rl.ExportError) as caught:
        rl.export(Model(), args, ops_manifest=path)
    text = str(caught.value)
    assert "no kernel for\n  aten::mm.out\n    needed by" in text and "pooled, y @ y" in text
    assert "aten::avg_pool2d.out: argument 'self' is float32, the kernel takes int64" in text
    assert "convert it with .to(torch.int64)" in text and "avg_pool2d(x, 2)" in text
    assert caught.value.code is rl.Code.OPERATOR_MISSING
    rl.export(Model(), args)


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (
            lambda x: torch.nn.functional.softmax(x, -1),
            (torch.randn(2, 3, dtype=torch.complex64),),
            "complex64",
        ),
        (
            lambda x: torch.ops.aten.add.Tensor(x, x),
            (torch.ones(3, dtype=torch.uint16),),
            r"aten::add.out: argument 'self' is uint16, the kernel takes real, bool, complex64: "
            r"convert it with .to\(torch.float32\)",
        ),
    ],
)
def test_a_dtype_that_no_kernel_takes_is_refused(
    function: Callable[..., Any], args: tuple[torch.Tensor, ...], message: str
) -> None:
    class Model(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            return function(*args)

    with pytest.raises(rl.ExportError, match=message):
        rl.export(Model(), args)


def test_a_list_of_names_is_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "ops.txt"
    path.write_text("aten::relu.out tw=\naten::mine.out tw=\n")
    small = Manifest.read(path)
    assert len(small) == 2 and small.find("aten::relu.out") == manifest().find("aten::relu.out")
    mine = small.find("aten::mine.out")
    assert mine is not None and mine.takes("self") is None
    x = (torch.randn(3),)
    rl.export(torch.nn.ReLU(), x, ops_manifest=path)
    with pytest.raises(rl.ExportError, match=r"no kernel for\n  aten::tanh.out"):
        rl.export(torch.nn.Tanh(), x, ops_manifest=path)


def test_a_manifest_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text(json.dumps(manifest().to_json()))
    assert list(Manifest.read(path)) == list(manifest())


@pytest.mark.parametrize("text", ["", "no names here\n", "{}", '{"version": 2}', "{"])
def test_what_is_no_manifest_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text(text)
    with pytest.raises(rl.Error, match=r"cannot read .*broken.*rushlight ops --json"):
        Manifest.read(path)
    with pytest.raises(rl.Error, match="cannot read"):
        Manifest.read(tmp_path / "nowhere")
