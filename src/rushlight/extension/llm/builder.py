"""`LLMEdgeManager`: an export of a language model, one step after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.nn.attention import SDPBackend

from rushlight.edge import EdgeCompileConfig, MemoryPlanningPass
from rushlight.errors import Code, ExportError
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.graph_passes.shapes import ConstraintBasedSymShapeEvalPass
from rushlight.exir.manager import (
    EdgeProgramManager,
    ExecutorchProgramManager,
    to_edge_transform_and_lower,
)
from rushlight.extension.export_util import export_to_edge, save_pte_program
from rushlight.extension.llm.calibration import Calibration
from rushlight.extension.llm.passes.remove_transposes import RemoveRedundantTransposes
from rushlight.inspect import format_delegated_graph
from rushlight.partition import Partitioner
from rushlight.quantization import (
    ComposableQuantizer,
    DuplicateDynamicQuantChainPass,
    Quantizer,
    convert_pt2e,
    prepare_pt2e,
)

_LOG = logging.getLogger(__name__)
Module = torch.nn.Module


class DType(Enum):
    """The dtypes of models."""

    fp32 = "fp32"
    fp16 = "fp16"
    bf16 = "bf16"

    def to_torch_dtype(self) -> torch.dtype:
        """The same as torch names it."""
        return _DTYPES[self]

    @staticmethod
    def from_torch_dtype(dtype: torch.dtype) -> DType:
        """The member for a dtype of torch's.

        Raises:
            ValueError: there is none.
        """
        for member, known in _DTYPES.items():
            if known == dtype:
                return member
        raise ValueError(f"dtype={dtype}: give one of {', '.join(map(str, _DTYPES.values()))}")


_DTYPES = {
    DType.fp32: torch.float32,
    DType.fp16: torch.float16,
    DType.bf16: torch.bfloat16,
}


class LLMEdgeManager:
    """An export of a module that maps tokens to logits. Methods return the manager itself.

        manager = LLMEdgeManager(model, "m", 128, True, inputs, example_kwarg_inputs=keywords)
        manager.export().pt2e_quantize([quantizer]).export_to_edge().to_backend([partitioner])
        manager.to_executorch().save_to_pte("m")

    Args:
        model: the module; `forward(tokens)`, or with a cache `forward(tokens, {"input_pos": …})`.
        modelname: names the file of `save_exported_program`.
        max_seq_len: the greatest number of tokens of a text.
        use_kv_cache: whether the module keeps keys and values, and takes positions.
        example_inputs: what it is captured with.
        dtype: of its weights; None: unknown.
        example_kwarg_inputs: keywords that it is captured with.
        enable_dynamic_shape: whether the number of tokens is any up to `max_seq_len - 1`.
        generate_full_logits: whether it returns the logits of all tokens, not of the last alone.
        calibration_tasks: refused: `calibration_data` calibrates.
        calibration_limit: for tasks alone.
        calibration_seq_length: how many tokens of `calibration_data`, and of what follows it, the
            quantised module is calibrated with.
        calibration_data: a text.
        tokenizer_path: the tokenizer for it, as `rushlight.llm.tokenizer.compile` takes it.
        verbose: log graphs.
        metadata: methods without inputs, by name; changed: `get_max_seq_len` is added.
        dynamic_shapes: in place of those that `enable_dynamic_shape` stands for.
        save_exported_program: write what is captured to `MODELNAME.pt2` in the working folder.
        generate_etrecord: record the export for developer tools, where a step can.
        skip_dim_order: leave out the operators for memory formats.

    Attributes:
        pre_autograd_graph_module: the captured module; None before.
        edge_manager: the program in the Edge dialect; None before.
        export_program: the finished program; None before.
    """

    def __init__(
        self,
        model: Module,
        modelname: str,
        max_seq_len: int,
        use_kv_cache: bool,
        example_inputs: tuple[torch.Tensor, ...],
        dtype: DType | None = None,
        example_kwarg_inputs: dict[str, Any] | None = None,
        enable_dynamic_shape: bool = False,
        generate_full_logits: bool = False,
        calibration_tasks: list[str] | None = None,
        calibration_limit: int | None = None,
        calibration_seq_length: int | None = None,
        calibration_data: str | None = None,
        tokenizer_path: str | None = None,
        verbose: bool = False,
        metadata: dict[str, Any] | None = None,
        dynamic_shapes: Any = None,
        save_exported_program: bool = False,
        generate_etrecord: bool = False,
        skip_dim_order: bool = True,
    ) -> None:
        self.model: Module = model
        self.modelname = modelname
        self.max_seq_len = max_seq_len
        self.use_kv_cache = use_kv_cache
        self.example_inputs = example_inputs
        self.dtype = dtype
        self.example_kwarg_inputs = example_kwarg_inputs
        self.enable_dynamic_shape = enable_dynamic_shape
        self.generate_full_logits = generate_full_logits
        self.calibration_tasks = calibration_tasks
        self.calibration_limit = calibration_limit
        self.calibration_seq_length = calibration_seq_length
        self.calibration_data = calibration_data
        self.tokenizer_path = tokenizer_path
        self.verbose = verbose
        self.metadata = {} if metadata is None else metadata
        self.metadata["get_max_seq_len"] = max_seq_len
        self.dynamic_shapes = dynamic_shapes or self._shapes()
        self.save_exported_program = save_exported_program
        self.generate_etrecord = generate_etrecord
        self.skip_dim_order = skip_dim_order
        self.pre_autograd_graph_module: Any = None
        self.edge_manager: EdgeProgramManager | None = None
        self.export_program: ExecutorchProgramManager | None = None
        self.canonical_passes: list[Any] = [RemoveRedundantTransposes()]
        self.output_dir = "."
        self._saved_pte_filename: str | None = None

    def _shapes(self) -> Any:
        """The sizes that may vary; None if none may."""
        if not self.enable_dynamic_shape:
            return None
        if self.max_seq_len < 3:
            raise ExportError(
                f"max_seq_len={self.max_seq_len}: with enable_dynamic_shape, texts have up to "
                f"max_seq_len - 1 tokens, which must be more than one: give 3 or more",
                code=Code.INVALID_ARGUMENT,
            )
        tokens = {1: Dim("token_dim", max=self.max_seq_len - 1)}
        return (tokens, {"input_pos": {0: 1}}) if self.use_kv_cache else (tokens,)

    def _get_dynamic_shape(self) -> Any:
        return self.dynamic_shapes

    def _get_edge_config(self) -> EdgeCompileConfig:
        return EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=self.skip_dim_order)

    def set_output_dir(self, output_dir: str) -> LLMEdgeManager:
        """Say in which folder `save_to_pte` writes."""
        self.output_dir = output_dir
        return self

    def to_dtype(self, dtype_override: DType | None) -> LLMEdgeManager:
        """Convert the module's weights; None leaves them.

        Raises:
            AssertionError: `dtype_override` is no `DType`.
        """
        assert dtype_override is None or isinstance(dtype_override, DType), (
            f"to_dtype({dtype_override!r}): give a member of DType"
        )
        if dtype_override is not None and dtype_override != self.dtype:
            self.model = self.model.to(dtype=dtype_override.to_torch_dtype())
            self.dtype = dtype_override
        return self

    def source_transform(self, transforms: Sequence[Callable[[Module], Module]]) -> LLMEdgeManager:
        """Change the module by functions of a module that return one, in order.

        Raises:
            ExportError: a function returns something else.
        """
        for transform in transforms:
            made: Any = transform(self.model)
            if not isinstance(made, Module):
                raise ExportError(
                    f"source_transform(): {transform} returned {made!r}: return the module",
                    code=Code.INVALID_TYPE,
                )
            self.model = made
        if self.verbose:
            _LOG.info("module after source transforms:\n%s", self.model)
        return self

    def _export(self, module: Module | None = None) -> ExportedProgram:
        with _capturing():
            captured: ExportedProgram = torch.export.export(
                self.model if module is None else module,
                self.example_inputs,
                kwargs=self.example_kwarg_inputs,
                dynamic_shapes=self._get_dynamic_shape(),
                strict=True,
            )
            # Packed weights become their tensors and operators only here.
            functional: ExportedProgram = captured.run_decompositions({})
        return functional

    def export(self) -> LLMEdgeManager:
        """Capture the module.

        Raises:
            Exception: what `torch.export.export` raises.
        """
        captured = self._export()
        self.pre_autograd_graph_module = captured.module()
        if self.save_exported_program:
            torch.export.save(captured, f"{self.modelname}.pt2")
        return self

    def run_canonical_optimizations(self) -> None:
        """Run `canonical_passes` over the captured module.

        Raises:
            ExportError: nothing is captured yet.
        """
        module = self._captured("run_canonical_optimizations")
        for one in self.canonical_passes:
            module = one(module).graph_module
        self.pre_autograd_graph_module = module

    def _captured(self, step: str) -> Any:
        if self.pre_autograd_graph_module is None:
            raise _too_early(step, "export")
        return self.pre_autograd_graph_module

    def _lowered(self, step: str) -> EdgeProgramManager:
        if self.edge_manager is None:
            raise _too_early(step, "export_to_edge")
        return self.edge_manager

    def pt2e_calibrate(
        self,
        prepared_module: Module,
        calibration_tasks: list[str] | None,
        calibration_limit: int | None,
        calibration_seq_length: int,
        calibration_data: str,
        tokenizer_path: str,
    ) -> None:
        """Let a prepared module see a text, and what it writes after it.

        Args:
            prepared_module: with observers.
            calibration_tasks, calibration_limit: refused.
            calibration_seq_length: the greatest number of calls.
            calibration_data: the text.
            tokenizer_path: the tokenizer for it.

        Raises:
            ExportError: there are tasks; or the module takes whole texts of one size and does not
                return the logits of all tokens.
        """
        _refuse_tasks(calibration_tasks)
        Calibration(
            use_kv_cache=self.use_kv_cache,
            enable_dynamic_shape=self.enable_dynamic_shape,
            generate_full_logits=self.generate_full_logits,
            dtype=self.example_inputs[0].dtype,
        ).run(prepared_module, calibration_data, calibration_seq_length, tokenizer_path)

    def pt2e_quantize(self, quantizers: Sequence[Quantizer] | None) -> LLMEdgeManager:
        """Quantise the captured module, calibrated with `calibration_data`, or else with the
        example inputs.

        Args:
            quantizers: which calls are quantised, and how; none: the module stays as it is.

        Raises:
            ExportError: nothing is captured yet, it is lowered already, or `quantizers` is no list
                of quantisers.
        """
        _check_list("quantizers", quantizers, _is_quantizer)
        if not quantizers:
            return self
        if self.edge_manager is not None:
            raise ExportError(
                "pt2e_quantize(): the program is lowered already: quantise before export_to_edge()",
                code=Code.INVALID_STATE,
            )
        _refuse_tasks(self.calibration_tasks)
        with _capturing():
            module = prepare_pt2e(
                self._captured("pt2e_quantize"), ComposableQuantizer(list(quantizers))
            )
            given = (self.calibration_seq_length, self.calibration_data, self.tokenizer_path)
            if all(one is not None for one in given):
                self.pt2e_calibrate(module, None, None, *given)  # type: ignore[arg-type]
            else:
                module(*self.example_inputs, **(self.example_kwarg_inputs or {}))
            module = convert_pt2e(module)
            DuplicateDynamicQuantChainPass()(module)
            self.pre_autograd_graph_module = module
        return self

    def export_to_edge(self) -> LLMEdgeManager:
        """Lower the captured module to the Edge dialect; it is captured if it was not yet.

        Raises:
            ExportError: it cannot be lowered.
        """
        if self.pre_autograd_graph_module is None:
            self.export()
        with _capturing():
            self.edge_manager = export_to_edge(
                self.pre_autograd_graph_module,
                self.example_inputs,
                example_kwarg_inputs=self.example_kwarg_inputs,
                dynamic_shapes=self._get_dynamic_shape(),
                edge_constant_methods=self.metadata,
                edge_compile_config=self._get_edge_config(),
                verbose=self.verbose,
            )
        return self

    def to_backend(self, partitioners: Sequence[Partitioner | None] | None) -> LLMEdgeManager:
        """Give parts of the program to backends, in order.

        Args:
            partitioners: say which; None among them is passed over.

        Raises:
            ExportError: the program is not lowered yet, `partitioners` is no list of partitioners,
                or a backend fails.
        """
        _check_list("partitioners", partitioners, _is_partitioner)
        for partitioner in partitioners or ():
            if partitioner is None:
                continue
            made: Any = self._lowered("to_backend").to_backend(partitioner)
            self.edge_manager = made
            if self.verbose:
                graph = made.exported_program().graph_module
                _LOG.info("after %s:\n%s", partitioner, format_delegated_graph(graph))
        return self

    def to_edge_transform_and_lower(
        self,
        partitioners: Sequence[Partitioner] | None,
        transform_passes: Sequence[Any] | None = None,
    ) -> LLMEdgeManager:
        """Lower the captured module, and give parts of it to backends.

        Args:
            partitioners: say which.
            transform_passes: passes over the graph before.

        Raises:
            ExportError: it cannot be lowered, `partitioners` is no list of partitioners, or a
                backend fails.
        """
        _check_list("partitioners", partitioners, _is_partitioner)
        self.edge_manager = to_edge_transform_and_lower(
            self._export(self.pre_autograd_graph_module),
            transform_passes=transform_passes,
            partitioner=list(partitioners or ()),
            compile_config=self._get_edge_config(),
            constant_methods=self.metadata,
            generate_etrecord=self.generate_etrecord,
        )
        if self.verbose:
            _LOG.info("lowered graph:\n%s", self.edge_manager.exported_program())
        return self

    def to_executorch(
        self,
        passes: Sequence[Any] | None = None,
        external_constants_tag: Callable[[torch.fx.Node], str | None] | None = None,
        share_mutable_buffers: bool = False,
    ) -> LLMEdgeManager:
        """Make the program.

        Args:
            passes: over the graph before.
            external_constants_tag: the name of the data file for a constant; None keeps it in the
                program.
            share_mutable_buffers: whether buffers of one name in several methods are one.

        Raises:
            ExportError: the program is not lowered yet, or cannot be made.
        """
        made: Any = self._lowered("to_executorch").to_executorch(
            ExecutorchBackendConfig(
                passes=list(passes or ()),
                extract_delegate_segments=True,
                do_quant_fusion_and_const_prop=True,
                memory_planning_pass=MemoryPlanningPass(
                    alloc_graph_input=False, share_mutable_buffers=share_mutable_buffers
                ),
                sym_shape_eval_pass=ConstraintBasedSymShapeEvalPass(),
                external_constants=external_constants_tag or False,
            )
        )
        self.export_program = made
        plan = made.executorch_program.execution_plan[0]
        _LOG.info("planned memory in bytes: %s", plan.non_const_buffer_sizes)
        return self

    def save_to_pte(self, output_name: str) -> None:
        """Write the program to `output_name`, or to OUTPUT_NAME.pte in the output folder.

        Raises:
            ExportError: there is no program yet, or no name.
        """
        if self.export_program is None:
            raise _too_early("save_to_pte", "to_executorch")
        if not isinstance(output_name, str) or not output_name:
            raise ExportError(
                f"save_to_pte({output_name!r}): give a name, such as 'model'",
                code=Code.INVALID_ARGUMENT,
            )
        self._saved_pte_filename = save_pte_program(
            self.export_program, output_name, self.output_dir
        )

    def get_saved_pte_filename(self) -> str | None:
        """The file that was written last; None if none was."""
        return self._saved_pte_filename


@contextmanager
def _capturing() -> Iterator[None]:
    """Attention is captured as operators that every backend knows, and nothing is trained."""
    with torch.nn.attention.sdpa_kernel([SDPBackend.MATH]), torch.no_grad():
        yield


def _is_quantizer(one: Any) -> bool:
    return hasattr(one, "annotate")  # those of other packages have a class of their own


def _is_partitioner(one: Any) -> bool:
    return one is None or isinstance(one, Partitioner)


def _check_list(name: str, given: Any, is_one: Callable[[Any], bool]) -> None:
    """Check that what was given is None, or a list of what `is_one` accepts."""
    if given is not None and not (isinstance(given, list | tuple) and all(map(is_one, given))):
        raise ExportError(
            f"{name}={given!r}: give a list of {name}, or None", code=Code.INVALID_TYPE
        )


def _too_early(step: str, before: str) -> ExportError:
    return ExportError(f"{step}(): call {before}() before", code=Code.INVALID_STATE)


def _refuse_tasks(tasks: list[str] | None) -> None:
    if tasks:
        raise ExportError(
            f"calibration_tasks={tasks!r}: tasks of lm_eval are not run here: give the text that "
            f"the model is calibrated with, calibration_data=, and leave the tasks out",
            code=Code.NOT_SUPPORTED,
        )
