"""Saving over the files of loaded modules, on full disks, and data files of another program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.export import Dim

import rushlight as rl
from rushlight.edge import ExecutorchBackendConfig
from rushlight.errors import Code
from rushlight.serialize.ptd import read_ptd, write_ptd


class Scale(torch.nn.Module):
    """One weight of a size, times x."""

    def __init__(self, value: float, n: int = 4, name: str = "w") -> None:
        super().__init__()
        self.name = name
        self.register_parameter(name, torch.nn.Parameter(torch.full((n,), value)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * getattr(self, self.name)


def saved(
    folder: Path, value: float, n: int = 4, name: str = "w", tag: str = "weights", file: str = "m"
) -> rl.Program:
    """A program that is saved with a data file beside it."""
    exported = torch.export.export(Scale(value, n, name), (torch.ones(n),))
    config = ExecutorchBackendConfig(external_constants=lambda node: tag)
    made = rl.to_edge(exported).to_executorch(config)
    made.save(folder / f"{file}.pte")
    return made


def ones(n: int) -> np.ndarray:
    return np.ones(n, np.float32)


@pytest.mark.parametrize("backend", ["portable", "cpu"])
@pytest.mark.parametrize("n", [1 << 16, 8])
def test_saving_over_the_file_of_a_loaded_module(tmp_path: Path, backend: str, n: int) -> None:
    path = tmp_path / "m.pte"
    size = 1 << 16
    before = rl.export(Scale(2.0, size), (torch.ones(size),), backend=backend, verify=False)
    after = rl.export(Scale(3.0, n), (torch.ones(n),), backend=backend, verify=False)
    before.save(path, quiet=True)
    module = rl.load(path)
    after.save(path, quiet=True)
    np.testing.assert_array_equal(module(ones(size)), 2 * ones(size))
    np.testing.assert_array_equal(module.clone()(ones(size)), 2 * ones(size))
    np.testing.assert_array_equal(rl.load(path)(ones(n)), 3 * ones(n))
    before.save(path, quiet=True)
    np.testing.assert_array_equal(rl.load(path)(ones(size)), 2 * ones(size))
    assert [p.name for p in tmp_path.iterdir()] == ["m.pte"]


def test_saving_over_the_data_file_of_a_loaded_module(tmp_path: Path) -> None:
    saved(tmp_path, 2.0, 1 << 16)
    module = rl.load(tmp_path / "m.pte", data=tmp_path / "weights.ptd")
    saved(tmp_path, 3.0, 4)
    np.testing.assert_array_equal(module(ones(1 << 16)), 2 * ones(1 << 16))
    again = rl.load(tmp_path / "m.pte", data=tmp_path / "weights.ptd")
    np.testing.assert_array_equal(again(ones(4)), 3 * ones(4))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.pte", "weights.ptd"]


LIMITED = """
import resource, sys
import torch
import rushlight as rl
sys.path.insert(0, sys.argv[2])
from test_saving import Scale, saved
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    if sys.argv[4] == "data":
        saved(Path(sys.argv[1]), 3.0, 1 << 16)
    else:
        rl.export(Scale(3.0, 1 << 16), (torch.ones(1 << 16),), verify=False).save(
            Path(sys.argv[1]) / "m.pte", quiet=True
        )
except rl.ExportError as error:
    print(error.code.name, error)
"""


@pytest.mark.parametrize("kind", ["whole", "data"])
def test_a_write_that_fails_leaves_the_old_files(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    data = folder / "weights.ptd" if kind == "data" else None
    if kind == "data":
        saved(folder, 2.0)
    else:
        rl.export(Scale(2.0), (torch.ones(4),), verify=False).save(folder / "m.pte", quiet=True)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, folder, here, "20000", kind],
        capture_output=True,
        text=True,
    )
    assert "ACCESS_FAILED cannot write" in done.stdout and "File too large" in done.stdout, done
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    np.testing.assert_array_equal(rl.load(folder / "m.pte", data=data)(ones(4)), 2 * ones(4))


def test_a_program_that_cannot_be_written_keeps_its_data_files(tmp_path: Path) -> None:
    """The data file is written first: it must not take its place before the program can."""
    saved(tmp_path, 2.0)
    before = (tmp_path / "weights.ptd").read_bytes()
    (tmp_path / "other.pte").mkdir()
    with pytest.raises(rl.ExportError, match="cannot write"):
        saved(tmp_path, 3.0, file="other")
    assert (tmp_path / "weights.ptd").read_bytes() == before


def test_a_mixed_pair_is_refused_by_name(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, value in ((one, 2.0), (two, 3.0)):
        folder.mkdir()
        saved(folder, value)
    mixed = two / "weights.ptd"
    for data in (mixed, mixed.read_bytes()):
        with pytest.raises(
            rl.LoadError, match=r"this weights\.ptd is not the one .*1 of 1 entries differ"
        ) as caught:
            rl.load(one / "m.pte", data=data)
        assert caught.value.code == Code.INVALID_EXTERNAL_DATA
    assert str(mixed) not in str(caught.value)
    with pytest.raises(rl.LoadError, match=str(mixed)):
        rl.load(one / "m.pte", data=mixed)
    saved(two, 2.0, tag="other")
    with pytest.raises(rl.LoadError, match=r"data file other\.ptd of another program; pass the w"):
        rl.load(one / "m.pte", data=two / "other.ptd")


@pytest.mark.parametrize("change", ["key", "dtype", "shape", "value"])
def test_what_makes_a_pair_mixed(tmp_path: Path, change: str) -> None:
    """Equal bytes under another key or in another shape are another data file."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir(), two.mkdir()
    saved(one, 0.0)
    if change == "key":
        saved(two, 0.0, name="v")
    elif change == "value":
        saved(two, -0.0)
    else:
        model = Scale(0.0)
        example = torch.ones(2, 2) if change == "shape" else torch.ones(4, dtype=torch.int32)
        model.w = torch.nn.Parameter(torch.zeros_like(example), requires_grad=False)
        exported = torch.export.export(model, (example,))
        config = ExecutorchBackendConfig(external_constants=lambda node: "weights")
        rl.to_edge(exported).to_executorch(config).save(two / "m.pte")
    rl.load(two / "m.pte", data=two / "weights.ptd")
    with pytest.raises(rl.LoadError, match="entries differ"):
        rl.load(one / "m.pte", data=two / "weights.ptd")


def test_a_data_file_without_digests(tmp_path: Path) -> None:
    """Old programs take old and new data files; a new program wants the one saved with it."""
    saved(tmp_path, 2.0)
    entries = read_ptd((tmp_path / "weights.ptd").read_bytes())
    bare = write_ptd({k: e for k, e in entries.items() if not k.startswith("rushlight/")})
    with pytest.raises(rl.LoadError, match=r"does not say .*pass the weights\.ptd that was saved"):
        rl.load(tmp_path / "m.pte", data=bare)


def test_programs_that_share_a_data_file(tmp_path: Path) -> None:
    """Of the same weights, also where one program uses a part of them."""

    class Both(torch.nn.Module):
        def __init__(self, uses_both: bool) -> None:
            super().__init__()
            self.uses_both = uses_both
            self.a = torch.nn.Parameter(torch.full((4,), 2.0))
            self.b = torch.nn.Parameter(torch.full((4,), 3.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.a + self.b if self.uses_both else x * self.a

    config = ExecutorchBackendConfig(external_constants=lambda node: "shared")
    for name, uses_both in (("part", False), ("same", True), ("whole", True)):
        exported = torch.export.export(Both(uses_both), (torch.ones(4),))
        rl.to_edge(exported).to_executorch(config).save(tmp_path / f"{name}.pte")
    shared = tmp_path / "shared.ptd"
    modules = [rl.load(tmp_path / f"{n}.pte", data=shared) for n in ("part", "same", "whole")]
    assert [m(ones(4))[0] for m in modules] == [2, 5, 5]


def test_a_program_with_several_data_files(tmp_path: Path) -> None:
    class Two(torch.nn.Module):
        def __init__(self, value: float) -> None:
            super().__init__()
            self.a = torch.nn.Parameter(torch.full((4,), value))
            self.b = torch.nn.Parameter(torch.full((4,), 3.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.a + self.b

    config = ExecutorchBackendConfig(
        external_constants=lambda node: "a" if "a" in node.name.split("_") else "b"
    )
    batch = ({0: Dim("n", min=1, max=4)},)
    for value in (2.0, 5.0):
        exported = torch.export.export(Two(value), (torch.ones(2, 4),), dynamic_shapes=batch)
        made = rl.to_edge(exported).to_executorch(config)
        folder = tmp_path / str(value)
        folder.mkdir()
        made.save(folder / "m.pte")
    assert sorted(p.name for p in folder.iterdir()) == ["a.ptd", "b.ptd", "m.pte"]
    for tag in ("a", "b"):
        with pytest.raises(rl.LoadError, match=r"'[ab]'"):  # the other one is missing
            rl.load(tmp_path / "2.0" / "m.pte", data=tmp_path / "2.0" / f"{tag}.ptd")
    with pytest.raises(rl.LoadError, match=r"this a\.ptd is not the one"):
        rl.load(tmp_path / "2.0" / "m.pte", data=tmp_path / "5.0" / "a.ptd")
