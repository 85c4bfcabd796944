"""Writes the table of what Python's strings know of each character, which chat templates need.

It is what `str.isprintable`, `str.upper` and the like say in the Python that runs this, so that it
changes with Python's version of Unicode. Run ``python -m codegen.characters``.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "cpp" / "llm" / "template" / "values" / "character_tables.cpp"
# In the order of `CharacterFlag` in characters.h.
FLAGS = ("isprintable", "isalpha", "isdecimal", "isdigit", "isnumeric", "isupper", "islower")
CASES = ("upper", "lower", "title")
CODES = range(0x110000)


def _flags(code: int) -> int:
    return sum(getattr(chr(code), name)() << bit for bit, name in enumerate(FLAGS))


def _runs() -> list[str]:
    """The first code of each run of characters with the same flags, and these."""
    rows, last = [], -1
    for code in CODES:
        flags = _flags(code)
        if flags != last:
            rows.append(f"0x{code << 8 | flags:08x}u")
            last = flags
    return rows


def _mappings(case: str) -> tuple[list[str], list[str]]:
    """Mappings to one character, as (first, last, stride, difference), and to several."""
    runs: list[list[int]] = []
    several = []
    for code in CODES:
        to = getattr(chr(code), case)()
        if to == chr(code):
            continue
        if len(to) > 1:
            codes = [*(f"0x{ord(c):x}" for c in to), "0", "0"][:3]
            several.append(f"{{0x{code:x}, {{{', '.join(codes)}}}}}")
            continue
        difference = ord(to) - code
        run = runs[-1] if runs else [0, -9, 0, 0]
        stride = code - run[1]
        if run[3] == difference and (stride == run[2] or (run[0] == run[1] and stride <= 2)):
            run[1:3] = [code, stride]
        else:
            runs.append([code, code, 1, difference])
    return [f"{{0x{a:x}, 0x{b:x}, {s}, {d}}}" for a, b, s, d in runs], several


def _array(head: str, rows: list[str]) -> str:
    lines, line = [], " "
    for row in rows:
        if len(line) + len(row) + 2 > 100:
            lines.append(line)
            line = " "
        line += f" {row},"
    return "\n".join([f"{head}[] = {{", *lines, line, "};"])


def table() -> str:
    """Returns the text of character_tables.cpp."""
    parts = [
        "// Written by codegen/characters.py; do not edit.\n// clang-format off",
        '#include "rushlight/llm/template/values/character_tables.h"',
        "namespace rushlight::llm {",
        "namespace {",
        _array("constexpr uint32_t kRuns", _runs()),
    ]
    sizes = []
    for case in CASES:
        one, several = _mappings(case)
        name = case.capitalize()
        parts.append(_array(f"constexpr CaseRun k{name}", one))
        parts.append(_array(f"constexpr CaseExpansion k{name}Several", several))
        sizes.append(f"const CaseTable k{name}Table = {{k{name}, k{name}Several}};")
    parts += ["}  // namespace", "const Span<const uint32_t> kCharacterRuns = kRuns;", *sizes]
    parts.append("}  // namespace rushlight::llm")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
