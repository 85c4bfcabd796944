"""`rushlight.export` and `Program`: from a module to a checked file in one call."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch.export import ExportedProgram

from rushlight.capture import Model, capture
from rushlight.capture.tracing import one_at_a_time
from rushlight.check import Lower, accepts, check_contracts, check_method
from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig, MemoryPlanningPass
from rushlight.errors import Code, ExportError, answers_keywords
from rushlight.forms import (
    Backend,
    Form,
    backends_of,
    check_fallbacks,
    forms_of,
    index,
    join,
    takes_anything,
)
from rushlight.ir.kernels import Manifest, manifest
from rushlight.lower.check_kernels import check_kernels
from rushlight.other_shapes import other_inputs
from rushlight.pipeline import (
    EdgeProgramManager,
    ExecutorchProgramManager,
    to_edge_transform_and_lower,
)
from rushlight.runtime.backends import absent_backends
from rushlight.runtime.forms import KEY, PORTABLE, plan_name

if TYPE_CHECKING:
    from rushlight.inspect.program import ProgramReport
    from rushlight.quantization.workflow import Quantised


class Program:
    """A finished program.

    Attributes:
        manager: the staged API's view of it (`executorch_program`, `debug_handle_map`, …).
        quantization: what the verification of a quantised program found, in words: how much each
            method loses and where.
    """

    def __init__(self, manager: ExecutorchProgramManager, quantization: Sequence[str] = ()) -> None:
        self.manager = manager
        self.quantization = list(quantization)

    @property
    def buffer(self) -> bytes:
        """The bytes of the .pte file."""
        return self.manager.buffer

    @property
    def methods(self) -> list[str]:
        """Names of the methods, traced ones first."""
        return [*sorted(self.manager.methods), *self.manager.config_methods_in_order]

    def save(self, path: str | os.PathLike[str], *, quiet: bool = False) -> None:
        """Write the file (and external data files beside it), and print the report.

        Args:
            path: must end in .pte.
            quiet: print nothing.
        """
        self.manager.save(path)
        if not quiet:
            print(self.report())

    def report(self) -> ProgramReport:
        """What runs where, bytes by kind, the memory plan; prints as a table. It knows the Python
        line of everything, whatever `debug` lets the file tell."""
        from rushlight.inspect.program import report_of

        report = report_of(self.buffer, debug=self.manager.debug_map)
        return dataclasses.replace(report, quantization=self.quantization)

    @property
    def memory(self) -> dict[str, dict[str, int]]:
        """Bytes per method: `arenas` (planned tensors), `constants`, `scratch`, `peak`."""
        from rushlight.inspect.program import memory_of

        return memory_of(self.buffer)


@answers_keywords(
    methods="constant methods are constant_methods={'name': value}; several methods are a mapping "
    "of names to programs, export({'name': program})"
)
@one_at_a_time
def export(
    model: Model | Mapping[str, Model],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    backend: Backend | Sequence[Backend] = PORTABLE,
    quantize: Any = None,
    calibrate: Any = None,
    constant_methods: Mapping[str, Any] | None = None,
    verify: bool = True,
    strict: bool | float = False,
    memory: MemoryPlanningPass | None = None,
    compile_config: EdgeCompileConfig | None = None,
    ops_manifest: str | os.PathLike[str] | None = None,
    debug: str = "lines",
    progress: Callable[[str], None] | None = None,
) -> Program:
    """Turn a model into a program. Threads that call it wait for each other.

    Args:
        model: an `nn.Module`, an `ExportedProgram`, a file that `torch.export.save` wrote (a path
            or an open binary file), or a mapping of method names to the latter two.
        args, kwargs: example inputs of the module; of an `ExportedProgram` its own are used.
        dynamic_shapes: sizes that may vary, as `torch.export.export` takes them.
        backend: where it runs: a name ("portable" is the CPU kernels that every device has), a
            `Partitioner`, or a tuple of several that take their parts in that order. What no
            backend takes stays on the portable kernels. A list makes a fat program with one form
            for each, in order of preference, of which `rushlight.load` chooses one.
        quantize: a recipe that `rushlight recipes` lists, or torchao's `Quantizer`; see
            `rushlight.quantize`. Default: nothing is quantised.
        calibrate: inputs that show the ranges of values, for recipes that need them: an iterable
            of tuples of arguments; of several methods a mapping of their names to such iterables.
        constant_methods: methods without inputs: their names to the values that they return.
        verify: run the program in the runtime on the example inputs (and on another shape, if
            shapes may vary) and compare with eager.
        strict: refuse a program if what the (preferred) backend leaves to the portable kernels
            has more than this share of the estimated cost; True allows 1 %.
        memory: options of the memory planner.
        compile_config: what to keep whole and what to decompose, with which rules.
        ops_manifest: what the runtime has that the program is for, if that is another one than
            this: a file that `rushlight ops --json` or `rushlight_runner --ops` wrote.
        debug: how much the file tells of where it came from, for errors, profiles and reports:
            "lines" keeps that under 2 % of the file or 16 KiB, whichever is more, and leaves
            source text and module paths out first; "full" stores all, "none" nothing.
        progress: called with each stage's name before it starts.

    Returns:
        The checked program.

    Raises:
        ExportError: what cannot be exported, why, the Python line it comes from and what to do.
    """
    say = progress or (lambda stage: None)
    planning = memory or MemoryPlanningPass()
    config = ExecutorchBackendConfig(memory_planning_pass=planning, debug=debug)
    forms = forms_of(backend)
    limit = _limit(strict)
    floats: dict[str, ExportedProgram | None] = {}
    if quantize is not None:
        made_of = _quantized(model, args, kwargs, dynamic_shapes, quantize, calibrate, progress)
        captured = {name: notes.program for name, notes in made_of.items()}
        floats = {name: notes.model for name, notes in made_of.items()}
    elif isinstance(model, Mapping):
        captured = {name: capture(program, name=name) for name, program in model.items()}
    else:
        say("capture")
        captured = {"forward": capture(model, args, kwargs, dynamic_shapes=dynamic_shapes)}
    made = {}
    for form in forms:
        made[form.name] = to_edge_transform_and_lower(
            captured, None, form.partitioners, constant_methods, compile_config, progress=say
        )
        if limit is not None and form is forms[0] and form.partitioners:
            check_fallbacks(made[form.name], limit)
    if len(made) > 1:
        made = _without_empty(made)
    is_fat = len(made) > 1
    edge = join(made) if is_fat else next(iter(made.values()))
    manager = edge.to_executorch(config, progress=say)
    if is_fat:
        manager.add_named_data(KEY, json.dumps(index(made, manager, captured)).encode())
    kernels = manifest() if ops_manifest is None else Manifest.read(ops_manifest)
    check_kernels({name: manager.lowered_method(name) for name in manager.methods}, kernels)
    check_contracts(manager)
    if not verify:
        return Program(manager)
    notes = []
    for name, program in captured.items():
        for form in (f for f in forms if f.name in made):
            notes += _verify(manager, name, program, form, compile_config, is_fat, say)
        notes += _losses(name, floats.get(name), program)
    return Program(manager, notes)


_ROUNDED = (
    "every fused operator computes what eager does, but the results depend on how single values "
    "are rounded"
)


def _losses(name: str, model: ExportedProgram | None, program: ExportedProgram) -> list[str]:
    """The loss of a method by quantization, in words; empty if it is not known."""
    if model is None:
        return []
    from rushlight.quantization.loss import loss_of

    loss = loss_of(model, program)
    return [] if loss is None else [f"{name}: {loss}"]


def _quantized(
    model: Model | Mapping[str, Model],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    recipe: Any,
    calibrate: Any,
    progress: Callable[[str], None] | None,
) -> dict[str, Quantised]:
    """The quantised program of each method."""
    from rushlight.quantization.workflow import quantised_from  # torchao is an extra

    if not isinstance(model, Mapping):
        made = quantised_from(model, args, kwargs, calibrate, recipe, dynamic_shapes, progress)
        return {"forward": made}
    data = calibrate or {}
    if not isinstance(data, Mapping) or not data.keys() <= model.keys():
        raise ExportError(
            f"calibrate must be a mapping of the methods' names, {', '.join(model)}, to their "
            f"inputs",
            code=Code.INVALID_ARGUMENT,
        )
    return {
        name: quantised_from(one, (), None, data.get(name), recipe, None, progress)
        for name, one in model.items()
    }


def _limit(strict: bool | float) -> float | None:
    """The share of the cost that `strict` allows on portable kernels; None for any share."""
    if isinstance(strict, bool):
        return 0.01 if strict else None
    if not isinstance(strict, int | float) or not 0 <= strict <= 1:
        raise ExportError(
            f"strict={strict!r}: give True, False, or a share from 0 to 1",
            code=Code.INVALID_ARGUMENT,
        )
    return float(strict)


def _without_empty(made: dict[str, EdgeProgramManager]) -> dict[str, EdgeProgramManager]:
    """The forms without those in which a backend takes nothing, which would equal "portable"."""
    kept = {n: m for n, m in made.items() if n == PORTABLE or takes_anything(m)}
    for name in made.keys() - kept.keys():
        warnings.warn(
            f"form {name!r} is left out of the program: its backend takes no part of the model",
            UserWarning,
            stacklevel=3,
        )
    return kept


def _lowering(form: Form, config: EdgeCompileConfig | None) -> Lower:
    """A function that lowers a program in the same way as a form of the model."""

    def lower(program: ExportedProgram) -> ExecutorchProgramManager:
        edge = to_edge_transform_and_lower(program, None, form.partitioners, None, config)
        return edge.to_executorch()

    return lower


def _verify(
    manager: ExecutorchProgramManager,
    name: str,
    program: ExportedProgram,
    form: Form,
    config: EdgeCompileConfig | None,
    is_fat: bool,
    say: Callable[[str], None],
) -> list[str]:
    """Check one form of a method; returns notes for the report."""
    say(f"{name}: verify" + (f" {form.name}" if is_fat else ""))
    if program.example_inputs is None:
        raise ExportError(
            "the ExportedProgram has no example inputs to verify with: pass verify=False",
            code=Code.INVALID_ARGUMENT,
            where=name,
        )
    plan = plan_name(name, form.name) if is_fat else name
    absent = absent_backends(backends_of(manager, plan))
    if absent:
        warnings.warn(
            f"{plan} was not compared with eager: backend {', '.join(absent)} does not run here",
            UserWarning,
            stacklevel=3,
        )
        return []
    args, kwargs = program.example_inputs
    chosen, lower = form.name if is_fat else None, _lowering(form, config)
    is_equal = check_method(manager, name, program, args, kwargs, form=chosen, lower=lower)
    for other_args, other_kwargs in other_inputs(program, lambda i: accepts(manager, name, *i)):
        check_method(
            manager, name, program, other_args, other_kwargs,
            if_eager_runs=True, form=chosen, lower=lower,
        )  # fmt: skip
    return [] if is_equal else [f"{plan}: {_ROUNDED}"]
