"""From captured programs to a finished one: `to_edge` and `EdgeProgramManager`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from torch.export import ExportedProgram

from rushlight.capture import capture, contract_of
from rushlight.capture.mutations import written_state
from rushlight.edge import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    PassManager,
    to_edge_dialect,
)
from rushlight.edge.config import checked_config
from rushlight.edge.operators import plain
from rushlight.edge.passes.dim_order import with_dim_orders
from rushlight.edge.passes.fold_dequantized import fold_dequantized
from rushlight.edge.passes.functional_calls import functional_calls
from rushlight.edge.passes.groups_to_channels import groups_to_channels
from rushlight.edge.passes.taps import taps_to_values
from rushlight.edge.run_passes import Pass, run_passes
from rushlight.emit import emit
from rushlight.errors import Code, ExportError, names_internal_errors
from rushlight.ir.dialect import EDGE
from rushlight.ir.verify import verify
from rushlight.lower import LoweredMethod, lower
from rushlight.partition import LoweredBackendModule, Partitioner
from rushlight.partition.partitioner import partitioners_of
from rushlight.partition.to_backend import Cut, cut_partitions, lower_cut
from rushlight.partition.whole import left_whole, wanted_whole
from rushlight.pipeline.finished import ExecutorchProgramManager
from rushlight.plan.methods import plan_methods
from rushlight.record.etrecord import ETRecord, calls_delegates

Programs = ExportedProgram | Mapping[str, ExportedProgram]
Progress = Callable[[str], None]


def _quiet(stage: str) -> None:
    """The default progress callback: says nothing."""


def by_name(programs: Programs) -> dict[str, ExportedProgram]:
    """Programs by the name of their method; one alone is `forward`."""
    named = {"forward": programs} if isinstance(programs, ExportedProgram) else dict(programs)
    for name, program in named.items():
        if not isinstance(program, ExportedProgram):
            raise ExportError(
                f"method {name!r} is {type(program).__name__}, not an ExportedProgram: capture it "
                f"with torch.export.export first",
                code=Code.INVALID_ARGUMENT,
            )
    return named


def _captured(programs: Programs) -> dict[str, ExportedProgram]:
    return {name: capture(program, name=name) for name, program in by_name(programs).items()}


def _state(captured: Mapping[str, ExportedProgram]) -> dict[str, set[str]]:
    """By method, the names of what other methods write: planning may let it be one with its own."""
    written = {name: written_state(program) for name, program in captured.items()}
    count = Counter(state for names in written.values() for state in names)
    return {name: {n for n in count if count[n] > (n in own)} for name, own in written.items()}


@names_internal_errors
def to_edge(
    programs: Programs,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    generate_etrecord: bool = False,
    *,
    progress: Progress = _quiet,
) -> EdgeProgramManager:
    """Lower captured programs to the Edge dialect.

    Args:
        programs: one program, which becomes `forward`, or several by method name; not changed.
        constant_methods: values that methods without inputs return, by name.
        compile_config: what to keep whole and what to check.
        generate_etrecord: keep the programs for `ExecutorchProgramManager.get_etrecord`.
        progress: called with each stage's name before it starts.

    Raises:
        ExportError: for what cannot be exported, with its line of Python and what to do.
    """
    config = checked_config("compile_config", compile_config, EdgeCompileConfig)
    captured, edge = _captured(programs), {}
    state = _state(captured)
    for name, program in captured.items():
        progress(f"{name}: edge")
        edge[name] = to_edge_dialect(program, config, method=name, state=state[name])
    contracts = {name: contract_of(program) for name, program in captured.items()}
    record = _record(captured, edge) if generate_etrecord else None
    return EdgeProgramManager(edge, constant_methods, config, contracts=contracts, etrecord=record)


def _record(
    captured: Mapping[str, ExportedProgram], edge: Mapping[str, ExportedProgram]
) -> ETRecord:
    record = ETRecord()
    record.add_exported_program(captured)
    record.add_edge_dialect_program(edge)
    return record


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
    *,
    progress: Progress = _quiet,
    manager_class: Callable[..., EdgeProgramManager] | None = None,
) -> EdgeProgramManager:
    """`to_edge`, then the passes, then the partitioners.

    Args:
        programs, constant_methods, compile_config, generate_etrecord, progress: as for `to_edge`.
        transform_passes: passes over the Edge graphs, for all methods or by method.
        partitioner: one, or several in order, for all methods or by method. A call that one of
            them keeps whole (`ops_to_not_decompose`) but none takes is decomposed after all.
        manager_class: makes the manager; `EdgeProgramManager` by default.
    """
    config = checked_config("compile_config", compile_config, EdgeCompileConfig)
    captured = _captured(programs)
    state = _state(captured)
    chosen = partitioners_of(partitioner, captured)
    whole = {name: wanted_whole(captured[name], chosen[name], config) for name in captured}
    turns = max(map(len, chosen.values()), default=0)
    contracts = {name: contract_of(program) for name, program in captured.items()}
    edge: dict[str, ExportedProgram] = {}
    while True:
        for name, program in captured.items():
            if name not in edge:
                progress(f"{name}: edge")
                edge[name] = to_edge_dialect(
                    program, config, method=name, whole=whole[name], state=state[name]
                )
        record = _record(captured, edge) if generate_etrecord else None
        manager = (manager_class or EdgeProgramManager)(
            edge, constant_methods, config, contracts=contracts, etrecord=record
        )
        if transform_passes:
            manager = manager.transform(transform_passes)
        cut = Cut({name: manager.exported_program(name) for name in captured}, {})
        for i in range(turns):
            mine = {name: listed[i] for name, listed in chosen.items() if i < len(listed)}
            progress(f"partition: {', '.join(sorted({type(p).__name__ for p in mine.values()}))}")
            cut = manager._cut(mine)
            if i < turns - 1:
                manager = manager._lowered(cut)
        left = {
            name: names & left_whole(captured[name], cut.tagged(name), names)
            for name, names in whole.items()
        }
        if not any(left.values()):
            return manager._lowered(cut) if turns else manager
        # Whether a call is taken is known for sure only of the Edge graph, whose constants are
        # folded, and a decomposed call changes what can be folded around it: the method's graph is
        # made anew. What the last partitioner took is not compiled yet.
        for name in (name for name, names in left.items() if names):
            whole[name] -= left[name]
            del edge[name]


class EdgeProgramManager:
    """Methods in the Edge dialect."""

    _finished: ClassVar[type[ExecutorchProgramManager]] = ExecutorchProgramManager

    def __init__(
        self,
        edge_programs: Programs,
        constant_methods: Mapping[str, Any] | None = None,
        compile_config: EdgeCompileConfig | None = None,
        *,
        contracts: Mapping[str, dict[str, Any]] | None = None,
        etrecord: ETRecord | None = None,
    ) -> None:
        self._programs = by_name(edge_programs)
        self._constant_methods = dict(constant_methods or {})
        self._config = checked_config("compile_config", compile_config, EdgeCompileConfig)
        if contracts is None:
            contracts = {name: contract_of(p) for name, p in self._programs.items()}
        self._contracts = dict(contracts)
        self._etrecord = etrecord

    @property
    def methods(self) -> set[str]:
        """Names of the traced methods."""
        return set(self._programs)

    @property
    def config_methods(self) -> set[str]:
        """Names of the constant methods."""
        return set(self._constant_methods)

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """The Edge program of the method `method_name`; ExportError if there is none."""
        if method_name not in self._programs:
            raise ExportError(
                f"there is no method {method_name!r}; there are {sorted(self._programs)}",
                code=Code.INVALID_ARGUMENT,
            )
        return self._programs[method_name]

    def with_forms(self, forms: Mapping[str, tuple[EdgeProgramManager, str]]) -> EdgeProgramManager:
        """A new manager that also has methods of others, without contracts of their own.

        Args:
            forms: by the name that it gets, a manager and the name of its method.
        """
        programs = {name: one.exported_program(method) for name, (one, method) in forms.items()}
        record = None if self._etrecord is None else self._etrecord.copy()
        for name, (one, method) in forms.items():
            if record is not None and one._etrecord is not None:
                record.edge_programs[name] = one._etrecord.edge_programs[method]
        return self._changed({**self._programs, **programs}, record)

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

    def transform(
        self,
        passes: Sequence[Pass] | Mapping[str, Sequence[Pass]] | PassManager,
        compile_config: EdgeCompileConfig | None = None,
    ) -> EdgeProgramManager:
        """A new manager whose graphs were changed by `passes` and verified again.

        Args:
            passes: for all methods, or a list per method name.
            compile_config: replaces the manager's own.
        """
        config = checked_config("compile_config", compile_config or self._config, EdgeCompileConfig)
        unknown = sorted(set(passes) - self.methods) if isinstance(passes, Mapping) else []
        if unknown:
            raise ExportError(
                f"there are passes for methods that do not exist: {unknown}; there are "
                f"{sorted(self.methods)}",
                code=Code.INVALID_ARGUMENT,
            )
        programs = {}
        for name, program in self._programs.items():
            mine = passes.get(name, ()) if isinstance(passes, Mapping) else passes
            programs[name] = run_passes(program, mine, name, config)
        # What was recorded are the nodes that delegates and instructions will come from.
        record = self._etrecord
        if record is not None and not any(map(calls_delegates, programs.values())):
            record = record.copy()
            record.edge_programs.update(programs)
        return self._changed(programs, record)

    @names_internal_errors
    def to_backend(
        self, partitioner: Partitioner | Mapping[str, Partitioner]
    ) -> EdgeProgramManager:
        """A new manager whose graphs call delegates instead of the nodes that `partitioner` took.

        Args:
            partitioner: for all methods, or by method; a method without one stays as it is.

        Raises:
            ExportError: if a partition is not valid or a backend fails; names the backend, the
                method and the nodes. This manager does not change.
        """
        mine = (
            partitioner
            if isinstance(partitioner, Mapping)
            else dict.fromkeys(self._programs, partitioner)
        )
        return self._lowered(self._cut(mine))

    def _cut(self, partitioners: Mapping[str, Partitioner]) -> Cut:
        return cut_partitions(self._programs, partitioners)

    def _lowered(self, cut: Cut) -> EdgeProgramManager:
        programs = lower_cut(cut)
        for name, program in programs.items():
            if self._config._check_ir_validity:
                excepted = self._config.accepted
                verify(program.graph, EDGE, f"{name}: after partitioning", excepted)
        return self._changed(programs, self._etrecord)

    @names_internal_errors
    def to_executorch(
        self, config: ExecutorchBackendConfig | None = None, *, progress: Progress = _quiet
    ) -> ExecutorchProgramManager:
        """Lower to out-variants, plan memory and emit.

        Args:
            config: options of all three; default: `ExecutorchBackendConfig()`.
            progress: called with each stage's name before it starts.

        Raises:
            ExportError: for what cannot be lowered, with the nodes and their lines of Python.
        """
        config = checked_config("config", config, ExecutorchBackendConfig)
        lowered: dict[str, LoweredMethod] = {}
        for name, program in self._programs.items():
            program = plain(program)
            if config.passes:
                program = run_passes(program, config.passes, name, self._config)
            program = with_dim_orders(functional_calls(program, name))
            program = taps_to_values(groups_to_channels(fold_dequantized(program)))
            progress(f"{name}: lower")
            lowered[name] = lower(program, method=name, remove_view_copy=config.remove_view_copy)
        progress("plan memory")
        self._plan(lowered, config)
        progress("emit")
        emitted = emit(lowered, config, self._constant_methods)
        return self._finished(
            lowered,
            emitted,
            config,
            self._contracts,
            list(self._constant_methods),
            None if self._etrecord is None else self._etrecord.copy(),
        )

    def _plan(self, lowered: Mapping[str, LoweredMethod], config: ExecutorchBackendConfig) -> None:
        plan_methods(lowered, {name: config.planning_of(name) for name in lowered})


def lowered_to_file(module: LoweredBackendModule, config: ExecutorchBackendConfig | None) -> bytes:
    """The `.pte` file of a lowered module; `LoweredBackendModule.buffer` finds it as a stage."""
    return EdgeProgramManager({"forward": module.exported_program()}).to_executorch(config).buffer
