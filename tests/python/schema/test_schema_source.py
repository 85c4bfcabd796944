"""Where something comes from in a model: how it is written, and read from tracebacks."""

from __future__ import annotations

import traceback

import pytest

from rushlight.schema.debug import DebugLine, DebugNode
from rushlight.schema.source import Source, frames_in

LINE = Source("nets/größe.py", 12, "forward", "x + y  ", "blöcke.0", "aten.add.Tensor", 7)


def test_every_tool_writes_a_place_in_one_way() -> None:
    assert str(LINE) == "nets/größe.py:12 in forward: `x + y`"
    assert (LINE.position, LINE.brief) == ("nets/größe.py:12", "größe.py:12")
    assert LINE.full == (
        "aten.add.Tensor, module blöcke.0, nets/größe.py:12 in forward: `x + y`, debug handle 7"
    )
    line = DebugLine("nets/größe.py", 12, "forward", "x + y  ")
    assert DebugNode("add", "aten.add.Tensor", line, "blöcke.0", 7).source == LINE


@pytest.mark.parametrize(
    ("source", "text", "full"),
    [
        (Source(), "", ""),
        (Source("a.py", 3), "a.py:3", "a.py:3"),
        (Source("a.py", 3, text="x"), "a.py:3: `x`", "a.py:3: `x`"),
        (Source(module="a.b"), "module a.b", "module a.b"),
        (Source(operator="aten.add.Tensor", handle=2), "", "aten.add.Tensor, debug handle 2"),
    ],
)
def test_what_is_not_known_is_left_out(source: Source, text: str, full: str) -> None:
    assert (str(source), source.full) == (text, full)


def test_frames_of_a_real_traceback() -> None:
    def inner() -> None:
        raise ValueError

    try:
        inner()
    except ValueError as error:
        frames = frames_in("".join(traceback.format_exception(error)))
        wanted = traceback.extract_tb(error.__traceback__)
    shown = [(frame.file, frame.line, frame.function, frame.text) for frame in frames]
    assert shown == [(one.filename, one.lineno, one.name, one.line) for one in wanted]


def test_a_line_is_read_as_it_was_written() -> None:
    assert frames_in(LINE.as_frame) == [Source("nets/größe.py", 12, "forward", "x + y")]
    assert frames_in("no traceback") == [] == frames_in(Source().as_frame)
