"""Checking a finished program against eager, and finding the first node that departs.

The program runs in the real runtime on the example inputs. If an output is out of tolerance, the
runtime is stepped instruction by instruction beside an interpreter of the Edge graph, which names
the first node whose value differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export._tree_utils import reorder_kwargs
from torch.export.graph_signature import InputKind
from torch.fx import Interpreter, Node

from rushlight.errors import Code, ExportError, LoadError, RunError
from rushlight.ir.findings import Finding, refusal
from rushlight.ir.source import Source, source_of
from rushlight.lower.check_kernels import operators_of
from rushlight.lower.method import LoweredMethod
from rushlight.pipeline import ExecutorchProgramManager
from rushlight.runtime.expression import Expression
from rushlight.runtime.forms import PORTABLE, plan_name
from rushlight.runtime.load import load
from rushlight.runtime.registries import operator_registry
from rushlight.runtime.stepping import Stepper


@dataclass(frozen=True)
class Tolerance:
    """Largest allowed difference: absolute, and relative to the largest magnitude of the value.

    Integers may differ by `steps`.
    """

    absolute: float = 1e-5
    relative: float = 1e-4
    steps: int = 0

    def exceeded(self, got: np.ndarray, wanted: np.ndarray) -> str | None:
        """Why `got` is not `wanted`, or None."""
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            return (
                f"it is {got.dtype}{list(got.shape)}, eager gives "
                f"{wanted.dtype}{list(wanted.shape)}"
            )
        if not np.issubdtype(wanted.dtype, np.inexact):
            different = got != wanted
            if self.steps and wanted.dtype != np.bool_:
                different = np.abs(got.astype(np.int64) - wanted.astype(np.int64)) > self.steps
            wrong = int(different.sum())
            return f"{wrong} of {wanted.size} values differ" if wrong else None
        finite = np.isfinite(wanted)
        with np.errstate(invalid="ignore"):
            same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        if not same[~finite].all():
            return "its NaN or infinite values are not eager's"
        if not finite.any():
            return None
        difference = float(np.abs(got[finite] - wanted[finite]).max())
        allowed = self.absolute + self.relative * float(np.abs(wanted[finite]).max())
        if difference <= allowed:
            return None
        return f"it differs by up to {difference:.3g}, allowed is {allowed:.3g}"


# Of the largest value: some steps of the last bit of half precisions, which sums in another order
# round otherwise, and some of 8 bits, of which one that is rounded otherwise moves all behind it.
_RELATIVE = {torch.float16: 1e-2, torch.bfloat16: 5e-2}
_QUANTISED = Tolerance(relative=5e-2, steps=2)


def tolerance_of(program: ExportedProgram) -> Tolerance:
    """What counts as equal for `program`, by the coarsest numbers that it computes with."""
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    if any(".quantize_" in str(n.target) for n in calls):
        return _QUANTISED
    dtypes = {getattr(n.meta.get("val"), "dtype", None) for n in calls}
    coarse = [relative for dtype, relative in _RELATIVE.items() if dtype in dtypes]
    return Tolerance(relative=max(coarse)) if coarse else Tolerance()


def check_available(method: LoweredMethod) -> None:
    """Check that a method can be run here, to be verified.

    Raises:
        ExportError: naming the operators that this runtime has no kernel for.
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
        ExportError: naming the first that it cannot.
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
) -> bool:
    """Whether the finished program's contract allows these inputs."""
    try:
        # All forms have one contract; the portable one loads without a check of its answer.
        load(manager.buffer, backend=PORTABLE, methods=[method])[method].flatten(args, kwargs)
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
) -> None:
    """Run one method in the runtime and compare it with eager.

    Args:
        manager: the finished program.
        method: the method to run.
        program: its captured program, which gives eager's results.
        args, kwargs: the inputs.
        tolerance: what counts as equal; by default `tolerance_of` the program.
        if_eager_runs: do nothing where eager refuses the inputs.
        form: which form of a fat program.

    Raises:
        ExportError: if the program fails, or naming the first node whose value departs, with its
            Python line.
    """
    tolerance = tolerance or tolerance_of(program)
    plan = method if form is None else plan_name(method, form)
    check_available(manager.lowered_method(plan))
    try:
        wanted = eager_results(program, args, kwargs)
    except (RuntimeError, AssertionError, ValueError, IndexError) as error:
        if if_eager_runs:
            return
        raise refusal(_eager_fails(error), where=method) from error
    try:
        module = load(manager.buffer, backend=form)
    except LoadError as error:
        raise refusal(
            Finding(
                "not-lowered",
                f"the program cannot be loaded here: {error}",
                "Lower the max of sizes that vary, or pass verify=False to make it for another "
                "machine",
            ),
            code=error.code,
            where=method,
        ) from error
    try:
        got = module[method].call_flat(args, kwargs)
    except RunError as error:
        raise refusal(
            Finding(
                "not-lowered",
                f"the program fails on inputs that eager takes, {_shapes(args, kwargs)}: {error}",
                "Rewrite the line that it names, or leave out such sizes with the min and max of "
                "their Dim in dynamic_shapes",
            ),
            where=method,
        ) from error
    for i, (ours, eager) in enumerate(zip(got, wanted, strict=True)):
        reason = _compare(ours, eager, tolerance)
        if reason is not None:
            first, source = first_departure(manager, plan, args, kwargs, tolerance)
            finding = Finding(
                "not-lowered",
                f"the program does not compute what eager does: output {i}: {reason}. {first}",
                "Write the line with other operators" if source.file else "Rewrite the model",
                source,
            )
            raise refusal(finding, code=Code.INTERNAL, where=method)


def _eager_fails(error: Exception) -> Finding:
    return Finding(
        "model-fails",
        f"the model itself fails on the example inputs: {type(error).__name__}: "
        f"{' '.join(str(error).split())}",
        "Give example inputs that it takes, or pass verify=False",
    )


def eager_results(
    program: ExportedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """What eager gives, flattened; the program's buffers, which are the model's, stay as they are.

    Raises:
        whatever the model raises on these inputs.
    """
    # A captured graph writes buffers in place, which its signature does not tell.
    held = {**program.constants, **program.state_dict}  # buffers that are not saved are the former
    before = [(held[name], held[name].clone()) for name in program.graph_signature.buffers]
    try:
        with torch.no_grad(), _freshly_seeded():
            # Not `program.module()`, which takes time quadratic in inputs and parameters.
            given = _placeholder_values(program, _clone(_flat_inputs(program, args, kwargs)))
            found = Interpreter(program.graph_module).run(*given)
            return list(_clone(found))  # a result may be a view of a buffer
    finally:
        with torch.no_grad():
            for buffer, value in before:
                buffer.copy_(value)


@contextmanager
def _freshly_seeded() -> Iterator[None]:
    """Eager's generator as a program's is after loading; the caller's state comes back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch.Generator().initial_seed())
        yield


def _shapes(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    values = pytree.tree_leaves((args, dict(kwargs)))
    shown = [list(v.shape) if isinstance(v, torch.Tensor) else v for v in values]
    return f"such as {', '.join(map(str, shown))}"


def _clone(tree: Any) -> Any:
    return pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, tree)


def _compare(ours: Any, eager: Any, tolerance: Tolerance) -> str | None:
    if isinstance(eager, torch.Tensor | float):
        return tolerance.exceeded(_numpy(ours), _numpy(eager))
    return None if ours == eager else f"it is {ours!r}, eager gives {eager!r}"


def _numpy(value: Any) -> np.ndarray:
    """As an array; the half precisions as float32, which holds them exactly."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        half = value.dtype in (torch.bfloat16, torch.float16)
        return (value.float() if half else value).numpy()  # type: ignore[no-any-return]
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name in ("float16", "bfloat16") else array


class _Recorder(Interpreter):
    """Runs an Edge graph and keeps every node's value."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__(program.graph_module, garbage_collect_values=False)
        self.values: dict[str, Any] = {}

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        self.values[n.name] = result
        return result


def first_departure(
    manager: ExecutorchProgramManager,
    method: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    tolerance: Tolerance,
) -> tuple[str, Source]:
    """A sentence that names the first node whose value departs from the Edge graph's; its line."""
    lowered = manager.lowered_method(method)
    edge = lowered.program
    recorder = _Recorder(edge)
    flat = pytree.tree_leaves((args, dict(kwargs)))
    with torch.no_grad(), _freshly_seeded():
        recorder.run(*_clone(_placeholder_values(edge, flat)))
    nodes = {n.name: n for n in edge.graph.nodes if n.op != "output"}  # these write buffers
    stepper = Stepper(manager.buffer, method, flat)
    for instruction in stepper:
        name, outs = manager.instruction_nodes[method].get(instruction, ("", []))
        wanted = recorder.values.get(name) if name in nodes else None
        results = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
        for out, value in zip(outs, results, strict=False):
            if not isinstance(value, torch.Tensor):
                continue
            reason = tolerance.exceeded(_numpy(stepper.value(out)), _numpy(value))
            if reason is not None:
                node = nodes[name]
                text = f"The first node that departs is {name} ({node.target}): {reason}"
                return text, source_of(node)
    text = "No single node departs from the Edge graph: a stage before it changed the result"
    return text, Source()


def _placeholder_values(program: ExportedProgram, flat: list[Any]) -> list[Any]:
    """A value for every placeholder of a program's graph, in order."""
    user = iter(flat)
    held = {**program.constants, **program.state_dict}
    return [
        next(user) if spec.kind == InputKind.USER_INPUT else held[str(spec.target)]
        for spec in program.graph_signature.input_specs
    ]


def _flat_inputs(
    program: ExportedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """The inputs in the order of the graph's placeholders.

    Raises:
        ValueError: if they are not arranged as the model's.
    """
    wanted = program.call_spec.in_spec
    flat, spec = pytree.tree_flatten((tuple(args), reorder_kwargs(dict(kwargs), wanted)))
    if spec != wanted:
        raise ValueError(f"the inputs are arranged as {spec}, the model takes {wanted}")
    return flat
