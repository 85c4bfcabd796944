"""Releases of torch: the tested ones, and the warning for others."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import exported_program

from rushlight.edge.decompositions import decomposition_table
from rushlight.ir.torch_release import (
    TESTED,
    guards_of,
    known_operators,
    short_decomposition_setup,
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


def test_the_short_setup_replaces_rules_that_differ_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a decomposition's time does not depend on the number of composite operators."""
    overridden: list[int] = []
    override = exported_program._override_composite_implicit_decomp

    def count(rules: Any) -> Any:
        overridden.append(len(rules))
        return override(rules)

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.nn.functional.scaled_dot_product_attention(x, x, x)  # a rule of ours
            return torch.matmul(y, x.mT).flatten().type_as(x)  # torch's own

    program = torch.export.export(Model(), (torch.randn(2, 3, 3),))
    whole = program.run_decompositions(decomposition_table())
    monkeypatch.setattr(exported_program, override.__name__, count)
    with short_decomposition_setup():
        short = program.run_decompositions(decomposition_table())
    assert short.graph_module.code == whole.graph_module.code
    assert overridden[0] < 60


def test_the_short_setup_takes_operators_registered_later() -> None:
    with short_decomposition_setup():
        torch.export.default_decompositions().items()
    with torch.library._scoped_library("late", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")

        class Model(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.ops.late.twice(x).relu()

        program = torch.export.export(Model(), (torch.randn(3),))
        with short_decomposition_setup():
            decomposed = program.run_decompositions(decomposition_table())
            kept = program.run_decompositions(decomposition_table([torch.ops.late.twice.default]))
    assert "late" not in decomposed.graph_module.code
    assert "late" in kept.graph_module.code
