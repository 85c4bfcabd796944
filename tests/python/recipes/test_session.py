"""Sessions: which stages run, what each gives, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import rushlight as rl
from rushlight.edge import ExportPass, PassManager
from rushlight.errors import ExportError
from rushlight.recipes import (
    ExportRecipe,
    ExportSession,
    LoweringRecipe,
    PipelineArtifact,
    Stage,
    StageType,
    export,
)

EDGE = [StageType.TO_EDGE_TRANSFORM_AND_LOWER, StageType.TO_EXECUTORCH]


class Scaled(nn.Module):
    """`scale * (x @ w)`."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.linear(x)) * self.scale


@pytest.fixture(scope="module")
def model() -> Scaled:
    return Scaled().eval()


@pytest.fixture(scope="module")
def inputs() -> tuple[Tensor]:
    return (torch.randn(2, 4),)


@pytest.fixture(scope="module")
def session(model: Scaled, inputs: tuple[Tensor]) -> ExportSession:
    return export(model, [inputs], name="scaled", artifact_dir="there")


def _close(session: ExportSession, model: nn.Module, inputs: Any, method: str = "forward") -> None:
    torch.testing.assert_close(session.run_method(method, inputs)[0], model(*inputs))


def test_a_model_becomes_a_program(
    session: ExportSession, model: Scaled, inputs: tuple[Tensor]
) -> None:
    _close(session, model, inputs)
    torch.testing.assert_close(session.run_method()[0], model(*inputs))
    assert rl.load(session.get_pte_buffer()).methods == ("forward",)
    assert session.get_example_input() == inputs
    assert session.get_edge_program_manager().methods == {"forward"}
    assert session.get_executorch_program_manager().methods == {"forward"}
    assert session.get_executorch_program().execution_plan[0].name == "forward"


def test_every_stage_keeps_what_it_made(session: ExportSession, model: Scaled) -> None:
    made = session.get_stage_artifacts()
    assert list(made) == [
        StageType.SOURCE_TRANSFORM,
        StageType.QUANTIZE,
        StageType.TORCH_EXPORT,
        *EDGE,
    ]
    assert made[StageType.QUANTIZE].data == {"forward": model}  # nothing to quantise
    assert made[StageType.TORCH_EXPORT].data["forward"] is session.get_exported_program()
    times = [one.get_context("duration_ms") for one in made.values()]
    assert all(isinstance(one, int) for one in times) and times[0] < times[3]
    last = made[StageType.TO_EXECUTORCH]
    assert (last.get_context("session_name"), last.get_context("artifact_dir")) == (
        "scaled",
        "there",
    )
    info = made[StageType.TO_EDGE_TRANSFORM_AND_LOWER].get_context("delegation_info")
    assert info.num_delegated_subgraphs == 0 and info.num_non_delegated_nodes > 2


def test_stages_run_by_hand(model: Scaled, inputs: tuple[Tensor]) -> None:
    session = ExportSession(model, [inputs])
    artifact = PipelineArtifact({"forward": model}, {"example_inputs": {"forward": [inputs]}})
    for stage in session.get_all_registered_stages().values():
        with pytest.raises(RuntimeError, match="not executed"):
            stage.get_artifacts()
        stage.run(artifact)
        artifact = stage.get_artifacts()
    assert rl.load(artifact.data.buffer).methods == ("forward",)
    with pytest.raises(RuntimeError, match="not initialized"):
        session.get_pte_buffer()  # it ran nothing itself


def test_a_pipeline_may_end_early_and_go_on_in_another_session(
    model: Scaled, inputs: tuple[Tensor]
) -> None:
    first = export(model, [inputs], ExportRecipe(pipeline_stages=[StageType.TORCH_EXPORT]))
    captured = first.get_exported_program()
    with pytest.raises(RuntimeError, match="Edge program manager is not available"):
        first.get_edge_program_manager()
    second = export(
        captured,
        export_recipe=ExportRecipe(
            pipeline_stages=[StageType.TO_EDGE, StageType.TO_BACKEND, StageType.TO_EXECUTORCH]
        ),
    )
    _close(second, model, inputs)
    torch.testing.assert_close(second.run_method()[0], model(*inputs))  # the program's own inputs


class Doubles(Stage):
    """A stage of one's own: it doubles the scale of every model."""

    stage_type = StageType.SOURCE_TRANSFORM
    valid_predecessor_stages = ()
    can_start_pipeline = True

    def run(self, artifact: PipelineArtifact) -> None:
        made = {name: Scaled(2 * one.scale).eval() for name, one in artifact.data.items()}
        for name, one in made.items():
            one.load_state_dict(artifact.data[name].state_dict())
        self._artifact = artifact.copy_with_new_data(made)


def test_a_registered_stage_replaces_a_built_in_one(model: Scaled, inputs: tuple[Tensor]) -> None:
    session = ExportSession(model, [inputs])
    stage = Doubles()
    session.register_stage(StageType.SOURCE_TRANSFORM, stage)
    assert session.get_registered_stage(StageType.SOURCE_TRANSFORM) is stage
    session.export()
    torch.testing.assert_close(session.run_method()[0], 2 * model(*inputs))


class Breaks(Doubles):
    """Fails."""

    def run(self, artifact: PipelineArtifact) -> None:
        raise RuntimeError("boom")


def test_a_second_run_drops_the_results_of_the_first(model: Scaled, inputs: tuple[Tensor]) -> None:
    session = export(model, [inputs])
    buffer, made = session.get_pte_buffer(), session.get_stage_artifacts()
    session.export()
    assert session.get_pte_buffer() == buffer and session.get_stage_artifacts() is made
    session.register_stage(StageType.SOURCE_TRANSFORM, Breaks())
    with pytest.raises(RuntimeError, match="boom"):
        session.export()
    assert not made


def test_several_methods_each_with_its_inputs_sizes_and_constants() -> None:
    models = {"encode": Scaled(1.0).eval(), "decode": Scaled(3.0).eval()}
    inputs = {"encode": [(torch.randn(2, 4),)], "decode": [(torch.randn(3, 4),)]}
    session = export(
        models,
        inputs,
        dynamic_shapes={"decode": ({0: Dim("n", min=1, max=8)},)},
        constant_methods={"limit": 8, "names": lambda: torch.arange(3)},
    )
    for name, one in models.items():
        _close(session, one, inputs[name][0], name)
    _close(session, models["decode"], (torch.randn(7, 4),), "decode")
    program = rl.load(session.get_pte_buffer())
    assert program["limit"]() == 8 and program["names"]().tolist() == [0, 1, 2]
    assert set(session.get_stage_artifacts()[EDGE[0]].get_context("delegation_info_by_method")) == {
        "encode",
        "decode",
    }
    with pytest.raises(RuntimeError, match=r"'other'.*decode"):
        session.run_method("other")


def test_sizes_of_one_method_may_be_named_by_its_inputs(model: Scaled) -> None:
    session = export(
        model, [(torch.randn(2, 4),)], dynamic_shapes={"x": {0: Dim("n", min=1, max=8)}}
    )
    _close(session, model, (torch.randn(5, 4),))
    with pytest.raises(ValueError, match=r"dynamic_shapes is for \['c'\]"):
        ExportSession({"a": model, "b": model}, {"a": [], "b": []}, dynamic_shapes={"c": None})


def test_saved_programs_and_paths(
    session: ExportSession, model: Scaled, inputs: tuple[Tensor], tmp_path: Path
) -> None:
    captured = tmp_path / "model.pt2"
    torch.export.save(session.get_exported_program(), captured)
    for path in (str(captured), captured):
        again = export(path)
        _close(again, model, inputs)
    again.save_to_pte(str(tmp_path / "model"))
    assert (tmp_path / "model.pte").read_bytes() == again.get_pte_buffer()
    with pytest.raises(AssertionError, match="output_name"):
        again.save_to_pte("")
    with pytest.raises(RuntimeError, match="cannot read"):
        ExportSession(str(tmp_path / "absent.pt2"))


def test_the_record_of_an_export(
    session: ExportSession, model: Scaled, inputs: tuple[Tensor]
) -> None:
    recorded = export(model, [inputs], generate_etrecord=True).get_etrecord()
    assert recorded.debug_handle_map is not None
    recorded.save(io.BytesIO())
    with pytest.raises(RuntimeError, match="generate_etrecord"):
        session.get_etrecord()


def test_delegation_is_printed_by_method(
    session: ExportSession, model: Scaled, capsys: pytest.CaptureFixture[str]
) -> None:
    session.print_delegation_info()
    told = capsys.readouterr().out
    assert "method 'forward'" in told and "aten_relu_default" in told
    with pytest.raises(RuntimeError, match="No delegation info"):
        ExportSession(model, [(torch.randn(2, 4),)]).print_delegation_info()


def test_strict_is_how_the_model_is_read(inputs: tuple[Tensor]) -> None:
    class Reads(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            torch._dynamo.graph_break()
            return x + 1

    with pytest.raises(ExportError):
        export(Reads(), [inputs], ExportRecipe(strict=True))
    _close(export(Reads(), [inputs], ExportRecipe(strict=False)), Reads(), inputs)


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"model": 3}, TypeError, "Unsupported model type.*'forward'"),
        ({"model": {}}, ValueError, "empty mapping"),
        ({"model": Scaled()}, ValueError, "example_inputs are required when model is nn.Module"),
        (
            {"model": Scaled(), "example_inputs": [], "export_recipe": "fast"},
            TypeError,
            "export_recipe is str",
        ),
    ],
)
def test_refused_arguments(arguments: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        ExportSession(**arguments)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "method forward not found"),
        ([], "method forward not found"),
        ((torch.randn(2, 4),), "holds Tensor: give a list of tuples"),
    ],
)
def test_refused_example_inputs(model: Scaled, given: Any, told: str) -> None:
    session = ExportSession(model, given)
    with pytest.raises(ValueError, match=told):
        session.export()


def test_captured_programs_do_not_mix_with_modules(session: ExportSession, model: Scaled) -> None:
    with pytest.raises(TypeError, match="mixes captured programs"):
        ExportSession({"a": session.get_exported_program(), "b": model}, {"b": []})


@pytest.mark.parametrize(
    ("stages", "told"),
    [
        ([StageType.TO_EXECUTORCH], "TO_EXECUTORCH cannot start a pipeline: put TO_EDGE_"),
        ([StageType.QUANTIZE, StageType.TO_EDGE], "from QUANTIZE to TO_EDGE: .* TORCH_EXPORT"),
        (["mine"], "Stage mine not found in registry"),
    ],
)
def test_refused_pipelines(model: Scaled, stages: Any, told: str) -> None:
    session = ExportSession(model, [(torch.randn(2, 4),)], ExportRecipe(pipeline_stages=stages))
    with pytest.raises(ValueError, match=told):
        session.export()


def test_captured_programs_are_not_captured_again(session: ExportSession) -> None:
    recipe = ExportRecipe(pipeline_stages=[StageType.TORCH_EXPORT, *EDGE])
    again = ExportSession(session.get_exported_program(), export_recipe=recipe)
    with pytest.raises(ValueError, match=r"Cannot run TORCH_EXPORT .* ExportedProgram"):
        again.export()


def test_names_of_methods_that_do_not_exist(session: ExportSession) -> None:
    for get in (session.get_exported_program, session.get_example_input):
        with pytest.raises(KeyError, match=r"'backward' not found.*forward"):
            get("backward")


def test_passes_run_once_each_in_their_order(model: Scaled, inputs: tuple[Tensor]) -> None:
    seen: list[str] = []

    class Seen(ExportPass):
        def __init__(self, name: str) -> None:
            self.name = name

        def call(self, graph_module: Any) -> Any:
            seen.append(self.name)
            return super().call(graph_module)

    def captured(name: str, program: Any) -> Any:
        seen.append(f"aten {name}")
        return program

    lowering = LoweringRecipe(
        edge_transform_passes=[
            lambda name, program: PassManager([Seen(f"manager {name}")]),
            lambda name, program: [Seen(f"list {name}")],
        ],
        edge_manager_transform_passes=[lambda manager: [Seen("all")], lambda manager: []],
    )
    recipe = ExportRecipe(aten_transform_passes=[captured], lowering_recipe=lowering)
    session = export(model, [inputs], recipe)
    assert seen == ["aten forward", "manager forward", "list forward", "all"]
    _close(session, model, inputs)
    seen.clear()
    stages = [
        StageType.TORCH_EXPORT,
        StageType.TO_EDGE,
        StageType.EDGE_PROGRAM_MANAGER_TRANSFORM,
        StageType.TO_EXECUTORCH,
    ]
    export(model, [inputs], ExportRecipe(lowering_recipe=lowering, pipeline_stages=stages))
    assert seen == ["manager forward", "list forward", "all"]
    bad = ExportRecipe(lowering_recipe=LoweringRecipe(edge_transform_passes=[3]))  # type: ignore[list-item]
    with pytest.raises(ValueError, match="got int: give functions"):
        export(model, [inputs], bad)
