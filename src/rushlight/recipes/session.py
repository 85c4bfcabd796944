"""`ExportSession`: runs the stages of an export, and gives what came out of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from rushlight.pipeline import EdgeProgramManager, ExecutorchProgramManager
from rushlight.recipes.export_recipe import ExportRecipe
from rushlight.recipes.models import (
    EAGER,
    EXPORTED,
    GRAPH,
    constants_of,
    examples_of,
    kind_of,
    models_of,
    shapes_of,
)
from rushlight.recipes.stage import PipelineArtifact, Stage
from rushlight.recipes.stage_type import StageType, name_of
from rushlight.recipes.stages import (
    EdgeProgramManagerTransformStage,
    EdgeTransformAndLowerStage,
    ExecutorchStage,
    QuantizeStage,
    SourceTransformStage,
    ToBackendStage,
    ToEdgeStage,
    TorchExportStage,
)
from rushlight.record.etrecord import ETRecord
from rushlight.runtime.runtime import Runtime, Verification
from rushlight.schema.program import Program

# The stages that a kind of model cannot go through, and why.
_NOT_FOR = {
    GRAPH: ((StageType.SOURCE_TRANSFORM, StageType.QUANTIZE), "it counts as quantised"),
    EXPORTED: (
        (StageType.SOURCE_TRANSFORM, StageType.QUANTIZE, StageType.TORCH_EXPORT),
        "it is captured already",
    ),
}
# Where an EdgeProgramManager comes from; the first that was run.
_EDGE = (
    StageType.TO_BACKEND,
    StageType.EDGE_PROGRAM_MANAGER_TRANSFORM,
    StageType.TO_EDGE_TRANSFORM_AND_LOWER,
    StageType.TO_EDGE,
)


def export(
    model: Any,
    example_inputs: Any = None,
    export_recipe: ExportRecipe | None = None,
    name: str | None = None,
    dynamic_shapes: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    artifact_dir: str | None = None,
    generate_etrecord: bool = False,
) -> ExportSession:
    """Make an `ExportSession` and run all of its stages.

    Args:
        model, example_inputs, export_recipe, name, dynamic_shapes, constant_methods, artifact_dir,
            generate_etrecord: as for `ExportSession`.

    Raises:
        TypeError, ValueError: an argument is not valid, or does not fit the others.
        RuntimeError: the model cannot be exported; `ExportError` has the line, and what to do.
    """
    session = ExportSession(
        *(model, example_inputs, export_recipe, name, dynamic_shapes),
        *(constant_methods, artifact_dir, generate_etrecord),
    )
    session.export()
    return session


class ExportSession:
    """An export by a recipe: its stages, and what came out of each.

    Args:
        model: an `nn.Module`; a `GraphModule`, which counts as quantised; an `ExportedProgram` or
            the path of one that `torch.export.save` wrote; or a mapping of methods to these.
        example_inputs: a list of tuples, each with the inputs of one call, or a mapping of methods
            to such lists. The first is for the capture, all are for calibration. An
            `ExportedProgram` needs none.
        export_recipe: what to do; default: `ExportRecipe()`, a portable program.
        name: is in the context of the stages.
        dynamic_shapes: sizes that may vary, as `torch.export.export` takes them, or a mapping of
            methods to these.
        constant_methods: methods without inputs: their names to values, or to functions that
            return them.
        artifact_dir: is in the context of the stages.
        generate_etrecord: keep the graphs for `get_etrecord`.

    Raises:
        TypeError, ValueError: an argument is not valid, or does not fit the others.
    """

    def __init__(
        self,
        model: Any,
        example_inputs: Any = None,
        export_recipe: ExportRecipe | None = None,
        name: str | None = None,
        dynamic_shapes: Any = None,
        constant_methods: Mapping[str, Any] | None = None,
        artifact_dir: str | None = None,
        generate_etrecord: bool | None = False,
    ) -> None:
        if not isinstance(export_recipe, ExportRecipe | None):
            raise TypeError(
                f"export_recipe is {type(export_recipe).__name__}: give an ExportRecipe, such as "
                f"ExportRecipe.get_recipe(XNNPackRecipeType.FP32)"
            )
        self._model = models_of(model)
        self._input_model_type = kind_of(self._model)
        self._example_inputs = examples_of(self._model, example_inputs)
        self._dynamic_shapes = shapes_of(self._model, dynamic_shapes)
        self._export_recipe = ExportRecipe() if export_recipe is None else export_recipe
        stages = self._export_recipe.pipeline_stages
        self._pipeline_stages = list(stages or self._get_default_pipeline())
        self._stage_registry = self._build_stages(self._pipeline_stages)
        self._run_context: dict[str, Any] = {
            "example_inputs": self._example_inputs,
            "dynamic_shapes": self._dynamic_shapes,
            "constant_methods": constants_of(constant_methods),
            "export_recipe": self._export_recipe,
            "session_name": name,
            "artifact_dir": artifact_dir,
            "generate_etrecord": bool(generate_etrecord),
        }
        self._stage_to_artifacts: dict[StageType, PipelineArtifact] = {}

    # --- the stages ---------------------------------------------------------------------------

    def _get_default_pipeline(self) -> list[StageType]:
        """All stages that the model and the recipe need."""
        stages = []
        if self._input_model_type == EAGER:
            stages += [StageType.SOURCE_TRANSFORM, StageType.QUANTIZE]
        if self._input_model_type != EXPORTED:
            stages.append(StageType.TORCH_EXPORT)
        stages.append(StageType.TO_EDGE_TRANSFORM_AND_LOWER)
        lowering = self._export_recipe.lowering_recipe
        if lowering and lowering.edge_manager_transform_passes:
            stages.append(StageType.EDGE_PROGRAM_MANAGER_TRANSFORM)
        return [*stages, StageType.TO_EXECUTORCH]

    def _build_stages(self, stages: Sequence[StageType]) -> dict[StageType, Stage]:
        """The built-in stages of the recipe; those of the user's own are left out."""
        recipe = self._export_recipe
        quantization, lowering = recipe.quantization_recipe, recipe.lowering_recipe

        def transform() -> Stage:
            of_manager = EdgeProgramManagerTransformStage.from_recipe(lowering)
            if lowering and StageType.TO_EDGE_TRANSFORM_AND_LOWER in stages:
                # That stage runs the passes for methods.
                passes = lowering.edge_manager_transform_passes
                of_manager = EdgeProgramManagerTransformStage(None, passes)
            return of_manager

        makers: dict[StageType, Callable[[], Stage]] = {
            StageType.SOURCE_TRANSFORM: lambda: SourceTransformStage(
                quantization, in_place=recipe.source_transform_in_place
            ),
            StageType.QUANTIZE: lambda: QuantizeStage(quantization, strict=recipe.strict),
            StageType.TORCH_EXPORT: lambda: TorchExportStage(
                recipe.aten_transform_passes, strict=recipe.strict
            ),
            StageType.TO_EDGE_TRANSFORM_AND_LOWER: lambda: EdgeTransformAndLowerStage.from_recipe(
                lowering
            ),
            StageType.TO_EDGE: lambda: ToEdgeStage.from_recipe(lowering),
            StageType.EDGE_PROGRAM_MANAGER_TRANSFORM: transform,
            StageType.TO_BACKEND: lambda: ToBackendStage.from_recipe(lowering),
            StageType.TO_EXECUTORCH: lambda: ExecutorchStage(recipe.executorch_backend_config),
        }
        return {one: makers[one]() for one in stages if one in makers}

    def register_stage(self, stage_type: StageType, stage: Stage) -> None:
        """Use `stage` where the pipeline has `stage_type`, in place of a built-in one."""
        self._stage_registry[stage_type] = stage

    def get_registered_stage(self, stage_type: StageType) -> Stage | None:
        """The stage that would run, or None."""
        return self._stage_registry.get(stage_type)

    def get_all_registered_stages(self) -> dict[StageType, Stage]:
        """All stages that could run."""
        return self._stage_registry

    def _validate_pipeline_sequence(self, stages: Sequence[StageType]) -> None:
        """Check that the stages fit the model and each other; ValueError if they do not."""
        if not stages:
            raise ValueError(
                "Pipeline stages cannot be empty: give ExportRecipe.pipeline_stages at least one"
            )
        refused, reason = _NOT_FOR.get(self._input_model_type, ((), ""))
        found = ", ".join(one.name for one in refused if one in stages)
        if found:
            raise ValueError(
                f"Cannot run {found} stage(s) with {self._input_model_type} input: {reason}. "
                f"Leave them out of pipeline_stages, or give an nn.Module"
            )
        for before, stage_type in zip([None, *stages], stages, strict=False):
            stage = self._stage_registry.get(stage_type)
            if stage is None:
                raise ValueError(
                    f"Stage {name_of(stage_type)} not found in registry: pass it to "
                    f"session.register_stage() before the export"
                )
            if before is None and not stage.can_start_pipeline:
                raise ValueError(
                    f"Stage {name_of(stage_type)} cannot start a pipeline: put "
                    f"{_either(stage.valid_predecessor_stages)} before it"
                )
            allowed = stage.valid_predecessor_stages
            if before is not None and allowed and before not in allowed:
                raise ValueError(
                    f"Invalid transition from {name_of(before)} to {name_of(stage_type)}: right "
                    f"before it must be {_either(allowed)}"
                )

    def export(self) -> None:
        """Run all stages from the start; what an earlier run made is dropped first."""
        self._run_pipeline()

    def _run_pipeline(self) -> None:
        self._validate_pipeline_sequence(self._pipeline_stages)
        self._stage_to_artifacts.clear()  # the same dict, which callers may hold
        artifact = PipelineArtifact(self._model, self._run_context.copy())
        for stage_type in self._pipeline_stages:
            stage = self._stage_registry[stage_type]
            start = time.perf_counter()
            stage.run(artifact)
            milliseconds = int((time.perf_counter() - start) * 1000)
            made = stage.get_artifacts()
            artifact = made.copy_with_new_data(made.data)  # a stage may hand on what it was given
            artifact.add_context("duration_ms", milliseconds)
            self._stage_to_artifacts[stage_type] = artifact

    # --- what came out ------------------------------------------------------------------------

    def get_stage_artifacts(self) -> dict[StageType, PipelineArtifact]:
        """What each stage of the last run made; `duration_ms` in its context is its time."""
        return self._stage_to_artifacts

    def _data_of(self, stage_type: StageType) -> Any:
        artifact = self._stage_to_artifacts.get(stage_type)
        return None if artifact is None else artifact.data

    def get_exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """The captured program of a method.

        Raises:
            RuntimeError: TORCH_EXPORT was not run.
            KeyError: there is no such method.
        """
        programs = self._data_of(StageType.TORCH_EXPORT)
        if programs is None:
            raise RuntimeError(
                "Exported program is not available: no TORCH_EXPORT stage was run; call export() "
                "first, with that stage in the pipeline"
            )
        if method_name not in programs:
            raise KeyError(
                f"Method name '{method_name}' not found in exported programs; there are "
                f"{sorted(programs)}"
            )
        return programs[method_name]  # type: ignore[no-any-return]

    def get_edge_program_manager(self) -> EdgeProgramManager:
        """The manager that the last stage on Edge graphs made; RuntimeError if none was run."""
        for stage_type in _EDGE:
            manager = self._data_of(stage_type)
            if manager is not None:
                return manager  # type: ignore[no-any-return]
        raise RuntimeError(
            f"Edge program manager is not available: call export() first, with "
            f"{_either(_EDGE)} in the pipeline"
        )

    def get_executorch_program_manager(self) -> ExecutorchProgramManager:
        """The finished program's manager; RuntimeError if TO_EXECUTORCH was not run."""
        manager = self._data_of(StageType.TO_EXECUTORCH)
        if manager is None:
            raise RuntimeError(
                "Executorch program manager is not initialized: call export() first, with "
                "TO_EXECUTORCH in the pipeline"
            )
        return manager  # type: ignore[no-any-return]

    def get_executorch_program(self) -> Program:
        """The finished program as the schema's dataclasses; RuntimeError if there is none."""
        return self.get_executorch_program_manager().executorch_program

    def get_pte_buffer(self) -> bytes:
        """The bytes of the .pte file; RuntimeError if there is no finished program."""
        return self.get_executorch_program_manager().buffer

    def save_to_pte(self, output_name: str) -> None:
        """Write the .pte file, and external data files beside it.

        Args:
            output_name: the path; ".pte" is added if it does not end in it.

        Raises:
            AssertionError: there is no name.
            RuntimeError: there is no finished program, or a file cannot be written.
        """
        if not output_name:
            raise AssertionError(f"output_name is {output_name!r}: give the path of the .pte file")
        path = os.fspath(output_name)
        manager = self.get_executorch_program_manager()
        manager.save(path if path.endswith(".pte") else f"{path}.pte")

    def get_etrecord(self) -> ETRecord:
        """The record of the export; RuntimeError if it was not made (`generate_etrecord=True`)."""
        return self.get_executorch_program_manager().get_etrecord()

    def get_example_input(self, method_name: str = "forward") -> tuple[Any, ...]:
        """The first example inputs of a method.

        Raises:
            KeyError: the method has none.
            ValueError: its list is empty.
        """
        if method_name not in self._example_inputs:
            raise KeyError(
                f"Method name '{method_name}' not found in example inputs; there are those of "
                f"{sorted(self._example_inputs)}"
            )
        if not self._example_inputs[method_name]:
            raise ValueError(
                f"Example inputs list for method {method_name} is empty: give at least one tuple"
            )
        return self._example_inputs[method_name][0]  # type: ignore[no-any-return]

    def run_method(
        self, method_name: str = "forward", example_inputs: Sequence[Any] | None = None
    ) -> Sequence[Any]:
        """Run a method of the finished program in this process's runtime.

        Args:
            method_name: the method.
            example_inputs: its inputs, in any nesting; default: the first example inputs.

        Returns:
            The flattened outputs.

        Raises:
            RuntimeError: there is no finished program, it has no such method, or the method cannot
                be loaded or run.
        """
        program = Runtime.get().load_program(
            self.get_pte_buffer(), verification=Verification.Minimal
        )
        if method_name not in program.method_names:
            raise RuntimeError(
                f"there is no method {method_name!r} in the program; there are "
                f"{sorted(program.method_names)}"
            )
        if example_inputs is None:
            example_inputs = self.get_example_input(method_name)
        return program.load_method(method_name).execute(tree_leaves(example_inputs))

    def print_delegation_info(self) -> None:
        """Print what was delegated of each method, by operator.

        Raises:
            RuntimeError: no stage that delegates was run, or pandas is not installed.
        """
        for stage_type in (StageType.TO_BACKEND, StageType.TO_EDGE_TRANSFORM_AND_LOWER):
            artifact = self._stage_to_artifacts.get(stage_type)
            if artifact is None:
                continue
            for method, info in (artifact.get_context("delegation_info_by_method") or {}).items():
                print(f"Delegation info for method '{method}':")
                print(info.get_summary())
                print(info.get_operator_delegation_dataframe().to_string())
            return
        raise RuntimeError(
            "No delegation info available: call export() first, with TO_EDGE_TRANSFORM_AND_LOWER "
            "or TO_BACKEND in the pipeline"
        )


def _either(stages: Sequence[StageType]) -> str:
    return " or ".join(map(name_of, stages)) or "any stage"
