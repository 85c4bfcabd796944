"""The verifier names the node, the reason, the graph around it and the Python line."""

import pytest
import torch
from graphs import captured, core

from rushlight.errors import ExportError
from rushlight.ir.dialect import CORE_ATEN, EDGE, OUT
from rushlight.ir.verify import verify


class _Viewing(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x.view(6)).sin()


def test_a_view_is_not_of_the_edge_dialect() -> None:
    program = core(_Viewing(), torch.randn(2, 3))
    with pytest.raises(ExportError) as caught:
        verify(program.graph, EDGE, "forward: test")
    text = str(caught.value)
    assert text.startswith("forward: test (Edge dialect): view (aten.view.default)")
    assert "aten::view_copy instead" in text
    assert "test_verify.py:" in text and "x.view(6)" in text
    assert "  >    1 %view" in text and "%relu" in text


def test_an_operator_that_writes_is_not_functional() -> None:
    program = captured(lambda x: x.clone().add_(1), torch.randn(2))
    with pytest.raises(ExportError, match="only functional operators"):
        verify(program.graph, CORE_ATEN, "test")


def test_a_scalar_where_a_tensor_belongs() -> None:
    program = core(lambda x: x * 2, torch.randn(2))
    with pytest.raises(ExportError, match=r"argument 'other' must be a tensor, got 2"):
        verify(program.graph, EDGE, "test")


def test_a_functional_operator_is_not_of_the_out_dialect() -> None:
    program = core(lambda x: x.sin(), torch.randn(2))
    with pytest.raises(ExportError, match="it is not an out-variant"):
        verify(program.graph, OUT, "test")


def test_a_node_without_an_example_value() -> None:
    program = core(lambda x: x.sin(), torch.randn(2))
    next(n for n in program.graph.nodes if n.op == "call_function").meta.pop("val")
    with pytest.raises(ExportError, match="no example value"):
        verify(program.graph, CORE_ATEN, "test")


def test_a_use_before_its_definition() -> None:
    program = core(lambda x: x.sin().cos(), torch.randn(2))
    sin, cos = (n for n in program.graph.nodes if n.op == "call_function")
    cos.append(sin)
    with pytest.raises(ExportError, match="uses sin before that is computed"):
        verify(program.graph, CORE_ATEN, "test")
