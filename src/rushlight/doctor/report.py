"""Diagnoses as a report, which the page and `rushlight inspect` show as those of programs."""

from __future__ import annotations

import linecache
from collections.abc import Mapping

from rushlight.doctor.examine import Diagnosis
from rushlight.doctor.graphs import Captured, method_of
from rushlight.inspect.model import Method
from rushlight.inspect.report import ProgramReport
from rushlight.ir.branches import branches
from rushlight.ir.findings import KINDS, Finding
from rushlight.schema.finding import ExportFinding
from rushlight.schema.source import Source

_AROUND = 4  # lines of code before and after a line that is shown


def report_of_diagnoses(name: str, diagnoses: Mapping[str, Diagnosis]) -> ProgramReport:
    """The report on a model that was examined.

    Args:
        name: of the model, for people.
        diagnoses: by method.
    """
    methods: list[Method] = []
    stacks: dict[str, dict[str, str]] = {}
    for method, diagnosis in diagnoses.items():
        for graph in diagnosis.graphs:
            shown = f"{method}: {graph.name}" if graph.name else method
            methods.append(method_of(shown, graph))
            stacks[shown] = _stacks(graph)
            if diagnosis.signature and not graph.name:
                methods[-1].signature = diagnosis.signature
    return ProgramReport(
        name=name,
        bytes=0,
        by_kind={},
        methods=methods,
        operators=[],
        constants=[],
        named_data=[],
        executorch=[],
        executorch_needs=[],
        stacks={method: some for method, some in stacks.items() if some},
        findings=[
            _shown(method, finding)
            for method, diagnosis in diagnoses.items()
            for finding in diagnosis.findings
        ],
    )


def _stacks(graph: Captured) -> dict[str, str]:
    """By debug handle the lines of Python that led to a call of a graph that has handles."""
    module = graph.program.graph_module
    nodes = [node for one in (module, *branches(module)) for node in one.graph.nodes]
    if graph.part:
        return {}
    return {
        str(node.meta["debug_handle"]): str(node.meta["stack_trace"]).strip()
        for node in nodes
        if node.meta.get("debug_handle") and node.meta.get("stack_trace")
    }


def _shown(method: str, finding: Finding) -> ExportFinding:
    source = finding.source
    first = max(source.line - _AROUND, 1)
    lines = linecache.getlines(source.file) if source.file else []
    return ExportFinding(
        method=method,
        kind=finding.kind,
        what=KINDS[finding.kind],
        problem=finding.problem,
        advice=finding.advice,
        page=finding.page,
        blocks=finding.blocks,
        source=source if source != Source() else None,
        code=[line.rstrip() for line in lines[first - 1 : source.line + _AROUND]],
        first=first,
        stack=finding.stack,
        torch=finding.torch,
    )
