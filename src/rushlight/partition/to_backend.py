"""Replaces partitions by calls of delegates: `to_backend` with its three kinds of arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, OutputKind
from torch.fx import GraphModule, Node

from rushlight.edge.operators import make_plain, put_back
from rushlight.edge.to_edge import finish
from rushlight.errors import Code, Error, ExportError, internal_error
from rushlight.ir.branches import branches
from rushlight.ir.programs import copy_program
from rushlight.partition.debug_map import number_calls
from rushlight.partition.details import (
    BackendDetails,
    PreprocessResult,
    backend_class,
    fault_of,
    fault_of_specs,
    known_backends,
)
from rushlight.partition.extract import Part, data_of, data_of_branch, extract
from rushlight.partition.flat import flatten
from rushlight.partition.graphs import is_identical_graph
from rushlight.partition.lowered import LoweredBackendModule
from rushlight.partition.partitioner import (
    DECLINED,
    TAG,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    check_partitioner,
)
from rushlight.partition.rebuild import rebuild
from rushlight.partition.regions import Region, Unit, find_regions, run_order
from rushlight.partition.registry import import_details
from rushlight.partition.tags import graphs_of
from rushlight.schema.program import CompileSpec


@dataclass(frozen=True)
class MethodProgramsPartitionerSpec:
    """Several methods that are lowered together.

    Attributes:
        method_to_edge_program: the programs, by method.
        method_to_partitioner: the partitioners, by method; a method without one is not changed.
    """

    method_to_edge_program: dict[str, ExportedProgram]
    method_to_partitioner: dict[str, Partitioner]


_validates = True


def disable_validation() -> None:
    """Let partitioners change graphs from now on: tagged graphs are no longer compared."""
    global _validates
    _validates = False


@contextmanager
def validation_disabled() -> Iterator[None]:
    """Let partitioners change graphs inside this context."""
    global _validates
    before = _validates
    _validates = False
    try:
        yield
    finally:
        _validates = before


@singledispatch
def to_backend(args: Any) -> Any:
    """Lower a program, or partitions of it, to a backend.

    * `to_backend(backend_id, edge_program, compile_specs)`: the whole program as one
      `LoweredBackendModule`, which can be saved by itself, or be a part of another model;
    * `to_backend(edge_program, partitioner)`: a new program whose partitions are delegate calls;
    * `to_backend(MethodProgramsPartitionerSpec(...))`: the same for several methods at once.

    The arguments are not changed.

    Raises:
        ExportError: if the backend is unknown, a partition is not valid, or `preprocess` fails; it
            names backend, method and nodes.
    """
    raise ExportError(
        f"to_backend takes a backend's id, an ExportedProgram, or a MethodProgramsPartitionerSpec "
        f"first, got {type(args).__name__}",
        code=Code.INVALID_ARGUMENT,
    )


@to_backend.register
def _(
    backend_id: str, edge_program: ExportedProgram, compile_specs: Sequence[CompileSpec] = ()
) -> LoweredBackendModule:
    details = find_backend(backend_id)
    fault = fault_of_specs(compile_specs)
    if not isinstance(edge_program, ExportedProgram):
        fault = f"the program is {type(edge_program).__name__}, not an ExportedProgram"
    if fault is not None:
        raise ExportError(fault, code=Code.INVALID_ARGUMENT, where=backend_id)
    specs = list(compile_specs)
    shown = f"the whole program ({len(list(edge_program.graph.nodes))} nodes)"
    programs = {"forward": [flatten(copy_program(edge_program))[0]]}
    results = run_preprocess(details, programs, {"forward": [specs]}, {"forward": [shown]})
    return lowered_module(backend_id, copy_program(edge_program), specs, results["forward"][0])


@to_backend.register
def _(edge_program: ExportedProgram, partitioner: Partitioner) -> ExportedProgram:
    return lower_partitions({"forward": edge_program}, {"forward": partitioner})["forward"]


@to_backend.register
def _(args: MethodProgramsPartitionerSpec) -> dict[str, ExportedProgram]:
    return lower_partitions(args.method_to_edge_program, args.method_to_partitioner)


def find_backend(backend_id: str) -> type[BackendDetails]:
    """The `BackendDetails` class of a backend.

    Raises:
        ExportError: if no class of that name is defined and no installed package offers it, or that
            package cannot be imported.
    """
    details = backend_class(backend_id)
    if details is None:
        import_details(backend_id)
        details = backend_class(backend_id)
    if details is None:
        have = ", ".join(known_backends()) or "none"
        raise ExportError(
            f"no backend {backend_id!r} is known here; known are: {have}. Import the module that "
            f"defines the class {backend_id}(BackendDetails)",
            code=Code.NOT_FOUND,
        )
    return details


@dataclass
class _Graph:
    """One graph of a method (its main graph or that of a branch), with its extracted partitions."""

    module: GraphModule
    order: list[Unit]
    parts: list[Part]
    dropped: set[Node]


@dataclass
class _Method:
    """A method whose partitions were extracted.

    Attributes:
        program: the program with tags.
        graphs: all its graphs, the innermost first, the main graph last.
    """

    program: ExportedProgram
    graphs: list[_Graph] = field(default_factory=list)

    def parts(self) -> list[Part]:
        return [part for graph in self.graphs for part in graph.parts]


@dataclass
class Cut:
    """Programs whose partitions were checked and extracted; no backend has compiled them yet.

    Attributes:
        programs: the original programs, by method.
        methods: the methods that have a partitioner.
    """

    programs: Mapping[str, ExportedProgram]
    methods: Mapping[str, _Method]

    def tagged(self, name: str) -> ExportedProgram:
        """The program of a method, with tags if it has a partitioner."""
        return self.methods[name].program if name in self.methods else self.programs[name]


def cut_partitions(
    programs: Mapping[str, ExportedProgram], partitioners: Mapping[str, Partitioner]
) -> Cut:
    """Partition methods and extract the partitions.

    Args:
        programs: Edge programs by method; not changed.
        partitioners: the partitioners, by method.
    """
    unknown = sorted(set(partitioners) - set(programs))
    if unknown:
        raise ExportError(
            f"there are partitioners for methods that do not exist: {unknown}; there are "
            f"{sorted(programs)}",
            code=Code.INVALID_ARGUMENT,
        )
    for name, partitioner in partitioners.items():
        check_partitioner(partitioner, name)
    return Cut(
        programs,
        {
            name: _cut(name, programs[name], partitioner)
            for name, partitioner in partitioners.items()
        },
    )


def lower_cut(cut: Cut) -> dict[str, ExportedProgram]:
    """Compile the extracted partitions, and replace them by calls."""
    modules = _compile(cut.methods)
    new = {name: _replace(method, modules) for name, method in cut.methods.items()}
    return {name: new.get(name, program) for name, program in cut.programs.items()}


def lower_partitions(
    programs: Mapping[str, ExportedProgram], partitioners: Mapping[str, Partitioner]
) -> dict[str, ExportedProgram]:
    """Partition methods, compile the partitions, and replace them by calls.

    All partitions of all methods are checked before the first `preprocess` runs, and nothing is
    replaced before the last one has returned.

    Args:
        programs: Edge programs by method; not changed.
        partitioners: the partitioners, by method.
    """
    return lower_cut(cut_partitions(programs, partitioners))


def _cut(name: str, program: ExportedProgram, partitioner: Partitioner) -> _Method:
    """Run the partitioner and extract its partitions."""
    result = _partition(name, program, partitioner)
    _note_declined(partitioner, result)
    method = _Method(result.tagged_exported_program)
    top = method.program.graph_module
    graphs = list(graphs_of(method.program))
    for module in reversed(graphs):  # a branch is rebuilt before the graph that calls it
        data = data_of(method.program) if module is top else data_of_branch(module)
        regions = find_regions(module.graph, data.specs, result.partition_tags, name)
        order = run_order(module.graph, regions, name)
        cut = [unit for unit in order if isinstance(unit, Region)]
        parts = [extract(region, data, method.program, name) for region in cut]
        passed = {n for part in parts for n in part.inputs}
        written = set().union(*(part.written for part in parts))
        dropped = {
            n
            for n, spec in data.specs.items()
            if spec.target in written
            or (n.users and n not in passed and regions.keys() >= n.users.keys())
        }
        method.graphs.append(_Graph(module, order, parts, dropped))
    return method


def _partition(name: str, program: ExportedProgram, partitioner: Partitioner) -> PartitionResult:
    """The checked result of the partitioner for a copy of the program.

    Raises:
        ExportError: if it raises, returns a wrong object, or changed more than tags.
    """
    tagged = copy_program(program)
    for module in (tagged.graph_module, *branches(tagged.graph_module)):
        for node in module.graph.nodes:
            node.meta.pop(TAG, None)  # from an earlier partitioner
    who = type(partitioner).__name__
    spelled = make_plain(tagged) if _is_backend_of_ours(type(partitioner)) else {}
    try:
        result = partitioner(tagged)
    except Error:
        raise
    except Exception as error:  # any error of a partitioner must reach the user
        if _is_ours(type(partitioner)):
            raise internal_error(error, f"{name}: {who}") from error
        raise ExportError(
            f"{who} failed with {type(error).__name__}: {error}",
            code=Code.NOT_SUPPORTED,
            where=name,
        ) from error
    put_back(spelled)
    fault = _fault_of(result, program)
    if fault is not None:
        raise ExportError(f"{who} {fault}", code=Code.INVALID_ARGUMENT, where=name)
    for spec in result.partition_tags.values():
        find_backend(spec.backend_id)
    return result


def _is_backend_of_ours(kind: type) -> bool:
    """Whether a class is, or is derived from, one of Rushlight's backends: these compare operators
    by identity, and are given torch's own."""
    ours = f"{__name__.partition('.')[0]}.backends."
    return any(getattr(one, "__module__", "").startswith(ours) for one in kind.__mro__)


def _is_ours(kind: type) -> bool:
    """Whether a class is part of Rushlight."""
    return getattr(kind, "__module__", "").partition(".")[0] == __name__.partition(".")[0]


def _fault_of(result: PartitionResult, program: ExportedProgram) -> str | None:
    """The fault in a partitioner's result for `program`; None if there is none."""
    if not isinstance(result, PartitionResult):
        return f"returned {type(result).__name__}, not a PartitionResult"
    tagged = result.tagged_exported_program
    if not isinstance(tagged, ExportedProgram):
        return f"returned {type(tagged).__name__} as tagged_exported_program"
    if not isinstance(result.partition_tags, Mapping):
        return (
            f"returned {result.partition_tags!r} as partition_tags: it needs a `partition_tags` "
            f"field containing a mapping of tags to delegate spec"
        )
    for tag, spec in result.partition_tags.items():
        if not isinstance(spec, DelegationSpec):
            return f"says that the tag {tag!r} stands for {spec!r}, not for a DelegationSpec"
        if (fault := fault_of_specs(spec.compile_specs)) is not None:
            return f"gives a wrong DelegationSpec for the tag {tag!r}: {fault}"
    if (fault := _fault_of_reasons(result)) is not None:
        return fault
    if _validates and not is_identical_graph(tagged.graph_module, program.graph_module):
        return (
            "changed the graph: a partitioner writes tags and leaves the rest to transform passes "
            "(`validation_disabled()` lets it)"
        )
    return None


def _fault_of_reasons(result: PartitionResult) -> str | None:
    if not isinstance(result.declined, Mapping):
        return f"returned {result.declined!r} as declined: it maps nodes to reasons"
    program = result.tagged_exported_program
    graphs = {module.graph for module in (program.graph_module, *branches(program.graph_module))}
    for node, reason in result.declined.items():
        if not isinstance(node, Node) or node.graph not in graphs:
            return f"declines {node!r}, which is not a node of the program that it was given"
        if not isinstance(reason, str):
            return f"declines {node.name} with the reason {reason!r}, which is not a text"
    return None


def _note_declined(partitioner: Partitioner, result: PartitionResult) -> None:
    """Write the reasons into the nodes' meta, where the report finds them."""
    specs = result.partition_tags.values()
    spec = partitioner.delegation_spec or next(iter(specs), None)
    backend = spec.backend_id if spec is not None else type(partitioner).__name__
    for node, reason in result.declined.items():
        node.meta[DECLINED] = {**node.meta.get(DECLINED, {}), backend: reason}


def _compile(methods: Mapping[str, _Method]) -> dict[Region, LoweredBackendModule]:
    """Compile the partitions, all those of one backend in a single call."""
    by_backend: dict[str, dict[str, list[Part]]] = {}
    for name, method in methods.items():
        for part in method.parts():
            of_backend = by_backend.setdefault(part.region.spec.backend_id, {})
            of_backend.setdefault(name, []).append(part)
    modules = {}
    for backend_id, parts in by_backend.items():
        results = run_preprocess(
            find_backend(backend_id),
            {name: [copy_program(p.program) for p in mine] for name, mine in parts.items()},
            {name: [p.region.spec.compile_specs for p in mine] for name, mine in parts.items()},
            {name: [str(p.region) for p in mine] for name, mine in parts.items()},
        )
        for name, mine in parts.items():
            for part, result in zip(mine, results[name], strict=True):
                spec = part.region.spec
                modules[part.region] = lowered_module(
                    backend_id, part.program, spec.compile_specs, result
                )
    return modules


def run_preprocess(
    details: type[BackendDetails],
    programs: dict[str, list[ExportedProgram]],
    specs: dict[str, list[list[CompileSpec]]],
    shown: Mapping[str, Sequence[str]],
) -> dict[str, list[PreprocessResult]]:
    """Compile partitions by one call of a backend, and check what it returns.

    Args:
        details: the backend.
        programs: the partitions, by method; the backend may change them.
        specs: their options, likewise.
        shown: how errors name them, likewise.

    Raises:
        ExportError: the backend raised, or returned something wrong.
    """
    backend_id = details.__name__
    what = "; ".join(f"{name}: {', '.join(parts)}" for name, parts in shown.items())
    for program in (one for mine in programs.values() for one in mine):
        number_calls(program.graph_module)
        if _is_backend_of_ours(details):
            make_plain(program)
    try:
        results = details.preprocess_multimethod(programs, specs)
    except Exception as error:  # any error of a backend must reach the user
        code, told = Code.NOT_SUPPORTED, f"{type(error).__name__}: {error}"
        if isinstance(error, Error):
            code = error.code
        elif _is_ours(details):
            code, told = Code.INTERNAL, str(internal_error(error))
        raise ExportError(
            f"preprocess failed with {told}\n  it was given {what}",
            code=code,
            where=backend_id,
            sources=getattr(error, "sources", ()),
        ) from error
    fault = fault_of(results, programs)
    if fault is not None:
        raise ExportError(
            f"{fault}; mend the backend {backend_id}\n  it was given {what}",
            code=Code.INVALID_ARGUMENT,
            where=backend_id,
        )
    return {name: list(results[name]) for name in programs}


def lowered_module(
    backend_id: str,
    program: ExportedProgram,
    specs: Sequence[CompileSpec],
    result: PreprocessResult,
) -> LoweredBackendModule:
    """The lowered module of one partition.

    Args:
        backend_id: the backend.
        program: the partition, with flat inputs and outputs or as the user has it.
        specs: its options.
        result: what the backend compiled it to.
    """
    known = backend_class(backend_id)
    module = LoweredBackendModule(
        program,
        backend_id,
        bytes(result.processed_bytes),
        list(specs),
        result.data_store_output,
        0 if known is None else known.overread,
    )
    module.set_places(result.debug_handle_map or {})
    module.meta["notes"] = dict(result.notes)
    module.meta["schemas"] = dict(result.schemas)
    if result._delegate_info_meta is not None:
        module.meta["_delegate_info_meta"] = result._delegate_info_meta
    return module


def _replace(method: _Method, modules: Mapping[Region, LoweredBackendModule]) -> ExportedProgram:
    """The method with its partitions replaced by calls."""
    program = method.program
    if not method.parts():
        return program
    inner: dict[GraphModule, GraphModule] = {}
    for graph in method.graphs:
        lowered = {part.region: (part, modules[part.region]) for part in graph.parts}
        returned: Any = graph.module.graph.output_node().args[0]
        if graph is method.graphs[-1]:
            owned = {name for part in graph.parts for name in part.written}
            returned = _give_away(program.graph_signature, graph.dropped, owned, returned)
        inner[graph.module] = rebuild(
            graph.module, graph.order, lowered, inner, graph.dropped, returned
        )
    program._graph_module = inner[method.graphs[-1].module]
    finish(program)
    return program


def _give_away(
    signature: ExportGraphSignature, dropped: set[Node], buffers: set[str], returned: Sequence[Any]
) -> tuple[Any, ...]:
    """Remove the data that delegates own from a method's signature; returns the outputs left."""
    names = {node.name for node in dropped}
    signature.input_specs[:] = [s for s in signature.input_specs if s.arg.name not in names]
    left = [
        (spec, value)
        for spec, value in zip(signature.output_specs, returned, strict=True)
        if not (spec.kind == OutputKind.BUFFER_MUTATION and spec.target in buffers)
    ]
    signature.output_specs[:] = [spec for spec, _ in left]
    return tuple(value for _, value in left)
