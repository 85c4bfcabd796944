"""Backends that are found by their entry points, and what is imported for that."""

from __future__ import annotations

import subprocess
import sys

import pytest

from packages import Package
from rushlight import ExportError
from rushlight.partition import registry
from rushlight.partition.to_backend import find_backend

CODE = """
from rushlight.partition import BackendDetails
class ID(BackendDetails):
    pass
"""


def test_only_the_backend_that_is_asked_for_is_imported(package: Package) -> None:
    group = registry.DETAILS
    wanted = package.offer(
        "WantedBackend", CODE.replace("ID", "WantedBackend"), "WantedBackend", group
    )
    others = [
        package.offer("OtherBackend", CODE.replace("ID", "OtherBackend"), "OtherBackend", group),
        package.offer("other", "raise SystemExit", "Partitioner", registry.GROUP),
    ]
    assert find_backend("WantedBackend").__module__ == wanted
    assert not {*others} & {*sys.modules}
    with pytest.raises(ExportError, match="no backend 'MissingBackend' is known here"):
        find_backend("MissingBackend")
    assert not {*others} & {*sys.modules}


def test_package_of_a_backend_that_cannot_be_imported(package: Package) -> None:
    package.offer("BrokenBackend", "import what_is_not_there", "B", registry.DETAILS)
    with pytest.raises(
        ExportError, match="cannot be imported: No module named 'what_is_not_there'"
    ):
        find_backend("BrokenBackend")


def test_a_stage_after_this_one_is_found_and_a_missing_one_is_named() -> None:
    assert registry.find_stage("lowered_to_file").__module__ == "rushlight.pipeline.edge_manager"
    with pytest.raises(ExportError, match="no installed package has the stage 'missing'"):
        registry.find_stage("missing")


def test_a_lowered_module_is_written_where_nobody_imported_the_pipeline() -> None:
    code = """
import sys
import torch
from rushlight.edge import EdgeCompileConfig, to_edge_dialect
from rushlight.partition import to_backend

class Add(torch.nn.Module):
    def forward(self, x):
        return x + x

program = torch.export.export(Add(), (torch.ones(2),))
lowered = to_backend("CpuBackend", to_edge_dialect(program, EdgeCompileConfig()), [])
assert "rushlight.pipeline" not in sys.modules
print(lowered.buffer()[4:8])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "b'ET12'", done.stderr
