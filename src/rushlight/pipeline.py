"""The order of the compiler's stages.

    ExportedProgram → edge → partition → lower → plan → emit → serialize → .pte

The staged API has ExecuTorch's names; `rushlight.export` (in `rushlight.api`) is one call of it.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, TypedDict

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from rushlight.capture import capture, contract_of
from rushlight.edge import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    PassManager,
    to_edge_dialect,
)
from rushlight.edge.passes.fold_dequantized import fold_dequantized
from rushlight.edge.passes.groups_to_channels import groups_to_channels
from rushlight.edge.run_passes import Pass, run_passes
from rushlight.emit import EmittedProgram, emit
from rushlight.errors import Code, ExportError, names_internal_errors
from rushlight.files import replacing_all
from rushlight.ir.dialect import EDGE
from rushlight.ir.kernels import registered
from rushlight.ir.spec import SCALAR_TYPES, dim_order_of, raw_bytes
from rushlight.ir.verify import verify
from rushlight.lower import LoweredMethod, lower
from rushlight.lower.check_kernels import operators_of
from rushlight.partition import LoweredBackendModule, Partitioner
from rushlight.partition.partitioner import partitioners_of
from rushlight.partition.to_backend import Cut, cut_partitions, lower_cut
from rushlight.partition.whole import left_whole, wanted_whole
from rushlight.plan.methods import plan_methods
from rushlight.schema import program as schema
from rushlight.schema.debug import DebugMap
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.serialize.data_files import DataFiles
from rushlight.serialize.debug_limit import with_debug
from rushlight.serialize.file import PTEFile, check_program_path
from rushlight.serialize.ptd import NamedTensor
from rushlight.serialize.pte import write_pte, write_pte_to
from rushlight.serialize.segments import Data

Programs = ExportedProgram | Mapping[str, ExportedProgram]
Progress = Callable[[str], None]


def _quiet(stage: str) -> None:
    """The default progress callback: says nothing."""


def _by_name(programs: Programs) -> dict[str, ExportedProgram]:
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
    return {name: capture(program, name=name) for name, program in _by_name(programs).items()}


@names_internal_errors
def to_edge(
    programs: Programs,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    *,
    progress: Progress = _quiet,
) -> EdgeProgramManager:
    """Lower captured programs to the Edge dialect.

    Args:
        programs: one program, which becomes `forward`, or several by method name; not changed.
        constant_methods: values that methods without inputs return, by name.
        compile_config: what to keep whole and what to check.
        progress: called with each stage's name before it starts.

    Raises:
        ExportError: for what cannot be exported, with its line of Python and what to do.
    """
    config = compile_config or EdgeCompileConfig()
    captured, edge = _captured(programs), {}
    for name, program in captured.items():
        progress(f"{name}: edge")
        edge[name] = to_edge_dialect(program, config, method=name)
    contracts = {name: contract_of(program) for name, program in captured.items()}
    return EdgeProgramManager(edge, constant_methods, config, contracts=contracts)


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
    *,
    progress: Progress = _quiet,
) -> EdgeProgramManager:
    """`to_edge`, then the passes, then the partitioners.

    Args:
        programs, constant_methods, compile_config, progress: as for `to_edge`.
        transform_passes: passes over the Edge graphs, for all methods or by method.
        partitioner: one, or several in order, for all methods or by method. A call that one of
            them keeps whole (`ops_to_not_decompose`) but none takes is decomposed after all.
    """
    config = compile_config or EdgeCompileConfig()
    captured = _captured(programs)
    chosen = partitioners_of(partitioner, captured)
    whole = {name: wanted_whole(captured[name], chosen[name], config) for name in captured}
    turns = max(map(len, chosen.values()), default=0)
    contracts = {name: contract_of(program) for name, program in captured.items()}
    edge: dict[str, ExportedProgram] = {}
    while True:
        for name, program in captured.items():
            if name not in edge:
                progress(f"{name}: edge")
                edge[name] = to_edge_dialect(program, config, method=name, whole=whole[name])
        manager = EdgeProgramManager(edge, constant_methods, config, contracts=contracts)
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

    def __init__(
        self,
        edge_programs: Programs,
        constant_methods: Mapping[str, Any] | None = None,
        compile_config: EdgeCompileConfig | None = None,
        *,
        contracts: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self._programs = _by_name(edge_programs)
        self._constant_methods = dict(constant_methods or {})
        self._config = compile_config or EdgeCompileConfig()
        if contracts is None:
            contracts = {name: contract_of(p) for name, p in self._programs.items()}
        self._contracts = dict(contracts)

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

    def with_forms(self, forms: Mapping[str, ExportedProgram]) -> EdgeProgramManager:
        """A new manager that also has `forms` of its methods, without contracts of their own."""
        return EdgeProgramManager(
            {**self._programs, **forms},
            self._constant_methods,
            self._config,
            contracts=self._contracts,
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
        config = compile_config or self._config
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
        return EdgeProgramManager(
            programs, self._constant_methods, config, contracts=self._contracts
        )

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
                excepted = self._config._core_aten_ops_exception_list
                verify(program.graph, EDGE, f"{name}: after partitioning", excepted)
        return EdgeProgramManager(
            programs, self._constant_methods, self._config, contracts=self._contracts
        )

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
        config = config or ExecutorchBackendConfig()
        lowered: dict[str, LoweredMethod] = {}
        for name, program in self._programs.items():
            if config.passes:
                program = run_passes(program, config.passes, name, self._config)
            program = groups_to_channels(fold_dequantized(program))
            progress(f"{name}: lower")
            lowered[name] = lower(program, method=name, remove_view_copy=config.remove_view_copy)
        progress("plan memory")
        plan_methods(lowered, {name: config.planning_of(name) for name in lowered})
        progress("emit")
        emitted = emit(lowered, config, self._constant_methods)
        return ExecutorchProgramManager(
            lowered, emitted, config, self._contracts, list(self._constant_methods)
        )


class ExecutorchProgramManager:
    """A finished program: its bytes, its plan and its debug maps."""

    def __init__(
        self,
        methods: dict[str, LoweredMethod],
        emitted: EmittedProgram,
        config: ExecutorchBackendConfig,
        contracts: Mapping[str, dict[str, Any]],
        config_methods: Sequence[str],
    ) -> None:
        self._methods = methods
        self._emitted = emitted
        self._config = config
        self._contracts = dict(contracts)
        self._config_methods = list(config_methods)
        self._more: dict[str, Data] = {}
        self._buffer: bytes | None = None
        self._external: DataFiles | None = None

    @property
    def methods(self) -> set[str]:
        """Names of the traced methods."""
        return set(self._methods)

    @property
    def config_methods(self) -> set[str]:
        """Names of the constant methods."""
        return set(self._config_methods)

    @property
    def config_methods_in_order(self) -> list[str]:
        """The constant methods in the order in which they were given."""
        return list(self._config_methods)

    @property
    def executorch_program(self) -> schema.Program:
        """The program as the schema's dataclasses."""
        return self._emitted.program

    @property
    def contracts(self) -> dict[str, dict[str, Any]]:
        """The shape contracts of the traced methods, for the file; a form has the contract of its
        method."""
        return dict(self._contracts)

    @property
    def debug_handle_map(self) -> dict[str, dict[int, int]]:
        """{method: {instruction: debug handle}}."""
        return self._emitted.debug_handles

    @property
    def instruction_nodes(self) -> dict[str, dict[int, tuple[str, list[int]]]]:
        """{method: {instruction: (Edge node name, indices of the values it writes)}}."""
        return self._emitted.instruction_nodes

    def lowered_method(self, method_name: str = "forward") -> LoweredMethod:
        """The planned out-variant graph of the method `method_name`."""
        return self._methods[method_name]

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """The method `method_name` with its graph of out-variants, for inspection only."""
        method = self._methods[method_name]
        shown = copy.copy(method.program)
        shown._graph_module = GraphModule(torch.nn.Module(), method.graph)
        return shown

    def _named_data(self) -> dict[str, Data]:
        contract = {"version": 1, "methods": self._contracts}
        named: dict[str, Any] = {"rushlight/contract": contract}
        libraries = self._libraries()
        if libraries:
            named["rushlight/kernels"] = {"version": 1, "libraries": libraries}
        store = self._emitted.named_data
        data = {k: store.buffers[e.buffer_index] for k, e in store.pte_data.items()}
        for key, value in named.items():
            data[key] = json.dumps(value, separators=(",", ":")).encode()
        return {**data, **self._data_files().named_data(), **self._more}

    @property
    def debug_map(self) -> DebugMap:
        """The whole map from instructions to Python lines; the file may have only a part of it."""
        return self._emitted.debug

    def add_named_data(self, key: str, value: Data) -> None:
        """Add the bytes `value` to the file, under `key` in its named data."""
        self._more[key] = value
        self._buffer = None

    @property
    def payloads(self) -> list[bytes]:
        """The payloads of all delegates."""
        return list(self._emitted.payloads)

    def _libraries(self) -> dict[str, str]:
        """The kernel libraries of the operators that the user registered, by operator."""
        used = sorted(set().union(*(operators_of(method) for method in self._methods.values())))
        kernels = ((name, registered(name)) for name in used)
        return {name: kernel.library for name, kernel in kernels if kernel is not None}

    def _file(self) -> PTEFile:
        file = PTEFile(
            program=self._emitted.program,
            constants=[b"", *self._emitted.constants],
            mutable_data=[b"", *self._emitted.mutable_data],
            named_data=self._named_data(),
            delegate_blobs=list(self._emitted.payloads),
        )
        return with_debug(file, self._emitted.debug, self._config.debug)

    def _alignments(self) -> _Alignments:
        config = self._config
        return {
            "segment_alignment": config.segment_alignment,
            "constant_alignment": config.constant_tensor_alignment or 16,
            "delegate_alignment": config.delegate_alignment or 1,
            "named_data_alignment": {
                k: e.alignment for k, e in self._emitted.named_data.pte_data.items()
            },
        }

    @property
    def buffer(self) -> bytes:
        """The .pte file."""
        if self._buffer is None:
            self._buffer = write_pte(self._file(), **self._alignments())
        return self._buffer

    def write_to_file(self, open_file: BinaryIO) -> None:
        """Write the .pte to `open_file`, which is open for binary writing."""
        if self._buffer is not None:
            open_file.write(self._buffer)
        else:  # directly from the tensors, without a copy of the weights
            write_pte_to(open_file, self._file(), **self._alignments())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the .pte to `path`, and each external data file beside it.

        Modules loaded from old files keep these; if a file cannot be written, all old files stay.

        Raises:
            ExportError: if `path` does not end in .pte, or cannot be written.
        """
        check_program_path(path)
        external = self._data_files()
        paths = [*external.paths(os.path.dirname(path)), path]
        try:
            with replacing_all(paths) as (*data, program):
                external.write_to(data)
                self.write_to_file(program)
        except OSError as error:
            raise ExportError(
                f"cannot write {os.fspath(path)!r}: {error.strerror}; check the path",
                code=Code.ACCESS_FAILED,
            ) from error

    def write_tensor_data_to_file(self, directory: str | os.PathLike[str]) -> None:
        """Write one `<tag>.ptd` into `directory` for each tag of external constants."""
        external = self._data_files()
        with replacing_all(external.paths(directory)) as files:
            external.write_to(files)

    def data_files(self) -> dict[str, bytes]:
        """External data: file name without extension to the bytes of its .ptd."""
        return self._data_files().images()

    def _data_files(self) -> DataFiles:
        if self._external is not None:
            return self._external
        store = self._emitted.named_data
        entries = [
            (tag, name, _named_tensor(tensor))
            for tag, tensors in self._emitted.external.items()
            for name, tensor in tensors.items()
        ]
        for tag, of_backends in store.external_data.items():
            for key, entry in of_backends.items():
                data = store.buffers[entry.buffer_index]
                entries.append((tag, key, NamedTensor(data, entry.tensor_layout, entry.alignment)))
        self._external = DataFiles(entries)
        return self._external


class _Alignments(TypedDict):
    segment_alignment: int
    constant_alignment: int
    delegate_alignment: int
    named_data_alignment: dict[str, int]


def _named_tensor(tensor: torch.Tensor) -> NamedTensor:
    dim_order = list(dim_order_of(tensor))
    layout = TensorLayout(SCALAR_TYPES[tensor.dtype], list(tensor.shape), dim_order)
    return NamedTensor(raw_bytes(tensor), layout, alignment=16)


def lowered_to_file(module: LoweredBackendModule, config: ExecutorchBackendConfig | None) -> bytes:
    """The `.pte` file of a lowered module; `LoweredBackendModule.buffer` finds it as a stage."""
    return EdgeProgramManager({"forward": module.program()}).to_executorch(config).buffer
