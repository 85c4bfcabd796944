"""From a failure of the extension to an error for the user, with the Python lines that it is about.

The lines come from the program's debug map (named data `rushlight/debug`), which is read only when
something fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rushlight import _core
from rushlight.errors import Code, LoadError, RunError

KEY = "rushlight/debug"
_MAX_LISTED = 200
_ADVICE = {
    Code.INVALID_PROGRAM: ". The file is damaged or incomplete: copy it anew, or export again",
    Code.OUT_OF_RESOURCES: ". Raise the limit, or export with smaller bounds on the sizes",
}


class DebugMap:
    """Python lines by method and instruction; empty if the program carries none."""

    def __init__(self, data: bytes | None) -> None:
        self._files: Sequence[Any] = ()
        self._methods: Mapping[str, Any] = {}
        self._values: Mapping[str, Any] = {}
        if data is None:
            return
        import json

        try:
            document = json.loads(data)
            if document["version"] == 1 and isinstance(document["methods"], dict):
                self._files, self._methods = document["files"], document["methods"]
                self._values = document.get("values", {})
        except (ValueError, KeyError, TypeError, RecursionError):
            return  # it only serves messages: a broken map is no map

    def line(self, method: str, instruction: int) -> str:
        """'model.py:12 in forward: `x + y`'; "" if it is not known."""
        try:
            _, _, file, number, function, text, *_ = self._methods[method][instruction]
            if file < 0:
                return ""
            place = f"{self._files[file]}:{number}"
        except (KeyError, IndexError, ValueError, TypeError):
            return ""
        if function:
            place += f" in {function}"
        return f"{place}: `{str(text).strip()}`" if text else place

    def value(self, method: str, index: int) -> str:
        """The name of the parameter or buffer that a value is; "" if it is not known."""
        try:
            return str(self._values[method].get(str(index), ""))
        except (KeyError, TypeError, AttributeError):
            return ""


class Errors:
    """A `with` block in which the extension's failures become errors with Python lines."""

    def __init__(self, program: _core.Program) -> None:
        self._program = program

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, _core.Failure):
            raise run_error(error, self._program) from None


def debug_map(program: _core.Program) -> DebugMap:
    """The map of an opened program; empty once it is closed."""
    try:
        return DebugMap(program.named_data(KEY))
    except _core.Failure:
        return DebugMap(None)


def run_error(failure: _core.Failure, program: _core.Program) -> RunError:
    """The error of a call that failed."""
    code, message, method, instruction, name, _ = failure.args
    where = method
    if instruction >= 0:
        line = debug_map(program).line(method, instruction)
        where = f"{method}: instruction {instruction}"
        where += f" ({name})" if name else ""
        where += f", {line}" if line else ""
        message = _without_prefix(message, f"{method}: instruction {instruction}")
    elif method:
        message = _without_prefix(message, method)
    return RunError(message, code=Code(code), where=where)


def _without_prefix(message: str, prefix: str) -> str:
    """The runtime's message without the place that `where` says already."""
    if not message.startswith(prefix):
        return message
    rest = message[len(prefix) :]
    if rest.startswith(" ("):
        rest = rest[rest.find(")") + 1 :]
    return rest.removeprefix(":").strip() or message


def load_error(failure: _core.Failure, where: str) -> LoadError:
    """The error of a program that cannot be opened, or of a method with no more to say."""
    code, message, method, *_ = failure.args
    if method:
        message = _without_prefix(message, method)
    message += _ADVICE.get(Code(code), "")
    return LoadError(message, code=Code(code), where=f"{where}: {method}" if method else where)


def missing_error(
    failures: Sequence[_core.Failure], program: _core.Program, where: str, available: Sequence[str]
) -> LoadError:
    """One error for all that the methods of a program need and this runtime lacks.

    Args:
        failures: of the methods that could not be loaded for that reason.
        program: where the debug map is.
        where: the program, for the message.
        available: the backends that are there.
    """
    lines = debug_map(program)
    operators: dict[tuple[str, bool], list[str]] = {}
    backends: dict[str, list[str]] = {}
    for failure in failures:
        for method, instruction, name, other_types in failure.args[5]:
            if instruction < 0:
                backends.setdefault(name, []).append(method)
                continue
            line = lines.line(method, instruction)
            place = f"{method}: instruction {instruction}" + (f", {line}" if line else "")
            operators.setdefault((name, other_types), []).append(place)
    text = [*_operator_lines(operators), *_backend_lines(backends, available)]
    if not text:
        return load_error(failures[0], where)
    code = Code.OPERATOR_MISSING if operators else Code.NOT_FOUND
    return LoadError("\n".join(text), code=code, where=where)


def _operator_lines(operators: Mapping[tuple[str, bool], list[str]]) -> list[str]:
    if not operators:
        return []
    n = len(operators)
    text = [f"{n} operator{'' if n == 1 else 's'} missing in this runtime:"]
    for (name, other_types), places in list(operators.items())[:_MAX_LISTED]:
        note = " (there, but not for these dtypes)" if other_types else ""
        more = f", and {len(places) - 3} more" if len(places) > 3 else ""
        text.append(f"  {name}{note}  at {'; '.join(places[:3])}{more}")
    text.append(
        "Export the model so that these operators are decomposed, or load a runtime that has them; "
        "`methods=[…]` loads only the methods that do without."
    )
    return text


def _backend_lines(backends: Mapping[str, list[str]], available: Sequence[str]) -> list[str]:
    if not backends:
        return []
    text = ["backends missing in this runtime:"]
    text += [f"  {name}  for {', '.join(sorted(set(m)))}" for name, m in backends.items()]
    have = ", ".join(available) or "none"
    text.append(
        f"Backends that are there: {have}. Install what is missing, or export with "
        f"backend='portable'."
    )
    return text


def is_missing(failure: _core.Failure) -> bool:
    """The failure lists what is missing."""
    return bool(failure.args[5])
