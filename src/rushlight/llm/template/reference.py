"""Chat templates as `transformers` renders them, with Jinja: the oracle of the C++ interpreter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

_REASONING = ("reasoning_content", "thinking", "reasoning")


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _strftime(format: str, now: int) -> str:
    moment = datetime.now() if now < 0 else datetime.fromtimestamp(now, timezone.utc)
    return moment.strftime(format)


def environment(now: int = -1) -> Any:
    """Jinja's environment, set as `transformers` sets it.

    Args:
        now: the time that templates see, in seconds since 1970; -1 is the clock's.
    """
    import jinja2
    import jinja2.ext
    from jinja2 import nodes
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(jinja2.ext.Extension):
        """The block around what the assistant said."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_call"), [], [], body).set_lineno(line)

        def _call(self, caller: Any) -> Any:
            return caller()

    class Namespace(jinja2.utils.Namespace):
        """One without private names."""

        def __init__(*args: Any, **kwargs: Any) -> None:
            self, *rest = args
            names = dict(*rest, **kwargs)
            for name in names:
                _refuse_private(name)
            jinja2.utils.Namespace.__init__(self, names)

        def __setitem__(self, name: str, value: Any) -> None:
            _refuse_private(name)
            super().__setitem__(name, value)

    def raise_exception(message: str) -> None:
        raise jinja2.exceptions.TemplateError(message)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = _tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda format: _strftime(format, now)
    made.globals["namespace"] = Namespace
    return made


def _refuse_private(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise ValueError(f"a name in a namespace must not begin with '_': {name!r}")


class Reference:
    """A template that Jinja renders.

    Args:
        source: the template.
        tokens: texts of special tokens by their names.
        now: the time that the template sees, as `environment` takes it.
    """

    def __init__(self, source: str, tokens: Mapping[str, str] | None = None, now: int = -1) -> None:
        self._tokens = dict(tokens or {})
        self._template = environment(now).from_string(source)

    def render(self, variables: Mapping[str, Any]) -> str:
        """The text of a conversation.

        Args:
            variables: those of the template; "messages" among them.
        """
        every = {**self._tokens, **json.loads(json.dumps(variables))}
        if isinstance(every.get("messages"), list):
            every["messages"] = _with_reasoning(every["messages"])
        return str(self._template.render(every))


def _with_reasoning(messages: Sequence[Any]) -> list[Any]:
    """Reasoning under all the names that templates have for it, as `transformers` adds them."""
    result = []
    for message in messages:
        if isinstance(message, dict):
            texts = (message[key] for key in _REASONING if message.get(key) is not None)
            text = next(texts, None)
            if text is not None:
                message = {"thinking": text, **message, "reasoning_content": text}
        result.append(message)
    return result
