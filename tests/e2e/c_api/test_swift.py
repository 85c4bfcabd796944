"""The Swift binding, which is compiled nowhere here: what it uses of C is what the header has.

Names, numbers of arguments, labels and fields of structs, and the numbers of dtypes are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from codegen.c_header import ROOT, Header, read_headers

SOURCES = sorted((ROOT / "bindings" / "swift").rglob("*.swift"))
SPECIAL = {"bool": "RL_BOOLEAN"}


@pytest.fixture(scope="module")
def header() -> Header:
    return read_headers()


def _code(text: str) -> str:
    """Swift without comments and strings; lines keep their numbers."""
    text = re.sub(r"^[ \t]*//.*$|[ \t]//.*$", "", text, flags=re.M)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def _calls(code: str) -> Iterator[tuple[str, list[str]]]:
    """Each call ``rl_name(a, b)`` as its name and arguments."""
    for match in re.finditer(r"\b(rl_\w+)\(", code):
        depth, start, arguments = 1, match.end(), []
        for at in range(match.end(), len(code)):
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[at], 0)
            if (depth == 1 and code[at] == ",") or depth == 0:
                arguments.append(code[start:at].strip())
                start = at + 1
            if depth == 0:
                break
        yield match[1], [argument for argument in arguments if argument]


def _fields(code: str) -> Iterator[tuple[str, str]]:
    """Each ``variable.field`` of a struct of C, as the struct and the field.

    A variable is known from its declaration to the next function.
    """
    kinds: dict[str, str] = {}
    variable = r"\b(?:var|let) (?P<a>\w+) = (?P<b>rl_\w+)\("
    parameter = r"\b(?P<c>\w+): (?:inout |UnsafePointer<)?(?P<d>rl_\w+)\b"
    alias = r"\bvar (?P<h>\w+) = (?P<i>\w+)$"
    use = r"(?<![.\w])(?P<e>\w+)\.(?P<f>\w+)"
    pattern = rf"\b(?P<g>func|init)\b|{variable}|{parameter}|{alias}|{use}"
    for match in re.finditer(pattern, code, re.M):
        if match["g"]:
            kinds.clear()
        elif match["a"] or match["c"]:
            kinds[match["a"] or match["c"]] = match["b"] or match["d"]
        elif match["i"] in kinds:
            kinds[match["h"]] = kinds[match["i"]]
        elif match["e"] in kinds:
            yield kinds[match["e"]], match["f"]


def _faults(text: str, header: Header) -> list[str]:
    code = _code(text)
    known = {*header.functions, *header.structs, *header.aliases, *header.opaque}
    names = set(re.findall(r"\b(?:rl|RL)_\w+", code))
    faults = [f"{name} is not in the header" for name in names - known - set(header.constants)]
    for name, arguments in _calls(code):
        if name in header.structs:
            labels = {argument.split(":")[0] for argument in arguments}
            unknown = labels - {field.name for field in header.structs[name]}
            faults += [f"{name} has no field {label}" for label in unknown]
        elif name in header.functions and len(arguments) != len(header.functions[name].arguments):
            faults.append(f"{name} is called with {len(arguments)} arguments")
    for name, used in _fields(code):
        if used not in {field.name for field in header.structs.get(name, ())}:
            faults.append(f"{name} has no field {used}")
    return faults


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_swift_names(path: Path, header: Header) -> None:
    text = path.read_text(encoding="utf-8")
    assert "ompiled nowhere here" in "".join(text.splitlines()[:2])
    assert not _faults(text, header)


def test_dtypes_have_their_numbers(header: Header) -> None:
    text = (ROOT / "bindings/swift/Sources/Rushlight/Tensor.swift").read_text(encoding="utf-8")
    cases = dict(re.findall(r"^  case (\w+) = (\d+)$", text, re.M))
    assert len(cases) == 15
    for name, number in cases.items():
        assert int(number) == header.constants[SPECIAL.get(name, f"RL_{name.upper()}")], name


def test_much_of_the_interface_is_used(header: Header) -> None:
    code = "".join(_code(path.read_text(encoding="utf-8")) for path in SOURCES)
    used = {name for name, _ in _calls(code)} & set(header.functions)
    assert {"rl_module_run", "rl_session_generate", "rl_llm_encode"} < used and len(used) >= 40


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("rl_module_runs(a)", "rl_module_runs is not in the header"),
        ("check { rl_module_close(module) }", "rl_module_close is called with 1 arguments"),
        ("var o = rl_module_options()\no.thread = 1", "rl_module_options has no field thread"),
        ("func f(_ t: rl_text_v1) { t.length }", "rl_text_v1 has no field length"),
        ("f(_ g: rl_value_info) {\nvar o = g\no.kinds", "rl_value_info has no field kinds"),
        ("rl_text_v1(data: a, length: f(1, 2))", "rl_text_v1 has no field length"),
        ("UInt32(RL_TENSORS)", "RL_TENSORS is not in the header"),
    ],
)
def test_faults_are_seen(code: str, fault: str, header: Header) -> None:
    assert _faults(code, header) == [fault]
