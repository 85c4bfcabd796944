"""The built-in stages of an export: each calls one stage of the compiler and keeps its result.

A stage finds the compiler's functions as names of this module, so that callers can replace them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule
from torchao.quantization import quantize_
from torchao.quantization.pt2e import (
    allow_exported_model_train_eval,
    move_exported_model_to_eval,
    move_exported_model_to_train,
)
from torchao.quantization.pt2e.quantizer import ComposableQuantizer, Quantizer
from torchao.utils import unwrap_tensor_subclass

from rushlight.capture import trace
from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig
from rushlight.inspect.delegation import DelegationInfo, get_delegation_info
from rushlight.ir.quiet import deep_copy
from rushlight.pipeline import EdgeProgramManager, to_edge, to_edge_transform_and_lower
from rushlight.quantization.calibrate import check_finite, is_trained
from rushlight.quantization.layers import unchanged
from rushlight.quantization.workflow import converted_module, prepared_module
from rushlight.recipes.lowering_recipe import (
    LoweringRecipe,
    ManagerPasses,
    MethodPasses,
    Partitioners,
)
from rushlight.recipes.models import first_inputs
from rushlight.recipes.passes import checked, listed, passes_by_method, run_graph_passes
from rushlight.recipes.quantization_recipe import QuantizationRecipe
from rushlight.recipes.stage import PipelineArtifact, Stage
from rushlight.recipes.stage_type import StageType


def prepare_pt2e(model: GraphModule, quantizer: Quantizer) -> GraphModule:
    """torchao's function of this name, as `rushlight.quantize` calls it."""
    return prepared_module(model, quantizer)


def prepare_qat_pt2e(model: GraphModule, quantizer: Quantizer) -> GraphModule:
    """torchao's function of this name, as `rushlight.quantization.prepare_qat` calls it."""
    return prepared_module(model, quantizer, is_qat=True)


def convert_pt2e(prepared: GraphModule) -> GraphModule:
    """torchao's function of this name, as `rushlight.quantize` calls it."""
    check_finite(prepared)
    return converted_module(prepared, is_qat=is_trained(prepared))


class SourceTransformStage(Stage):
    """Changes the modules by torchao's `quantize_`; without a configuration it changes nothing."""

    stage_type = StageType.SOURCE_TRANSFORM
    valid_predecessor_stages: Sequence[StageType] = ()
    can_start_pipeline = True

    def __init__(
        self, quantization_recipe: QuantizationRecipe | None, in_place: bool = False
    ) -> None:
        self._recipe = quantization_recipe
        self._in_place = in_place

    def run(self, artifact: PipelineArtifact) -> None:
        """Takes and gives modules by method.

        Raises:
            ValueError: there are several configurations, or torchao refuses the one.
        """
        configs = self._recipe.ao_quantization_configs if self._recipe else None
        if not configs:
            self._artifact = artifact
            return
        if len(configs) > 1:
            raise ValueError(
                f"ao_quantization_configs has {len(configs)} entries, and only one is allowed, "
                f"since torchao's configurations change each other's results: give one, with a "
                f"filter_fn or an FqnToConfig that tells the modules apart"
            )
        models = artifact.data if self._in_place else deep_copy(artifact.data)
        for name, model in models.items():
            try:
                quantize_(model, configs[0].ao_base_config, configs[0].filter_fn)
            except Exception as error:  # torchao raises many kinds
                kind = type(configs[0].ao_base_config).__name__
                raise ValueError(
                    f"{name}: torchao cannot apply {kind}: {type(error).__name__}: {error}. Leave "
                    f"out the layers that it does not fit with AOQuantizationConfig(filter_fn=...)"
                ) from error
            unwrap_tensor_subclass(model)
        self._artifact = artifact.copy_with_new_data(models)


class QuantizeStage(Stage):
    """Quantises by torchao's pt2e; without quantizers it changes nothing."""

    stage_type = StageType.QUANTIZE
    valid_predecessor_stages = (StageType.SOURCE_TRANSFORM,)
    can_start_pipeline = True

    def __init__(self, quantization_recipe: QuantizationRecipe | None, strict: bool = True) -> None:
        self._recipe = quantization_recipe
        self._strict = strict

    def run(self, artifact: PipelineArtifact) -> None:
        """Takes modules by method, and gives those that quantise and dequantise.

        Raises:
            ValueError: a method has no example inputs, it fails on inputs for calibration, or
                `train_fn` is missing.
            ExportError: the model cannot be captured, or has values that are not finite.
        """
        if not self._recipe or not self._recipe.quantizers:
            self._artifact = artifact
            return
        made = {
            name: self._quantised(name, model, artifact) for name, model in artifact.data.items()
        }
        self._artifact = artifact.copy_with_new_data(made)

    def _quantised(self, name: str, model: torch.nn.Module, artifact: PipelineArtifact) -> Any:
        recipe, examples = self._recipe, artifact.get_context("example_inputs").get(name)
        assert recipe is not None
        if not examples:
            raise ValueError(
                f"Example inputs for method {name} not found or empty: example_inputs needs a "
                f"list with at least one tuple for it"
            )
        inputs = first_inputs(name, examples)
        shapes = (artifact.get_context("dynamic_shapes") or {}).get(name)
        if recipe.dynamic_batch_size:
            batch = Dim("batch", min=1)
            shapes = tuple({0: batch} if isinstance(x, torch.Tensor) else None for x in inputs)
        if recipe.is_qat:
            if recipe.train_fn is None:
                raise ValueError(
                    f"train_fn must be provided when is_qat=True: give the QuantizationRecipe a "
                    f"function that trains the module of {name}"
                )
            model = deep_copy(model).train()  # the captured module shares the weights
        captured = trace(model, inputs, dynamic_shapes=shapes, strict=self._strict, name=name)
        module = captured.module(check_guards=False)
        module = run_graph_passes("pre_prepare_passes", recipe.pre_prepare_passes, module)
        quantizer = self._get_quantizer_for_prepare_pt2e(recipe.quantizers or [])
        prepare = prepare_qat_pt2e if recipe.is_qat else prepare_pt2e
        prepared = prepare(module, quantizer)
        prepared = run_graph_passes("post_prepare_passes", recipe.post_prepare_passes, prepared)
        if recipe.is_qat and recipe.train_fn is not None:
            allow_exported_model_train_eval(prepared)
            move_exported_model_to_train(prepared)
            recipe.train_fn(prepared)
            move_exported_model_to_eval(prepared)
        else:
            chosen = recipe.calibration_inputs_fn() if recipe.calibration_inputs_fn else examples
            with torch.no_grad(), unchanged(list(model.buffers())):
                _calibrate(name, prepared, chosen)
        prepared = run_graph_passes("pre_convert_passes", recipe.pre_convert_passes, prepared)
        return run_graph_passes(
            "post_convert_passes", recipe.post_convert_passes, convert_pt2e(prepared)
        )

    def _get_quantizer_for_prepare_pt2e(self, quantizers: Sequence[Any]) -> Any:
        """One quantizer that annotates as all do."""
        others = [one for one in quantizers if not isinstance(one, Quantizer)]
        if not quantizers:
            raise ValueError("No quantizers detected: quantizers is empty")
        if not others:
            return ComposableQuantizer(list(quantizers))
        names = ", ".join(type(one).__name__ for one in others)
        if len(quantizers) > 1:
            raise ValueError(
                f"{names} does not derive from torchao.quantization.pt2e.quantizer.Quantizer, and "
                f"only one quantizer of another kind can be used, by itself: give one quantizer, "
                f"or torchao's alone"
            )
        warnings.warn(
            f"{names} is no torchao quantizer: derive it from "
            f"torchao.quantization.pt2e.quantizer.Quantizer",
            UserWarning,
            stacklevel=4,
        )
        return others[0]


def _calibrate(name: str, prepared: GraphModule, data: Iterable[tuple[Any, ...]]) -> None:
    """Run a prepared module, so that its observers see the values."""
    for index, inputs in enumerate(data):
        try:
            prepared(*inputs)
        except Exception as error:  # the model may raise anything
            raise ValueError(
                f"{name}: the model fails on item {index} of the inputs for calibration: "
                f"{type(error).__name__}: {error}. Give tuples with the dtypes and shapes of the "
                f"first example inputs, or let sizes vary with dynamic_shapes or dynamic_batch_size"
            ) from error


class TorchExportStage(Stage):
    """Captures modules."""

    stage_type = StageType.TORCH_EXPORT
    valid_predecessor_stages = (StageType.SOURCE_TRANSFORM, StageType.QUANTIZE)
    can_start_pipeline = True

    def __init__(
        self,
        aten_transform_passes: Sequence[Callable[[str, ExportedProgram], ExportedProgram]]
        | None = None,
        strict: bool = True,
    ) -> None:
        self._aten_transform_passes = aten_transform_passes
        self.strict = strict

    def run(self, artifact: PipelineArtifact) -> None:
        """Takes modules by method, and gives captured programs.

        Raises:
            ValueError: a method has no example inputs, or a pass cannot be called.
            ExportError: a model cannot be captured.
        """
        examples = artifact.get_context("example_inputs") or {}
        shapes = artifact.get_context("dynamic_shapes") or {}
        programs = {}
        for name, model in artifact.data.items():
            if not examples.get(name):
                raise ValueError(
                    f"Example inputs for method {name} not found: example_inputs needs a list with "
                    f"at least one tuple for it; it has {', '.join(examples) or 'none'}"
                )
            program = trace(
                model,
                first_inputs(name, examples[name]),
                dynamic_shapes=shapes.get(name),
                strict=self.strict,
                name=name,
            )
            for one in self._aten_transform_passes or ():
                if not callable(one):
                    raise ValueError(
                        f"Aten transform passes must be a callable that can transform and return "
                        f"an exported program, got {type(one).__name__}: give functions of a "
                        f"method's name and program"
                    )
                program = one(name, program)
            programs[name] = program
        self._artifact = artifact.copy_with_new_data(programs)


class ToEdgeStage(Stage):
    """Lowers captured programs to the Edge dialect."""

    stage_type = StageType.TO_EDGE
    valid_predecessor_stages = (StageType.TORCH_EXPORT,)
    can_start_pipeline = True

    def __init__(self, edge_compile_config: EdgeCompileConfig | None = None) -> None:
        self._edge_compile_config = edge_compile_config

    @classmethod
    def from_recipe(cls, lowering_recipe: LoweringRecipe | None) -> ToEdgeStage:
        """The stage of a recipe."""
        return cls(lowering_recipe.edge_compile_config if lowering_recipe else None)

    def run(self, artifact: PipelineArtifact) -> None:
        """Takes captured programs by method, and gives an `EdgeProgramManager`."""
        manager = to_edge(
            artifact.data,
            constant_methods=artifact.get_context("constant_methods"),
            compile_config=self._edge_compile_config,
            generate_etrecord=artifact.get_context("generate_etrecord", False),
        )
        self._artifact = artifact.copy_with_new_data(manager)


class _DelegatingStage(Stage):
    """A stage that notes what it gave to delegates."""

    def _keep(
        self, artifact: PipelineArtifact, manager: EdgeProgramManager, methods: Iterable[str]
    ) -> None:
        made = artifact.copy_with_new_data(manager)
        infos = {
            name: get_delegation_info(manager.exported_program(name).graph_module)
            for name in sorted(methods)
        }
        made.add_context("delegation_info_by_method", infos)
        # For callers that know one method: `forward`, or the first by name.
        first = infos.get("forward", next(iter(infos.values()), None))
        made.add_context("delegation_info", first)
        self._artifact = made

    @property
    def delegation_info(self) -> DelegationInfo:
        """What was delegated of `forward`, or of the first method by name."""
        return self.get_artifacts().get_context("delegation_info")  # type: ignore[no-any-return]

    @property
    def delegation_info_by_method(self) -> dict[str, DelegationInfo]:
        """What was delegated, by method."""
        infos = self.get_artifacts().get_context("delegation_info_by_method")
        return infos  # type: ignore[no-any-return]


class EdgeTransformAndLowerStage(_DelegatingStage):
    """Lowers captured programs to the Edge dialect, runs passes, and partitions."""

    stage_type = StageType.TO_EDGE_TRANSFORM_AND_LOWER
    valid_predecessor_stages = (StageType.TORCH_EXPORT,)
    can_start_pipeline = True

    def __init__(
        self,
        partitioners: Partitioners | None = None,
        transform_passes: Sequence[MethodPasses] | None = None,
        compile_config: EdgeCompileConfig | None = None,
    ) -> None:
        self._partitioners = partitioners
        self._transform_passes = transform_passes
        self._compile_config = compile_config

    @classmethod
    def from_recipe(cls, lowering_recipe: LoweringRecipe | None) -> EdgeTransformAndLowerStage:
        """The stage of a recipe."""
        if lowering_recipe is None:
            return cls()
        return cls(
            lowering_recipe.partitioners,
            lowering_recipe.edge_transform_passes,
            lowering_recipe.edge_compile_config,
        )

    def run(self, artifact: PipelineArtifact) -> None:
        """Takes captured programs by method, and gives an `EdgeProgramManager`."""
        manager = to_edge_transform_and_lower(
            artifact.data,
            partitioner=self._partitioners,
            transform_passes=passes_by_method(self._transform_passes, artifact.data),
            constant_methods=artifact.get_context("constant_methods"),
            compile_config=self._compile_config,
            generate_etrecord=artifact.get_context("generate_etrecord", False),
        )
        self._keep(artifact, manager, artifact.data)


class EdgeProgramManagerTransformStage(Stage):
    """Runs passes over the graphs of a manager."""

    stage_type = StageType.EDGE_PROGRAM_MANAGER_TRANSFORM
    valid_predecessor_stages = (StageType.TO_EDGE, StageType.TO_EDGE_TRANSFORM_AND_LOWER)
    can_start_pipeline = False

    def __init__(
        self,
        edge_transform_passes: Sequence[MethodPasses] | None = None,
        edge_manager_transform_passes: Sequence[ManagerPasses] | None = None,
    ) -> None:
        self._edge_transform_passes = edge_transform_passes or ()
        self._edge_manager_transform_passes = edge_manager_transform_passes or ()

    @classmethod
    def from_recipe(
        cls, lowering_recipe: LoweringRecipe | None
    ) -> EdgeProgramManagerTransformStage:
        """The stage of a recipe."""
        if lowering_recipe is None:
            return cls()
        return cls(
            lowering_recipe.edge_transform_passes, lowering_recipe.edge_manager_transform_passes
        )

    def run(self, artifact: PipelineArtifact) -> None:
        """Takes and gives an `EdgeProgramManager`.

        Raises:
            TypeError: it is something else.
            ValueError: what should make passes cannot be called.
        """
        manager = artifact.data
        if not isinstance(manager, EdgeProgramManager):
            raise TypeError(
                f"Expected EdgeProgramManager but got {type(manager)}: run TO_EDGE first"
            )
        programs = {name: manager.exported_program(name) for name in sorted(manager.methods)}
        of_methods = passes_by_method(self._edge_transform_passes, programs)
        if of_methods:
            manager = manager.transform(of_methods)
        for one in self._edge_manager_transform_passes:
            passes = listed(checked(one)(manager))
            if passes:
                manager = manager.transform(passes)
        self._artifact = artifact.copy_with_new_data(manager)


class ToBackendStage(_DelegatingStage):
    """Partitions the graphs of a manager."""

    stage_type = StageType.TO_BACKEND
    valid_predecessor_stages = (StageType.TO_EDGE, StageType.EDGE_PROGRAM_MANAGER_TRANSFORM)
    can_start_pipeline = False

    def __init__(self, partitioners: Partitioners | None = None) -> None:
        self._partitioners = partitioners

    @classmethod
    def from_recipe(cls, lowering_recipe: LoweringRecipe | None) -> ToBackendStage:
        """The stage of a recipe."""
        return cls(lowering_recipe.partitioners if lowering_recipe else None)

    def run(self, artifact: PipelineArtifact) -> None:
        """Takes and gives an `EdgeProgramManager`; RuntimeError if there is none."""
        manager = _manager_of(artifact)
        for partitioner in _turns(self._partitioners or ()):
            manager = manager.to_backend(partitioner)
        self._keep(artifact, manager, manager.methods)


def _turns(partitioners: Partitioners) -> Iterator[Any]:
    """What `to_backend` is called with, one call after the other."""
    if not isinstance(partitioners, Mapping):
        yield from partitioners
        return
    for turn in zip_longest(*partitioners.values()):
        named = zip(partitioners, turn, strict=True)
        yield {name: one for name, one in named if one is not None}


def _manager_of(artifact: PipelineArtifact) -> EdgeProgramManager:
    if artifact.data is None:
        raise RuntimeError(
            "Edge program manager is not set: run TO_EDGE or TO_EDGE_TRANSFORM_AND_LOWER first"
        )
    return artifact.data  # type: ignore[no-any-return]


class ExecutorchStage(Stage):
    """Plans memory and emits the program."""

    stage_type = StageType.TO_EXECUTORCH
    valid_predecessor_stages = (
        StageType.TO_EDGE_TRANSFORM_AND_LOWER,
        StageType.TO_BACKEND,
        StageType.EDGE_PROGRAM_MANAGER_TRANSFORM,
    )
    can_start_pipeline = False

    def __init__(self, backend_config: ExecutorchBackendConfig | None) -> None:
        self._backend_config = backend_config

    def run(self, artifact: PipelineArtifact) -> None:
        """Takes an `EdgeProgramManager`, and gives an `ExecutorchProgramManager`; RuntimeError if
        there is none."""
        program = _manager_of(artifact).to_executorch(self._backend_config)
        self._artifact = artifact.copy_with_new_data(program)
