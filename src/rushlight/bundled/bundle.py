"""Bundled programs: `Bundle`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rushlight.bundled.case import TestCase
from rushlight.errors import Code, Error, ExportError, LoadError, RunError
from rushlight.files import AnyPath, replacing
from rushlight.runtime.arrays import value_of
from rushlight.runtime.contract import Contract
from rushlight.runtime.load import contracts_of, load, open_program
from rushlight.runtime.measures import CaseResult
from rushlight.runtime.module import Method
from rushlight.runtime.source import Source, describe_source, read_whole
from rushlight.schema import bundled_program as fb
from rushlight.schema.codec import Buffer
from rushlight.serialize.bundle import read_bundle, write_bundle, write_bundle_to

_MAX_SHOWN = 20  # cases in a message


class Bundle:
    """A program with test cases for its methods: what `rushlight.bundle` and `load_bundle` return.

    Attributes:
        program: the content of the program file (.pte).
    """

    def __init__(
        self,
        program: Buffer,
        suites: Sequence[fb.BundledMethodTestSuite],
        source: Source | None = None,
    ) -> None:
        """`source` is the whole file, if there is one."""
        self.program = program
        self._suites = list(suites)
        self._source = source

    @property
    def methods(self) -> list[str]:
        """The methods that have test cases."""
        return list(dict.fromkeys(suite.method_name for suite in self._suites))

    def cases_in_file(self, method: str) -> list[fb.BundledMethodTestCase]:
        """The test cases of a method as they are in the file; of one that has none, none."""
        suites = [suite for suite in self._suites if suite.method_name == method]
        return [case for suite in suites for case in suite.test_cases]

    @property
    def cases(self) -> dict[str, list[TestCase]]:
        """The test cases by method, with NumPy arrays, in the structures of the method.

        Raises:
            LoadError: one of them is damaged.
            RunError: NumPy has no such dtype.
        """
        source = self._source if self._source is not None else self.program
        core = open_program(source)
        known = [name for name in self.methods if name in core.method_names()]
        contracts = contracts_of(core, known, describe_source(source))
        return {
            method: [_case(contracts.get(method), case) for case in self.cases_in_file(method)]
            for method in self.methods
        }

    def torch_cases(self, method: str) -> list[tuple[list[Any], list[Any]]]:
        """The flat inputs and expected outputs of a method's test cases, with tensors of torch.

        Raises:
            LoadError: one of them is damaged.
        """
        from rushlight.bundled.expected import in_torch

        return [
            ([*map(in_torch, case.inputs)], [*map(in_torch, case.expected_outputs)])
            for case in self.cases_in_file(method)
        ]

    def to_bytes(self) -> bytes:
        """The content of the file.

        Raises:
            ExportError: it would have more than 2 GiB.
        """
        return write_bundle(self.program, self._suites)

    def save(self, path: AnyPath, *, quiet: bool = False) -> None:
        """Write the file, and print what its test cases are.

        Args:
            path: where to; it must end in .bpte.
            quiet: print nothing.

        Raises:
            ExportError: the name does not end in .bpte, or the file cannot be written.
        """
        name = os.fspath(path)
        if not name.endswith(".bpte"):
            raise ExportError(
                f"{name!r}: a bundled program's file name must end in .bpte",
                code=Code.INVALID_ARGUMENT,
            )
        try:
            with replacing(path) as file:
                write_bundle_to(file, self.program, self._suites)
        except OSError as error:
            raise ExportError(
                f"cannot write {name!r}: {error.strerror}; check the path",
                code=Code.ACCESS_FAILED,
            ) from error
        if not quiet:
            print("\n".join([name, *(f"  {line}" for line in self._lines())]))

    def _lines(self) -> list[str]:
        return [f"{method}: {self._described(method)}" for method in self.methods]

    def _described(self, method: str) -> str:
        """The number of a method's cases, and what their outputs come from."""
        cases = self.cases_in_file(method)
        counts: dict[str, int] = {}
        for case in cases:
            origin = case.notes.origin if case.notes is not None else ""
            if not case.expected_outputs:
                origin = "none"
            counts[origin] = counts.get(origin, 0) + 1
        texts = {
            "eager": "by eager",
            "program": "by the program itself",
            "given": "as given",
            "none": "unknown",
        }
        named = [f"{n} {texts.get(origin, 'as given')}" for origin, n in counts.items()]
        count = "1 test case" if len(cases) == 1 else f"{len(cases)} test cases"
        return f"{count}, expected outputs: {', '.join(named)}"

    def __repr__(self) -> str:
        return f"<rushlight.Bundle {'; '.join(self._lines())}>"

    def test(
        self,
        *,
        method: str | None = None,
        case: int | str | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        backend: str | None = None,
        data: Source | None = None,
        threads: int | None = None,
    ) -> list[CaseResult]:
        """Run test cases, each as if the program had just been loaded.

        Args:
            method: whose cases; None for all.
            case: one of them, by its index or its name; None for all.
            rtol, atol: in place of the tolerances in the file.
            backend, data, threads: as for `rushlight.load`.

        Raises:
            LoadError: the program cannot be loaded.
            RunError: there is no such method or case.
        """
        chosen = self._chosen(method, case)
        module = load(
            self._source if self._source is not None else self.to_bytes(),
            methods=[name for name in chosen if chosen[name]],
            backend=backend,
            data=data,
            threads=threads,
        )
        return [
            _result(module[method], index, rtol, atol, name)
            for method, named in chosen.items()
            for index, name in named
        ]

    def _names(self, method: str) -> list[tuple[int, str]]:
        """The indices and names of a method's cases."""
        cases = enumerate(self.cases_in_file(method))
        return [(i, case.notes.name if case.notes is not None else "") for i, case in cases]

    def _chosen(
        self, method: str | None, case: int | str | None
    ) -> dict[str, list[tuple[int, str]]]:
        """The indices and names of the wanted cases, by method."""
        if method is not None and method not in self.methods:
            raise RunError(
                f"there are no test cases of {method!r}; there are some of "
                f"{', '.join(self.methods) or 'no method'}",
                code=Code.NOT_FOUND,
            )
        known = {m: self._names(m) for m in (self.methods if method is None else [method])}
        chosen = {m: [one for one in named if case in (None, *one)] for m, named in known.items()}
        if not any(chosen.values()):
            raise RunError(
                f"there is no test case {case!r}; there are "
                f"{'; '.join(f'{m}: {_shown(named)}' for m, named in known.items())}",
                code=Code.NOT_FOUND,
            )
        return chosen


def load_bundle(source: Source) -> Bundle:
    """Read a bundled program (.bpte), of Rushlight or of ExecuTorch. Needs no torch.

    Args:
        source: a path, whose file is mapped; the content of a file; or an open binary file.

    Raises:
        LoadError: it cannot be read, is no bundled program, or is damaged.
    """
    content = read_whole(source)
    try:
        file = read_bundle(content)
    except LoadError as error:
        raise LoadError(str(error), code=error.code, where=describe_source(source)) from error
    kept = source if isinstance(source, str | os.PathLike) else content
    return Bundle(file.program, file.method_test_suites, kept)


def _shown(cases: Sequence[tuple[int, str]]) -> str:
    """The first cases, for a message: "0 ('empty'), 1"."""
    shown = [f"{i} ({name!r})" if name else str(i) for i, name in cases[:_MAX_SHOWN]]
    return ", ".join(shown + ["…"] * (len(cases) > _MAX_SHOWN)) or "none"


def _case(contract: Contract | None, case: fb.BundledMethodTestCase) -> TestCase:
    inputs = [value_of(value) for value in case.inputs]
    outputs = [value_of(value) for value in case.expected_outputs]
    notes = case.notes or fb.CaseNotes()
    args: Sequence[Any] = inputs
    kwargs: dict[str, Any] = {}
    expected: Any = outputs or None
    if contract is not None and len(contract.inputs) == len(inputs):
        # A text is not in the file; the program always has the same.
        filled = [
            spec.value if spec.kind == "str" else value
            for spec, value in zip(contract.inputs, inputs, strict=True)
        ]
        args, kwargs = contract.in_spec.unflatten(iter(filled))
    if contract is not None and outputs and len(contract.outputs) == len(outputs):
        expected = contract.out_spec.unflatten(iter(outputs))
    return TestCase(
        tuple(args),
        expected,
        notes.name,
        kwargs,
        notes.rtol or None,
        notes.atol or None,
        notes.origin,
    )


def _result(
    method: Method, index: int, rtol: float | None, atol: float | None, name: str
) -> CaseResult:
    try:
        return method.verify(index, rtol=rtol, atol=atol, name=name)
    except Error as error:
        return CaseResult(method.name, index, name, passed=False, message=str(error))
