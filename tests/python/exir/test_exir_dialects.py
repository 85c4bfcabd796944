"""Variants and schemas of operators, the YAML of their dtypes, and the check of calls."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch.export import export
from torchgen.model import SchemaKind

import rushlight as rl
from rushlight.edge.operators import ops
from rushlight.exir.dialects.arg_validator import EdgeOpArgValidator
from rushlight.exir.dialects.edge_yaml import (
    EdgeOpYamlInfo,
    gen_edge_yaml,
    gen_op_yaml,
    get_sample_input,
)
from rushlight.exir.dialects.variants import (
    gen_out_variant_schema,
    get_callable,
    get_op_overload,
    output_to_aliased_input_map,
    parse_qualified_opname,
    to_variant,
)
from rushlight.exir.manager import to_edge

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("functional", "out"),
    [
        (aten.add.Tensor, aten.add.out),
        (aten.topk.default, aten.topk.values),
        (aten.view_copy.default, aten.view_copy.out),
        (aten.max.dim, aten.max.dim_max),
    ],
    ids=str,
)
def test_variants_of_operators(functional: Any, out: Any) -> None:
    for op in (functional, out):
        assert to_variant(op, SchemaKind.functional) == functional
        assert to_variant(op, SchemaKind.out) == out


def test_what_has_no_variant_is_refused() -> None:
    with pytest.raises(rl.ExportError, match=r"SchemaKind\.out variant of operator aten::view"):
        ops.edge.aten.view.default.to_out_variant()
    with pytest.raises(
        rl.ExportError, match=r"SchemaKind\.functional variant of operator aten::zero_"
    ):
        to_variant(aten.zero_.default, SchemaKind.functional)
    with pytest.raises(rl.ExportError, match=r"must be SchemaKind\.functional"):
        to_variant(aten.add.out, SchemaKind.inplace)
    with pytest.raises(rl.ExportError, match="'add' has no namespace"):
        parse_qualified_opname("add")
    with pytest.raises(rl.ExportError, match="aten op library does not belong to backend ops"):
        _ = ops.backend.aten


def test_schemas_of_out_variants_are_those_of_torch() -> None:
    for op, out in (
        (aten.mul.Scalar, aten.mul.Scalar_out),
        (aten.add_.Scalar, aten.add.Scalar_out),
    ):
        assert gen_out_variant_schema(str(op._schema)) == str(out._schema)
    made = gen_out_variant_schema("acme::foo(Tensor a) -> (Tensor b, Tensor c)")
    assert made.startswith("acme::foo.out(Tensor a, *, Tensor(a!) out0, Tensor(b!) out1)")
    assert get_op_overload("aten::add", "Tensor") == get_callable("add.Tensor") == aten.add.Tensor


def test_results_that_are_inputs() -> None:
    assert output_to_aliased_input_map(aten.add.Tensor._schema) == {}
    assert output_to_aliased_input_map(aten.index_put_.default._schema) == {0: 0}
    schema = torch._C.parse_schema(
        "acme::two(Tensor(x!) a, Tensor(y!) b) -> (Tensor(y!), Tensor, Tensor(x!))"
    )
    assert output_to_aliased_input_map(schema) == {0: 1, 2: 0}


def test_an_entry_says_what_eager_computes() -> None:
    info = gen_op_yaml("native_layer_norm.default")
    assert info is not None and info.type_alias == [("Double", "Float", "Half")]
    assert info.tensor_variable_names == [
        "input",
        "weight",
        "bias",
        "__ret_0",
        "__ret_1",
        "__ret_2",
    ]
    stream = io.StringIO()
    assert gen_edge_yaml(["tanh.default", "add.Tensor"], stream) == []
    entries = stream.getvalue().split("\n\n")
    assert entries[0].startswith(
        "- func: aten::add.Tensor\n  namespace: edge\n  inherits: aten::add"
    )
    assert "    T0: [Bool, Byte, Char, Float, Int, Long, Short, UInt16]\n" in entries[1]
    with pytest.raises(rl.ExportError, match="give one of inherits='' and custom=''"):
        EdgeOpYamlInfo("acme::foo", ["a"], {("Float",)})
    with pytest.raises(rl.ExportError, match="each needs one dtype"):
        EdgeOpYamlInfo("acme::foo", ["a"], {("Float", "Int")}, custom="acme::foo")


def test_samples_are_those_that_torch_tests_with() -> None:
    args, kwargs = next(get_sample_input("softmax", "", torch.float32))
    torch.testing.assert_close(
        torch.softmax(*args, **kwargs), torch.nn.functional.softmax(*args, **kwargs)
    )
    dtypes = [kwargs["dtype"] for _, kwargs in get_sample_input("to", "", torch.float32)]
    assert torch.bool in dtypes and torch.complex128 in dtypes
    with pytest.raises(rl.ExportError, match="PyTorch tests no operator 'no such'"):
        next(get_sample_input("no such", "", torch.float32))


class Sum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.topk(torch.cat((x, x)).tanh(), 1)[0]


def test_calls_with_other_dtypes_are_listed() -> None:
    x = torch.randn(2, 3)
    graph = to_edge(export(Sum(), (x,))).exported_program().graph_module
    good = EdgeOpArgValidator(graph)
    torch.testing.assert_close(good.run(x)[0], Sum()(x))
    assert good.violating_ops == {}
    tanh = graph.graph.find_nodes(op="call_function", target=ops.edge.aten.tanh.default)[0]
    tanh.meta["val"] = torch.ones(4, 3, dtype=torch.int64)
    bad = EdgeOpArgValidator(graph)
    bad.run(x)
    assert bad.violating_ops == {
        tanh.target: ({"self": torch.float32, "__ret_0": torch.int64}, tanh)
    }
    with pytest.raises(rl.ExportError, match="fails"):
        EdgeOpArgValidator(graph).run()


def test_lowered_modules_are_not_run() -> None:
    from rushlight.backends.demo import AddMulPartitionerDemo

    class Product(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mm(x, x) + x

    x = torch.ones(2, 2)
    lowered = to_edge(export(Product(), (x,))).to_backend(AddMulPartitionerDemo())
    with pytest.raises(rl.ExportError, match="validate the graph before to_backend"):
        EdgeOpArgValidator(lowered.exported_program().graph_module).run(x)
