"""Chat templates: the text of a prompt from a conversation, rendered in C++ and without Python.

`ChatTemplate` renders a template; `check` compares it with Jinja when a model is exported.
"""

from __future__ import annotations

from rushlight.llm.template.chat import ChatTemplate, Prompt, TemplateError
from rushlight.llm.template.check import check

__all__ = ["ChatTemplate", "Prompt", "TemplateError", "check"]
