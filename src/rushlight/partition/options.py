"""Checks of the options that users pass to partitioners and backends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.schema.program import CompileSpec


def spec_texts(specs: Iterable[CompileSpec]) -> dict[str, str]:
    """Compile specs whose values are text, as {key: value}.

    Raises:
        ExportError: if an object is not a compile spec, or a value is not UTF-8 text.
    """
    texts = {}
    for spec in specs:
        if not isinstance(spec, CompileSpec) or not isinstance(spec.key, str):
            raise _wrong(f"{spec!r} is not a compile spec: write CompileSpec('key', b'value')")
        try:
            texts[spec.key] = bytes(memoryview(spec.value)).decode()
        except (TypeError, UnicodeDecodeError):
            raise _wrong(
                f"the compile spec {spec.key} is {spec.value!r}, and must be text in bytes: "
                f"CompileSpec({spec.key!r}, b'value')"
            ) from None
    return texts


def names_in(argument: str, names: Iterable[Any]) -> frozenset[str]:
    """The names of operators or nodes in an argument, which may hold names or the objects.

    Args:
        argument: the argument's name, for the message.
        names: names (`"aten.add.Tensor"`), operators or nodes.

    Raises:
        ExportError: if it is not iterable, or a single string, whose letters would be taken for
            names.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise _wrong(f"{argument} is {names!r}: give a list of names, {argument}=[{str(names)!r}]")
    return frozenset(str(name) for name in names)


def _wrong(message: str) -> ExportError:
    return ExportError(message, code=Code.INVALID_ARGUMENT)
