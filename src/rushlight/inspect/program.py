"""Reads a program file and makes its report, without torch and without running it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rushlight.inspect import interop
from rushlight.inspect.filebytes import bytes_by_kind, same_place
from rushlight.inspect.methods import read_method
from rushlight.inspect.model import (
    Constant,
    FormUse,
    Method,
    NamedData,
    Operator,
    Value,
)
from rushlight.inspect.origin import (
    CONTRACT,
    KERNELS,
    Signature,
    debug_of,
    read_json,
    signature_of,
)
from rushlight.inspect.report import ProgramReport
from rushlight.runtime.forms import KEY as FORMS
from rushlight.runtime.forms import Index, read_index
from rushlight.runtime.source import map_file
from rushlight.schema.codec import Buffer
from rushlight.schema.debug import DebugMap
from rushlight.schema.operators import SCHEMAS
from rushlight.serialize.bundle import program_in
from rushlight.serialize.file import PTEFile
from rushlight.serialize.pte import read_pte
from rushlight.serialize.segments import as_bytes

__all__ = ["ProgramReport", "memory_of", "report_of"]


def report_of(
    source: str | os.PathLike[str] | Buffer, *, debug: DebugMap | None = None
) -> ProgramReport:
    """The report on a program file.

    Args:
        source: a path, or the bytes of the file.
        debug: a debug map to use instead of the file's, which may have less.

    Raises:
        LoadError: the file cannot be read, is not a program, or is damaged; says where.
    """
    name = Path(source).name if isinstance(source, str | os.PathLike) else ""
    return _report(_bytes_of(source), name, debug)


def memory_of(source: str | os.PathLike[str] | Buffer) -> dict[str, dict[str, int]]:
    """Bytes that each method of a program takes, see :meth:`ProgramReport.memory`.

    Raises:
        LoadError: as :func:`report_of`.
    """
    return report_of(source).memory()


def methods_of(
    source: str | os.PathLike[str] | Buffer,
) -> tuple[PTEFile, list[Method], DebugMap]:
    """The contents of a program, its methods in order, with hidden forms, and its debug map.

    Raises:
        LoadError: as :func:`report_of`.
    """
    pte = read_pte(_bytes_of(source))
    debug = debug_of(pte.named_data)
    return pte, _methods(pte, _signatures(pte), debug), debug


def _bytes_of(source: str | os.PathLike[str] | Buffer) -> Buffer:
    return program_in(map_file(source) if isinstance(source, str | os.PathLike) else source)


def _signatures(pte: PTEFile) -> dict[str, Signature | None]:
    contract = read_json(pte.named_data, CONTRACT)
    plans = pte.program.execution_plan
    return {plan.name: signature_of(contract, plan.name) for plan in plans}


def _methods(
    pte: PTEFile, signatures: Mapping[str, Signature | None], debug: DebugMap
) -> list[Method]:
    plans = pte.program.execution_plan
    return [
        read_method(pte, plan, signatures[plan.name], debug.method(plan.name)) for plan in plans
    ]


def _report(data: Buffer, name: str, debug: DebugMap | None) -> ProgramReport:
    pte = read_pte(data)
    plans = pte.program.execution_plan
    signatures = _signatures(pte)
    stored = debug_of(pte.named_data)
    methods = _methods(pte, signatures, debug or stored)
    forms = read_index(as_bytes(pte.named_data.get(FORMS, b"")), list(signatures))
    hidden = forms.hidden() if forms is not None else set()
    visible = [method for method in methods if method.name not in hidden]
    kernels = read_json(pte.named_data, KERNELS)
    operators = _operators(methods, kernels)
    shared = same_place(pte.named_data.values())
    return ProgramReport(
        name=name,
        bytes=memoryview(data).nbytes,
        by_kind=bytes_by_kind(data, pte),
        methods=methods,
        operators=operators,
        constants=_constants(methods),
        named_data=[
            NamedData(key, len(as_bytes(value)), again)
            for (key, value), again in zip(pte.named_data.items(), shared, strict=True)
        ],
        executorch=interop.reasons_against(
            [plan for plan in plans if plan.name not in hidden],
            _operators(visible, kernels),
            signatures,
        ),
        executorch_needs=interop.needs(visible, _operators(visible, kernels)),
        needs=_needs(operators, _own_operators(pte)),
        forms=_forms(forms, methods),
        debug_left_out=stored.left_out,
    )


def _operators(methods: Sequence[Method], kernels: Mapping[str, Any]) -> list[Operator]:
    """The operators that are called, the most frequent ones first."""
    from rushlight.ir.kernels import manifest

    calls = Counter(
        (instruction.kind, instruction.op)
        for method in methods
        for instruction in method.instructions
        if instruction.kind in ("kernel", "delegate")
    )
    libraries: Any = kernels.get("libraries")
    operators = []
    for (kind, name), count in calls.most_common():
        if kind == "delegate":
            operators.append(Operator(name, count, kind, interop.runs_backend(name)))
            continue
        known = manifest().find(name)
        told = libraries.get(name, "") if isinstance(libraries, dict) else ""
        library = known.library if known is not None else str(told)
        operators.append(Operator(name, count, kind, interop.runs_kernel(name), library))
    return operators


def _forms(index: Index | None, methods: Sequence[Method]) -> list[FormUse]:
    """The forms of a fat program, in order of preference."""
    if index is None:
        return []
    by_name = {method.name: method for method in methods}
    forms = []
    for name in index.order:
        plans = [p for plans in index.methods.values() for p in plans if p.form == name]
        mine = [by_name[plan.plan] for plan in plans]
        backends = sorted({backend for plan in plans for backend in plan.backends})
        forms.append(
            FormUse(
                name,
                [method.name for method in mine],
                backends,
                sum(method.constant_bytes for method in mine),
                sum(method.delegate_bytes for method in mine),
            )
        )
    return forms


def _own_operators(pte: PTEFile) -> list[str]:
    """The operators whose schemas a program has, since they are not the runtime's."""
    lines = bytes(as_bytes(pte.named_data.get(SCHEMAS, b""))).decode(errors="replace").splitlines()
    return [line.partition("(")[0] for line in lines]


def _needs(operators: Sequence[Operator], own: Sequence[str]) -> list[str]:
    """The kernels that a runtime must have besides the portable ones, in words."""
    texts = []
    called = {operator.name for operator in operators}
    for name in own:
        if name not in called:
            texts.append(f"a kernel for {name}, which a delegate calls: link a library of yours")
    for operator in operators:
        if operator.kind == "kernel" and operator.library != "portable":
            place = f"library {operator.library!r}" if operator.library else "a library of yours"
            texts.append(f"a kernel for {operator.name}: link {place}")
    return texts


def _constants(methods: Sequence[Method]) -> list[Constant]:
    """Constants, initial states and external tensors, the largest ones first."""
    constants: dict[tuple[str, str | int], Constant] = {}
    for method in methods:
        for value in method.values:
            kind = _constant_kind(value)
            if kind is None:
                continue
            key = (kind, value.constant or value.name)
            if key not in constants:
                constants[key] = Constant(
                    *(value.constant, value.name, value.dtype, value.shape, value.bytes), [], kind
                )
            constant = constants[key]
            constant.uses.append(f"{method.name}: {value.name}")
            if value.bytes > constant.bytes:
                constant.dtype, constant.shape = value.dtype, value.shape
                constant.bytes = value.bytes
    return sorted(constants.values(), key=lambda constant: -constant.bytes)


def _constant_kind(value: Value) -> str | None:
    if value.role in ("constant", "external"):
        return value.role
    return "initial state" if value.constant else None
