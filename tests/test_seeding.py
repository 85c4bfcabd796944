"""Checks that every test draws from the seed of its own name, whichever other tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

import seeding

DRAWS = """
import random
import numpy as np
import pytest
import torch

AT_IMPORT = torch.rand(1).item()

def drawn():
    return AT_IMPORT, torch.rand(1).item(), float(np.random.rand()), random.random()

@pytest.fixture(scope="module", params=[1, 2])
def shared(request):
    return torch.rand(1).item()

def test_one(results):
    results["one"] = drawn()

def test_other(results):
    results["other"] = drawn()

@pytest.mark.parametrize("size", [3, 4])
def test_sizes(size, results):
    results[size] = drawn()

def test_shared(shared, results, request):
    results[request.node.name] = shared, *drawn()

def test_shared_again(shared, results, request):
    results[request.node.name] = shared, *drawn()
"""


class Results:
    """The numbers that the tests of a run drew, by the names of the tests."""

    def __init__(self) -> None:
        self.drawn: dict[object, tuple[float, ...]] = {}

    @pytest.fixture
    def results(self) -> dict[object, tuple[float, ...]]:
        return self.drawn


def run(folder: Path, *options: str) -> dict[object, tuple[float, ...]]:
    """The numbers that the tests drew in a run of pytest with these options."""
    file = folder / "test_that_draws.py"
    file.write_text(DRAWS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    results = Results()
    # The last of them would collect the garbage of the whole process at the end of each run.
    names = ("terminal", "faulthandler", "cacheprovider", "xdist", "unraisableexception")
    without = [f"-pno:{name}" for name in names]
    arguments = [
        str(file),
        "--import-mode=importlib",
        "-c",
        str(folder / "pytest.ini"),
        *without,
        *options,
    ]
    assert pytest.main(arguments, plugins=[seeding, results]) == 0
    return results.drawn


def test_draws_are_the_same_alone_and_among_others(tmp_path: Path) -> None:
    together = run(tmp_path)
    assert len(together) == 8 and run(tmp_path) == together
    for name in ("test_other", "test_sizes", "test_shared_again"):
        alone = run(tmp_path, "-k", name)
        assert alone and alone == {key: together[key] for key in alone}


def test_tests_draw_differently(tmp_path: Path) -> None:
    drawn = run(tmp_path)
    for place in range(4):  # torch, NumPy and random, whose draws end the tuples
        values = {draws[-4:][place] for draws in drawn.values()}
        assert len(values) == (1 if place == 0 else len(drawn))
    assert drawn["test_shared[1]"][0] == drawn["test_shared_again[1]"][0]
    assert drawn["test_shared[1]"][0] != drawn["test_shared[2]"][0]


def test_a_seed_does_not_depend_on_the_folder_or_process() -> None:
    assert seeding.seed_of("a") == 310482890
    assert seeding.seed_of("a") != seeding.seed_of("b")
