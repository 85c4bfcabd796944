"""Where something comes from in the model: one type, and one way to write it, for every tool."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?')


@dataclass(frozen=True, slots=True)
class Source:
    """The place in the user's model that something comes from; what is not known is 0 or "".

    Attributes:
        file: the path of the file of Python, as it was recorded at export.
        line: counted from 1.
        function: the function that holds the line.
        text: the line itself.
        module: the path of the `nn.Module`, such as "encoder.layers.0.norm1".
        operator: the operator of the model's graph, such as "aten.linear.default".
        handle: its debug handle, as in an ETRecord.
    """

    file: str = ""
    line: int = 0
    function: str = ""
    text: str = ""
    module: str = ""
    operator: str = ""
    handle: int = 0

    @property
    def position(self) -> str:
        """The file and line, "src/model.py:12"; "" if they are not known."""
        return f"{self.file}:{self.line}" if self.file else ""

    @property
    def brief(self) -> str:
        """The same without the folders of the file: "model.py:12"."""
        return self.position.rpartition("/")[2]

    def __str__(self) -> str:
        """The line as "model.py:12 in forward: `x + y`", or the module if the line is not known."""
        if not self.file:
            return self.module and f"module {self.module}"
        place = f"{self.position} in {self.function}" if self.function else self.position
        text = self.text.strip()
        return f"{place}: `{text}`" if text else place

    @property
    def full(self) -> str:
        """All that is known, in the order of operator, module, line and debug handle."""
        parts = [self.operator, f"module {self.module}" if self.module else ""]
        parts.append(str(self) if self.file else "")
        parts.append(f"debug handle {self.handle}" if self.handle else "")
        return ", ".join(filter(None, parts))

    @property
    def as_frame(self) -> str:
        """The line as in a traceback, which `frames_in` reads; "" if it is not known."""
        if not self.file:
            return ""
        place = f'File "{self.file}", line {self.line}'
        place += f", in {self.function}" if self.function else ""
        return f"{place}\n    {self.text.strip()}" if self.text else place


def frames_in(trace: str) -> list[Source]:
    """The lines of a traceback's text, the outermost first."""
    lines = trace.splitlines()
    frames = []
    for at, text in enumerate(lines):
        frame = _FRAME.search(text)
        if frame is None:
            continue
        code = lines[at + 1].strip() if at + 1 < len(lines) else ""
        code = "" if _FRAME.search(code) else code.rstrip("^~ ")
        frames.append(Source(frame["file"], int(frame["line"]), frame["function"] or "", code))
    return frames
