"""Readers of payloads that backends give to reports: found by entry points, without torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from packages import Package
from rushlight.inspect.payloads import GROUP, nodes_of, reader_of, scratch_of
from rushlight.inspect.work import work_of

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from rushlight.inspect import report_of
from rushlight.inspect.work import work_of

for name in sys.argv[1:]:
    [work] = [one for one in work_of(name)["forward"] if one.nodes]
    print(report_of(name).methods[0].delegates[0].scratch, len(work.nodes))
"""
READER = """
from rushlight.errors import LoadError
from rushlight.inspect.model import Work
from rushlight.inspect.payloads import PayloadNode, PayloadReader

def nodes(payload, inputs):
    if payload == b"damaged":
        raise LoadError("damaged")
    return [PayloadNode(Work("Whole", len(payload)))]

found = PayloadReader(nodes, lambda payload: 64)
without_scratch = PayloadReader(nodes)
other = "something else"
"""


@pytest.fixture(autouse=True)
def _found_anew() -> Iterator[None]:
    """Clear the cache of readers, which lasts for the whole process."""
    reader_of.cache_clear()
    yield
    reader_of.cache_clear()


def test_payloads_are_read_without_torch() -> None:
    files = [str(GOLDEN / "cpu_engine_v2_winograd.pte"), str(GOLDEN / "xnnpack_images.pte")]
    command = [sys.executable, "-c", WITHOUT_TORCH, *files]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (scratch, nodes), (no_scratch, more) = (map(int, line.split()) for line in printed.splitlines())
    assert scratch > 0 and nodes > 0 and no_scratch == 0 and more > 0


def test_a_backend_of_another_package_gives_its_reader(package: Package) -> None:
    package.offer("OtherBackend", READER, group=GROUP)
    package.offer("PlainBackend", READER, "without_scratch", GROUP)
    [node] = nodes_of("OtherBackend", b"payload", [])
    assert (node.work.name, node.work.flops) == ("Whole", 7)
    assert scratch_of("OtherBackend", b"payload") == 64
    assert scratch_of("PlainBackend", b"payload") == 0


def test_what_nobody_reads_has_no_nodes(package: Package) -> None:
    package.offer("BrokenBackend", "import what_is_not_there", group=GROUP)
    package.offer("StrangeBackend", READER, "other", GROUP)
    package.offer("EmptyBackend", READER, "missing", GROUP)
    for backend in ("BrokenBackend", "StrangeBackend", "EmptyBackend", "UnknownBackend"):
        assert nodes_of(backend, b"payload", []) == [] and scratch_of(backend, b"payload") == 0


def test_a_damaged_payload_has_no_nodes(package: Package) -> None:
    package.offer("OtherBackend", READER, group=GROUP)
    assert nodes_of("OtherBackend", b"damaged", []) == []
    for backend in ("CpuBackend", "XnnpackBackend"):
        assert nodes_of(backend, b"damaged", []) == [] and scratch_of(backend, b"damaged") == 0


def test_the_work_of_a_program_has_the_nodes_of_both_backends() -> None:
    for name in ("cpu_engine_v2_winograd.pte", "xnnpack_integers.pte"):
        works = work_of(GOLDEN / name)["forward"]
        assert any(node.work.flops for one in works for node in one.nodes.values())
