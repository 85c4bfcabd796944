"""Faulty partitioners and backends give an error that names them, and nothing is half lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.export import ExportedProgram

import rushlight as rl
from delegates import Interpreted, lowered_modules, taking
from rushlight.errors import Code, ExportError
from rushlight.partition import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    NamedDataStoreOutput,
    Partitioner,
    PartitionResult,
    PreprocessResult,
    disable_validation,
    tag_partitions,
    to_backend,
    validation_disabled,
)
from rushlight.partition import to_backend as api
from rushlight.partition.named_data import DataEntry

SPEC = DelegationSpec("Interpreted")


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.register_buffer("state", torch.zeros(2))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.state.add_(1)
        z = self.linear(x) + y
        z = torch.cond(z.sum() > 0, lambda z: z * y, lambda z: z + y, [z])
        return (z.sin() + y).sum() + self.state


class Does(Partitioner):
    """Tags nodes with a function, and returns the given partition tags."""

    def __init__(self, tag: Callable[[ExportedProgram], Any], *tags: str) -> None:
        super().__init__()
        self.tag, self.tags = tag, tags

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        result = self.tag(exported_program)
        if result is not None:
            return result
        return PartitionResult(exported_program, dict.fromkeys(self.tags, SPEC))


@pytest.fixture(scope="module")
def manager() -> rl.EdgeProgramManager:
    args = torch.randn(2, 2), torch.randn(2, 2)
    exported = torch.export.export(Model(), args)
    return rl.to_edge({"forward": exported, "other": exported})


@pytest.fixture(autouse=True)
def nothing_changes(manager: rl.EdgeProgramManager) -> Iterator[None]:
    before = {m: described(manager.exported_program(m)) for m in manager.methods}
    yield
    assert {m: described(manager.exported_program(m)) for m in manager.methods} == before


def described(program: ExportedProgram) -> str:
    tags = [n.meta.get("delegation_tag") for n in program.graph.nodes]
    values = [t.tolist() for t in program.state_dict.values()]
    return f"{program}{tags}{values}"


def call(program: ExportedProgram, name: str) -> torch.fx.Node:
    [node] = [n for n in program.graph.nodes if n.name == name]
    return node


def tags(**names: str) -> Callable[[ExportedProgram], None]:
    def tag(program: ExportedProgram) -> None:
        for name, value in names.items():
            call(program, name).meta["delegation_tag"] = value

    return tag


def refused(manager: rl.EdgeProgramManager, partitioner: Partitioner) -> str:
    with pytest.raises(ExportError) as caught:
        manager.to_backend({"other": partitioner})
    assert "other" in str(caught.value)
    return str(caught.value)


# --- partitioners --------------------------------------------------------------------------------


def test_a_cycle(manager: rl.EdgeProgramManager) -> None:
    text = refused(manager, Does(tags(linear="a", add_2="a"), "a"))
    assert "partitions form a cycle" in text
    assert "partition 'a' for Interpreted (linear (aten.linear.default), add_2" in text
    assert "cond" in text and "test_bad_backends.py" in text


def test_a_cycle_of_two_partitions(manager: rl.EdgeProgramManager) -> None:
    both = tags(linear="a", add_1="b", sin="a", add_2="b", sum_1="a")
    text = refused(manager, Does(both, "a", "b"))
    assert "partition 'a'" in text and "partition 'b'" in text


def test_a_tag_that_nobody_takes(manager: rl.EdgeProgramManager) -> None:
    text = refused(manager, Does(tags(sin="a", linear="b"), "a"))
    assert "node linear (aten.linear.default) has the tag 'b'" in text and "['a']" in text


def test_the_output_is_tagged(manager: rl.EdgeProgramManager) -> None:
    text = refused(manager, Does(tags(output="a"), "a"))
    assert "node output, the output, has the tag 'a', and should not be tagged" in text


def test_a_user_input_is_tagged(manager: rl.EdgeProgramManager) -> None:
    text = refused(manager, Does(tags(x="a"), "a"))
    assert "node x, a user input, has the tag 'a', and should not be tagged" in text


def test_a_number_leaves() -> None:
    class Sizes(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.cat([x, x])
            return y.reshape(y.shape[0] * 2, -1).sin()

    def everything_but_the_view(program: ExportedProgram) -> None:
        for node in program.graph.nodes:
            if node.op == "call_function" and not isinstance(node.meta["val"], torch.Tensor):
                node.meta["delegation_tag"] = "a"

    shapes = ({0: torch.export.Dim("n", max=16)},)
    exported = torch.export.export(Sizes(), (torch.ones(4, 2),), dynamic_shapes=shapes)
    edge = rl.to_edge(exported)
    with pytest.raises(
        ExportError, match=r"forward: partition 'a' .* which is not a tensor: leave"
    ):
        edge.to_backend(Does(everything_but_the_view, "a"))


def test_a_node_in_two_partitions(manager: rl.EdgeProgramManager) -> None:
    from torch.fx.passes.infra.partitioner import Partition

    def twice(program: ExportedProgram) -> None:
        sin = call(program, "sin")
        tag_partitions([Partition(0, [sin]), Partition(1, [sin])])

    text = refused_anyhow(manager, Does(twice))
    assert "node sin (aten.sin.default) is in two partitions, 'tag0' and 'tag1'" in text


def refused_anyhow(manager: rl.EdgeProgramManager, partitioner: Partitioner) -> str:
    with pytest.raises(ExportError) as caught:
        manager.to_backend(partitioner)
    return str(caught.value)


def test_tags_of_an_earlier_partitioner_are_forgotten(manager: rl.EdgeProgramManager) -> None:
    first = manager.to_backend(Does(tags(sin="a"), "a"))
    second = first.to_backend(Does(tags(sum_1="b"), "b"))
    assert len(lowered_modules(second.exported_program())) == 2


def foreign() -> torch.fx.Node:
    return torch.fx.Graph().placeholder("other")


def specs(program: ExportedProgram, listed: Any) -> PartitionResult:
    return PartitionResult(program, {"a": DelegationSpec("Interpreted", listed)})


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda p: "nonsense", "returned str, not a PartitionResult"),
        (lambda p: PartitionResult(p, None), "needs a `partition_tags` field"),
        (lambda p: PartitionResult(p, {"a": "Interpreted"}), "'a' stands for 'Interpreted', not"),
        (lambda p: PartitionResult(p.graph_module, {}), "GraphModule as tagged_exported"),
        (lambda p: PartitionResult(p, {"a": DelegationSpec("Nobody")}), "no backend 'Nobody'"),
        (lambda p: 1 / 0, "failed with ZeroDivisionError: division by zero"),
        (lambda p: PartitionResult(p, {}, [1]), "returned [1] as declined: it maps nodes to"),
        (lambda p: PartitionResult(p, {}, {"sin": "no"}), "declines 'sin', which is not a node of"),
        (
            lambda p: PartitionResult(p, {}, {foreign(): "no"}),
            "declines other, which is not a node",
        ),
        (lambda p: PartitionResult(p, {}, {call(p, "sin"): 3}), "sin with the reason 3, which is"),
        (lambda p: specs(p, None), "wrong DelegationSpec for the tag 'a': the compile specs are N"),
        (lambda p: specs(p, [("k", b"")]), "the compile spec ('k', b'') is a tuple, not a Compile"),
        (lambda p: specs(p, [CompileSpec("k", "v")]), "'k' has the value 'v': keys are str, val"),
    ],
)
def test_answers_that_make_no_sense(
    manager: rl.EdgeProgramManager, answer: Callable[[ExportedProgram], Any], text: str
) -> None:
    assert text in refused_anyhow(manager, Does(answer))


def swap(program: ExportedProgram) -> None:
    call(program, "sin").target = torch.ops.aten.cos.default


def test_a_partitioner_that_changes_the_graph(manager: rl.EdgeProgramManager) -> None:
    assert "Does changed the graph" in refused(manager, Does(swap))
    with validation_disabled():
        changed = manager.to_backend({"other": Does(swap)})
    assert "aten.cos.default" in str(changed.exported_program("other").graph)
    assert "Does changed the graph" in refused(manager, Does(swap))


def test_validation_is_switched_off_for_good(
    manager: rl.EdgeProgramManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setattr(sys.modules[api.__module__], "_validates", True)
    disable_validation()
    assert manager.to_backend({"other": Does(swap)})


def test_a_partitioner_that_changes_an_argument(manager: rl.EdgeProgramManager) -> None:
    def change(program: ExportedProgram) -> None:
        node = call(program, "add_1")
        node.args = (node.args[0], node.args[0])

    assert "changed the graph" in refused(manager, Does(change))


def test_a_partitioner_that_changes_a_branch(manager: rl.EdgeProgramManager) -> None:
    def change(program: ExportedProgram) -> None:
        for node in program.graph_module.true_graph_0.graph.nodes:
            if node.op == "call_function":
                node.target = torch.ops.aten.sub.Tensor

    assert "changed the graph" in refused(manager, Does(change))


# --- backends ------------------------------------------------------------------------------------


class Bad(BackendDetails):
    """Its preprocess calls a function of the test."""

    act: Callable[[ExportedProgram], Any]

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        result: PreprocessResult = Bad.act(edge_program)
        return result


class BadTogether(BackendDetails):
    """Its preprocess_multimethod calls a function of the test."""

    act: Callable[[dict[str, list[ExportedProgram]]], Any]

    @classmethod
    def preprocess_multimethod(cls, edge_programs: Any, compile_specs: Any) -> Any:
        return BadTogether.act(edge_programs)


def _raise(program: Any) -> PreprocessResult:
    raise KeyError("no sine on this device")


def store(entry: Any) -> NamedDataStoreOutput:
    return NamedDataStoreOutput(pte_data={"k": entry})


NONSENSE: list[tuple[Callable[[Any], Any], str]] = [
    (lambda p: None, "preprocess returned None, not a PreprocessResult"),
    (lambda p: b"payload", "preprocess returned a bytes, not a PreprocessResult"),
    (lambda p: PreprocessResult("text"), "processed_bytes that are a str, not bytes"),
    (lambda p: PreprocessResult(b"", {1: ["x"]}), "the debug handles ['x'] for 1"),
    (lambda p: PreprocessResult(b"", {1: 3.5}), "the debug handles 3.5 for 1"),
    (lambda p: PreprocessResult(b"", [1]), "a debug_handle_map that is a list"),
    (lambda p: PreprocessResult(b"", notes={"add": 3}), "the note 3 for 'add'"),
    (lambda p: PreprocessResult(b"", notes=[]), "notes are a dict"),
    (lambda p: PreprocessResult(b"", {}, {"k": b""}), "a data_store_output that is a dict"),
    (lambda p: PreprocessResult(b"", {}, store(b"")), "'k' is b'', not a DataEntry: fill it"),
    (lambda p: PreprocessResult(b"", {}, store(DataEntry(1, 1))), "'k' is buffer 1 of 0"),
]


@pytest.mark.parametrize(("act", "text"), NONSENSE)
def test_preprocess_returns_nonsense(
    manager: rl.EdgeProgramManager, act: Callable[[Any], Any], text: str
) -> None:
    Bad.act = staticmethod(act)
    error = refused(manager, taking("aten.sin", backend="Bad"))
    assert text in error and error.startswith("Bad: ") and "'other'" in error
    with pytest.raises(ExportError, match="Bad"):
        to_backend("Bad", manager.exported_program(), [])


def test_preprocess_raises(manager: rl.EdgeProgramManager) -> None:
    Bad.act = staticmethod(_raise)
    error = refused(manager, taking("aten.sin", backend="Bad"))
    assert error.startswith("Bad: preprocess failed with KeyError: 'no sine on this device'")
    assert "other: partition 'tag0' for Bad (sin (aten.sin.default))" in error
    with pytest.raises(ExportError) as caught:
        to_backend("Bad", manager.exported_program(), [])
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.code == Code.NOT_SUPPORTED


def test_preprocess_changes_what_it_was_given(manager: rl.EdgeProgramManager) -> None:
    """A backend may change the program that it gets."""

    def scramble(program: ExportedProgram) -> PreprocessResult:
        [sin] = [n for n in program.graph.nodes if n.op == "call_function"]
        sin.target = torch.ops.aten.cos.default
        sin.name = "changed"
        program.graph_signature.input_specs.clear()
        program.graph_module.recompile()
        return PreprocessResult(b"")

    Bad.act = staticmethod(scramble)
    lowered = manager.to_backend(taking("aten.sin", backend="Bad"))
    [module] = lowered_modules(lowered.exported_program())
    x = torch.randn(2, 2)
    torch.testing.assert_close(module(x)[0], x.sin())


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda programs: None, "preprocess_multimethod returned None, not a dict"),
        (lambda programs: {}, "method 'other' has 1 parts, preprocess gave None"),
        (
            lambda programs: {name: [] for name in programs},
            "method 'other' has 1 parts, preprocess gave 0 results",
        ),
        (
            lambda programs: {n: [PreprocessResult(b"")] * 2 for n in programs},
            "method 'other' has 1 parts, preprocess gave 2 results",
        ),
        (lambda programs: dict.fromkeys(programs, "x"), "preprocess returned a str, not a"),
        (_raise, "preprocess failed with KeyError"),
    ],
)
def test_preprocess_of_all_methods_returns_nonsense(
    manager: rl.EdgeProgramManager, act: Callable[[Any], Any], text: str
) -> None:
    BadTogether.act = staticmethod(act)
    error = refused(manager, taking("aten.sin", backend="BadTogether"))
    assert text in error and "BadTogether" in error


def test_a_backend_that_fails_late_lowers_nothing(manager: rl.EdgeProgramManager) -> None:
    """The second backend of a partitioner fails after the first one has compiled its partitions."""
    Bad.act = staticmethod(_raise)

    class Both(Partitioner):
        def partition(self, exported_program: ExportedProgram) -> PartitionResult:
            tags(linear="good", sin="bad")(exported_program)
            specs = {"good": SPEC, "bad": DelegationSpec("Bad")}
            return PartitionResult(exported_program, specs)

    assert "Bad: preprocess failed" in refused_anyhow(manager, Both())


def test_an_id_that_is_too_long_is_refused() -> None:
    with pytest.raises(TypeError, match="has 64 bytes, and is the backend's id in the file"):
        type("B" * 64, (BackendDetails,), {})


def test_a_whole_program_with_nonsense(manager: rl.EdgeProgramManager) -> None:
    with pytest.raises(ExportError, match="Interpreted: the program is int, not an Exported"):
        to_backend("Interpreted", 3, [])
    with pytest.raises(ExportError, match="Interpreted: the compile specs are None, not a list"):
        to_backend("Interpreted", manager.exported_program(), None)


def test_a_backend_that_derives_from_another_is_refused() -> None:
    with pytest.raises(TypeError, match="derive it from BackendDetails itself"):
        type("Derived", (Interpreted,), {})


@pytest.mark.parametrize("partitioner", [Interpreted, taking, [taking("aten.sin")], 3])
def test_what_is_no_partitioner(manager: rl.EdgeProgramManager, partitioner: Any) -> None:
    with pytest.raises(ExportError, match=r"^other: .* is not a Partitioner"):
        manager.to_backend({"other": partitioner})
    with pytest.raises(ExportError, match=r"^forward: .* is not a Partitioner"):
        to_backend(manager.exported_program(), partitioner)


def test_passes_for_a_method_that_is_not_there(manager: rl.EdgeProgramManager) -> None:
    with pytest.raises(ExportError, match=r"passes for methods that do not exist: \['forwrd'\]"):
        manager.transform({"forwrd": []})


def test_no_partitioner_at_all(manager: rl.EdgeProgramManager) -> None:
    exported = torch.export.export(Model(), (torch.randn(2, 2), torch.randn(2, 2)))
    with pytest.raises(ExportError, match="is not a Partitioner"):
        rl.to_edge_transform_and_lower(exported, partitioner=[Interpreted])
    with pytest.raises(ExportError, match="is not a Partitioner"):
        rl.to_edge_transform_and_lower(exported, partitioner=Interpreted)
