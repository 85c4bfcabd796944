"""Turns a failure of the extension into an error for the user, with the Python lines involved.

The lines come from the program's debug map (named data `rushlight/debug`), which is read only when
something fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TypeVar

from rushlight import _core
from rushlight.errors import Code, Error, LoadError, RunError
from rushlight.files import AnyPath, replacing
from rushlight.schema.debug import Places
from rushlight.schema.operators import SCHEMAS, OperatorSchema
from rushlight.serialize.debug import KEY, read_debug

E = TypeVar("E", bound=Error)
_MAX_LISTED = 200
_MAX_LINES = 3  # of one place inside a delegate
_MAX_NODES = 8  # of one delegate
_ADVICE = {
    Code.INVALID_PROGRAM: ". The file is damaged or incomplete: copy it anew, or export again",
    Code.OUT_OF_RESOURCES: ". Raise the limit, or export with smaller bounds on the sizes",
    Code.DELEGATE_INVALID_COMPATIBILITY: ". The payload was made for another version of the "
    "backend, or is damaged: export again with the version that is installed here",
}


class PythonLines:
    """Python lines by method and instruction; empty if the program has no debug map."""

    def __init__(self, data: bytes | None) -> None:
        self._map = read_debug(data)

    def line(self, method: str, instruction: int) -> str:
        """'model.py:12 in forward: `x + y`'; "" if it is not known."""
        nodes = self._map.method(method).instructions
        return str(nodes[instruction].source) if 0 <= instruction < len(nodes) else ""

    def delegate_lines(self, method: str, delegate: int, place: str) -> list[str]:
        """The lines that a place inside a delegate comes from, each once, in order; none if they
        are not known.

        Args:
            method: the method's name.
            delegate: its index among the method's delegates.
            place: the backend's id for the place, as text.
        """
        nodes = self._places(method, delegate).get(place, ())
        return list(dict.fromkeys(str(node.source) for node in nodes if node.line.file))

    def delegate_nodes(self, method: str, delegate: int) -> list[str]:
        """'mul_1 (aten.mul.Tensor)' for each node that a delegate runs, as far as is known."""
        nodes = chain.from_iterable(self._places(method, delegate).values())
        return list(dict.fromkeys(f"{n.name} ({n.operator})" for n in nodes if n.name))

    def value(self, method: str, index: int) -> str:
        """The name of the parameter or buffer that a value is; "" if it is not known."""
        return self._map.method(method).values.get(index, "")

    def _places(self, method: str, delegate: int) -> Places:
        delegates = self._map.method(method).delegates
        return delegates[delegate] if 0 <= delegate < len(delegates) else {}


class Errors:
    """A `with` block in which the extension's failures become errors with Python lines."""

    def __init__(self, program: _core.Program) -> None:
        self._program = program

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, _core.Failure):
            raise run_error(error, self._program) from error.__cause__


@contextmanager
def run_errors() -> Iterator[None]:
    """A `with` block in which failures of the extension become a `RunError` with their text."""
    try:
        yield
    except _core.Failure as failure:
        code, message = failure.args[:2]
        raise RunError(message, code=Code(code)) from failure.__cause__


def python_lines(program: _core.Program) -> PythonLines:
    """The lines of an opened program; none once it is closed."""
    try:
        return PythonLines(program.named_data(KEY))
    except _core.Failure:
        return PythonLines(None)


def run_error(failure: _core.Failure, program: _core.Program) -> RunError:
    """The error of a call that failed; raise it from the failure's `__cause__`."""
    code, message, method, instruction, name, _, delegate, place, report = failure.args
    where = method
    if instruction >= 0:
        where = f"{method}: instruction {instruction}" + (f" ({name})" if name else "")
        message = _without_prefix(message, where)
        lines = python_lines(program)
        line = lines.line(method, instruction)
        if delegate >= 0:
            where, message = _inside(lines, method, delegate, place, where, line, message, failure)
        else:
            where += f", {line}" if line else ""
            message = _whole_text(failure, message)
    elif method:
        message = _without_prefix(message, method)
    return write_report(RunError(message, code=Code(code), where=where), report)


def write_report(error: E, report: tuple[bytes, bytes] | None) -> E:
    """Write the report of a failure, and add a note to its error that says so.

    Args:
        error: the error.
        report: the path and the content; None if nothing is reported.
    """
    if report is None:
        return error
    path, content = os.fsdecode(report[0]), report[1]
    try:
        with replacing(path) as file:
            file.write(content)
        note = f"`rushlight explain {path} MODEL.pte` tells more"
    except OSError as problem:
        note = f"the report of this failure cannot be written to {path}: {problem.strerror}"
    # What add_note() of Python 3.11 does.
    setattr(error, "__notes__", [*getattr(error, "__notes__", ()), note])  # noqa: B010
    return error


def install_crash_report(path: AnyPath) -> None:
    """Write a report if this process crashes while a method runs that was loaded with
    `failure_report`: in a kernel, a backend, or a thread that works for them. On Linux and macOS.

    The signals SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT are handled; then the handler that was
    there before takes over, such as `faulthandler`'s. `rushlight explain` reads the report.

    Args:
        path: the report's; written only when something crashes.

    Raises:
        RunError: there can be no such file, or the system has no signals.
    """
    try:
        _core.install_crash_report(os.fsencode(path))
    except _core.Failure as failure:
        raise RunError(failure.args[1], code=Code(failure.args[0])) from None


def _inside(
    lines: PythonLines,
    method: str,
    delegate: int,
    place: str,
    where: str,
    line: str,
    message: str,
    failure: _core.Failure,
) -> tuple[str, str]:
    """`where` and `message` of a failure inside a delegate.

    Args:
        line: the Python line of the delegate's call; "" if it is not known.
    """
    inside = lines.delegate_lines(method, delegate, place) if place else []
    if place:
        where += f", at {place} inside"
        message = _without_prefix(message, f"at {place}")
    if line and not inside:
        inside = [line]
    if len(inside) > _MAX_LINES:
        inside[_MAX_LINES:] = [f"and {len(inside) - _MAX_LINES} more"]
    where += "".join(f", {text}" for text in inside)
    return where, _whole_text(failure, message)


def _whole_text(failure: _core.Failure, message: str) -> str:
    """The message, or the text of the exception behind it: the runtime's buffer may have cut it."""
    cause = failure.__cause__
    if cause is None:
        return message
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _without_prefix(message: str, prefix: str) -> str:
    """The runtime's message without the place that `where` names already."""
    if not message.startswith(f"{prefix}:"):
        return message
    return message[len(prefix) + 1 :].strip() or message


def load_error(
    failure: _core.Failure, where: str, program: _core.Program | None = None
) -> LoadError:
    """The error for a program that cannot be opened or a method that cannot be loaded; raise it
    from the failure's `__cause__`.

    Args:
        failure: the extension's failure.
        where: the program, for the message.
        program: the program with the debug map, if it could be opened.
    """
    code, message, method, _, name, _, delegate, place, report = failure.args
    message = _without_prefix(message, where)
    if method:
        message = _without_prefix(message, method)
        where = f"{where}: {method}"
    if delegate >= 0 and program is not None:
        what = f"delegate {delegate} ({name})"
        message = _without_prefix(message, what)
        lines = python_lines(program)
        where, message = _inside(
            lines, method, delegate, place, f"{where}: {what}", "", message, failure
        )
    advice = _ADVICE.get(Code(code), "")
    if Code(code) is Code.OPERATOR_MISSING and program is not None:
        schemas = _schemas(program)
        own = [schema for name, schema in schemas.items() if name in message]
        advice = "".join(f"\n{line}" for line in _kernels_to_give(own)) if own else advice
    error = LoadError(message, code=Code(code), where=where, advice=advice)
    return write_report(error, report)


def missing_error(
    failures: Sequence[_core.Failure],
    program: _core.Program,
    where: str,
    problems: Mapping[str, str],
) -> LoadError:
    """One error that lists all operators and backends that a program's methods lack here.

    Args:
        failures: the failures of the methods that could not be loaded for that reason.
        program: the program with the debug map.
        where: the program, for the message.
        problems: why installed backends cannot be used, by id.
    """
    lines = python_lines(program)
    operators: dict[tuple[str, bool], list[str]] = {}
    backends: dict[str, list[str]] = {}
    notes = {id: f": {problem}" for id, problem in problems.items()}
    for failure in failures:
        for method, instruction, name, is_there, delegate in failure.args[5]:
            if instruction < 0:
                if is_there:
                    notes[name] = ": it is registered, but says that it cannot work here"
                nodes = lines.delegate_nodes(method, delegate)
                backends.setdefault(name, []).append(_delegate_text(method, delegate, nodes))
                continue
            line = lines.line(method, instruction)
            place = f"{method}: instruction {instruction}" + (f", {line}" if line else "")
            operators.setdefault((name, is_there), []).append(place)
    text = [*_operator_lines(operators, _schemas(program)), *_backend_lines(backends, notes)]
    if not text:
        return load_error(failures[0], where, program)
    code = Code.OPERATOR_MISSING if operators else Code.NOT_FOUND
    error = LoadError("\n".join(text), code=code, where=where)
    return write_report(error, failures[-1].args[8])


def _delegate_text(method: str, delegate: int, nodes: Sequence[str]) -> str:
    shown = list(nodes[:_MAX_NODES])
    if len(nodes) > _MAX_NODES:
        shown.append(f"and {len(nodes) - _MAX_NODES} more")
    return f"{method}: delegate {delegate}" + (f", to run {', '.join(shown)}" if shown else "")


def _schemas(program: _core.Program) -> dict[str, OperatorSchema]:
    """The schemas of the user's own operators that a program has, by name; none that is damaged."""
    schemas = {}
    for line in (program.named_data(SCHEMAS) or b"").decode(errors="replace").splitlines():
        try:
            schema = OperatorSchema.read(line)
            _ = schema.signature  # one that no kernel can have says nothing
            schemas[schema.name] = schema
        except ValueError:
            continue
    return schemas


def _operator_lines(
    operators: Mapping[tuple[str, bool], list[str]], schemas: Mapping[str, OperatorSchema]
) -> list[str]:
    if not operators:
        return []
    n = len(operators)
    text = [f"{n} operator{'' if n == 1 else 's'} missing in this runtime:"]
    for (name, other_types), places in list(operators.items())[:_MAX_LISTED]:
        note = " (there, but not for these dtypes)" if other_types else ""
        more = f", and {len(places) - 3} more" if len(places) > 3 else ""
        text.append(f"  {name}{note}  at {'; '.join(places[:3])}{more}")
    own = {name: schemas[name] for name, _ in operators if name in schemas}
    spaces = {name.partition("::")[0] for name in _core.operator_names()}
    rest = {name for name, _ in operators} - own.keys()
    foreign = {name for name in rest if name.partition("::")[0] not in spaces}
    if own or foreign:
        text += _kernels_to_give(own.values())
    if rest - foreign:
        text.append(
            "Export the model so that these operators are decomposed, or load a runtime that has "
            "them; `methods=[…]` loads only the methods that do without."
        )
    return text


def _kernels_to_give(schemas: Iterable[OperatorSchema]) -> list[str]:
    return [
        *(f"  write {schema.declaration}" for schema in schemas),
        "Give the library with these kernels, as in kernels=['libacme.so'] (--kernels libacme.so), "
        "or kernels in Python to rushlight.runtime.register_kernel.",
        *(f"Left out: {refusal}" for refusal in _core.refused_kernel_libraries()),
    ]


def _backend_lines(backends: Mapping[str, list[str]], notes: Mapping[str, str]) -> list[str]:
    if not backends:
        return []
    text = ["backends missing in this runtime:"]
    for name, places in list(backends.items())[:_MAX_LISTED]:
        text.append(f"  {name}{notes.get(name, '')}")
        text += [f"    for {place}" for place in places[:_MAX_LISTED]]
    have = ", ".join(n for n in _core.backend_names() if n not in backends) or "none"
    text.append(
        f"Backends that are there: {have}. Install the package that brings what is missing, "
        f"register it with rushlight.runtime.register_backend, or export with backend='portable'."
    )
    return text


def is_missing(failure: _core.Failure) -> bool:
    """Whether the failure lists missing operators or backends."""
    return bool(failure.args[5])
