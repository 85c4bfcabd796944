"""control flow: labels and jumps, results written in place, and what a loop keeps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import captured
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import flex_attention

from rushlight.edge import EdgeCompileConfig, to_edge_dialect
from rushlight.errors import ExportError
from rushlight.ir.alloc import alloc
from rushlight.ir.control import jump_if_false, label
from rushlight.lower import LoweredMethod, lower


def _lowered(function: Any, *args: Any) -> LoweredMethod:
    return lower(to_edge_dialect(captured(function, *args), EdgeCompileConfig()))


def _calls(method: LoweredMethod) -> list[str]:
    """The calls in order, allocations left out."""
    return [
        getattr(n.target, "__name__", "").removesuffix(".default")
        for n in method.graph.nodes
        if n.op == "call_function" and n.target is not alloc
    ]


def test_branches_write_their_results_in_place() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin().cos(), lambda x: x.exp(), (x,))

    assert _calls(_lowered(model, torch.ones(3))) == [
        *("sum.IntList_out", "gt.Scalar_out", "jump_if_false"),
        *("sin.out", "cos.out", "jump_if_false", "label"),
        *("exp.out", "label"),
    ]


def test_a_result_that_others_see_is_copied() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.clone(), lambda x: x.exp(), (x,))

    assert _calls(_lowered(model, torch.ones(3))).count("_clone_dim_order.out") == 1


def test_constants_of_branches_are_constants_of_the_method() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 3, lambda x: x - 2, (x,))

    method = _lowered(model, torch.ones(3))
    assert sorted(float(c.tensor) for c in method.constants.values()) == [2, 3]


def test_a_loop_keeps_what_it_reads_again() -> None:
    def model(x: torch.Tensor) -> Any:
        outer = x.sin()

        def body(i: torch.Tensor, a: torch.Tensor) -> Any:
            return i + 1, a + outer

        return while_loop(lambda i, a: i < 3, body, (torch.zeros((), dtype=torch.int64), x.cos()))

    nodes = list(_lowered(model, torch.ones(3)).graph.nodes)
    head = next(n for n in nodes if n.target is label)
    back = next(n for n in nodes if n.target is jump_if_false and n.args[0] is False)
    assert head.args[0] == back.args[1]
    sine = next(n for n in nodes if "sin.out" in str(n.target)).kwargs["out"]
    assert sine in head.args[1] and sine in back.args[2] and len(back.args[2]) == 3


def test_values_that_change_places_are_copied_before_either_is_written() -> None:
    def model(x: torch.Tensor) -> Any:
        def body(i: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
            return i + 1, b.clone(), a.clone()

        return while_loop(
            lambda i, a, b: i < 3, body, (torch.zeros((), dtype=torch.int64), x.cos(), x.sin())
        )

    nodes = list(_lowered(model, torch.ones(3)).graph.nodes)
    head = next(i for i, n in enumerate(nodes) if n.target is label)
    copies = [n for n in nodes[head:] if "_clone_dim_order" in str(n.target)]
    read, written = [n.args[0] for n in copies], [n.kwargs["out"] for n in copies]
    assert len(copies) == 5 and not set(read[-2:]) & set(written[-3:])


def test_another_higher_order_operator_is_refused_with_its_line() -> None:
    def model(q: torch.Tensor) -> torch.Tensor:
        return flex_attention(q, q, q)

    with pytest.raises(ExportError, match=r"\.py:\d+ in \w+.*cond, while_loop, map or scan"):
        _lowered(model, torch.randn(1, 2, 16, 8))
