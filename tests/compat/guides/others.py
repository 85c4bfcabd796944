"""The documents without code, as scenarios of our own writing: `tests/compat/documents`."""

from __future__ import annotations

from guides.scenario import ROOT, Scenario, Step, python

_FOLDER = ROOT / "tests" / "compat" / "documents"


def scenarios() -> list[Scenario]:
    partner = (_FOLDER / "partner.py").read_text(encoding="utf-8")
    return [
        Scenario(
            "partners: quantiser, partitioner and preprocess of a backend",
            [Step(["python", "partner.py", "."], {"partner.py": partner})],
        ),
        *(
            Scenario(name, [python(file, (_FOLDER / file).read_text(encoding="utf-8"))])
            for name, file in (
                ("concepts: dialects, planning, registries", "concepts.py"),
                ("PT2 Export: shapes, branches, decompositions", "pt2_export.py"),
            )
        ),
    ]
