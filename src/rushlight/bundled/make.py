"""Making bundled programs: `bundle`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight import _core
from rushlight.bundled.bundle import Bundle
from rushlight.bundled.case import Cases, TestCase, by_method, label, tolerances
from rushlight.bundled.expected import (
    Eager,
    Runs,
    check_output,
    default_tolerances,
    given_outputs,
    symbols_in,
)
from rushlight.errors import Code, ExportError, RunError
from rushlight.runtime.arguments import Arguments
from rushlight.runtime.arrays import value_in_file
from rushlight.runtime.contract import Contract
from rushlight.runtime.contract import Value as ValueSpec
from rushlight.runtime.forms import KEY as FORMS
from rushlight.runtime.forms import read_index
from rushlight.runtime.load import contracts_of, open_program
from rushlight.runtime.source import Source, describe_source, read_whole
from rushlight.schema import bundled_program as fb
from rushlight.serialize.bundle import program_in


def bundle(program: Any, cases: Cases, *, data: Source | None = None) -> Bundle:
    """Put a program and test cases for its methods into one file.

    Outputs that a case does not give are computed: by eager if `program` is what `rushlight.export`
    returned, else by the program itself, so that the case only tells whether another runtime or
    device computes the same. `TestCase.origin` says which.

    Args:
        program: what `rushlight.export` returned, or the path or content of a program (.pte) or of
            a bundled one, whose own cases are left out.
        cases: of `forward`, or a mapping of methods to theirs. A case is a tuple of the positional
            arguments, or a `TestCase`.
        data: a data file (.ptd) with the weights that are not in the program, for computing
            outputs with the program. It does not become a part of the bundled program.

    Returns:
        The bundled program; `save` writes it.

    Raises:
        ExportError: a case does not fit the program: which one, which input or output, what it is
            and what the program takes or gives.
        LoadError: the program cannot be read.
    """
    source = getattr(program, "buffer", program)
    content = program_in(read_whole(source))
    if not isinstance(source, str | os.PathLike):
        source = content  # it may have been an open file
    core = open_program(source)
    names = _visible_methods(core)
    wanted = by_method(cases)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ExportError(
            f"there are cases for a method {unknown[0]!r}, which the program does not have; it has "
            f"{', '.join(names)}",
            code=Code.NOT_FOUND,
        )
    contracts = contracts_of(core, list(wanted), describe_source(source))
    captured = getattr(program, "captured", {})
    runs = Runs(source, data)
    suites = []
    for method, listed in wanted.items():
        eager = Eager(captured[method]) if method in captured else None
        maker = _Maker(method, contracts[method], core.meta(method), eager, runs)
        made = [maker.make(case, i) for i, case in enumerate(listed)]
        suites.append(fb.BundledMethodTestSuite(method, made))
    return Bundle(content, suites)


def _visible_methods(core: _core.Program) -> list[str]:
    """The methods of a program, without those that are only forms of others."""
    names = core.method_names()
    index = read_index(core.named_data(FORMS), names)
    return names if index is None else [name for name in names if name not in index.hidden()]


class _Maker:
    """Turns cases of one method into those of the file."""

    def __init__(
        self,
        method: str,
        contract: Contract,
        meta: Mapping[str, Any],
        eager: Eager | None,
        runs: Runs,
    ) -> None:
        self._method, self._contract, self._meta = method, contract, meta
        self._eager, self._runs = eager, runs
        self._arguments = Arguments(method, contract)

    def make(self, case: TestCase, index: int) -> fb.BundledMethodTestCase:
        """The case in the file."""
        where = label(self._method, index, case.name)
        flat, inputs = self._inputs(case, where)
        expected, origin = self._expected(case, flat, inputs, where)
        self._check_outputs(expected, symbols_in(self._contract, flat), where)
        outputs = self._in_file(expected, self._contract.outputs, self._meta["outputs"])
        rtol, atol = tolerances(case, len(outputs), where)
        if not rtol and not atol:
            tolerance = self._eager.tolerance if self._eager is not None else None
            rtol, atol = default_tolerances(tolerance, outputs)
        notes = fb.CaseNotes(case.name, origin, rtol, atol)
        return fb.BundledMethodTestCase(inputs, outputs, notes)

    def _inputs(self, case: TestCase, where: str) -> tuple[list[Any], list[fb.Value]]:
        try:
            flat = self._arguments.flatten(tuple(case.inputs), case.kwargs)
            return flat, self._in_file(flat, self._contract.inputs, self._meta["inputs"])
        except RunError as error:
            problem = str(error).removeprefix(f"{self._method}: ")
            raise ExportError(problem, code=error.code, where=where) from error
        except _core.Failure as failure:
            raise ExportError(failure.args[1], code=Code(failure.args[0]), where=where) from None

    def _expected(
        self, case: TestCase, flat: list[Any], inputs: list[fb.Value], where: str
    ) -> tuple[list[Any], str]:
        if case.expected is not None:
            return given_outputs(self._contract, case.expected, where), case.origin or "given"
        if self._eager is not None:
            return self._eager.outputs(flat, inputs, where), "eager"
        return self._runs.outputs(self._method, flat, where), "program"

    def _check_outputs(self, expected: Sequence[Any], known: Mapping[str, int], where: str) -> None:
        paths = self._contract.out_spec.paths()
        for spec, value, path in zip(self._contract.outputs, expected, paths, strict=True):
            name = f"output {path}" if path else "the output"
            problem = check_output(spec, value, known, name)
            if problem is not None:
                raise ExportError(problem, code=Code.INVALID_ARGUMENT, where=where)

    def _in_file(
        self,
        values: Sequence[Any],
        specs: Sequence[ValueSpec],
        metas: Sequence[Mapping[str, Any]],
    ) -> list[fb.Value]:
        """Values with their elements in the dim orders that the program uses."""
        return [
            value_in_file(value, spec.kind, meta.get("dim_order", ()))
            for value, spec, meta in zip(values, specs, metas, strict=True)
        ]
