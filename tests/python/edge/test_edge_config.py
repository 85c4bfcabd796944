"""Options of another type, such as ExecuTorch's own, are refused with how to make ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

import rushlight as rl
from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig
from rushlight.errors import ExportError


@dataclass
class _Foreign:
    """The fields of ExecuTorch's `EdgeCompileConfig`."""

    _check_ir_validity: bool = True
    _skip_dim_order: bool = False
    _core_aten_ops_exception_list: list[Any] = field(default_factory=list)
    preserve_ops: list[Any] = field(default_factory=list)


class _Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


X = (torch.ones(2),)


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (_Foreign(), "EdgeCompileConfig()"),
        (_Foreign(_skip_dim_order=True), "EdgeCompileConfig(_skip_dim_order=True)"),
        (
            _Foreign(preserve_ops=[torch.ops.aten.silu.default]),
            "EdgeCompileConfig(preserve_ops=...)",
        ),
        (3, "EdgeCompileConfig()"),
    ],
)
def test_compile_config(config: Any, wanted: str) -> None:
    exported = torch.export.export(_Model(), X)
    manager = rl.to_edge(exported)
    for call in (
        lambda: rl.export(_Model(), X, compile_config=config),
        lambda: rl.to_edge(exported, compile_config=config),
        lambda: rl.to_edge_transform_and_lower(exported, compile_config=config),
        lambda: manager.transform([], compile_config=config),
    ):
        with pytest.raises(ExportError) as caught:
            call()
        kind = type(config).__qualname__
        assert str(caught.value).startswith("compile_config is of the type ")
        assert f".{kind}: give rushlight.edge.{wanted}" in str(caught.value)


def test_the_other_options() -> None:
    manager = rl.to_edge(torch.export.export(_Model(), X))
    with pytest.raises(ExportError, match=r"config is .*ExecutorchBackendConfig\(\)"):
        manager.to_executorch(EdgeCompileConfig())  # type: ignore[arg-type]
    with pytest.raises(ExportError, match=r"memory is .*int: give .*MemoryPlanningPass\(\)"):
        rl.export(_Model(), X, memory=3)  # type: ignore[arg-type]
    told = r"memory_planning_pass\['forward'\] is .*MemoryPlanningPass\(\)"
    with pytest.raises(ExportError, match=told):
        ExecutorchBackendConfig(memory_planning_pass={"forward": 3})  # type: ignore[dict-item]
