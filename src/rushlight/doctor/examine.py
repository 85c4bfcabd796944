"""Every blocker of a model in one run, each with its line and a rewrite.

If torch.export stops at a first blocker, a draft export continues with the example's values; if
that stops too, every part of the model is captured by itself. Captured programs are lowered as far
as possible, and all operators and dtypes that the runtime lacks are listed together.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch._dynamo
import torch.utils._pytree as pytree
from torch._logging.structured import INTERN_TABLE
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.export._draft_export import FailureType
from torch.fx import Graph, Node

from rushlight.capture.contract import contract_of, input_places
from rushlight.capture.diagnose import (
    Attempt,
    data_dependent,
    diagnose,
    graph_break,
    missing_fake,
    specialised_sizes,
)
from rushlight.capture.lines import is_users
from rushlight.capture.mutations import refused_writes
from rushlight.capture.tracing import tracing
from rushlight.check import check_contracts, check_method
from rushlight.doctor.graphs import Captured, in_model, with_modules
from rushlight.edge import EdgeCompileConfig, to_edge_dialect
from rushlight.errors import REPORT_IT, Error, ExportError, LoadError
from rushlight.ir.bounds import Bounds
from rushlight.ir.branches import branches
from rushlight.ir.dialect import EDGE
from rushlight.ir.findings import OTHER_OPERATORS, Finding, distinct
from rushlight.ir.kernels import manifest
from rushlight.ir.operators import SCALAR_RESULTS, kernel_name, out_variant
from rushlight.ir.quiet import deep_copy
from rushlight.ir.source import in_users_code, source_of
from rushlight.ir.spec import SCALAR_TYPES
from rushlight.lower.check_kernels import check_kernels, missing_advice
from rushlight.lower.specs import unsupported_dtype
from rushlight.pipeline import to_edge
from rushlight.runtime.contract import make_contract
from rushlight.runtime.load import load
from rushlight.runtime.registries import operator_registry
from rushlight.runtime.signature import Signature
from rushlight.schema.source import Source

Calls = dict[torch.nn.Module, tuple[tuple[Any, ...], dict[str, Any]]]


@dataclass(frozen=True)
class Diagnosis:
    """The result of an examination.

    Attributes:
        findings: blockers first, then warnings.
        signature: the inputs and results with their ranges; "" if the model was not captured.
        graphs: what could be captured: the model, or a draft of it, or its parts.
    """

    findings: list[Finding] = field(default_factory=list)
    signature: str = ""
    graphs: list[Captured] = field(default_factory=list)

    @property
    def blockers(self) -> list[Finding]:
        """The findings that keep the model from being exported."""
        return [f for f in self.findings if f.blocks]

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as JSON."""
        return {
            "exports": not self.blockers,
            "signature": self.signature,
            "findings": [f.to_json() for f in self.findings],
        }


def examine(
    model: torch.nn.Module | ExportedProgram,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
) -> Diagnosis:
    """Find everything that keeps a model from being exported; the model is not changed.

    Args:
        model: a module, or a program that was captured before.
        args, kwargs: example inputs of a module.
        dynamic_shapes: as `torch.export.export` takes it.
    """
    graphs: list[Captured] = []
    with _quiet():
        if isinstance(model, ExportedProgram):
            return _result(_of_program(Captured(model), graphs), model, graphs)
        attempt = Attempt(model, args, dict(kwargs or {}), dynamic_shapes)
        findings = _python_state(attempt)
        try:
            program = _export(attempt)
        except Exception as error:  # torch raises many kinds
            findings = distinct(findings + _beyond(error, attempt, graphs))
            return Diagnosis(with_modules(findings, graphs), "", graphs)
        findings += specialised_sizes(attempt, program)
        findings += _of_program(Captured(program), graphs)
        return _result(findings, program, graphs)


def _export(attempt: Attempt) -> ExportedProgram:
    with tracing():
        return torch.export.export(
            attempt.model,
            attempt.args,
            dict(attempt.kwargs),
            dynamic_shapes=attempt.dynamic_shapes,
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """While active, suppresses the model's output, and torch's warnings and logs, which findings
    replace."""
    logger = logging.getLogger("torch")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    sink = io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(sink),
            contextlib.redirect_stderr(sink),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _result(findings: list[Finding], program: ExportedProgram, graphs: list[Captured]) -> Diagnosis:
    findings = distinct(findings)
    blocked = any(f.blocks for f in findings)
    return Diagnosis(findings, "" if blocked else _signature(program), graphs)


def _signature(program: ExportedProgram) -> str:
    contract = contract_of(program)
    metas = {
        key: [
            {"kind": "none" if v["kind"] == "str" else v["kind"], **_meta(v)} for v in contract[key]
        ]
        for key in ("inputs", "outputs")
    }
    try:
        return repr(Signature.of("forward", make_contract("forward", contract, metas)))
    except LoadError:
        return ""


def _meta(value: Mapping[str, Any]) -> dict[str, Any]:
    if value["kind"] != "tensor":
        return {}
    return {"dtype": value["dtype"], "sizes": value["shape"]}


# Beyond the first error of torch.export.


def _beyond(error: Exception, attempt: Attempt, graphs: list[Captured]) -> list[Finding]:
    """The findings of the error, and those of code after it; adds what could be captured."""
    findings = diagnose(error, attempt)
    if any(f.kind in ("model-fails", "wrong-dynamic-shapes") for f in findings):
        return findings
    behind, whole = _behind(attempt, _calls(attempt), graphs, part="")
    findings += behind
    if not whole:
        known = {(f.source.file, f.source.line) for f in findings}
        breaks = _graph_breaks(attempt)
        findings += [f for f in breaks if (f.source.file, f.source.line) not in known]
    return findings


def _behind(
    attempt: Attempt, calls: Calls, graphs: list[Captured], part: str
) -> tuple[list[Finding], bool]:
    """(findings of a draft export, True), or (findings of the parts, False) if that fails, too."""
    try:
        with tracing():
            draft = torch.export.draft_export(
                deep_copy(attempt.model),
                attempt.args,
                dict(attempt.kwargs),
                dynamic_shapes=attempt.dynamic_shapes,
            )
    except Exception as error:
        children = _of_children(attempt.model, calls, graphs, part)
        return [*_of_part(diagnose(error, attempt), part), *children], False
    return [
        *_of_part(_draft_findings(getattr(draft, "_report", None)), part),
        *_of_program(Captured(draft, part, is_draft=True), graphs),
    ], True


def _of_children(
    module: torch.nn.Module, calls: Calls, graphs: list[Captured], part: str
) -> list[Finding]:
    """The findings of every part of a module, each captured by itself on the inputs it got."""
    findings: list[Finding] = []
    for name, child in module.named_children():
        path = f"{part}.{name}" if part else name
        if child not in calls:  # a list of modules, or one that is not used
            findings += _of_children(child, calls, graphs, path)
            continue
        attempt = Attempt(child, *calls[child])
        try:
            findings += _of_program(Captured(_export(attempt), path), graphs)
        except Exception as error:
            found = [f for f in diagnose(error, attempt) if f.kind != "wrong-dynamic-shapes"]
            findings += _of_part(found, path)
            findings += _behind(attempt, calls, graphs, path)[0]
    return findings


def _of_part(findings: Iterable[Finding], part: str) -> list[Finding]:
    """The findings of a part that was captured by itself, with their places in the model."""
    return [replace(f, source=in_model(f.source, part)) for f in findings]


def _calls(attempt: Attempt) -> Calls:
    """The arguments of the first call of every part of the model, in an eager run."""
    calls: Calls = {}
    twin = deep_copy(attempt.model)
    originals = dict(zip(twin.modules(), attempt.model.modules(), strict=True))

    def record(module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        calls.setdefault(originals[module], deep_copy((args, kwargs)))

    for module in twin.modules():
        module.register_forward_pre_hook(record, with_kwargs=True)
    args, kwargs = deep_copy((attempt.args, dict(attempt.kwargs)))
    with contextlib.suppress(Exception), torch.no_grad():
        twin(*args, **kwargs)
    return calls


def _draft_findings(report: Any) -> Iterator[Finding]:
    """The failures that a draft export ignored, except guards, which torch.export has reported."""
    files = {number: name for name, number in INTERN_TABLE.items()}
    for failure in report.failures if report is not None else ():
        data = failure.data
        if failure.failure_type == FailureType.DATA_DEPENDENT_ERROR:
            source = _stack_line(data, files)
            yield data_dependent(str(data["expr"]), source, False, "")
        elif failure.failure_type == FailureType.MISSING_FAKE_KERNEL:
            yield missing_fake(str(data["op"]), Source(), "")


def _stack_line(data: Mapping[str, Any], files: Mapping[int, str]) -> Source:
    for frames in (data.get("user_stack") or [], data.get("stack") or []):
        for frame in reversed(frames):
            name = files.get(frame["filename"], str(frame["filename"]))
            if is_users(name):
                loc = str(frame.get("loc") or "")
                return Source(name, int(frame["line"]), str(frame["name"]), loc)
    return Source()


def _graph_breaks(attempt: Attempt) -> list[Finding]:
    """The lines where torch.compile would leave the graph."""
    try:
        with torch.no_grad():
            explained = torch._dynamo.explain(deep_copy(attempt.model))(
                *attempt.args, **attempt.kwargs
            )
    except Exception:
        return []
    finally:
        torch._dynamo.reset()
    findings = []
    for reason in explained.break_reasons:
        frames = [f for f in reason.user_stack or [] if in_users_code(f.filename)]
        if not frames:
            continue
        last = frames[-1]
        function = re.sub(r"^torch_dynamo_resume_in_(\w+?)_at_\d+$", r"\1", last.name)
        source = Source(last.filename, last.lineno or 0, function, last.line or "")
        text = str(reason.reason).strip().splitlines()[0]
        findings.append(graph_break(text, source, str(reason.reason)))
    return findings


def _python_state(attempt: Attempt) -> list[Finding]:
    """Attributes of modules that one call changes; a program keeps their values at export."""
    model = deep_copy(attempt.model)
    before = {name: _plain(m) for name, m in model.named_modules()}
    try:
        with torch.no_grad():
            inputs = deep_copy((attempt.args, dict(attempt.kwargs)))
            model(*inputs[0], **inputs[1])
    except Exception:  # the capture will report it
        return []
    findings = []
    for name, module in model.named_modules():
        old = before.get(name, {})
        for key, value in _plain(module).items():
            if key in old and repr(old[key]) == repr(value):
                continue
            path = f"{name}.{key}" if name else key
            findings.append(_changed(path, old.get(key), value))
    return findings


@dataclass(frozen=True)
class _Container:
    """The kind and length of a list, dict or set."""

    kind: str
    length: int


def _changed(path: str, old: Any, value: Any) -> Finding:
    """The finding for an attribute that a call changes."""
    what = f"changes the attribute {path} from {old!r} to {value!r}"
    key = path.rpartition(".")[2]
    advice = (
        f'Keep it in a buffer: self.register_buffer("{key}", torch.tensor(...)), and write it in '
        f"place"
    )
    if isinstance(value, str):
        advice = "Decide by an input of the model, or make a method of the program for each case"
    if isinstance(value, _Container):
        before = old.length if isinstance(old, _Container) else 0
        what = f"changes the {value.kind} {path}, from {before} items to {value.length}"
        advice = (
            f'Keep what it holds in a buffer of fixed size, self.register_buffer("{key}", '
            f"torch.zeros(...)), that is written in place, or return it and pass it back"
        )
    told = f"forward {what}, and a program keeps what it was at export"
    return Finding("python-state", told, advice, blocks=False)


def _plain(module: torch.nn.Module) -> dict[str, Any]:
    kept = {k: v for k, v in vars(module).items() if not k.startswith("_")}
    plain = {k: v for k, v in kept.items() if isinstance(v, bool | int | float | str)}
    held = {k: v for k, v in kept.items() if isinstance(v, list | dict | set)}
    return {**plain, **{k: _Container(type(v).__name__, len(v)) for k, v in held.items()}}


# The findings of a captured program.


def _of_program(captured: Captured, graphs: list[Captured]) -> list[Finding]:
    """The findings of a captured program, which is added to the graphs.

    Args:
        captured: of the ATen dialect. The sizes of a draft are not the model's, nor are the inputs
            of a part.
        graphs: gets it, as an Edge program where it could become one.
    """
    program, part = captured.program, captured.part
    is_whole = not part and not captured.is_draft
    findings = [] if part else refused_writes(program)
    if is_whole:
        findings += _missing_bounds(program)
    config = EdgeCompileConfig(_check_ir_validity=False)
    try:
        edge = to_edge_dialect(program, config)
    except Exception as error:
        graphs.append(captured)
        if is_whole and not findings:
            findings += _not_lowered(error)
        return findings
    graphs.append(replace(captured, program=edge))
    for graph in (edge.graph, *(module.graph for module in branches(edge.graph_module))):
        findings += _unsupported(graph)
    if is_whole and not any(f.blocks for f in findings):
        try:
            _check(program)
        except Error as error:
            findings += _not_lowered(error)
    return _of_part(findings, part)


def _check(program: ExportedProgram) -> None:
    """Lower the program and run it on its example inputs, as an export does."""
    manager = to_edge(program).to_executorch()
    check_kernels({name: manager.lowered_method(name) for name in manager.methods}, manifest())
    check_contracts(manager)
    if program.example_inputs is None:
        load(manager.buffer)
    else:
        check_method(manager, "forward", program, *program.example_inputs)


def _not_lowered(error: Exception) -> list[Finding]:
    if isinstance(error, ExportError) and error.findings:
        return list(error.findings)
    places = error.sources if isinstance(error, ExportError) else []
    return [
        Finding(
            "not-lowered",
            f"no program can be made of it: {' '.join(_told(error).split())}",
            "Do what the message says"
            if isinstance(error, Error)
            else f"This is an error of Rushlight itself: {REPORT_IT}",
            places[0] if places else Source(),
        )
    ]


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"


def _missing_bounds(program: ExportedProgram) -> list[Finding]:
    """The sizes of inputs without a maximum, or the first of a computed value."""
    bounds = Bounds.of(program)

    def unbounded(size: Any) -> bool:
        return isinstance(size, torch.SymInt) and bounds.interval(size)[1] is None

    findings = [
        bounds.unbounded(place.size, place.text)
        for place in input_places(program)
        if "size" in place.text and unbounded(place.size)
    ]
    if findings:
        return findings
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for d, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if unbounded(size):
                return [bounds.unbounded(size, f"size {d} of {node.name}", node)]
    return []


def _unsupported(graph: Graph) -> list[Finding]:
    """All operators without a kernel, and all dtypes that a program cannot hold."""
    have = operator_registry.operator_names
    findings = []
    for node in graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor) and value.dtype not in SCALAR_TYPES:
                findings.append(unsupported_dtype(node, value.dtype))
        for reason, advice in _missing_kernel(node, have):
            stack = str(node.meta.get("stack_trace") or "").strip()
            findings.append(
                Finding("unsupported-operator", reason, advice, source_of(node), stack=stack)
            )
    return findings


def _missing_kernel(node: Node, have: Any) -> Iterator[tuple[str, str]]:
    """Why no kernel runs a call, and what to do, if none does."""
    target = node.target
    if node.op != "call_function" or isinstance(target, HigherOrderOperator):
        return
    schemas = {}
    if isinstance(target, OpOverload):
        variant = target if target in SCALAR_RESULTS else out_variant(target)
        if variant is None and target._schema.returns:
            yield f"{target} has no out-variant, so no kernel can run it", OTHER_OPERATORS
            return
        target = variant or target
        schemas = {kernel_name(target) or "": str(target._schema)}
    name = kernel_name(target)
    fault = EDGE.fault(node) if name is None else None
    if fault is not None:
        yield fault, OTHER_OPERATORS
    elif name is not None and name not in have:
        yield f"the runtime has no kernel for {name}", missing_advice(name, schemas)
