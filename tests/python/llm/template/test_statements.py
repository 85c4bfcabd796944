"""Statements and white space of templates: the same text as Jinja's, or an error in both."""

from __future__ import annotations

import itertools
from typing import Any

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
_SOURCES = r"""
{% for x in xs %}{{ x }}{% if not loop.last %}, {% endif %}{% else %}none{% endfor %}
{% for x in [] %}{{ x }}{% else %}none{% endfor %}
{% for x in missing %}{{ x }}{% else %}none{% endfor %}
{% for x in none %}{{ x }}{% endfor %}
{% for c in s %}{{ c }}.{% endfor %}
{% for k in d %}{{ k }}{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}
{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}
{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}
{% for x in xs if x > 9 %}{{ x }}{% else %}none{% endfor %}
{% for x in xs %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in xs %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in xs %}{% for y in xs %}{% if y == x %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}
{% for x in xs %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.depth }}{% endfor %}
{% for x in xs %}{{ loop.previtem }}-{{ loop.nextitem }};{% endfor %}
{% for x in xs %}{{ loop.previtem is defined }}{{ loop.nextitem|default('end') }};{% endfor %}
{% for x in xs %}{{ loop.cycle('odd', 'even') }}{% endfor %}
{% for r in rows %}{{ loop.changed(r.k) }}{% endfor %}
{% for x in xs %}{% for y in xs %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{% for x in xs %}{% set y = x %}{% endfor %}{{ y }}
{% set y = 0 %}{% for x in xs %}{% set y = y + x %}{{ y }}{% endfor %}{{ y }}
{% set ns = namespace(y=0) %}{% for x in xs %}{% set ns.y = ns.y + x %}{% endfor %}{{ ns.y }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns['a'] }}
{% set ns.y = 1 %}
{% set y = 1 %}{% set y.z = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set a = 1, %}{{ a }}
{% set a = 1 %}{% if true %}{% set a = 2 %}{% endif %}{{ a }}
{% if false %}{% set s = 2 %}{% endif %}{{ s }}
{% if not missing is defined %}{% set missing = none %}{% endif %}{{ missing is none }}
{% set s %}a{{ s }}b{% endset %}{{ s }}
{% set s | upper | replace('A', '-') %}a{{ s }}b{% endset %}{{ s }}
{% set x %}{% set s = 1 %}{% endset %}{{ s }}
{% if xs %}a{% elif s %}b{% else %}c{% endif %}
{% if not xs %}a{% elif not s %}b{% elif d %}d{% else %}c{% endif %}
{% if missing %}a{% else %}c{% endif %}
{% if xs|select('gt', 5) %}a generator is true{% endif %}
{% set g = xs|map('string') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}
{% with a = 1, b = s %}{{ a }}{{ b }}{% set s = 2 %}{{ s }}{% endwith %}{{ a }}{{ s }}
{% with a = 1, b = a %}{{ b }}{% endwith %}
{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(1, c=5) }}
{% macro f(a) %}[{{ a }}]{% endmacro %}{{ f() }}{{ f(a=2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
{% macro f(a) %}{{ a + 1 }}{% endmacro %}{{ f() }}
{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}
{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}in{% endcall %}
{% macro f() %}<{{ caller(1, b=2) }}>{% endmacro %}{% call(a, b=5, c=6) f() %}{{ a }}{{ b }}{{ c }}{% endcall %}
{% macro f() %}<{{ caller is defined }}>{% endmacro %}{{ f() }}
{% macro f() %}x{% endmacro %}{% call f() %}in{% endcall %}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
{% macro f() %}{{ s }}{% set s = 1 %}{% endmacro %}{{ f() }}{{ s }}
{% set v = 1 %}{% macro f() %}{{ v }}{% endmacro %}{% set v = 2 %}{{ f() }}
{% for x in xs %}{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% endfor %}
{% macro f() %} a {% endmacro %}{{ f()|trim }}{{ f() ~ 'b' }}{{ f()|length }}
{% filter upper %}a{{ s }}{% endfilter %}
{% filter replace('a', 'b') | upper %}a{{ s }}{% endfilter %}
{% generation %}a{% set s = 1 %}{{ s }}{% endgeneration %}{{ s }}
{% raw %}{{ x }}{% if %}{% endraw %}
{%- raw -%}  {{ x }}  {%- endraw -%}  a
{# a comment {{ x }} #}a{#- b -#} c {#+ d +#}
{{ raise_exception('no') }}
{{ raise_exception('no ' ~ s) if false else 'yes' }}
{{ dict(a=1, **{'b': 2}) if false else dict({'c': 1}, a=2) }}
{{ dict([('a', 1), ('b', 2)]) }}
{{ range(3)|list }}{{ range(1, 7, 2)|list }}{{ range(3, 0, -1)|list }}{{ range(200000)|length }}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}
{% set j = joiner('|') %}{{ j() }}a{{ j() }}b{{ j() }}c
{{ s.append }}{{ xs.append(1) }}
{{ xs.append is defined }}{{ d.pop is defined }}{{ d.__class__ is defined }}{{ s._x is defined }}
{{ d.__class__ }}
{{ missing.x }}
{{ missing }}{{ missing|length }}{{ missing|list }}{{ missing == other }}{{ missing is defined }}
{{ d.three.x }}
{{ d.three }}{{ d['three'] }}{{ xs[9] }}{{ none.x }}
{{ missing() }}
{{ s() }}
{{ missing + 1 }}
{{ missing ~ 'a' }}{{ 'a' in missing }}
{{ -missing }}
{{ missing < 1 }}
{{ 1 / 0 }}
{{ 'a' + 1 }}
{{ 1 < 'a' }}
{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 1 == 1.0 == true }}{{ 3 > 2 != 1 }}
{{ 2 ** 3 ** 2 }}{{ -2 ** 2 }}{{ 7 // 2 }}{{ -7 // 2 }}{{ -7 % 3 }}{{ 7 % -3 }}{{ 7.5 // 2 }}{{ -7.5 % 2 }}{{ 2 ** -1 }}
{{ 1 + 2 * 3 ~ 4 }}{{ 'a' ~ 1 + 2 }}{{ not 1 == 2 }}{{ 1 if 0 else 2 if 0 else 3 }}
{{ true }}{{ none }}{{ 1e20 }}{{ 1.0 }}{{ 1_000 }}{{ 1e-7 }}{{ 0.1 + 0.2 }}{{ [true, none, 'a"b', "it's", 1.5] }}
{{ {'a': 1, 2: [3, (4,)], none: {}} }}{{ () }}{{ (1, 2) }}
{{ 'a' 'b' "c" }}{{ 'tab\t' ~ "q\"" ~ 'n\n' ~ '\\' ~ '\u00e9\x41\101' ~ '\q' }}
{{ xs | map('string') | map('replace', '1', 'x') | join('-') }}
{{ rows | map(attribute='k') | unique | join(',') }} {{ rows | sum(attribute='v') }}
{{ rows | selectattr('v', '>', 1) | map(attribute='v') | list }}
{{ rows | groupby('k') }}
{{ s is nosuchtest }}
{{ s | nosuchfilter }}
{% nosuchtag %}
{% if %}{% endif %}
{% for %}{% endfor %}
{% if a %}
{% endif %}
{{ a b }}
{{ (a }}
{{ a) }}
{{ a
{% a
{{ 'a }}
{{ a[ }}
{{ . }}
{{ a.1 }}{{ xs.0 }}{{ xs.1 }}
{{ {{ }} }}
{{ a is is b }}
{% set 1 = 2 %}
{% set a.b.c = 2 %}
{% macro f(a=1, b) %}{% endmacro %}
{% break %}
{% for x in xs %}{{ x }}{% endif %}
{{}}
{{ 'Ünïcödé'|upper }}{{ 'STRASSE'|lower }}{{ 'ß'|upper }}{{ 'ﬁ'|title }}{{ 'ǆ'|capitalize }}
{{ "\u200b" }}{{ ["\u200b", "é", "\x7f", "\U0001f98a", "\ue000"] }}
{{ strftime_now('%Y')|length }}{{ strftime_now is defined }}
{%- if true -%}  a  {%- endif -%}  b
{% if true %}
  a
{% endif %}
  b
{% set x = [] %}{% for i in range(3) %}{% set x = x + [i] %}{{ x }}{% endfor %}{{ x }}
{{ 5 is odd and 4 is even }}{{ 4 is divisibleby 2 }}{{ 'a' is in ['a'] }}{{ 'a' is not in 'b' }}
{{ s[1:] }}{{ s[::-1] }}{{ s[-1] }}{{ xs[1:][0] }}{{ (xs + [4])[-2:] }}{{ s[0:none] }}
{{ "%s|%5d|%-5s|%05.1f|%%" | format('a', 3, 'b', 2.25) }}{{ '%(a)s' % {'a': 1} }}
{{ '{0}{1}{0}'.format('a', 'b') }}{{ '{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}'.format('a', 'b', 'c', 42, 1.5) }}
{{ '<a & "b">'|escape }}{{ s|safe }}{{ "'"|e ~ '<' }}
{% print 1 %}
{% block a %}{% endblock %}
{% include 'a' %}
"""
SOURCES = [line for line in _SOURCES.split("\n") if line]
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


@pytest.mark.parametrize("signs", itertools.product(["", "-", "+"], repeat=2))
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


@settings(max_examples=700, deadline=None, suppress_health_check=list(HealthCheck))
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


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "work"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deeper"),
        ("{{ 'x' * 99999999999 }}", "bytes"),
        ("{{ [1] * 99999999999 }}", "more than"),
        ("{{ ''.center(99999999999) }}", "bytes"),
        ("{% set n = namespace(x='xx') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}", ""),
        ("{% set n = namespace(x=1) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}", "nest"),
        ("{% set n = namespace(x=[]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}", ""),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nest deeper"),
        ("{{ 1" + " + 1" * 5000 + " }}", "nests deeper"),
        ("{{ x" + ".y" * 5000 + " }}", "nests deeper"),
        ("{{ not " * 1 + "not " * 5000 + "1 }}", "nests deeper"),
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
