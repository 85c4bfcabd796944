"""Runs the methods of two programs that `rushlight diff` compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rushlight.cli.inputs import complete, read_inputs
from rushlight.errors import Code, Error, LoadError, RunError

if TYPE_CHECKING:
    from rushlight.inspect.diff.model import MethodDiff, RunDiff
    from rushlight.llm.runner import Runner
    from rushlight.runtime.contract import Value
    from rushlight.runtime.module import Method, Module

_BUNDLE = ".bpte"
_Known = Mapping[int, Any]  # inputs by position


class Runs:
    """Both programs, and the inputs that their methods are run on.

    Args:
        files: the programs.
        data: the data files, none, one for both or one for each.
        form: of fat programs.
        threads: as for `rushlight.load`.
        inputs: `--input` options; a bundled program among them has test cases, whose inputs are
            taken. Without one, the cases of the programs themselves are.
        seed: of inputs that are made up.
        repeat: how often each is timed.

    Raises:
        LoadError: a bundled program cannot be read.
        RunError: there are more data files than programs.
    """

    def __init__(
        self,
        files: Sequence[Path],
        data: Sequence[str],
        form: str | None,
        threads: int | None,
        inputs: Sequence[str],
        seed: int,
        repeat: int,
    ) -> None:
        from rushlight.bundled.bundle import load_bundle

        if len(data) > 2:
            raise RunError(
                f"--data is given {len(data)} times: give it once for both programs, or twice",
                code=Code.INVALID_ARGUMENT,
            )
        of_each = [*data, *data][:2] if data else [None, None]
        self._programs = [
            _Program(file, one, form, threads) for file, one in zip(files, of_each, strict=True)
        ]
        self._options = [option for option in inputs if not option.endswith(_BUNDLE)]
        bundles = [option for option in inputs if option.endswith(_BUNDLE)]
        if not inputs:
            bundles = [str(file) for file in files if file.suffix == _BUNDLE]
        self._bundles = [load_bundle(path) for path in bundles]
        self._seed, self._repeat = seed, repeat

    def of(self, method: MethodDiff) -> RunDiff:
        """Both programs' runs of a method; what fails is told in a note.

        Raises:
            RunError: an input that was given cannot be read, or is none of the first program's.
        """
        from rushlight.inspect.diff.model import RunDiff
        from rushlight.llm.compare_runs import METHODS

        refused = [program.refused for program in self._programs if program.refused]
        if refused:
            return RunDiff(note="; ".join(refused))
        if method.name in METHODS and all(p.is_language_model for p in self._programs):
            return self._language_model(method.name)
        cases = list(self._cases(method)) or [("", self._read(method))]
        runs: list[RunDiff] = []
        for case, known in cases:
            is_timed = not any(run.latency for run in runs) and bool(method.operators)
            runs.append(self._run(method, case, known, self._repeat if is_timed else 0))
        return _joined(runs)

    def _language_model(self, method: str) -> RunDiff:
        from rushlight.inspect.diff.model import RunDiff
        from rushlight.llm.compare_runs import compare_runs

        [contract, _] = [p.module[method].contract for p in self._programs if p.module]
        tokens = _tokens_of(read_inputs(self._options, contract.inputs), contract.inputs)
        try:
            before, after = (program.runner() for program in self._programs)
            return compare_runs(before, after, method, tokens, self._repeat)
        except Error as error:
            return RunDiff(note=f"a run failed: {error}")

    def _methods(self, method: MethodDiff) -> list[Method]:
        names = method.name, method.after_name
        modules = [program.module for program in self._programs if program.module is not None]
        return [module[name] for module, name in zip(modules, names, strict=True)]

    def _read(self, method: MethodDiff) -> _Known:
        return read_inputs(self._options, self._methods(method)[0].contract.inputs)

    def _cases(self, method: MethodDiff) -> Iterator[tuple[str, _Known]]:
        """The test cases of the first bundled program that has some of the method: their names and
        inputs."""
        from rushlight.runtime.arrays import value_of

        for bundle in self._bundles:
            names = [name for name in bundle.methods if name in (method.name, method.after_name)]
            for index, case in enumerate(bundle.cases_in_file(names[0]) if names else []):
                name = case.notes.name if case.notes is not None else ""
                values = (value_of(value) for value in case.inputs)
                known = {i: value for i, value in enumerate(values) if value is not None}
                yield f"case {name or index}", known
            if names:
                return

    def _run(self, method: MethodDiff, case: str, known: _Known, repeat: int) -> RunDiff:
        """Both programs on the same inputs; those of a test case as if they were just loaded."""
        from rushlight.inspect.diff.model import OutputDiff, RunDiff
        from rushlight.inspect.diff.runs import Side, run_both

        names = method.name, method.after_name
        start = f"{case}: " if case else ""
        # A test case that fails is an output that cannot be compared, which breaks rules.
        failed = [OutputDiff(case, "", "")] if case else []
        try:
            flat = _inputs(self._methods(method), known, self._seed)
            sides = []
            for program, name, values in zip(self._programs, names, flat, strict=True):
                assert program.module is not None
                module = program.module.clone() if case else program.module
                sides.append(Side(program.file, module, partial(program.load, True), name, values))
            made = run_both(sides[0], sides[1], repeat)
        except _NoInputsError as error:
            return RunDiff(note=f"{start}{error}", outputs=failed)
        except Error as error:
            return RunDiff(note=f"{start}a run failed: {error}", outputs=failed)
        if case:
            made.outputs = [replace(one, name=f"{case}: {one.name}") for one in made.outputs]
        return made


def _joined(runs: Sequence[RunDiff]) -> RunDiff:
    """The runs of all test cases; the time is that of the first which ran."""
    first = next((run for run in runs if run.latency is not None), runs[0])
    if len(runs) > 1:
        first.inputs = f"{first.inputs}, and those of {len(runs) - 1} more test case(s)"
    first.outputs = [output for run in runs for output in run.outputs]
    first.note = "; ".join(run.note for run in runs if run.note)
    return first


class _NoInputsError(Error):
    """No inputs that both programs take were found."""


class _Program:
    """One of the programs that run.

    Attributes:
        file: its path.
        module: the program, loaded; None if it cannot be.
        refused: why it cannot be loaded; "" if it can.
        is_language_model: whether the runner of language models runs it.
    """

    def __init__(self, file: Path, data: str | None, form: str | None, threads: int | None) -> None:
        from rushlight.inspect import report_of
        from rushlight.llm.description import KEY

        self.file = file
        report = report_of(file)
        self._data, self._threads = data, threads
        self._form = form if report.forms else None
        self.is_language_model = any(entry.key == KEY for entry in report.named_data)
        self.module: Module | None = None
        self.refused = ""
        try:
            self.module = self.load()
        except LoadError as error:
            self.refused = f"it cannot be loaded: {error}"

    def load(self, trace: bool = False) -> Module:
        """The program, loaded anew.

        Raises:
            LoadError: it cannot be loaded here.
        """
        from rushlight.runtime.load import load

        return load(
            self.file, backend=self._form, data=self._data, threads=self._threads, trace=trace
        )

    def runner(self) -> Runner:
        """The language model, loaded by its runner.

        Raises:
            LoadError: it cannot be loaded here.
        """
        from rushlight.llm.loading import load

        return load(self.file, threads=self._threads)


def _tokens_of(inputs: _Known, values: Sequence[Value]) -> list[int] | None:
    """The tokens that were given for a language model.

    Raises:
        RunError: something else was given, too.
    """
    others = [values[i].name for i in inputs if i > 0]
    if others:
        raise RunError(
            f"--input {others[0]}: the runner of language models makes all inputs but the tokens; "
            f"give {values[0].name} alone",
            code=Code.INVALID_ARGUMENT,
        )
    if not inputs:
        return None
    from rushlight.llm.options import read_tokens

    return read_tokens(f"--input {values[0].name}", inputs[0])


def _inputs(methods: Sequence[Method], known: _Known, seed: int) -> list[list[Any]]:
    """Flattened inputs for both programs.

    Args:
        methods: of both.
        known: the inputs that are given.
        seed: for the others.

    Raises:
        _NoInputsError: no inputs that both take were found.
    """
    refused: list[str] = []
    for first, second in (methods, reversed(methods)):
        try:
            flat = complete(first, dict(known), random=True, seed=seed)
            _check(first, flat)
            fitted = _fitted(second, flat)
        except RunError as error:
            refused.append(str(error))
            continue
        return [flat, fitted] if first is methods[0] else [fitted, flat]
    raise _NoInputsError(
        f"no inputs that both programs take were found ({refused[0]}): give --input"
    )


def _fitted(method: Method, flat: Sequence[Any]) -> list[Any]:
    """The inputs of another program as this one takes them: in its own float dtypes.

    Raises:
        RunError: it does not take them.
    """
    import numpy as np

    from rushlight.runtime.arrays import numpy_dtype

    values = method.contract.inputs
    if len(values) != len(flat):
        raise RunError(
            f"one program takes {len(flat)} inputs, the other {len(values)}",
            code=Code.INVALID_ARGUMENT,
        )
    fitted = []
    for value, one in zip(values, flat, strict=True):
        if value.kind == "tensor" and isinstance(one, np.ndarray):
            dtype = numpy_dtype(value.dtype, f"{value.name} takes")
            if one.dtype != dtype and all(d.kind not in "iub" for d in (one.dtype, dtype)):
                one = one.astype(dtype)
        fitted.append(one)
    _check(method, fitted)
    return fitted


def _check(method: Method, flat: Sequence[Any]) -> None:
    """RunError if a method does not take these inputs."""
    args, kwargs = method.contract.in_spec.unflatten(iter(flat))
    method.flatten(args, kwargs)
