"""functional_calls: calls that write, which a pass of a user's may add, against eager."""

import pytest
import torch
from graphs import captured
from torch import nn
from torch.export import ExportedProgram

from rushlight.edge import EdgeCompileConfig
from rushlight.edge.passes.functional_calls import functional_calls
from rushlight.errors import ExportError
from rushlight.exir.placeholders import create_mutable_buffer
from rushlight.pipeline import to_edge

aten = torch.ops.aten
X, INDEX = torch.tensor([3.0, 4.0]), torch.tensor([1, 0])


class Kept(nn.Module):
    """What the programs of the tests compute, written as a model."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(2))

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        before = self.kept + x
        self.kept.index_put_((index,), x + x)
        return before + self.kept


def with_write() -> ExportedProgram:
    """`Kept` without its buffer, to which the buffer and its write are added as passes do."""
    program = captured(lambda x, index: x + x, X, INDEX)
    buffer = create_mutable_buffer(program, "b_kept", torch.zeros(2))
    graph = program.graph
    x, index = [n for n in graph.nodes if n.op == "placeholder"][1:]
    (add,) = graph.find_nodes(op="call_function", target=aten.add.Tensor)
    output = graph.output_node()
    with graph.inserting_before(output):
        before = graph.call_function(aten.add.Tensor, (buffer, x))
        graph.call_function(aten.index_put_.default, (buffer, [index], add))
        after = graph.call_function(aten.add.Tensor, (before, buffer))
    output.args = ((buffer, after),)
    program.graph_signature.output_specs[1].arg.name = after.name
    program.graph_module.recompile()
    return program


def test_reads_before_a_write_have_the_old_value_and_later_ones_the_new() -> None:
    program = with_write()
    written = program.graph_module.code
    new = functional_calls(program, "forward")
    assert "index_put_." in written and program.graph_module.code == written
    assert "index_put_." not in new.graph_module.code and "index_put." in new.graph_module.code
    ours, eager = new.module(), Kept()
    for _ in range(3):  # the buffer is kept between the calls
        torch.testing.assert_close(ours(X, INDEX), eager(X, INDEX), rtol=0, atol=0)
    torch.testing.assert_close(dict(ours.named_buffers())["kept"], eager.kept, rtol=0, atol=0)


def test_programs_with_writes_are_emitted() -> None:
    config = EdgeCompileConfig(_check_ir_validity=False)
    made = to_edge(with_write(), compile_config=config).to_executorch()
    names = [o.name for o in made.executorch_program.execution_plan[0].operators]
    assert "aten::index_put" in names and "aten::copy_" in names


def test_a_program_without_writes_is_the_same() -> None:
    program = captured(lambda x: x + x, X)
    assert functional_calls(program, "forward") is program


def test_a_write_that_would_be_lost_is_refused() -> None:
    program = captured(lambda x: x + 1.0, X)
    graph = program.graph
    (x,) = graph.find_nodes(op="placeholder")
    with graph.inserting_before(graph.output_node()):
        graph.call_function(aten.mul_.Tensor, (x, x))
    with pytest.raises(ExportError, match="does not return as written"):
        functional_calls(program, "forward")


def test_a_call_that_only_writes_is_refused() -> None:
    library = torch.library.Library("rl_test_writes", "FRAGMENT")
    library.define("bump(Tensor(a!) x) -> Tensor(a!)")
    edge = to_edge(captured(lambda x: x + x, X))
    graph = edge.exported_program().graph
    (add,) = graph.find_nodes(op="call_function", target=aten.add.Tensor)
    with graph.inserting_before(graph.output_node()):
        call = graph.call_function(torch.ops.rl_test_writes.bump.default, (add,))
    call.meta["val"] = add.meta["val"]
    with pytest.raises(ExportError, match="no functional variant"):
        edge.to_executorch()
