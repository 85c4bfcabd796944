"""Bundled programs under ExecuTorch's names; `rushlight.bundle` checks more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from rushlight.errors import Code, ExportError
from rushlight.exir.tensors import scalar_type_enum
from rushlight.ir.spec import dim_order_of, raw_bytes
from rushlight.schema import bundled_program as fb
from rushlight.serialize.bundle import read_bundle, write_bundle

ConfigValue = torch.Tensor | int | bool | float
MethodInputType = Sequence[ConfigValue]
MethodOutputType = Sequence[torch.Tensor]
DataContainer: Any = list | tuple | dict


def _refuse(message: str) -> ExportError:
    return ExportError(message, code=Code.INVALID_ARGUMENT)


def _flat(values: Any) -> list[ConfigValue]:
    flat, _ = pytree.tree_flatten(values)
    for value in flat:
        if not isinstance(value, ConfigValue):
            raise _refuse(
                f"{value!r} is a {type(value).__name__}: a test case has tensors and numbers"
            )
    return flat


class MethodTestCase:
    """One call of a method, and what it is to return.

    Args:
        inputs: in the structure that the method takes, or flat.
        expected_outputs: the same of what it returns; None if nothing is checked.
    """

    def __init__(self, inputs: Any, expected_outputs: Any = None) -> None:
        self.inputs = _flat(inputs)
        self.expected_outputs = [] if expected_outputs is None else _flat(expected_outputs)


@dataclass
class MethodTestSuite:
    """The test cases of a method."""

    method_name: str
    test_cases: Sequence[MethodTestCase]


class BundledProgram:
    """A finished program with test cases for its methods.

    Args:
        executorch_program: what `to_executorch` returned; or None.
        method_test_suites: the cases.
        pte_file_path: a program's file; or None.

    Raises:
        ExportError: not one of both is given, there is no such method, or a case has inputs of
            other numbers or dtypes than the method takes.
    """

    def __init__(
        self,
        executorch_program: Any,
        method_test_suites: Sequence[MethodTestSuite],
        pte_file_path: str | None = None,
    ) -> None:
        if (executorch_program is None) == (pte_file_path is None):
            raise _refuse("give executorch_program or pte_file_path, one of both")
        self.executorch_program = executorch_program
        self.method_test_suites = sorted(method_test_suites, key=lambda suite: suite.method_name)
        self._path = pte_file_path
        if executorch_program is not None:
            plans = {p.name: p for p in executorch_program.executorch_program.execution_plan}
            for suite in self.method_test_suites:
                if suite.method_name not in plans:
                    raise _refuse(
                        f"there are cases for a method {suite.method_name!r}, which the program "
                        f"does not have; it has {', '.join(plans)}"
                    )
                for i, case in enumerate(suite.test_cases):
                    _check(f"{suite.method_name}, case {i}", plans[suite.method_name], case)

    def serialize_to_schema(self) -> fb.BundledProgram:
        """The file's content as dataclasses."""
        return read_bundle(serialize_from_bundled_program_to_flatbuffer(self))

    def program_bytes(self) -> Any:
        """The program's file."""
        if self._path is not None:
            return Path(self._path).read_bytes()
        return self.executorch_program.buffer


def _check(where: str, plan: Any, case: MethodTestCase) -> None:
    for what, places, given in (
        ("inputs", plan.inputs, case.inputs),
        ("outputs", plan.outputs, case.expected_outputs),
    ):
        if what == "outputs" and not given:
            continue
        if len(places) != len(given):
            raise _refuse(f"{where} has {len(given)} {what}, the method has {len(places)}")
        for i, (place, value) in enumerate(zip(places, given, strict=True)):
            known = plan.values[place].val
            is_tensor = hasattr(known, "scalar_type")
            if is_tensor != isinstance(value, torch.Tensor):
                raise _refuse(f"{where}: {what[:-1]} {i} is {value!r}, the method's is {known}")
            if not isinstance(value, torch.Tensor):
                continue
            if scalar_type_enum(value.dtype) != known.scalar_type:
                raise _refuse(
                    f"{where}: {what[:-1]} {i} is {value.dtype}, the method's is "
                    f"{known.scalar_type.name}"
                )


def _value(value: ConfigValue) -> fb.Value:
    if isinstance(value, torch.Tensor):
        order = list(dim_order_of(value))
        dtype: Any = scalar_type_enum(value.dtype)
        return fb.Value(fb.Tensor(dtype, list(value.shape), bytes(raw_bytes(value)), order))
    if isinstance(value, bool):
        return fb.Value(fb.Bool(value))
    return fb.Value(fb.Int(value) if isinstance(value, int) else fb.Double(value))


def serialize_from_bundled_program_to_flatbuffer(bundled_program: BundledProgram) -> bytes:
    """The content of the file (.bpte)."""
    suites = [
        fb.BundledMethodTestSuite(
            suite.method_name,
            [
                fb.BundledMethodTestCase(
                    inputs=[_value(v) for v in case.inputs],
                    expected_outputs=[_value(v) for v in case.expected_outputs],
                )
                for case in suite.test_cases
            ],
        )
        for suite in bundled_program.method_test_suites
    ]
    return write_bundle(bundled_program.program_bytes(), suites)


def deserialize_from_flatbuffer_to_bundled_program(flatbuffer: bytes) -> fb.BundledProgram:
    """The content of a file (.bpte) as dataclasses."""
    return read_bundle(flatbuffer)
