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
from rushlight.check import Lower, accepts, check_contracts, check_method, lent_cache, to_run
from rushlight.edge import EdgeCompileConfig, ExecutorchBackendConfig, MemoryPlanningPass
from rushlight.edge.config import checked_config
from rushlight.errors import Code, ExportError, answers_keywords
from rushlight.files import AnyPath
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
from rushlight.ir.mapped_weights import large_weights_in_files
from rushlight.lower.check_kernels import check_kernels
from rushlight.other_shapes import other_inputs
from rushlight.pipeline import (
    EdgeProgramManager,
    ExecutorchProgramManager,
    to_edge_transform_and_lower,
)
from rushlight.runtime.backends import absent_backends
from rushlight.runtime.forms import KEY, PORTABLE, plan_name
from rushlight.runtime.registries import lent_kernels, registered_kernels

if TYPE_CHECKING:
    from rushlight.inspect.program import ProgramReport
    from rushlight.quantization.workflow import Quantised


class Program:
    """A finished program. `rushlight.export` makes it.

    Attributes:
        manager: the staged API's view of it (`executorch_program`, `debug_handle_map`, …).
        quantization: sentences about what quantization costs, from the verification of a quantised
            program: the signal-to-noise ratio of each method, in dB, and where the noise arises.
        captured: the captured program of each method, which eager runs; none of those that a
            program was not made of.
    """

    def __init__(
        self,
        manager: ExecutorchProgramManager,
        quantization: Sequence[str] = (),
        captured: Mapping[str, ExportedProgram] | None = None,
    ) -> None:
        self.manager = manager
        self.quantization = list(quantization)
        self.captured = dict(captured or {})

    @property
    def buffer(self) -> bytes:
        """The bytes of the .pte file, without external data. `rushlight.load` takes them."""
        return self.manager.buffer

    @property
    def methods(self) -> list[str]:
        """The names of the methods: traced ones sorted, then constant ones as they were given."""
        return [*sorted(self.manager.methods), *self.manager.config_methods_in_order]

    def save(self, path: str | os.PathLike[str], *, quiet: bool = False) -> None:
        """Write the file, and external data files (.ptd) beside it, and print the report.

        Files are replaced as a whole: modules that were loaded from old ones keep those, and a
        write that fails leaves them.

        Args:
            path: where to; it must end in .pte.
            quiet: print nothing.

        Raises:
            ExportError: the name does not end in .pte, or a file cannot be written.
        """
        self.manager.save(path)
        if not quiet:
            print(self.report())

    def report(self) -> ProgramReport:
        """What runs where, bytes by kind, the memory plan; prints as a table.

        It has the Python line of each operator, however little of that the file has (`debug=`).
        """
        from rushlight.inspect.program import report_of

        report = report_of(self.buffer, debug=self.manager.debug_map)
        return dataclasses.replace(report, quantization=self.quantization)

    @property
    def memory(self) -> dict[str, dict[str, int]]:
        """Bytes that each method takes, by its name.

        `arenas` is planned memory for tensors, `constants` the weights that the method uses,
        `delegates` the payloads of its delegates, `scratch` what backends ask for beside it, `io`
        inputs and outputs that the caller provides, and `peak` the sum of all. With dynamic sizes
        these are the upper bounds.
        """
        from rushlight.inspect.program import memory_of

        return memory_of(self.buffer)


@answers_keywords(
    methods="constant methods are constant_methods={'name': value}; several methods are a mapping "
    "of names to programs, export({'name': program})"
)
@one_at_a_time
@large_weights_in_files()
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
    etrecord: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
    kernels: Sequence[AnyPath] | None = None,
) -> Program:
    """Turn a model into a program, and check that it computes what the model computes.

    Threads that call it wait for each other.

    Args:
        model: an `nn.Module`, best in eval mode; an `ExportedProgram`; a file that
            `torch.export.save` wrote (a path or an open binary file); or a mapping of method names
            to programs and files, which makes one program with several methods.
        args, kwargs: example inputs of an `nn.Module`: positional and keyword arguments, tensors
            and Python numbers in any nesting of tuples, lists and dicts. Dtypes and ranks are fixed
            by them, and so are sizes unless `dynamic_shapes` lets them vary. The others bring their
            own example inputs.
        dynamic_shapes: sizes that may vary, as `torch.export.export` takes them, such as
            `({0: Dim("batch", min=1, max=8)},)`. Each needs a maximum, since memory is planned for
            it.
        backend: where the program runs: a name ("portable" is the CPU kernels that every runtime
            has), a `Partitioner`, or a tuple of several that take their parts in that order. What
            no backend takes stays on the portable kernels. A list makes a fat program with one form
            for each entry, in order of preference, of which `rushlight.load` chooses one.
        quantize: the name of a recipe that `rushlight recipes` lists, a torchao `Quantizer` or a
            configuration of torchao's `quantize_`, as `rushlight.quantize` takes it as `recipe`.
            Default: nothing is quantised.
        calibrate: inputs like the real ones, for recipes that find ranges of values with them, as
            `rushlight.quantize` takes them; with several methods, a mapping of their names to
            such iterables.
        constant_methods: methods without inputs: their names to the values that they return.
        verify: run the program in the runtime on the example inputs (and on other shapes, if
            sizes may vary) and compare its results with eager's.
        strict: refuse a program if the calls that the (preferred) backend leaves to the portable
            kernels have more than this share of the estimated cost, from 0 to 1; True is 0.01,
            False allows any.
        memory: options of the memory planner.
        compile_config: what to keep whole and what to decompose, with which rules.
        ops_manifest: the operators of the runtime that the program is for, if it is not this one:
            a file that `rushlight ops --json` or `rushlight_runner --ops` wrote.
        debug: how much of the map to Python lines, which errors, profiles and reports use, is
            stored in the file: "lines" at most 2 % of the file or 16 KiB, whichever is more, source
            text and module paths being left out first; "full" all of it; "none" nothing.
        etrecord: where to write a record of the export for `rushlight.inspect.Inspector` and for
            ExecuTorch's: the captured and the Edge programs with their weights, and where each
            instruction comes from. Usually NAME.etrecord.
        progress: called with each stage's name before it starts.
        kernels: shared libraries of kernels (`rl_kernel_v1.h`) for operators of your own, as
            `rushlight.load` takes them.

    Returns:
        The program; `save` writes it, `rushlight.load` takes its `buffer`.

    Raises:
        ExportError: the model cannot be exported, or its program does not compute what eager
            computes: why, the Python line that it comes from, and what to do.
        TypeError: an argument that `export` does not take.
    """
    say = progress or (lambda stage: None)
    compile_config = checked_config("compile_config", compile_config, EdgeCompileConfig)
    planning = checked_config("memory", memory, MemoryPlanningPass)
    config = ExecutorchBackendConfig(memory_planning_pass=planning, debug=debug)
    forms = forms_of(backend)
    limit = _limit(strict)
    with lent_kernels(kernels):
        if quantize is not None:
            made_of = _quantized(model, args, kwargs, dynamic_shapes, quantize, calibrate, progress)
            captured = {name: notes.program for name, notes in made_of.items()}
        else:
            say("capture")
            made_of = {}
            captured = _captured(model, args, kwargs, dynamic_shapes)
        made = {}
        for form in forms:
            made[form.name] = to_edge_transform_and_lower(
                *(captured, None, form.partitioners, constant_methods, compile_config),
                generate_etrecord=etrecord is not None,
                progress=say,
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
        notes = []
        _check_kernels(manager, ops_manifest)
        check_contracts(manager)
        for name, program in captured.items() if verify else ():
            for form in (f for f in forms if f.name in made):
                notes += _verify(manager, name, program, form, compile_config, is_fat, say)
            notes += _losses(name, made_of.get(name))
    if etrecord is not None:
        manager.get_etrecord().save(etrecord)
    return Program(manager, notes, captured)


def _check_kernels(
    manager: ExecutorchProgramManager, ops_manifest: str | os.PathLike[str] | None
) -> None:
    """Check that the runtime that the program is for has its kernels; default: this one."""
    if ops_manifest is None:
        kernels = manifest().including(registered_kernels())
    else:
        kernels = Manifest.read(ops_manifest)
    check_kernels({name: manager.lowered_method(name) for name in manager.methods}, kernels)


_ROUNDED = (
    "every fused operator computes what eager does, but the results depend on how single values "
    "are rounded"
)


def _losses(name: str, made: Quantised | None) -> list[str]:
    """The loss of a method by quantization, in words; empty if it is not known."""
    if made is None or made.model is None:
        return []
    from rushlight.quantization.loss import loss_of

    loss = loss_of(made.model, made.program)
    return [] if loss is None else [f"{name}: {loss}"]


def _captured(
    model: Model | Mapping[str, Model],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
) -> dict[str, ExportedProgram]:
    """The captured program of each method."""
    if isinstance(model, Mapping):
        return {name: capture(program, name=name) for name, program in model.items()}
    return {"forward": capture(model, args, kwargs, dynamic_shapes=dynamic_shapes)}


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
    with to_run(manager) as file:
        with lent_cache(program, args, kwargs) as cache:
            is_equal = check_method(
                manager, name, program, args, kwargs,
                form=chosen, lower=lower, kv_cache=cache, file=file,
            )  # fmt: skip
        others = other_inputs(program, lambda i: accepts(manager, name, *i, file))
        for other_args, other_kwargs in others:
            with lent_cache(program, other_args, other_kwargs) as cache:
                check_method(
                    manager, name, program, other_args, other_kwargs,
                    if_eager_runs=True, form=chosen, lower=lower, kv_cache=cache, file=file,
                )  # fmt: skip
    return [] if is_equal else [f"{plan}: {_ROUNDED}"]
