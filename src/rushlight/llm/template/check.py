"""Compares the C++ interpreter with Jinja on a template, when a model is exported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rushlight.errors import ExportError
from rushlight.llm.template.chat import ChatTemplate, TemplateError
from rushlight.llm.template.conversations import conversations
from rushlight.llm.template.reference import Reference

_NOW = 1_750_000_000
_SHOWN = 40  # characters around a difference


def check(
    source: str,
    tokens: Mapping[str, str] | None = None,
    renders: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Check that a template renders as Jinja renders it; returns on how many it was compared.

    Conversations that both refuse count as equal.

    Args:
        source: the template.
        tokens: texts of special tokens by the names that templates have for them.
        renders: the variables of each render, by a name for it; those of
            `rushlight.llm.template.conversations` if it is None.

    Raises:
        ExportError: the template cannot be read, renders nothing at all, or renders a conversation
            differently, which the error names.
    """
    try:
        reference = Reference(source, tokens, _NOW)
    except Exception as error:  # a template can make Python raise anything
        raise ExportError(f"Jinja cannot read the chat template: {error}") from None
    try:
        template = ChatTemplate(source, tokens)
    except TemplateError as error:
        raise ExportError(f"{error}. Pass a template without it, or none") from None
    cases = conversations() if renders is None else renders
    equal, refusal = 0, ""
    for name, variables in cases.items():
        ours, why = _ours(template, variables)
        theirs, their_why = _theirs(reference, variables)
        if ours != theirs:
            raise ExportError(
                "the chat template cannot be used: the runtime renders it differently from Jinja "
                f"on {name}: {_difference(ours, why, theirs, their_why)}. Pass a template that "
                "avoids this, or none"
            )
        equal += ours is not None
        refusal = refusal or their_why
    if equal == 0:
        raise ExportError(f"the chat template renders no conversation: {refusal}")
    return equal


def _ours(template: ChatTemplate, variables: Mapping[str, Any]) -> tuple[str | None, str]:
    try:
        return template.render(**{**variables, "now": _NOW}).text, ""
    except TemplateError as error:
        return None, str(error)


def _theirs(reference: Reference, variables: Mapping[str, Any]) -> tuple[str | None, str]:
    try:
        return reference.render(variables), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _difference(ours: str | None, why: str, theirs: str | None, their_why: str) -> str:
    if ours is None:
        return f"{why}, where Jinja writes {(theirs or '')[:_SHOWN]!r}"
    if theirs is None:
        return f"it writes {ours[:_SHOWN]!r}, where Jinja fails with {their_why}"
    pairs = zip(ours, theirs, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))
    start = max(at - _SHOWN // 2, 0)
    return (
        f"at character {at} it writes {ours[start : at + _SHOWN]!r}, where Jinja writes "
        f"{theirs[start : at + _SHOWN]!r}"
    )
