"""Checking a finished program against eager, and finding the first node that departs.

The program runs in the real runtime on the example inputs. If an output is out of tolerance, a
program that quantises is checked fused operator by fused operator (`fused.py`), since roundings
alone may change its results. For any other program the runtime runs instruction by instruction
beside an interpreter of the Edge graph, to find the first node whose value differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight import _core
from rushlight.check import advice
from rushlight.check.eager import (
    as_after_loading,
    clone,
    eager_results,
    flat_inputs,
    placeholder_values,
)
from rushlight.check.fused import Fault, Runs, fault_in_quantised
from rushlight.check.to_run import to_run
from rushlight.check.tolerance import Tolerance, as_array, difference, quantises, tolerance_of
from rushlight.errors import Code, Error, ExportError, LoadError, RunError
from rushlight.ir.branches import attribute
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.recorder import Recorder
from rushlight.ir.source import in_users_code, source_of
from rushlight.lower.check_kernels import operators_of
from rushlight.lower.method import LoweredMethod
from rushlight.pipeline import ExecutorchProgramManager, to_edge
from rushlight.runtime.expression import Expression
from rushlight.runtime.forms import PORTABLE, plan_name
from rushlight.runtime.load import load, load_to_compare
from rushlight.runtime.registries import operator_registry
from rushlight.runtime.stepping import Stepper
from rushlight.schema.source import Source

Lower = Callable[[ExportedProgram], ExecutorchProgramManager]
"""Lowers a captured program for the same backend as the program that is checked."""


def _portable(program: ExportedProgram) -> ExecutorchProgramManager:
    return to_edge(program).to_executorch()


def check_available(method: LoweredMethod) -> None:
    """Check that this runtime can run a method.

    Raises:
        ExportError: names the operators that this runtime has no kernel for.
    """
    absent = sorted(operators_of(method) - operator_registry.operator_names)
    if absent:
        raise ExportError(
            f"this runtime has no kernel for {', '.join(absent)}, so the program cannot be "
            f"compared with eager here: pass verify=False, and test it in the runtime that has",
            code=Code.OPERATOR_MISSING,
            where=method.name,
        )


def check_contracts(manager: ExecutorchProgramManager) -> None:
    """Check that the runtime can test every condition under which the program is right.

    Raises:
        ExportError: names the first condition that it cannot test.
    """
    for method, contract in sorted(manager.contracts.items()):
        conditions = [(r["expr"], r["text"]) for r in contract["relations"]]
        for value in contract["inputs"]:
            sizes = [*value.get("shape", ()), value.get("range", 0)]
            texts = [size["expr"] for size in sizes if isinstance(size, dict) and "expr" in size]
            conditions += [(text, f"a size of {value['name']} that is {text}") for text in texts]
        for expression, text in conditions:
            try:
                Expression(expression)
            except ValueError as error:
                finding = Finding(
                    "not-lowered",
                    f"the program is right only for inputs with {text}, which cannot be tested "
                    f"before a call ({error})",
                    "Write the model so that it does not depend on it",
                )
                raise refusal(finding, where=method) from error


def accepts(
    manager: ExecutorchProgramManager,
    method: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    file: str | bytes | None = None,
) -> bool:
    """Whether the finished program's contract allows these inputs.

    Args:
        manager: the finished program.
        method: the method.
        args, kwargs: the inputs.
        file: what `to_run` gives for the finished program; default: its bytes.
    """
    try:
        # All forms have one contract; the portable one loads without a check of its answer.
        load(file or manager.buffer, backend=PORTABLE, methods=[method])[method].flatten(
            args, kwargs
        )
    except RunError:
        return False
    return True


def check_method(
    manager: ExecutorchProgramManager,
    method: str,
    program: ExportedProgram,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    tolerance: Tolerance | None = None,
    *,
    if_eager_runs: bool = False,
    form: str | None = None,
    lower: Lower = _portable,
    kv_cache: _core.KvCache | None = None,
    file: str | bytes | None = None,
) -> bool:
    """Run one method in the runtime and compare it with eager.

    The results of a program that quantises may depart from eager's, if each fused operator is right
    by itself and roundings explain the difference.

    Args:
        manager: the finished program.
        method: the method to run.
        program: its captured program, which eager runs.
        args, kwargs: the inputs.
        tolerance: the allowed difference; by default `tolerance_of` the program.
        if_eager_runs: do nothing if eager refuses the inputs.
        form: the form of a fat program to check.
        lower: lowers the pieces of a quantised program for the same backend.
        kv_cache: the key-value cache that a language model's method uses; eager uses its active
            `EagerCache`.
        file: what `to_run` gives for the finished program; default: its bytes.

    Returns:
        Whether the results are eager's; False if they depend on how single values are rounded.

    Raises:
        ExportError: if the program fails or departs; names the first node that departs and its
            Python line.
    """
    tolerance = tolerance or tolerance_of(program)
    plan = method if form is None else plan_name(method, form)
    check_available(manager.lowered_method(plan))
    try:
        wanted = eager_results(program, args, kwargs)
    except (RuntimeError, AssertionError, ValueError, IndexError) as error:
        if if_eager_runs:
            return True
        raise refusal(advice.eager_fails(error), where=method) from error
    varies = bool(program.range_constraints)
    try:
        module = load_to_compare(file or manager.buffer, method, form)
    except LoadError as error:
        finding = advice.cannot_load(error, has_varying_sizes=varies)
        raise refusal(finding, code=error.code, where=method) from error
    module[method].set_kv_cache(kv_cache)
    try:
        got = module[method].call_flat(args, kwargs)
    except RunError as error:
        finding = advice.fails(error, _shapes(args, kwargs), has_varying_sizes=varies)
        raise refusal(finding, where=method) from error
    reasons = {
        i: reason
        for i, (ours, eager) in enumerate(zip(got, wanted, strict=True))
        if (reason := difference(ours, eager, tolerance)) is not None
    }
    if not reasons:
        return True
    is_in_pieces = quantises(program)
    if is_in_pieces:
        try:
            fault = fault_in_quantised(program, args, kwargs, got, _running(lower, kv_cache))
        except Error:  # the backend cannot lower the pieces
            is_in_pieces = False
    if not is_in_pieces:
        fault = first_departure(manager, plan, args, kwargs, tolerance, kv_cache, file)
    if fault is not None:
        [(i, reason), *_] = reasons.items()
        raise refusal(advice.departs(i, reason, fault), code=Code.INTERNAL, where=method)
    return False


def _running(lower: Lower, kv_cache: _core.KvCache | None) -> Runs:
    """A function that lowers a program with `lower` and runs it on flat inputs."""

    def run(program: ExportedProgram, flat: Sequence[Any]) -> list[Any]:
        with to_run(lower(program)) as file:
            method = load(file)["forward"]
            method.set_kv_cache(kv_cache)
            return method.call_flat(tuple(flat), {})

    return run


def _shapes(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    values = pytree.tree_leaves((args, dict(kwargs)))
    shown = [list(v.shape) if isinstance(v, torch.Tensor) else v for v in values]
    return f"such as {', '.join(map(str, shown))}"


def first_departure(
    manager: ExecutorchProgramManager,
    method: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    tolerance: Tolerance,
    kv_cache: _core.KvCache | None = None,
    file: str | bytes | None = None,
) -> Fault:
    """The first node whose value departs from the Edge graph's."""
    lowered = manager.lowered_method(method)
    edge = lowered.program
    recorder = Recorder(edge.graph_module, copies=False)
    flat = flat_inputs(edge, args, kwargs)
    with as_after_loading(edge):
        recorder.run(*clone(placeholder_values(edge, flat)))
    nodes = {n.name: n for n in edge.graph.nodes if n.op != "output"}  # these write buffers
    stepper = Stepper(file or manager.buffer, method, flat, kv_cache=kv_cache)
    for instruction in stepper:
        name, outs = manager.instruction_nodes[method].get(instruction, ("", []))
        wanted = recorder.values.get(name) if name in nodes else None
        results = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
        for out, value in zip(outs, results, strict=False):
            if not isinstance(value, torch.Tensor):
                continue
            reason = tolerance.exceeded(as_array(stepper.value(out)), as_array(value))
            if reason is not None:
                node = nodes[name]
                backend = _backend_of(node)
                what = f"a delegate of {backend}" if backend else str(node.target)
                text = f"The first node that departs is {name} ({what}): {reason}"
                source = source_of(node)
                return Fault(text, source if in_users_code(source.file) else Source(), backend)
    text = "No single node departs from the Edge graph: a stage before it changed the result"
    return Fault(text, Source())


def _backend_of(node: Node) -> str:
    """The backend of a node that calls a delegate; "" for any other node."""
    if node.target is not executorch_call_delegate:
        return ""
    return str(getattr(attribute(node.all_input_nodes[0]), "backend_id", ""))
