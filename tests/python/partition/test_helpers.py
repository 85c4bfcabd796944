"""The helpers for writing partitioners; cases of ExecuTorch's tests, written anew."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node, symbolic_trace
from torch.fx.passes.operator_support import any_chain, chain

import rushlight as rl
from delegates import Takes, calls_of, lowered_modules, taking
from rushlight.errors import ExportError
from rushlight.partition import (
    ConfigerationBasedPartitioner,
    DelegateMappingBuilder,
    DelegationSpec,
    DontPartition,
    DontPartitionModule,
    DontPartitionName,
    NamedDataStore,
    Partitioner,
    PartitionerConfig,
    SupportedOperatorPartitioner,
    WhyNoPartition,
    WhyNoPartitionReporter,
    format_target_name,
    get_delegated_payload,
    get_delegates,
    get_non_lowered_nodes,
    is_identical_graph,
    is_shape_dynamic,
    remove_first_quant_and_last_dequant,
)
from rushlight.partition.named_data import merged
from rushlight.schema.flat_tensor import TensorLayout

SPEC = DelegationSpec("Interpreted")


def edge_of(model: torch.nn.Module, *args: Any, **options: Any) -> rl.EdgeProgramManager:
    return rl.to_edge(torch.export.export(model.eval(), args, **options))


class Parts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(2, 2)
        self.second = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).sin() + x)


X = torch.randn(3, 2)


# --- operator supports ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "left"),
    [
        (DontPartition(torch.ops.aten.sin.default), ["sin"]),
        (DontPartition("aten.sin.default"), ["sin"]),
        (DontPartition("aten.sin"), []),
        (DontPartition("aten.lin", "sin", exact=False), ["linear", "sin", "linear_1"]),
        (DontPartitionName("linear_1"), ["linear_1"]),
        (DontPartitionName("linear", exact=False), ["linear", "linear_1"]),
        (DontPartitionModule(module_name="Linear"), ["linear", "linear_1"]),
        (DontPartitionModule(module_name="torch.nn.modules.linear.Linear"), ["linear", "linear_1"]),
        (DontPartitionModule(module_name="linear.Linear"), []),
        (DontPartitionModule(instance_name="second"), ["linear_1"]),
        (DontPartitionModule(instance_name="L['self'].second"), ["linear_1"]),
        (DontPartitionModule(instance_name="sec", exact=False), ["linear_1"]),
    ],
)
def test_what_stays_out(out: Any, left: list[str]) -> None:
    manager = edge_of(Parts(), X).to_backend(
        SupportedOperatorPartitioner(SPEC, chain(Takes("aten"), out))
    )
    graph = manager.exported_program().graph
    assert [n.name for n in get_non_lowered_nodes(graph)] == left
    assert sorted(n.name for n in out.rejected_nodes()) == sorted(left)
    assert out.num_rejected() == len(left) and out.has_rejected_node() == bool(left)


def test_two_supports_do_not_share_what_they_rejected() -> None:
    first, second = DontPartitionName("a"), DontPartitionName("b")
    first.reject_node(next(iter(torch.fx.symbolic_trace(torch.nn.ReLU()).graph.nodes)))
    assert not second.has_rejected_node()


def test_reasons_reach_the_report() -> None:
    reporter = WhyNoPartitionReporter()
    support = reporter.wrap_check(Takes("aten.linear"), "it has no such instruction")
    partitioner = SupportedOperatorPartitioner(SPEC, support, reporter=reporter)
    manager = edge_of(Parts(), X).to_backend(partitioner)
    left = get_non_lowered_nodes(manager.exported_program().graph)
    assert {n.name: n.meta["declined"] for n in left} == {
        "sin": {"Interpreted": "it has no such instruction"},
        "add": {"Interpreted": "it has no such instruction"},
    }
    table = reporter.get_table_report().splitlines()
    assert table[0].split() == ["Node", "name", "Target", "Torch", "func", "Reason"]
    assert table[1].startswith("sin ") and "aten.sin.default" in table[1]
    assert table[1].endswith("it has no such instruction") and len(table) == 3
    edge_of(Parts(), X).to_backend(partitioner)
    assert len(reporter.get_table_report().splitlines()) == 3


def test_a_function_says_why() -> None:
    def why_not(node: Node) -> str | None:
        return None if "linear" in str(node.target) else f"no instruction for {node.target}"

    partitioner = SupportedOperatorPartitioner(SPEC, why_not)
    for _ in range(2):
        manager = edge_of(Parts(), X).to_backend(partitioner)
        left = get_non_lowered_nodes(manager.exported_program().graph)
        assert {n.name: n.meta["declined"]["Interpreted"] for n in left} == {
            "sin": "no instruction for aten.sin.default",
            "add": "no instruction for aten.add.Tensor",
        }


def test_the_first_reason_counts() -> None:
    reporter = WhyNoPartitionReporter()
    assert reporter.get_table_report() == "No nodes rejected."
    node = handles()["sin"]
    reporter.report_reject(node, "one")
    reporter.report_reject(node, "two")
    assert reporter.declined == {node: "one"}


def test_reasons_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    why = WhyNoPartition(logging.getLogger("my_backend"))
    node = next(iter(symbolic_trace(torch.nn.ReLU()).graph.nodes))
    with caplog.at_level(logging.DEBUG, "my_backend"):
        why(node, "it is an input")
    assert caplog.messages == [
        "WhyNoPartition: Node input_1 was not partitioned because it is an input."
    ]


def test_too_small_partitions_say_so() -> None:
    partitioner = SupportedOperatorPartitioner(
        SPEC, Takes("aten.linear", "aten.add"), allows_single_node_partition=False
    )
    graph = edge_of(Parts(), X).to_backend(partitioner).exported_program().graph
    reasons = {n.name: n.meta["declined"]["Interpreted"] for n in get_non_lowered_nodes(graph)}
    assert "too small" in reasons["linear"] and "does not support" in reasons["sin"]


# --- partitioners by configuration ---------------------------------------------------------------


class Linear(PartitionerConfig):
    target_name = "linear.default"

    def __init__(self, fits: Callable[[Node], bool] = lambda node: True) -> None:
        self.fits = fits

    def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        return self.fits(node)

    def get_partition(self, node: Node, ep: ExportedProgram) -> list[Node]:
        return [node, *node.all_input_nodes[1:]]

    def get_original_aten(self) -> torch._ops.OpOverload:
        return torch.ops.aten.linear.default


class SinAdd(PartitionerConfig):
    """Takes a sine together with the addition that follows."""

    target_name = "sin.default"

    def check_constraints(self, node: Node, ep: ExportedProgram) -> bool:
        return True

    def get_partition(self, node: Node, ep: ExportedProgram) -> list[Node]:
        return [node, *node.users]


def test_configurations() -> None:
    partitioner = ConfigerationBasedPartitioner(SPEC, [Linear(lambda n: n.name == "linear")])
    manager = edge_of(Parts(), X)
    program = manager.to_backend(partitioner).exported_program()
    [module] = lowered_modules(program)
    assert calls_of(module) == ["linear.default"]
    assert module.original_module.graph_signature.parameters == ("first.weight", "first.bias")
    reasons = {
        n.name: n.meta["declined"]["Interpreted"] for n in get_non_lowered_nodes(program.graph)
    }
    assert reasons == {
        "linear_1": "Linear does not take this call",
        "sin": "no configuration of the partitioner takes it",
        "add": "no configuration of the partitioner takes it",
    }
    torch.testing.assert_close(program.module()(X).shape, X.shape)


def test_configurations_that_overlap_make_one_partition() -> None:
    partitioner = ConfigerationBasedPartitioner(SPEC, [Linear(), SinAdd()])
    program = edge_of(Parts(), X).to_backend(partitioner).exported_program()
    [module] = lowered_modules(program)
    assert len(calls_of(module)) == 4
    groups = partitioner.get_matched_nodes_from_configs(edge_of(Parts(), X).exported_program())
    assert sorted(sorted(n.name for n in g if n.op == "call_function") for g in groups)[-3:] == [
        ["add", "sin"],
        ["linear"],
        ["linear_1"],
    ]


def test_configurations_say_what_they_want_whole() -> None:
    partitioner = ConfigerationBasedPartitioner(SPEC, [Linear(lambda n: "1" in n.name), SinAdd()])
    exported = torch.export.export(Parts().eval(), (X,))
    operators, accepts = partitioner.ops_to_not_decompose(exported)
    assert operators == [torch.ops.aten.linear.default] and accepts is not None
    assert [n.name for n in exported.graph.nodes if accepts(n)] == ["linear_1"]


def test_two_configurations_for_one_operator_are_refused() -> None:
    with pytest.raises(ExportError, match="Linear and Linear are both for the operator linear"):
        ConfigerationBasedPartitioner(SPEC, [Linear(), Linear()])


def test_names_without_their_namespace() -> None:
    assert format_target_name("aten.linear.default") == "linear.default"
    assert format_target_name("linear.default") == "linear.default"


def test_options_of_a_partitioner_are_read_only() -> None:
    partitioner = Partitioner({"path": "/a/b"})
    assert partitioner.spec["path"] == "/a/b"
    with pytest.raises(TypeError, match="item assignment"):
        partitioner.spec["path"] = "/c"
    with pytest.raises(AttributeError):
        partitioner.spec = {}


# --- graphs --------------------------------------------------------------------------------------


def test_what_stands_in_a_graph() -> None:
    plain = edge_of(Parts(), X)
    assert get_delegated_payload(plain.exported_program().graph_module) == {}
    program = plain.to_backend(taking("aten.linear", a=b"1")).exported_program()
    delegates = get_delegates(program.graph)
    payloads = get_delegated_payload(program.graph_module)
    assert payloads.keys() == {n.name for n in delegates} and len(payloads) == 2
    for backend, specs, payload in payloads.values():
        assert backend == "Interpreted" and [s.key for s in specs] == ["a"]
        assert b"linear" in payload
    assert [n.name for n in get_non_lowered_nodes(program.graph)] == ["sin", "add"]


def test_shapes_that_are_dynamic() -> None:
    class Both(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            return x.sin(), y.cos()

    shapes = ({0: torch.export.Dim("n", max=9)}, None)
    program = edge_of(Both(), X, X.clone(), dynamic_shapes=shapes).exported_program()
    dynamic = {n.name: is_shape_dynamic(n) for n in program.graph.nodes if n.op == "call_function"}
    assert dynamic == {"sin": True, "cos": False}


def graph_of(function: Callable[..., Any]) -> GraphModule:
    return symbolic_trace(function)


def test_graphs_that_are_identical() -> None:
    def other_names(x: Any, y: Any) -> Any:
        summed = x + y
        return summed * 2

    pairs: list[tuple[Callable[..., Any], Callable[..., Any], bool]] = [
        (lambda x, y: (x + y) * 2, other_names, True),
        (lambda x, y: (x + y) * 2, lambda x, y: (x + y) * 3, False),
        (lambda x, y: (x + y) * 2, lambda x, y: (y + x) * 2, False),
        (lambda x, y: (x + y) * 2, lambda x, z: (x + z) * 2, False),
        (lambda x, y: x + 1, lambda x, y: (x + 1, y + 2), False),
        (lambda x, y: (x, y), lambda x, y: (x, y), True),
        (lambda x, y: (x, y), lambda x, y: (y, x), False),
        (lambda x, y: x + 1, lambda x, y: x + 1.0, False),
        (lambda x, y: x * True, lambda x, y: x * 1, False),
        (lambda x, y: x * float("nan"), lambda x, y: x * float("nan"), True),
    ]
    for left, right, same in pairs:
        assert is_identical_graph(graph_of(left), graph_of(right)) is same


def test_graphs_with_other_branches_are_not_identical() -> None:
    def model(number: float) -> torch.nn.Module:
        class Model(torch.nn.Module):
            def forward(self, p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
                return torch.cond(p, lambda x: x.clamp(max=number), lambda x: x.sin(), [x])

        return Model()

    p = torch.tensor(True)
    one, same, other = (
        edge_of(model(n), p, X).exported_program().graph_module for n in (1.0, 1.0, 2.0)
    )
    assert is_identical_graph(one, same) and not is_identical_graph(one, other)


def test_long_graphs_are_compared() -> None:
    def long(x: torch.Tensor) -> torch.Tensor:
        for _ in range(5_000):
            x = x + x
        return x

    assert is_identical_graph(graph_of(long), graph_of(long))


class Quantized(torch.nn.Module):
    """Two inputs, of which one is only quantised; two outputs, of which one is dequantised."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q = torch.ops.quantized_decomposed
        how = (0.1, 0, -128, 127, torch.int8)
        a = q.dequantize_per_tensor(q.quantize_per_tensor(x, *how), *how)
        b = q.dequantize_per_tensor(q.quantize_per_tensor(x, *how), *how)
        c = q.dequantize_per_tensor(q.quantize_per_tensor(y, *how), *how)
        z = q.quantize_per_tensor(a + b * c, *how)
        return q.dequantize_per_tensor(z, *how), y.sin()


def test_quantised_inputs_and_outputs() -> None:
    import torch.ao.quantization.fx._decomposed

    manager = edge_of(Quantized(), X, X.clone())
    program = manager.exported_program()
    remove_first_quant_and_last_dequant(program.graph_module)
    program.graph.lint()
    kinds = [str(n.target).split(".")[1] for n in program.graph.nodes if n.op == "call_function"]
    assert kinds.count("quantize_per_tensor") == 2  # of y, which is used as it is too; of the sum
    x, y = program.graph.find_nodes(op="placeholder")
    assert x.meta["val"].dtype == torch.int8 and y.meta["val"].dtype == torch.float32
    data = torch.tensor([[1, 2], [3, 4], [5, 6]], dtype=torch.int8)
    out, sine = program.graph_module(data, X)
    assert out.dtype == torch.int8
    torch.testing.assert_close(sine, X.sin())
    reference, _ = Quantized()(data * 0.1, X)
    torch.testing.assert_close(out * 0.1, reference)


# --- named data ----------------------------------------------------------------------------------


def test_equal_bytes_are_stored_once() -> None:
    store = NamedDataStore()
    store.add_named_data("a", b"1234", alignment=4)
    store.add_named_data("b", b"1234", alignment=6)
    store.add_named_data("a", b"1234", alignment=6)
    store.add_named_data("c", b"5678", external_tag="beside")
    output = store.get_named_data_store_output()
    assert output.buffers == [b"1234", b"5678"]
    assert {k: (e.buffer_index, e.alignment) for k, e in output.pte_data.items()} == {
        "a": (0, 12),
        "b": (0, 6),
    }
    assert output.external_data["beside"]["c"].buffer_index == 1
    assert merged([output, output]) == output


def test_tensors_bring_their_layout() -> None:
    store = NamedDataStore()
    tensor = torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
    store.add_named_data("t", tensor)
    output = store.get_named_data_store_output()
    layout = output.pte_data["t"].tensor_layout
    assert isinstance(layout, TensorLayout)
    assert list(layout.sizes) == [1, 2, 3, 4] and list(layout.dim_order) == [0, 2, 3, 1]
    assert output.buffers == [tensor.permute(0, 2, 3, 1).contiguous().numpy().tobytes()]


def test_a_key_stands_for_one_value_everywhere() -> None:
    store = NamedDataStore()
    store.add_named_data("a", b"1")
    for options in ({}, {"external_tag": "beside"}):
        with pytest.raises(ExportError, match="named data 'a' is there twice"):
            store.add_named_data("a", b"22", **options)
    with pytest.raises(ExportError, match="alignment must be positive"):
        store.add_named_data("b", b"1", alignment=-4)
    assert store.get_named_data_store_output().buffers == [b"1"]


# --- debug handles -------------------------------------------------------------------------------


def handles() -> dict[str, Node]:
    program = edge_of(Parts(), X).exported_program()
    return {n.name: n for n in program.graph.nodes}


def test_identifiers_are_counted() -> None:
    nodes, builder = handles(), DelegateMappingBuilder(generated_identifiers=True)
    sin, add = nodes["sin"].meta["debug_handle"], nodes["add"].meta["debug_handle"]
    assert builder.insert_delegate_mapping_entry(nodes=list(nodes.values())) == 0
    assert builder.insert_delegate_mapping_entry(nodes=nodes["sin"]) == 1
    assert builder.insert_delegate_mapping_entry(handles=add) == 2
    assert builder.insert_delegate_mapping_entry(handles=[add, None, sin, sin]) == 3
    mapping = builder.get_delegate_mapping()
    assert len(mapping[0]) == 4 and mapping[1] == (sin,) and mapping[2] == (add,)
    assert mapping[3] == tuple(sorted((sin, add)))


@pytest.mark.parametrize("name", [7, "seven"])
def test_identifiers_are_given(name: int | str) -> None:
    builder = DelegateMappingBuilder()
    assert builder.insert_delegate_mapping_entry(handles=3, identifier=name) == name
    assert builder.get_delegate_mapping() == {name: (3,)}
    with pytest.raises(ExportError, match="is used twice"):
        builder.insert_delegate_mapping_entry(handles=3, identifier=name)


@pytest.mark.parametrize(
    ("generated", "entry", "text"),
    [
        (True, {"handles": 1, "identifier": 1}, "generates identifiers: leave it out"),
        (False, {"handles": 1}, "has no identifier"),
        (False, {"identifier": 1}, "either nodes= or handles="),
        (False, {"handles": 1, "nodes": [], "identifier": 1}, "either nodes= or handles="),
        (True, {"handles": [None]}, "no debug handles"),
        (True, {"nodes": []}, "no debug handles"),
    ],
)
def test_entries_that_are_refused(generated: bool, entry: dict[str, Any], text: str) -> None:
    builder = DelegateMappingBuilder(generated)
    with pytest.raises(ExportError, match=text):
        builder.insert_delegate_mapping_entry(**entry)
    assert builder.get_delegate_mapping() == {}


def test_supports_can_be_joined() -> None:
    both = any_chain(Takes("aten.sin"), Takes("aten.linear"))
    program = edge_of(Parts(), X).to_backend(SupportedOperatorPartitioner(SPEC, both))
    assert len(get_non_lowered_nodes(program.exported_program().graph)) == 1
