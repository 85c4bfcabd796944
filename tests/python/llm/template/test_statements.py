"""Statements and white space of templates: the same text as Jinja's, or an error in both."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import jinja2.meta
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rushlight.llm.template import ChatTemplate, TemplateError
from rushlight.llm.template.reference import environment

VARIABLES: dict[str, Any] = {
    "messages": [],
    "xs": [1, 2, 3],
    "rows": [{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": "a", "v": 3}],
    "d": {"one": 1, "two": 2},
    "s": "text",
    "none": None,
}
# One template a line.
TEMPLATES = sorted((Path(__file__).parent / "templates").glob("*.jinja"))
SOURCES = (Path(__file__).parent / "statements.txt").read_text("utf-8").splitlines()
# Jinja has these, and a chat template may not use them: refused by name.
REFUSED = {
    "{% print 1 %}": "print",
    "{% block a %}{% endblock %}": "block",
    "{{ rows | groupby('k') }}": "groupby",
    "{{ dict(a=1, **{'b': 2}) if false else dict({'c': 1}, a=2) }}": "'**'",
    "{% for x in xs recursive %}{% endfor %}": "recursive",
    "{{ s.encode() }}": "encode",
    "{{ 0x1f }}": "base",
    "{% autoescape true %}{% endautoescape %}": "autoescape",
}
_JINJA = environment()


def _theirs(source: str) -> str | None:
    try:
        return str(_JINJA.from_string(source).render(VARIABLES))
    except Exception:
        return None


def _ours(source: str) -> tuple[str | None, str]:
    try:
        return ChatTemplate(source).render(**VARIABLES).text, ""
    except TemplateError as error:
        return None, str(error)


def _check(source: str) -> None:
    ours, why = _ours(source)
    theirs = _theirs(source)
    assert ours == theirs, f"{source!r}: {why}"


@pytest.mark.parametrize("source", [s for s in SOURCES if s not in REFUSED])
def test_statement_renders_as_jinja_does(source: str) -> None:
    _check(source)


@pytest.mark.parametrize("source", REFUSED)
def test_what_is_not_supported_is_refused_by_name(source: str) -> None:
    ours, why = _ours(source)
    assert ours is None and REFUSED[source] in why and "line 1" in why


@pytest.mark.parametrize("signs", list(itertools.product(["", "-", "+"], repeat=2)))
@pytest.mark.parametrize("tag", ["if true", "raw", "set x = 1", "for i in [1, 2]"])
@pytest.mark.parametrize(
    "around", ["", "\n", "  \n  ", "\n\n", " a \n b ", "\t\n\u00a0", "\r\n \r"]
)
def test_white_space_around_tags(around: str, tag: str, signs: tuple[str, str]) -> None:
    before, after = signs
    end = {"set x = 1": "", "raw": f"{{%{after} endraw {before}%}}"}.get(
        tag, f"{{%{after} end{tag.split()[0]} {before}%}}"
    )
    _check(f"{around}{{%{before} {tag} {after}%}}{around}x{around}{end}{around}y{around}")


_PIECES = st.sampled_from(
    [
        *("\n", " ", "  ", "a", "{{ 1 }}", "{{- 1 }}", "{{ 1 -}}", "{{- 1 -}}", "{{+ 1 }}", "\t"),
        *("{% if true %}", "{%- if true %}", "{% if true -%}", "{%+ if true +%}", "{% endif %}"),
        *(
            "{%- endif -%}",
            "{# c #}",
            "{#- c -#}",
            "{#+ c #}",
            "{% raw %}",
            "{% endraw %}",
            "{",
            "%}",
        ),
        *(
            "{%- raw -%}",
            "{%- endraw -%}",
            "{% set y = 2 %}",
            "{%- set y = 2 -%}",
            "}}",
            "\r\n",
            "-",
        ),
    ]
)


@settings(
    max_examples=700, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(st.lists(_PIECES, max_size=14))
def test_generated_white_space(pieces: list[str]) -> None:
    _check("".join(pieces))


def test_errors_name_the_line() -> None:
    with pytest.raises(TemplateError, match=r"line 3: 'x' is undefined"):
        ChatTemplate("a\n\n{{ x.y }}\n").render([])
    with pytest.raises(TemplateError, match=r"line 2: unknown block \{% fro %\}"):
        ChatTemplate("a\n{% fro x in y %}")
    with pytest.raises(TemplateError, match="line 1: no system message"):
        ChatTemplate("{{ raise_exception('no system message') }}").render([])


_GROWING = (
    "{{% set n = namespace(x={}) %}}{{% for i in range({}) %}}{{% set n.x = {} %}}{{% endfor %}}"
)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "work"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deeper"),
        ("{{ 'x' * 99999999999 }}", "bytes"),
        ("{{ [1] * 99999999999 }}", "more than"),
        ("{{ ''.center(99999999999) }}", "bytes"),
        (_GROWING.format("'xx'", 99, "n.x ~ n.x"), ""),
        (_GROWING.format("1", 9999, "[n.x]"), "nest"),
        (_GROWING.format("[]", 99, "[n.x, n.x]"), ""),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nest deeper"),
        ("{{ 1" + " + 1" * 5000 + " }}", "nests deeper"),
        ("{{ x" + ".y" * 5000 + " }}", "nests deeper"),
        ("{{ " + "not " * 5000 + "1 }}", "nests deeper"),
        ("{% if 1 %}" * 5000, "nest deeper"),
    ],
)  # fmt: skip
def test_a_run_is_bounded(source: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        ChatTemplate(source).render([])


def test_values_that_refer_to_each_other_are_freed() -> None:
    source = (
        "{% set n = namespace() %}{% set n.me = n %}{% macro f() %}{{ n }}{% endmacro %}"
        "{% for x in [1] %}{% macro g() %}{% endmacro %}{% set n.g = g %}{% endfor %}ok"
    )
    assert ChatTemplate(source).render([]).text == "ok"


INPUTS = [
    "{% for m in messages %}{{ m }}{{ loop.index }}{% else %}{{ other }}{% endfor %}{{ m }}",
    "{% if a %}{% set x = 1 %}{% else %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% if a %}{% set x = 1 %}{% elif b %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% if x is not defined %}{% set x = none %}{% endif %}{{ x }}",
    "{% set x = x | default(1) %}{{ x }}",
    "{% set ns = namespace(i=0) %}{% set ns.i = ns.i + j %}{{ ns.i }}",
    "{% macro f(p, q=r) %}{{ p }}{{ q }}{{ s }}{{ varargs }}{% endmacro %}{{ f(t) }}{{ p }}",
    "{% with w = v %}{{ w }}{% endwith %}{{ w }}",
    "{% for k, v in d.items() %}{% set y = k %}{{ y }}{% endfor %}{{ y }}{{ v }}",
    "{% set block %}{{ inner }}{% endset %}{{ block }}",
    "{{ raise_exception('x') if z else range(3) }}",
]


@pytest.mark.parametrize(
    "source",
    [*INPUTS, *(path.read_text("utf-8") for path in TEMPLATES)],
    ids=lambda text: text[:40],
)
def test_variables_of_the_caller_are_those_that_jinja_finds(source: str) -> None:
    found = jinja2.meta.find_undeclared_variables(_JINJA.parse(source)) - set(_JINJA.globals)
    # Jinja counts names that some branches set, whether or not they are read behind them.
    doubtful = set(re.findall(r"set\s+(\w+)", source))
    template = ChatTemplate(source)
    read = {name for name in set(re.findall(r"\w+", source)) if template.uses(name)}
    assert read <= found and found - doubtful <= read
