"""Runs a method one instruction at a time and reads its values, for tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rushlight import _core
from rushlight.errors import Code, RunError
from rushlight.runtime.backends import find_backends
from rushlight.runtime.check import check_inputs
from rushlight.runtime.failures import Errors, missing_error
from rushlight.runtime.load import open_program, read_contracts
from rushlight.runtime.source import Source, describe_source


class Stepper:
    """One run of one method, instruction by instruction.

        stepper = Stepper(program, "forward", [x])
        for instruction in stepper:
            print(instruction, stepper.instruction_name(instruction), stepper.value(7))

    Args:
        program: a path or the bytes of a program.
        method: the method's name.
        inputs: its flattened inputs; they are kept for the whole run.
        data: a data file, as for `rushlight.load`.
        kv_cache: the key-value cache that a language model's method uses.
        guard: as for `rushlight.load`.

    Raises:
        LoadError: as `rushlight.load`.
        RunError: if the inputs are not what the method takes, or an instruction fails.
    """

    def __init__(
        self,
        program: Source,
        method: str,
        inputs: Sequence[Any],
        *,
        data: Source | None = None,
        kv_cache: _core.KvCache | None = None,
        guard: bool = False,
    ) -> None:
        self._program = open_program(program, data=data, guard=guard)
        self._method = method
        problems: dict[str, str] = {}
        try:
            contract = read_contracts(self._program, [method])[method]
            problems = find_backends(self._program, [method])
            self._core = self._program.method(method)
            self._core.set_kv_cache(kv_cache)
        except _core.Failure as failure:
            where = describe_source(program)
            raise missing_error([failure], self._program, where, problems) from failure.__cause__
        self._core.narrow(contract.input_specs(), len(contract.symbols))
        if len(inputs) != len(contract.inputs):
            raise RunError(
                f"got {len(inputs)} flattened inputs, the method takes {len(contract.inputs)}",
                code=Code.INVALID_ARGUMENT,
                where=method,
            )
        check_inputs(method, contract, inputs)
        with self._errors():
            if not self._core.set_inputs(contract.to_program(inputs)):
                raise RunError("the inputs do not fit", code=Code.INVALID_ARGUMENT, where=method)

    def __iter__(self) -> Iterator[int]:
        """Run the method, yielding each instruction's index after it was run."""
        while (index := self.step()) is not None:
            yield index

    def step(self) -> int | None:
        """Run one instruction and return its index; None if none was left. The next call then
        runs the first instruction again."""
        with self._errors():
            index = self._core.step()
        return None if index < 0 else index

    def value(self, index: int) -> Any:
        """A value as it is now: a NumPy array (a copy), a scalar, a list, or None for a tensor that
        has no memory.

        Args:
            index: the index of a value, 0 to `n_values` - 1; IndexError beyond.
        """
        with self._errors():
            return self._core.value(index)

    def outputs(self) -> list[Any]:
        """The flattened outputs as they are now."""
        with self._errors():
            return list(self._core.outputs())

    @property
    def n_values(self) -> int:
        """How many values the method has."""
        return self._core.n_values

    @property
    def n_instructions(self) -> int:
        """How many instructions the method has."""
        return self._core.n_instructions

    def instruction_name(self, index: int) -> str:
        """The operator or backend that an instruction calls, or its kind."""
        return self._core.instruction_name(index)

    def _errors(self) -> Errors:
        return Errors(self._program)
