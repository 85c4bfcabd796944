"""Tests of passes over programs, of bundles and of values, under ExecuTorch's names."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch._export.verifier import SpecViolationError
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from rushlight.backends.xnnpack.quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from rushlight.errors import ExportError
from rushlight.exir import api_warnings, cord, passes, placeholders, quantized_io
from rushlight.exir.graph_passes.spec_prop import SpecPropPass
from rushlight.exir.interpreter import Interpreter
from rushlight.exir.manager import EdgeProgramManager, to_edge
from rushlight.exir.verifier import EXIREdgeDialectVerifier

X = torch.tensor([1.0, 2.0])


class Model(nn.Module):
    """A used and an unused parameter, and a constant expression."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.used + torch.full((2,), 2.0)


def edge() -> EdgeProgramManager:
    return to_edge(torch.export.export(Model(), (X,), strict=False))


def test_unused_parameters_are_dropped() -> None:
    program = torch.export.export(Model(), (X,), strict=False)
    new = passes.remove_unused_parameters_pass(program)
    assert set(new.state_dict) == {"used"} and set(program.state_dict) == {"used", "unused"}
    assert torch.equal(new.module()(X), X + 2)


def test_constants_are_computed_and_copied() -> None:
    program = torch.export.export(Model(), (X,), strict=False)
    assert "full" in passes.constant_prop_pass(program).graph_module.code  # files would grow
    folded = passes.constant_prop_pass(program, custom_skip_targets=set())
    assert "full" not in folded.graph_module.code and folded is program
    assert torch.equal(folded.module()(X), X + 2)
    module = passes.ConstPropPass()(edge().exported_program().graph_module).graph_module
    assert "full" not in module.code

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("b", torch.ones(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + self.b) * self.b

    twice = torch.export.export(Twice(), (X,))
    assert passes.duplicate_constant_node(twice, "b_b") == ["b_b_copy_0"]
    assert torch.equal(twice.module()(X), X + 1)
    with pytest.raises(ExportError, match="'x' is not a parameter"):
        passes.duplicate_constant_node(twice, "x")


def test_nodes_get_specs() -> None:
    module = SpecPropPass()(edge().exported_program().graph_module).graph_module
    assert all(n.meta["spec"].shape == [2] for n in module.graph.nodes if n.op == "call_function")


def test_inputs_and_outputs_become_integers() -> None:
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(nn.Linear(2, 2), (X,)).module(), quantizer)
    prepared(X)
    manager = to_edge(torch.export.export(convert_pt2e(prepared), (X,)))
    real = manager.exported_program().module()(X)
    changed = manager.transform(
        [
            quantized_io.QuantizeInputs(manager, [0], "forward"),
            quantized_io.QuantizeOutputs(manager, [0], "forward"),
        ]
    )
    methods = changed._config_methods
    scale, zero = (
        methods[quantized_io.get_config_method_name("forward", "input", 0, key)]
        for key in ("scale", "zp")
    )
    given = torch.quantize_per_tensor(X, scale, zero, torch.qint8).int_repr()
    returned = changed.exported_program().module()(given)
    assert returned.dtype == torch.int8
    back = (returned.float() - methods["forward_output0_zp"]) * methods["forward_output0_scale"]
    torch.testing.assert_close(back, real)
    assert changed.to_executorch().config_methods >= {"forward_input0_scale"}
    with pytest.raises(ExportError, match="not by one call that quantises"):
        quantized_io.quantize_input(edge().exported_program(), 0)


def test_an_interpreter_reads_values_and_operators() -> None:
    finished = edge().to_executorch()
    read = Interpreter(finished.executorch_program)
    assert torch.ops.aten.mul.out in read.get_operators_list()
    tensors = [read.load_value(i) for i in range(len(read.execution_plan.values))]
    assert any(isinstance(t, torch.Tensor) and t.shape == (2,) for t in tensors)


def test_the_dialect_is_checked() -> None:
    verifier = EXIREdgeDialectVerifier()
    assert verifier.is_valid(edge().exported_program())
    with pytest.raises(SpecViolationError, match="not an operator of the Edge dialect"):
        verifier(torch.export.export(Model(), (X,)))


def test_cords_and_marks() -> None:
    long, out = cord.Cord(b"ab"), io.BytesIO()
    long.append(cord.Cord(b"cd"))
    long.write_to_file(out)
    assert bytes(long) == out.getvalue() == b"abcd" and len(long) == 4
    assert (cord.aligned_size(5, 4), cord.padding_required(5, 4)) == (8, 3)

    @api_warnings.experimental("may change")
    def marked() -> int:
        return 1

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert marked() == 1
    assert told[0].category is api_warnings.ExperimentalWarning


def test_constants_and_buffers_are_added_and_removed() -> None:
    class Same(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 0.0

    program = to_edge(torch.export.export(Same(), (X,))).exported_program()
    call = next(n for n in program.graph.nodes if n.op == "call_function")
    with program.graph.inserting_before(next(iter(program.graph.nodes))):
        node = placeholders.create_constant_placeholder(
            program, program.graph, "ones", InputKind.PARAMETER, torch.ones(2)
        )
    call.args = (call.args[0], node)
    program.graph_module.recompile()
    assert torch.equal(program.module()(X), X + 1)
    with pytest.raises(ExportError, match="1 nodes use it"):
        placeholders.delete_constant_placeholder(program, node)
    call.args = (call.args[0], call.args[0])
    placeholders.delete_constant_placeholder(program, node)
    program.graph_module.recompile()
    assert torch.equal(program.module()(X), X + X) and not program.state_dict
    buffer = placeholders.create_mutable_buffer(program, "b_count", torch.ones(2))
    call.args = (call.args[0], buffer)
    program.graph_module.recompile()
    assert torch.equal(program.module()(X), X + 1)
    assert program.graph_signature.buffers_to_mutate == {"b_count": "count"}
    another = placeholders.create_mutable_buffer(program, "b_more", torch.zeros(1))
    assert list(program.graph_signature.buffers_to_mutate) == ["b_count", "b_more"]
    assert program.graph_signature.buffers == ("count", "more")
    assert torch.equal(placeholders.get_param_tensor(program, another), torch.zeros(1))
    assert placeholders.is_param_node(program, buffer)
    assert not placeholders.is_param_node(program, call)
    with pytest.raises(ExportError, match="no parameter"):
        placeholders.get_param_tensor(program, call)
    with pytest.raises(ExportError, match="there already"):
        placeholders.create_mutable_buffer(program, "b_more", torch.zeros(1))
    with (
        program.graph.inserting_before(call),
        pytest.raises(ExportError, match="before the first one"),
    ):
        placeholders.create_constant_placeholder(
            program, program.graph, "late", InputKind.CONSTANT_TENSOR, torch.ones(2)
        )


def test_passes_may_add_buffers_to_the_program_that_they_were_made_with() -> None:
    made = to_edge(torch.export.export(Model(), (X,)))
    program = made.exported_program()

    def adding(name: str) -> Callable[[GraphModule], PassResult]:
        def run(module: GraphModule) -> PassResult:
            buffer = placeholders.create_mutable_buffer(program, name, torch.ones(2))
            (call,) = module.graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor)
            call.args = (buffer, call.args[1])
            return PassResult(module, True)

        return run

    new = made.transform([adding("b_first"), adding("b_second")]).exported_program()
    assert new.graph_signature.buffers == ("first", "second")
    assert torch.equal(new.module()(X), Model()(torch.ones(2)))
