"""Findings: each describes one thing that blocks a model's export, in the user's own terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.schema.source import Source

# Kinds of findings; each has a page docs/gallery/<kind>.md with a rewrite that works.
KINDS = {
    "data-dependent-branch": "Python decides by a tensor's value",
    "data-dependent-size": "a size depends on a tensor's values",
    "example-of-size-one": "a size that should vary is 0 or 1 in the example",
    "graph-break": "code that cannot be traced",
    "leaves-pytorch": "the computation leaves PyTorch",
    "missing-bound": "a size that varies has no maximum",
    "missing-fake": "a custom operator without a fake implementation",
    "model-fails": "the model itself fails on the example inputs",
    "mutated-input": "the model writes its input",
    "narrower-range": "the model takes fewer sizes than dynamic_shapes allows",
    "not-lowered": "the program cannot be lowered",
    "python-state": "a Python attribute changes from call to call",
    "related-sizes": "two sizes with different names must be equal",
    "specialised-size": "a size that should vary is fixed by the model",
    "tensor-to-python": "a tensor's value becomes a Python number",
    "unsupported-dtype": "a dtype that a program cannot hold",
    "unsupported-operator": "an operator without a kernel",
    "unsupported-output": "a returned object that is not a container of tensors",
    "wrong-dynamic-shapes": "dynamic_shapes does not fit the inputs",
}
GALLERY = "docs/gallery"
# The advice for an operator that cannot run, or not with these dtypes.
OTHER_OPERATORS = (
    "Write the line with operators and dtypes that `rushlight ops` lists, give a decomposition "
    "with EdgeCompileConfig(decompositions=...), or say with "
    "rushlight.edge.register_operator(...) which library has a kernel"
)


def page_of(kind: str) -> str:
    """The page of the gallery that shows a rewrite for findings of this kind."""
    assert kind in KINDS, kind
    return f"{GALLERY}/{kind}.md"


@dataclass(frozen=True)
class Finding:
    """One blocker, or one warning.

    Attributes:
        kind: a key of `KINDS`.
        problem: a sentence that says what is wrong and names the argument and its dimension.
        advice: a sentence that says which change removes the problem.
        source: the line of Python that caused it, as far as it is known.
        blocks: False for a warning: the model exports, but not exactly as asked for.
        torch: torch's own message; "" if the finding is not torch's.
        stack: the lines of Python that led there, as in a traceback, where no graph has them.
    """

    kind: str
    problem: str
    advice: str
    source: Source = field(default_factory=Source)
    blocks: bool = True
    torch: str = ""
    stack: str = ""

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind

    @property
    def page(self) -> str:
        """The page of the gallery that shows a rewrite."""
        return page_of(self.kind)

    @property
    def place(self) -> str:
        """The source as "file.py:3 in forward: the line"; "" if it is not known."""
        return str(self.source) if self.source.file else ""

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.problem}{place}. {self.advice} [{self.page}]"

    def to_json(self) -> dict[str, Any]:
        """The finding as a dictionary for JSON."""
        return {
            "kind": self.kind,
            "problem": self.problem,
            "advice": self.advice,
            "blocks": self.blocks,
            "page": self.page,
            "source": asdict(self.source) if self.source != Source() else None,
        }


def distinct(findings: list[Finding]) -> list[Finding]:
    """The findings without those of the same kind about the same operator, or problem, of the same
    line; blockers first."""
    seen: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        about = finding.source.operator if finding.source.file else finding.problem
        seen.setdefault((finding.kind, finding.place, about), finding)
    return sorted(seen.values(), key=lambda f: not f.blocks)


def refusal(
    *findings: Finding, where: str = "", code: Code = Code.NOT_SUPPORTED, text: str = ""
) -> ExportError:
    """The error that says why the user's model cannot be exported.

    Args:
        findings: the findings; the error keeps them.
        where: the method or stage.
        code: the code of the error.
        text: the message; "" lists the findings.
    """
    return ExportError(text or _told(findings), code=code, where=where, findings=findings)


def _told(findings: Sequence[Finding]) -> str:
    if len(findings) == 1:
        return str(findings[0])
    lines = "\n".join(f"  {finding}" for finding in findings)
    return f"{len(findings)} things are in the way:\n{lines}"
