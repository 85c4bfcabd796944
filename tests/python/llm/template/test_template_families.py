"""Templates in the style of each family render in C++ as `transformers` renders them with Jinja."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn_conversations import drawn
from transformers.utils.chat_template_utils import render_jinja_template

from rushlight.llm.template import check
from rushlight.llm.template.conversations import conversations
from rushlight.llm.template.reference import Reference

TEMPLATES = sorted((Path(__file__).parent / "templates").glob("*.jinja"))
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_family_renders_as_jinja_does(path: Path) -> None:
    assert check(path.read_text("utf-8"), TOKENS) >= 10


@pytest.mark.parametrize(
    "count", [60, pytest.param(3000, marks=pytest.mark.full)], ids=["some", "many"]
)
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_family_renders_drawn_conversations_as_jinja_does(path: Path, count: int) -> None:
    equal = check(path.read_text("utf-8"), TOKENS, drawn(path.stem, count))
    assert equal >= count // 20  # others are refused by the template


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_the_reference_is_that_of_transformers(path: Path) -> None:
    source = path.read_text("utf-8")
    reference = Reference(source, TOKENS)
    for variables in conversations().values():
        given = {**variables, **TOKENS}
        try:
            theirs, _ = render_jinja_template(
                [given.pop("messages")], chat_template=source, **given
            )
        except Exception as error:
            with pytest.raises(type(error)):
                reference.render(variables)
        else:
            assert theirs == [reference.render(variables)]
