"""Takes replies apart: what the model says, its reasoning, and its calls of tools."""

from __future__ import annotations

from dataclasses import dataclass, field

from rushlight import _core
from rushlight.errors import Code, Error


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool.

    Attributes:
        name: the function's name.
        arguments: a JSON object, as text.
        id: what the model called it; "" if it did not.
    """

    name: str
    arguments: str
    id: str = ""


@dataclass
class ReplyPart:
    """What a text, or a piece of it, adds to a reply.

    Attributes:
        content: what the model says.
        reasoning: what stands between `<think>` and `</think>`, or the model's own markers of it.
        tool_calls: its calls of tools.
    """

    content: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)


class ReplyParser:
    """Takes a reply apart while it is generated.

    Text that may yet become a marker is held back until the next call of `push` or `finish`. What
    looks like a call and is none is content.

    Args:
        format: how the model writes calls: "hermes" (Qwen, Hermes, SmolLM), "llama", "mistral",
            "deepseek", "phi" (also Granite 3), "command" and "action" (Command R7B and Command R)
            or "json"; `reply_format_of` finds it.
        takes_calls: whether calls are looked for; pass False where no tools were offered.
        takes_reasoning: whether reasoning is looked for.
        in_reasoning: whether the prompt already opened a block of reasoning: `opens_reasoning`.
    """

    def __init__(
        self,
        format: str,
        *,
        takes_calls: bool = True,
        takes_reasoning: bool = True,
        in_reasoning: bool = False,
    ) -> None:
        try:
            self._parser = _core.ReplyParser(format, takes_calls, takes_reasoning, in_reasoning)
        except _core.Failure as failure:
            raise Error(failure.args[1], code=Code(failure.args[0])) from None

    def push(self, text: str) -> ReplyPart:
        """Take the next piece of the reply, and return what is known from it on.

        Args:
            text: whole characters; what special tokens stand for included.
        """
        return _reply(self._parser.push(text.encode()))

    def finish(self) -> ReplyPart:
        """Return the rest, when the reply is at its end."""
        return _reply(self._parser.finish())


def parse_reply(text: str, format: str, *, in_reasoning: bool = False) -> ReplyPart:
    """Take a whole reply apart.

    Args:
        text: the reply, without the token that ended it.
        format: how the model writes calls, as for `ReplyParser`.
        in_reasoning: whether the prompt already opened a block of reasoning.
    """
    parser = ReplyParser(format, in_reasoning=in_reasoning)
    first, rest = parser.push(text), parser.finish()
    return ReplyPart(
        first.content + rest.content,
        first.reasoning + rest.reasoning,
        first.tool_calls + rest.tool_calls,
    )


def reply_format_of(source: str) -> str:
    """The format of the replies of a model.

    Args:
        source: its chat template.
    """
    return _core.reply_format_of(source)


def opens_reasoning(prompt: str) -> bool:
    """Whether a prompt ends within a block of reasoning.

    Args:
        prompt: its text.
    """
    return _core.opens_reasoning(prompt)


def _reply(part: tuple[bytes, bytes, list[tuple[bytes, bytes, bytes]]]) -> ReplyPart:
    content, reasoning, calls = part
    return ReplyPart(
        content.decode(errors="replace"),
        reasoning.decode(errors="replace"),
        [ToolCall(name.decode(), args.decode(), id.decode()) for id, name, args in calls],
    )
