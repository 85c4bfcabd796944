"""`rushlight new-backend`: writes a package with a working backend, as a start for a new one."""

from __future__ import annotations

import keyword
import re
from importlib import metadata, util
from pathlib import Path
from typing import Annotated

import typer

from rushlight.cli.common import (
    TracebackOption,
    console,
    help_text,
    reports_errors,
    write_package,
)
from rushlight.errors import Code, Error

NAME = "new-backend"
HELP = help_text(
    "Write a package that is a small working backend, with its tests: partitioner, preprocess and "
    "runtime, found by entry points once it is installed. NAME is what `backend=` will call it.",
    (
        "rushlight new-backend acme",
        "rushlight new-backend acme --c",
        "rushlight new-backend my-npu --dir .",
    ),
)
_MAX_NAME = 24
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@reports_errors
def main(
    name: Annotated[str, typer.Argument(metavar="NAME", help='Such as "acme", or "my-npu".')],
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where its folder is made.")
    ] = Path(),
    in_c: Annotated[
        bool, typer.Option("--c", help="The runtime half in plain C, not in Python.")
    ] = False,
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    names = _names(name)
    _, distribution, prefix, _ = names
    target = folder / distribution
    write_package(target, _files(in_c, names))
    from rich.text import Text

    out = console()
    out.print(Text(f"{target}: backend {name!r}, in files as {prefix}Backend\n"))
    # Commands to copy are not broken into lines.
    for line in (
        f"  pip install -e {target}",
        f"  python -m pytest {target}",
        f'  rushlight.export(model, args, backend="{name}")',
    ):
        out.print(Text(line), soft_wrap=True)


def _names(name: str) -> tuple[str, str, str, str]:
    """Module, distribution, prefix of classes and the name itself, in order of `skeleton.NAMES`.

    Raises:
        Error: if the name is not valid or is taken.
    """
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise Error(
            f"{name!r} is not a name for a backend: use small letters, digits and single hyphens, "
            f"a letter first, at most {_MAX_NAME} characters",
            code=Code.INVALID_ARGUMENT,
        )
    prefix = "".join(part.capitalize() for part in name.split("-"))
    if keyword.iskeyword(name):
        raise Error(f"{name!r} is a word of Python: take another", code=Code.INVALID_ARGUMENT)
    module, id = f"{name.replace('-', '_')}_backend", f"{prefix}Backend"
    taken = ""
    if name == "portable":
        taken = "the name of the runtime's own kernels"
    elif metadata.entry_points(group="rushlight.backends", name=name):
        taken = "an installed backend"
    elif metadata.entry_points(group="rushlight.runtime_backends", name=id):
        taken = f"an installed runtime of {id}"
    elif util.find_spec(module) is not None:
        taken = f"a package {module} that can be imported"
    elif util.find_spec(f"rushlight.backends.{name.replace('-', '_')}") is not None:
        taken = "a backend of ours"
    if taken:
        raise Error(f"{name!r} is taken: there is {taken}", code=Code.INVALID_ARGUMENT)
    return module, f"{name}-backend", prefix, name


def _files(in_c: bool, names: tuple[str, str, str, str]) -> dict[str, str]:
    """{path in the new folder: text}."""
    import rushlight.skeleton as skeleton
    from rushlight.runtime import include_path

    root = Path(skeleton.__file__).parent
    runtime = root / "c" if in_c else root / "package"
    package = {f"{names[0]}/{f}": root / "package" / f for f in _PACKAGE}
    package[f"{names[0]}/runtime.py"] = runtime / "runtime.py"
    sources = {**package, "tests/test_backend.py": root / "test_backend.py.in"}
    if in_c:
        sources["CMakeLists.txt"] = root / "c" / "CMakeLists.txt"
        sources[f"{names[0]}.c"] = root / "c" / "skeleton_backend.c"
    texts = {path: source.read_text(encoding="utf-8") for path, source in sources.items()}
    parts = ("pyproject.c.toml", "pyproject.common.toml")
    own = root / "c" / parts[0] if in_c else root / "pyproject.python.toml"
    texts["pyproject.toml"] = "".join(
        p.read_text(encoding="utf-8") for p in (root / parts[1], own)
    ).lstrip()
    half = f"{names[0]}.c" if in_c else f"{names[0]}/runtime.py"
    texts["README.md"] = (
        (root / "README.md").read_text(encoding="utf-8").replace("RUNTIME", f"`{half}`")
    )
    for path, text in texts.items():
        for word, new in zip(skeleton.NAMES, names, strict=True):
            text = text.replace(word, new)
        texts[path] = text
    if in_c:
        for header in ("rl_backend_v1.h", "rl_value_v1.h"):
            texts[header] = (include_path() / header).read_text(encoding="utf-8")
    texts[".gitignore"] = "__pycache__/\n*.egg-info/\nbuild/\n*.so\n"
    return texts


_PACKAGE = ("__init__.py", "partitioner.py", "preprocess.py")
