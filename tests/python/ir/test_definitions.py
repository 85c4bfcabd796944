"""Operators that another package defines too, before ours or after."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from rushlight.ir.definitions import Definitions

SCHEMA = "twice(Tensor x) -> Tensor"
THEIRS = f"""
import torch
library = torch.library.Library("NAMESPACE", "DEF")
library.define("{SCHEMA}")
library.impl("twice", lambda x: 3 * x, "CompositeImplicitAutograd")
"""


@pytest.fixture
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The name of a module that defines the operator, and of the operator's namespace."""
    name = f"rushlight_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(THEIRS.replace("NAMESPACE", name))
    finders = list(sys.meta_path)
    sys.path.insert(0, str(tmp_path))
    yield name
    sys.path.remove(str(tmp_path))
    sys.meta_path[:] = finders


@pytest.mark.parametrize("held", [False, True])
def test_ours_gives_way_to_theirs(held: bool, theirs: str) -> None:
    ours = Definitions(theirs, [theirs], held=held)
    assert ours.define(SCHEMA, lambda x: 2 * x) and not ours.define(SCHEMA)
    operator = getattr(torch.ops, theirs).twice.default
    graph = torch.fx.Graph()
    graph.output(graph.call_function(operator, (graph.placeholder("x"),)))
    made_before = torch.fx.GraphModule(torch.nn.Module(), graph)
    exported = torch.export.export(_Calls(theirs), (torch.ones(2),))
    assert made_before(torch.ones(1)) == 2
    importlib.import_module(theirs)
    now = getattr(torch.ops, theirs).twice.default
    assert (now is operator) == held
    assert now(torch.ones(1)) == operator(torch.ones(1)) == made_before(torch.ones(1)) == 3
    assert exported.module()(torch.ones(2)).tolist() == [3, 3]
    varying = ({0: torch.export.Dim("n", min=2, max=9)},)
    again = torch.export.export(_Calls(theirs), (torch.ones(3),), dynamic_shapes=varying)
    assert again.module()(torch.ones(5)).tolist() == [3] * 5
    assert not ours.define(SCHEMA, lambda x: 2 * x)


def test_theirs_is_used_where_it_was_first(theirs: str) -> None:
    importlib.import_module(theirs)
    ours = Definitions(theirs, [theirs])
    assert not ours.define(SCHEMA, lambda x: 2 * x)
    assert ours.define("other(Tensor x) -> Tensor", lambda x: 5 * x)
    space = getattr(torch.ops, theirs)
    assert (space.twice(torch.ones(1)), space.other(torch.ones(1))) == (3, 5)
    assert str(ours.schema_of("twice")) == f"{theirs}::{SCHEMA}"


def test_a_module_that_fails_leaves_room_for_ours(theirs: str, tmp_path: Path) -> None:
    ours = Definitions(theirs, [theirs], held=True)
    ours.define(SCHEMA, lambda x: 2 * x)
    operator = getattr(torch.ops, theirs).twice.default
    (tmp_path / f"{theirs}.py").write_text("raise ImportError")
    importlib.invalidate_caches()
    with pytest.raises(ImportError):
        importlib.import_module(theirs)
    assert ours.define(SCHEMA, lambda x: 2 * x)
    assert operator(torch.ones(1)) == 2


class _Calls(torch.nn.Module):
    def __init__(self, namespace: str) -> None:
        super().__init__()
        self.namespace = namespace

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(torch.ops, self.namespace).twice(x)  # type: ignore[no-any-return]


def test_ours_stay_where_theirs_is_another_name_for_ours(theirs: str) -> None:
    ours = Definitions(theirs, [theirs])
    ours.define(SCHEMA, lambda x: 2 * x)
    module = ModuleType(theirs)
    vars(module)["__rushlight__"] = True
    sys.modules[theirs] = module
    try:
        ours.find_spec(theirs)
    finally:
        del sys.modules[theirs]
    assert getattr(torch.ops, theirs).twice(torch.ones(1)) == 2
