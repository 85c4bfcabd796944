"""Releases of torch: the tested ones, and the warning for others."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
import torch

from rushlight.ir.torch_release import (
    TESTED,
    guards_of,
    known_operators,
    text_of,
    warn_if_untested,
)

MAKEFILE = Path(__file__).resolve().parents[3] / "Makefile"


def test_the_makefile_installs_what_is_tested() -> None:
    text = MAKEFILE.read_text(encoding="utf-8")
    matches = [re.search(rf"^{name} := (.+)$", text, re.M) for name in ("TORCH", "TORCH_NEXT")]
    assert tuple(match.group(1) for match in matches if match) == TESTED


def test_another_release_gets_one_warning() -> None:
    with pytest.warns(UserWarning, match=r"tested with torch 2\.13\.0 and .*; this is 2\.99\.0"):
        warn_if_untested("2.99.0+cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untested("2.99.0+cpu")
        for release in TESTED:
            warn_if_untested(f"{release}+cu132")


def test_rules_of_operators_that_torch_lacks_are_left_out() -> None:
    rules = {"relu": torch.relu, "no_such_operator": torch.relu}
    assert list(known_operators(rules)) == [torch.ops.aten.relu.default]


def test_guards_have_the_names_that_all_releases_wrote() -> None:
    class Captured:
        _guards_code = ("torch.sym_min(10, L['x'].size()[0]) > torch.sym_max(1, 4)", "a != b")

    guards = guards_of(Captured())  # type: ignore[arg-type]
    assert guards == ["min(10, L['x'].size()[0]) > max(1, 4)", "a != b"]


@pytest.mark.parametrize("layer", [torch.nn.Linear(4, 2), torch.nn.Linear(4, 2, bias=False)])
def test_shapes_that_do_not_fit_are_told_alike(layer: torch.nn.Linear) -> None:
    with pytest.raises(RuntimeError) as caught:
        layer(torch.ones(3, 5))
    assert text_of(caught.value).startswith("mat1 and mat2 shapes cannot be multiplied (3x5 and")
    assert text_of(ValueError("layer: mat1 is missing")) == "layer: mat1 is missing"
