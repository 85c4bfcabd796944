"""What linked code consists of, from the map that GNU ld writes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

_START = "Linker script and memory map"
# " .text.name  0xaddress  0xsize  file", with a long name on a line of its own.
_SECTION = re.compile(
    r"^ \.(text|rodata|data|init_array|ARM\.ex|got|plt)\S*\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S+)$",
    re.M,
)
_MEMBER = re.compile(r"\(([^()]+)\)$")


@dataclass(frozen=True, slots=True)
class Part:
    """Code and constants that one source file brought.

    Attributes:
        name: the source's path below `cpp/`, such as "core/tensor.cpp"; the file name of one that
            was generated, and "libgcc: _udivdi3" for a library's.
        code, constants: in bytes.
    """

    name: str
    code: int
    constants: int

    @property
    def bytes(self) -> int:
        """All of it."""
        return self.code + self.constants

    def to_json(self) -> dict[str, object]:
        """For `size.json`."""
        return {**asdict(self), "bytes": self.bytes}


def parts_of(path: Path, sources: Collection[str]) -> list[Part]:
    """The parts of what was linked, the largest first.

    Args:
        path: the linker's map.
        sources: the paths of the runtime's sources below `cpp/`.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    code: Counter[str] = Counter()
    constants: Counter[str] = Counter()
    for kind, size, file in _SECTION.findall(text[text.index(_START) :]):
        counter = code if kind in ("text", "plt") else constants
        counter[_source(file, sources) or _name(file)] += int(size, 16)
    names = sorted(set(+code) | set(+constants), key=lambda n: (-code[n] - constants[n], n))
    return [Part(name, code[name], constants[name]) for name in names]


def _source(file: str, sources: Collection[str]) -> str:
    """The source of an object `…/cpp/core/tensor.cpp.o`; "" if it is none of these."""
    path = re.sub(r"\.o(bj)?$", "", file)
    places = [match.end() for match in re.finditer(r"(?:^|/)cpp/", path)]
    return next((path[place:] for place in places if path[place:] in sources), "")


def _name(file: str) -> str:
    member = _MEMBER.search(file)
    library = re.sub(r"\(.*|.*/", "", file[: member.start()] if member else file)
    name = re.sub(r"\.o(bj)?$", "", member[1] if member else file.rsplit("/", 1)[-1])
    return name if name.endswith((".cpp", ".c")) else f"{library.removesuffix('.a')}: {name}"
