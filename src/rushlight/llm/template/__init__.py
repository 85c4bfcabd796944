"""Chat templates: the text of a prompt from a conversation, rendered in C++ and without Python.

`ChatTemplate` renders a template; `check` compares it with Jinja when a model is exported;
`ReplyParser` takes the model's reply apart.
"""

from __future__ import annotations

from rushlight.llm.template.chat import ChatTemplate, Prompt, TemplateError
from rushlight.llm.template.check import check
from rushlight.llm.template.reply import (
    ReplyParser,
    ReplyPart,
    ToolCall,
    opens_reasoning,
    parse_reply,
    reply_format_of,
)

__all__ = [
    "ChatTemplate",
    "Prompt",
    "ReplyParser",
    "ReplyPart",
    "TemplateError",
    "ToolCall",
    "check",
    "opens_reasoning",
    "parse_reply",
    "reply_format_of",
]
