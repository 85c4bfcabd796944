"""The arguments of a call: from positions and keywords to the flattened inputs of a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rushlight.errors import Code, RunError
from rushlight.runtime.check import check_inputs
from rushlight.runtime.contract import Contract
from rushlight.runtime.tree import TreeError


class Arguments:
    """What a method takes.

    Attributes:
        name: the method's name.
        contract: its contract.
        parts: the structure of each argument.
        names: the arguments' names, in order.
    """

    def __init__(self, name: str, contract: Contract) -> None:
        self.name = name
        self.contract = contract
        args, kwargs = contract.in_spec.children
        self.parts = args.children + kwargs.children
        self.names = _parameter_names(contract, len(args.children), kwargs.keys)

    def in_order(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """All arguments by position; an empty tuple if the keywords do not fit."""
        names = self.names[len(args) :]
        if len(names) != len(kwargs):
            return ()
        try:
            return args + tuple([kwargs[name] for name in names])
        except KeyError:
            return ()

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The leaves of a call's inputs, in order, checked against the contract.

        Raises:
            RunError: if they are not what the method takes.
        """
        flat: list[Any] = []
        bound = self._bind(args, kwargs)
        for name, part in zip(self.names, self.parts, strict=True):
            value = bound.get(name)
            if value is None and not part.n_leaves:
                continue  # an empty container
            try:
                part.flatten(value, name, flat)
            except TreeError as error:
                raise RunError(
                    f"{error.path if self.contract.weak else f'input {error.path!r}'}: "
                    f"{error.problem}",
                    code=Code.INVALID_TYPE,
                    where=self.name,
                ) from None
        check_inputs(self.name, self.contract, flat)
        return flat

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Values by parameter name; optional ones may be missing."""
        names = self.names
        if len(args) > len(names):
            raise self._wrong_arguments(f"got {len(args)} positional arguments")
        if len(args) > self.contract.positional:
            name = names[self.contract.positional]
            raise self._wrong_arguments(f"{name!r} was given by position, not by keyword")
        bound = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise self._wrong_arguments(f"got an unexpected keyword argument {name!r}")
            if name in bound:
                raise self._wrong_arguments(f"got two values for {name!r}")
            bound[name] = value
        missing = [
            repr(name)
            for name, part in zip(names, self.parts, strict=True)
            if name not in bound and part.n_leaves and not self._is_none(name)
        ]
        if missing:
            raise self._wrong_arguments(f"{', '.join(missing)} missing")
        return bound

    def _is_none(self, name: str) -> bool:
        """Whether a parameter was None at export, so that it may be left out."""
        return any(v.name == name and v.kind == "none" for v in self.contract.inputs)

    def _wrong_arguments(self, problem: str) -> RunError:
        takes = f"it takes {', '.join(self.names)}" if self.names else "it takes no inputs"
        return RunError(
            f"{problem}; {takes}: pass the inputs that the model was exported with",
            code=Code.INVALID_ARGUMENT,
            where=self.name,
        )


def _parameter_names(
    contract: Contract, n_positional: int, keywords: Sequence[Any]
) -> tuple[str, ...]:
    """A name for every argument in the in_spec; an argument of `*args` is named by its position."""
    names = list(contract.parameters[:n_positional])
    names += [f"args[{i}]" for i in range(len(names), n_positional)]
    return (*names, *map(str, keywords))
