"""What a program will need, before anything is built: code, memory, file."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from rushlight.inspect import memory_of
from rushlight.selective.selection import Options, needed_by
from rushlight.selective.sources import Sources, source_root
from rushlight.selective.uses import Uses, uses_of


@dataclass(frozen=True, slots=True)
class Needs:
    """What programs need.

    Attributes:
        uses: the kernels, backends and nodes.
        code: about so many bytes of code and constants, for each part of the runtime.
        isa: the instruction set that loops were measured for.
        memory: bytes that each method takes, as `rushlight.inspect.memory_of` has them, by the
            program's name.
        file: bytes of each program.
    """

    uses: Uses
    code: dict[str, int]
    isa: str
    memory: dict[str, dict[str, dict[str, int]]]
    file: dict[str, int]

    def to_json(self) -> dict[str, object]:
        """Everything, for programs."""
        calls = {name: len(keys) for name, keys in sorted(self.uses.operators.items())}
        return {
            **{key: value for key, value in asdict(self).items() if key != "uses"},
            "operators": calls,
            "own operators": sorted(self.uses.own),
            "dtypes": sorted(self.uses.dtypes),
            "backends": sorted(self.uses.backends),
            "nodes": sorted(self.uses.nodes),
        }


def needs_of(programs: Sequence[str | os.PathLike[str]]) -> Needs:
    """What some programs need together.

    Raises:
        LoadError: a program cannot be read.
        Error: the package was installed without the runtime's sources.
    """
    uses = uses_of(programs)
    sources = Sources(source_root())
    known = set(sources.kernels)
    uses.own |= set(uses.operators) - known  # of somebody else's kernels nothing is known
    table = json.loads(files(__package__).joinpath("code_sizes.json").read_text("utf-8"))
    code: Counter[str] = Counter()
    for name in needed_by(uses, sources, Options("app", module=False)):
        # What was never linked to be measured is as large as its object, at most.
        code[_part(name)] += table["linked"].get(name, table["files"].get(name, 0))
    paths = [Path(program) for program in programs]
    return Needs(
        uses=uses,
        code=dict(sorted((+code).items())),
        isa=table["isa"],
        memory={path.name: memory_of(path) for path in paths},
        file={path.name: path.stat().st_size for path in paths},
    )


def _part(name: str) -> str:
    folder = name.split("/", 1)[0]
    return folder if folder in ("kernels", "engine", "backends", "module") else "core"
