"""`rushlight new-op`: writes a package with an operator and its kernel, as a start for one."""

from __future__ import annotations

import keyword
import textwrap
from importlib import util
from pathlib import Path
from string import Template
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
from rushlight.schema.operators import Argument, OperatorSchema

NAME = "new-op"
HELP = help_text(
    "Write a package with an operator of your own: reference, kernel in C++, tests, benchmark. "
    "SCHEMA is as PyTorch writes them.",
    (
        'rushlight new-op "acme::snake(Tensor x, float a) -> Tensor"',
        'rushlight new-op "acme::norm(Tensor x) -> (Tensor, Tensor)" --dir .',
    ),
)
_MAX_LITERAL, _MAX_LINE = 70, 100
_HEADERS = ("custom_kernel.h", "custom_types.h", "rl_kernel_v1.h", "rl_value_v1.h")
# For each letter of an argument (cpp/kernel/kernel.h): its type in Python, and an example.
_PYTHON = {
    "t": ("torch.Tensor", "{first}"),
    "i": ("int", "2"),
    "d": ("float", "0.5"),
    "b": ("bool", "True"),
    "s": ("float", "0.5"),
    "S": ("str", '"text"'),
    "T": ("list[torch.Tensor]", "[{first}]"),
    "O": ("list[torch.Tensor | None]", "[None, {first}]"),
    "I": ("list[int]", "[1, 2]"),
    "D": ("list[float]", "[0.5]"),
    "B": ("list[bool]", "[True]"),
}


@reports_errors
def main(
    schema: Annotated[str, typer.Argument(metavar="SCHEMA", help="The operator's schema.")],
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where its folder is made.")
    ] = Path(),
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    read = _read(schema)
    distribution = f"{read.namespace}-{read.base}".lower().replace("_", "-")
    target = folder / distribution
    write_package(target, _files(read, distribution))
    from rich.text import Text

    out = console()
    out.print(Text(f"{target}: operator {read.name}, kernel {read.out_variant().name}\n"))
    # Commands to copy are not broken into lines.
    for line in (f"  pip install -e {target}", f"  python -m pytest {target}"):
        out.print(Text(line), soft_wrap=True)


def _read(text: str) -> OperatorSchema:
    """The schema.

    Raises:
        Error: it is none, or not one that the package can be written for.
    """
    try:
        schema = OperatorSchema.read(text)
        _ = schema.out_variant().signature
    except ValueError as error:
        raise Error(str(error), code=Code.INVALID_ARGUMENT) from None
    problem = ""
    module = f"{schema.namespace}_{schema.base}"
    words = [schema.namespace, schema.base, *(a.name for a in schema.arguments)]
    reserved = next((word for word in words if keyword.iskeyword(word)), None)
    if schema.overload:
        problem = "names an overload: leave it out"
    elif reserved is not None:
        problem = f"has a name that is a word of Python, {reserved!r}: take another"
    elif schema.written or any(r.type != "Tensor" for r in schema.returns):
        problem = (
            "must return tensors and write no argument to begin with: change the schema in the "
            "package afterwards"
        )
    elif all(a.type != "Tensor" for a in schema.arguments):
        problem = "needs an argument that is a Tensor"
    elif any(a.keyword_only for a in schema.arguments):
        problem = "must take its arguments by position to begin with: leave the * out"
    elif util.find_spec(module) is not None:
        problem = f"is taken: there is a package {module} that can be imported"
    if problem:
        raise Error(f"the schema {text!r} {problem}", code=Code.INVALID_ARGUMENT)
    return schema


def _typed(argument: Argument) -> str:
    kind, _ = _PYTHON[argument.letter.removeprefix("?")]
    return f"{argument.name}: {kind}{' | None' if argument.letter.startswith('?') else ''}"


def _example(argument: Argument, first: str) -> str:
    if argument.letter.startswith("?"):
        return "None"
    return _PYTHON[argument.letter][1].format(first=first)


def _literal(text: str) -> str:
    """A text as a literal of Python, in several lines if it is long."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if len(escaped) <= _MAX_LITERAL:
        return f'"{escaped}"'
    parts = textwrap.wrap(escaped, _MAX_LITERAL, break_long_words=False, break_on_hyphens=False)
    lines = [f'    "{part} "\n' for part in parts[:-1]] + [f'    "{parts[-1]}"\n']
    return "\n" + "".join(lines)


def _lines(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _definition(schema: OperatorSchema, returned: str) -> str:
    """The first line of the reference, or its first lines."""
    arguments = [_typed(argument) for argument in schema.arguments]
    line = f"def reference({', '.join(arguments)}) -> {returned}:"
    if len(line) <= _MAX_LINE:
        return line
    return "def reference(\n" + "".join(f"    {a},\n" for a in arguments) + f") -> {returned}:"


def _words(schema: OperatorSchema, distribution: str) -> dict[str, str]:
    """What the templates leave open."""
    variant = schema.out_variant()
    outs = [argument.name for argument in variant.outs]
    first = next(a.name for a in schema.arguments if a.type == "Tensor")
    numbers = [a.name for a in schema.arguments if a.letter in ("i", "d")]
    value = " + ".join([f"{first} * {first}", *numbers])
    if len(outs) == 1:
        reference, returned = value, "torch.Tensor"
    else:
        reference = ", ".join(f"({value}) * {k + 1}" for k in range(len(outs)))
        returned = f"tuple[{', '.join(['torch.Tensor'] * len(outs))}]"
    unused = [a.name for a in schema.arguments if a.name not in (first, *numbers)]
    shift = " + ".join(f"static_cast<double>({name})" for name in numbers) or "0"
    body = [f"  (void){name};" for name in unused]
    body += [f"  const double shift = {shift};"]
    body += [
        f"  if (Status s = write(ctx, {first}, shift, {k + 1}, {out}); !s.ok()) return s;"
        for k, out in enumerate(outs)
    ]
    return {
        "namespace": schema.namespace,
        "base": schema.base,
        "module": f"{schema.namespace}_{schema.base}",
        "distribution": distribution,
        "schema": str(schema),
        "schema_literal": _literal(str(schema)),
        "imports": ", ".join(sorted([schema.base, "reference"])),
        "comment": "\n".join(_lines(str(variant), 97, "// ", "//     ")),
        "name": variant.name,
        "function": f"{variant.base}_{variant.overload}",
        "declaration": "\n".join(_lines(variant.declaration, 98, "", "    ")),
        "first": first,
        "definition": _definition(schema, returned),
        "call": ", ".join(_example(a, first) if a.name != first else first
                          for a in schema.arguments),
        "returned": returned,
        "reference": reference,
        "body": "".join(f"{line}\n" for line in body),
    }  # fmt: skip


def _files(schema: OperatorSchema, distribution: str) -> dict[str, str]:
    """{path in the new folder: text}."""
    import rushlight.skeleton as skeleton
    from rushlight.runtime import include_path

    words = _words(schema, distribution)
    module = words["module"]
    folder = Path(skeleton.__file__).parent / "op"
    places = {
        "CMakeLists.txt": "CMakeLists.txt.in",
        "README.md": "README.md.in",
        "benchmark.py": "benchmark.py.in",
        "pyproject.toml": "pyproject.toml.in",
        f"{module}.cpp": "kernel.cpp.in",
        f"{module}/__init__.py": "init.py.in",
        f"{module}/operator.py": "operator.py.in",
        "tests/test_operator.py": "test_operator.py.in",
    }
    files = {
        place: Template((folder / source).read_text(encoding="utf-8")).substitute(words)
        for place, source in places.items()
    }
    for header in _HEADERS:
        files[f"include/{header}"] = (include_path() / header).read_text(encoding="utf-8")
    files[".gitignore"] = "__pycache__/\n*.egg-info/\nbuild/\n*.so\n"
    return files
