"""Lowering, with graphs that are spelled as ExecuTorch spells them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TextIO

from torch.export import ExportedProgram

from rushlight import pipeline
from rushlight.edge import EdgeCompileConfig, PassManager
from rushlight.edge.operators import is_spelled, spell
from rushlight.edge.run_passes import Pass
from rushlight.errors import Code, ExportError, names_internal_errors
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.cord import Cord
from rushlight.exir.emitted import EmitterOutput, emitter_output, whole_program
from rushlight.exir.graph_passes.quant_fusion import quant_fusion_and_const_prop_pass
from rushlight.exir.planning.memory_pass import MemoryPlanningPass
from rushlight.exir.planning.methods import plan_by_passes, with_executorch_specs
from rushlight.exir.print_program import pretty_print, print_program
from rushlight.ir.programs import copy_program
from rushlight.lower import LoweredMethod
from rushlight.partition import NamedDataStore, Partitioner, get_lowered_submodules
from rushlight.partition.tags import graphs_of
from rushlight.pipeline.edge_manager import Programs, by_name
from rushlight.record.etrecord import ETRecord
from rushlight.schema import program as schema

_Finished = pipeline.ExecutorchProgramManager
_Edge = pipeline.EdgeProgramManager


class ExecutorchProgramManager(_Finished):
    """A finished program: its bytes, its plan and its debug maps."""

    @cached_property
    def executorch_program(self) -> schema.Program:
        """The program as the schema's dataclasses, with its constants and payloads."""
        return whole_program(self._emitted)

    @cached_property
    def _emitter_output(self) -> EmitterOutput:
        return emitter_output(self._emitted, self.executorch_program)

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """The method `method_name` with its graph of out-variants and ExecuTorch's specs; with
        control flow it cannot be run in Python."""
        program = super().exported_program(method_name)
        with_executorch_specs(program)
        arenas = self._methods[method_name].arenas
        program.graph_module.meta["non_const_buffer_sizes"] = [0, *(arenas or [0])]
        return program

    def dump_executorch_program(self, verbose: bool = False, out: TextIO | None = None) -> None:
        """Print the program: its instructions, or all of its schema if `verbose`."""
        if verbose:
            pretty_print(self.executorch_program, out=out)
        else:
            print_program(self.executorch_program, out=out)

    @property
    def _tensor_data(self) -> dict[str, Cord]:
        """The content of the data files (.ptd), by name without its ending."""
        return {name: Cord(image) for name, image in self.data_files().items()}


class EdgeProgramManager(_Edge):
    """Methods in the Edge dialect, whose calls are ExecuTorch's operators with its nodes' names."""

    _finished = ExecutorchProgramManager

    def __init__(
        self,
        edge_programs: Programs,
        constant_methods: Mapping[str, Any] | None = None,
        compile_config: EdgeCompileConfig | None = None,
        core_aten_ops_exception_list: Sequence[Any] | None = None,
        preserve_ops: Sequence[Any] | None = None,
        *,
        contracts: Mapping[str, dict[str, Any]] | None = None,
        etrecord: ETRecord | None = None,
    ) -> None:
        programs = by_name(edge_programs)
        spelled = {name: _spell(program) for name, program in programs.items()}
        if etrecord is not None:
            etrecord.edge_programs = {
                name: spelled[name] if programs.get(name) is program else _spell(program)
                for name, program in etrecord.edge_programs.items()
            }
        super().__init__(
            spelled,
            constant_methods,
            compile_config,
            contracts=contracts,
            etrecord=etrecord,
        )

    @property
    def _edge_programs(self) -> dict[str, ExportedProgram]:
        return self._programs

    @property
    def _config_methods(self) -> dict[str, Any]:
        return self._constant_methods

    @property
    def _named_data_store(self) -> NamedDataStore:
        """What the delegates of all methods store beside their payloads."""
        store = NamedDataStore()
        for program in self._programs.values():
            for module in graphs_of(program):
                for _, lowered, _ in get_lowered_submodules(module):
                    if lowered.named_data_store_output is not None:
                        store.merge_named_data_store(lowered.named_data_store_output)
        return store

    def to_executorch(
        self, config: Any = None, *, progress: Callable[[str], None] = lambda stage: None
    ) -> _Finished:
        """Lower to out-variants, plan memory and emit, as that of `rushlight.pipeline` does; first
        fuse quantised calls, if the config's `do_quant_fusion_and_const_prop` says so."""
        if isinstance(config, ExecutorchBackendConfig) and config.do_quant_fusion_and_const_prop:
            fused = {
                name: quant_fusion_and_const_prop_pass(copy_program(program))
                for name, program in self._programs.items()
            }
            config = replace(config, do_quant_fusion_and_const_prop=False)
            return self._changed(fused, self._etrecord).to_executorch(config, progress=progress)
        return super().to_executorch(config, progress=progress)

    def _changed(
        self, programs: Mapping[str, ExportedProgram], record: ETRecord | None
    ) -> EdgeProgramManager:
        return EdgeProgramManager(
            programs,
            self._constant_methods,
            self._config,
            contracts=self._contracts,
            etrecord=record,
        )

    def _plan(self, lowered: Mapping[str, LoweredMethod], config: Any) -> None:
        passes = {
            name: planning
            for name in lowered
            if isinstance(config, ExecutorchBackendConfig)
            and isinstance(planning := config.pass_of(name), MemoryPlanningPass)
            and not planning.is_plain
        }
        _check_sharing([config.pass_of(name) for name in lowered] if passes else [])
        plan_by_passes({name: lowered[name] for name in passes}, passes)
        super()._plan({n: m for n, m in lowered.items() if n not in passes}, config)


def _check_sharing(planning: Sequence[Any]) -> None:
    """Refuse several passes each of which would place the buffers that methods share."""
    sharing = {id(one) for one in planning if one.share_mutable_buffers}
    if len(sharing) > 1:
        raise ExportError(
            "several memory planning passes have share_mutable_buffers: give all methods that "
            "share buffers one and the same pass",
            code=Code.INVALID_ARGUMENT,
        )


@names_internal_errors
def to_edge(
    programs: Programs,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
) -> EdgeProgramManager:
    """Lower captured programs to the Edge dialect, as `rushlight.pipeline.to_edge` does."""
    made = pipeline.to_edge(programs, constant_methods, compile_config, generate_etrecord)
    return _spelled(made)


@names_internal_errors
def to_edge_transform_and_lower(
    programs: Programs,
    transform_passes: Sequence[Pass] | Mapping[str, Sequence[Pass]] | PassManager | None = None,
    partitioner: Partitioner
    | Sequence[Partitioner]
    | Mapping[str, Sequence[Partitioner]]
    | None = None,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
) -> EdgeProgramManager:
    """`to_edge`, then the passes, then the partitioners, as the function of that name in
    `rushlight.pipeline` does; passes and partitioners are given ExecuTorch's operators."""
    made = pipeline.to_edge_transform_and_lower(
        programs,
        transform_passes,
        partitioner,
        constant_methods,
        compile_config,
        generate_etrecord,
        manager_class=EdgeProgramManager,
    )
    made = _spelled(made)
    if made._etrecord is not None and transform_passes:
        made._etrecord.add_extra_export_modules(
            {"edge_after_transform": made._etrecord.edge_programs}
        )
    return made


def _spell(program: ExportedProgram) -> ExportedProgram:
    return program if is_spelled(program) else spell(program)


def _spelled(made: pipeline.EdgeProgramManager) -> EdgeProgramManager:
    if isinstance(made, EdgeProgramManager):
        return made
    return EdgeProgramManager(
        {name: made.exported_program(name) for name in made._programs},
        made._constant_methods,
        made._config,
        contracts=made._contracts,
        etrecord=made._etrecord,
    )
