"""The tables of names: module of `executorch` to its names, each with where Rushlight has it.

"rushlight.pipeline" stands for the object of the same name there, "rushlight.pipeline:Other" for
one of another name. `WHOLE` has modules that are ours as a whole. `ABSENT` says what to use in
place of names that do not exist here.
"""

from __future__ import annotations

from executorch._names import (
    absent,
    backend,
    backends,
    codegen,
    devtools,
    dialects,
    exir,
    export,
    extension,
)

ABSENT: dict[str, str] = {
    **absent.ABSENT,
    **exir.ABSENT,
    **dialects.ABSENT,
    **backend.ABSENT,
    **backends.ABSENT,
    **devtools.ABSENT,
    **export.ABSENT,
    **extension.ABSENT,
}

WHOLE: dict[str, str] = {
    **codegen.WHOLE,
    **backends.WHOLE,
    **devtools.WHOLE,
    **export.WHOLE,
    **extension.WHOLE,
}


def _with_parents(modules: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    complete = dict(modules)
    for path in modules:
        while "." in path:
            path = path.rpartition(".")[0]
            complete.setdefault(path, {})
    return complete


MODULES = _with_parents(
    {
        **exir.MODULES,
        **dialects.MODULES,
        **backend.MODULES,
        **backends.MODULES,
        **devtools.MODULES,
        **export.MODULES,
        **extension.MODULES,
    }
)
