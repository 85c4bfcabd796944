"""Method suites: bundled programs as ExecuTorch makes them, from flat cases for each method."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch.utils._pytree as pytree

from rushlight.errors import Code, ExportError
from rushlight.ir.spec import SCALAR_TYPES, dim_order_of, raw_bytes
from rushlight.pipeline import ExecutorchProgramManager
from rushlight.schema import bundled_program as fb
from rushlight.schema import program as schema
from rushlight.serialize.bundle import VERSION, read_bundle, write_bundle

ConfigValue: TypeAlias = torch.Tensor | int | bool | float
"""What a case's inputs and outputs are made of."""
MethodInputType: TypeAlias = Sequence[ConfigValue]
MethodOutputType: TypeAlias = Sequence[torch.Tensor]
DataContainer: TypeAlias = list | tuple | dict  # type: ignore[type-arg]  # for isinstance

supported_program_type_table: dict[type, type] = {
    schema.Tensor: torch.Tensor,
    schema.Int: int,
    schema.Double: float,
    schema.Bool: bool,
}


class BundleMismatchError(ExportError, AssertionError):
    """A case does not fit the program; ExecuTorch raises an AssertionError here."""


class MethodTestCase:
    """One call of a method, and what it returns.

    Args:
        inputs: all that the method takes, in any nesting of lists, tuples and dicts.
        expected_outputs: what it returns, likewise; None if only times are of interest.

    Raises:
        BundleMismatchError: a leaf is neither a tensor nor a number.
    """

    def __init__(self, inputs: Any, expected_outputs: Any = None) -> None:
        self.inputs: list[ConfigValue] = _leaves("input", inputs)
        self.expected_outputs: list[ConfigValue] = (
            [] if expected_outputs is None else _leaves("expected output", expected_outputs)
        )


@dataclass
class MethodTestSuite:
    """The cases of one method.

    Attributes:
        method_name: its name.
        test_cases: in their order.
    """

    method_name: str
    test_cases: Sequence[MethodTestCase]


class BundledProgram:
    """A program and the suites of its methods.

    Args:
        executorch_program: what `to_executorch` returned; its types are compared with the cases'.
        method_test_suites: one for each method that has cases, in any order.
        pte_file_path: the program's file, in place of `executorch_program`.

    Raises:
        RuntimeError: there are both, or none of both.
        BundleMismatchError: a suite or a case does not fit the program.
    """

    def __init__(
        self,
        executorch_program: ExecutorchProgramManager | None,
        method_test_suites: Sequence[MethodTestSuite],
        pte_file_path: str | os.PathLike[str] | None = None,
    ) -> None:
        if (executorch_program is None) == (pte_file_path is None):
            given = "none of both" if pte_file_path is None else "both"
            raise RuntimeError(
                f"give either executorch_program or pte_file_path, not {given}: a bundled program "
                "has one program"
            )
        self.executorch_program = executorch_program
        self.method_test_suites = sorted(method_test_suites, key=lambda suite: suite.method_name)
        self._path = pte_file_path
        if executorch_program is not None:
            _check(executorch_program.executorch_program, self.method_test_suites)

    @property
    def methods(self) -> list[str]:
        """The methods that have cases."""
        return [suite.method_name for suite in self.method_test_suites]

    def torch_cases(self, method: str) -> list[tuple[list[Any], list[Any]]]:
        """The flat inputs and expected outputs of a method's cases."""
        return [
            (case.inputs, case.expected_outputs)
            for suite in self.method_test_suites
            if suite.method_name == method
            for case in suite.test_cases
        ]

    def serialize_to_schema(self) -> fb.BundledProgram:
        """The program and its cases as the tables of the file."""
        if self.executorch_program is not None:
            program = self.executorch_program.buffer
        else:
            assert self._path is not None
            program = Path(self._path).read_bytes()
        return fb.BundledProgram(VERSION, [_suite(s) for s in self.method_test_suites], program)


def serialize_from_bundled_program_to_flatbuffer(bundled_program: BundledProgram) -> bytes:
    """The bytes of the file (.bpte).

    Args:
        bundled_program: a program with its suites.
    """
    tables = bundled_program.serialize_to_schema()
    return write_bundle(tables.program, tables.method_test_suites)


def deserialize_from_flatbuffer_to_bundled_program(flatbuffer: bytes) -> fb.BundledProgram:
    """The tables of a file.

    Args:
        flatbuffer: its bytes.

    Raises:
        LoadError: they are no bundled program.
    """
    return read_bundle(flatbuffer)


def _leaves(what: str, tree: Any) -> list[ConfigValue]:
    leaves: list[Any] = pytree.tree_leaves(tree)
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, torch.Tensor | int | bool | float):
            raise _mismatch(
                f"{what} {i} is {leaf!r} of type {type(leaf).__name__}: give torch.Tensor, int, "
                "bool or float"
            )
    return leaves


def _suite(suite: MethodTestSuite) -> fb.BundledMethodTestSuite:
    cases = [
        fb.BundledMethodTestCase(
            [_value(value) for value in case.inputs],
            [_value(value) for value in case.expected_outputs],
        )
        for case in suite.test_cases
    ]
    return fb.BundledMethodTestSuite(suite.method_name, cases)


def _value(value: ConfigValue) -> fb.Value:
    if isinstance(value, torch.Tensor):
        plain = value.detach().cpu()
        return fb.Value(
            fb.Tensor(
                SCALAR_TYPES[plain.dtype],
                list(plain.shape),
                raw_bytes(plain).tobytes(),
                list(dim_order_of(plain)),
            )
        )
    if isinstance(value, bool):
        return fb.Value(fb.Bool(value))
    return fb.Value(fb.Int(value) if isinstance(value, int) else fb.Double(value))


def _check(program: schema.Program, suites: Sequence[MethodTestSuite]) -> None:
    plans = {plan.name: plan for plan in program.execution_plan}
    for suite in suites:
        plan = plans.get(suite.method_name)
        if plan is None:
            raise _mismatch(
                f"there is a suite for {suite.method_name!r}, which is no method of the program; "
                f"it has {', '.join(plans)}"
            )
        for i, case in enumerate(suite.test_cases):
            _check_case(f"{suite.method_name}: case {i}", plan, case)


def _check_case(where: str, plan: schema.ExecutionPlan, case: MethodTestCase) -> None:
    if len(case.inputs) != len(plan.inputs):
        raise _mismatch(
            f"{where} has {len(case.inputs)} inputs and the method takes {len(plan.inputs)}"
        )
    for kind, indices, values in (
        ("input", plan.inputs, case.inputs),
        ("expected output", plan.outputs, case.expected_outputs),
    ):
        for i, (index, value) in enumerate(zip(indices, values, strict=False)):
            _check_value(f"{where}: {kind} {i}", plan.values[index].val, value)


def _check_value(where: str, wanted: Any, value: ConfigValue) -> None:
    kind = supported_program_type_table.get(type(wanted))
    if kind is None:
        raise _mismatch(
            f"{where} is of {type(wanted).__name__} in the program, which a bundled program "
            "cannot hold; use rushlight.bundle, which leaves such values out"
        )
    if type(value) is not kind and not (kind is torch.Tensor and isinstance(value, torch.Tensor)):
        raise _mismatch(f"{where} is of {type(value).__name__}; the program has {kind.__name__}")
    if isinstance(value, torch.Tensor) and SCALAR_TYPES[value.dtype] != wanted.scalar_type:
        name = schema.ScalarType(wanted.scalar_type).name.lower()
        raise _mismatch(f"{where} has dtype {value.dtype}; the program has {name}")


def _mismatch(text: str) -> BundleMismatchError:
    return BundleMismatchError(text, code=Code.INVALID_ARGUMENT)
