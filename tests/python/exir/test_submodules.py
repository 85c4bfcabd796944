"""Submodules and fake programs, compared with torch.export's own and with eager PyTorch."""

from __future__ import annotations

import operator

import pytest
import torch
from torch._subclasses import FakeTensor
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument

from rushlight.exir.fake_programs import get_fake_program, update_to_real_program
from rushlight.exir.submodules import arrange_graph_outputs, submodule_of


class Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


def test_a_submodule_is_found_by_its_argument() -> None:
    module = torch.export.export(Branches(), (torch.ones(2),)).graph_module
    (call,) = module.graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond)
    name, branch, node = submodule_of(module, call, 1)
    assert node is call and getattr(module, name) is branch
    torch.testing.assert_close(branch(torch.ones(2)), (torch.full((2,), 2.0),))
    with pytest.raises(ValueError, match="argument 0 of cond is gt, not a submodule"):
        submodule_of(module, call, 0)


def test_new_values_of_buffers_come_first() -> None:
    inner = torch.fx.Graph()
    x = inner.placeholder("x")
    results = [inner.call_function(f, (x, x)) for f in (torch.add, torch.mul, torch.sub)]
    inner.output(tuple(results))
    inner_module = torch.fx.GraphModule({}, inner)
    outer = torch.fx.Graph()
    call = outer.call_module("inner", (outer.placeholder("x"),))
    outer.output(tuple(outer.call_function(operator.getitem, (call, i)) for i in range(3)))
    module = torch.fx.GraphModule({"inner": inner_module}, outer)
    before = module(torch.tensor(3.0))
    kinds = (OutputKind.USER_OUTPUT, OutputKind.BUFFER_MUTATION, OutputKind.USER_OUTPUT)
    specs = [
        OutputSpec(kind, TensorArgument(name), None)
        for kind, name in zip(kinds, "abc", strict=True)
    ]
    arrange_graph_outputs(inner_module, specs, call)
    module.recompile()
    assert [spec.arg.name for spec in specs] == ["b", "a", "c"]
    assert inner_module(torch.tensor(3.0)) == (9.0, 6.0, 0.0)
    assert module(torch.tensor(3.0)) == before


def test_a_fake_program_has_no_weights() -> None:
    model, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    real = torch.export.export(model, (x,))
    fake = get_fake_program(real)
    assert all(isinstance(tensor, FakeTensor) for tensor in fake.state_dict.values())
    assert fake.graph_signature == real.graph_signature and fake.graph is not real.graph
    update_to_real_program(fake, real)
    torch.testing.assert_close(fake.module()(x), model(x))
