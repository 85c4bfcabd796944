"""What the dtypes of an Edge operator's tensors may be, as ExecuTorch's schemas say it.

The dtypes are those that our kernel takes (`ir/kernels.json`); which of them go together is what
eager PyTorch computes (`dtype_trials.py`). An operator without a kernel, and one whose arguments
are not found by trying, takes any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch._ops import OpOverload

from rushlight.edge.dtype_trials import Aliases, TensorNames, aggregate, combinations, is_tensor
from rushlight.errors import Code, ExportError
from rushlight.ir.kernels import manifest
from rushlight.ir.operators import out_variant, runtime_name

# The dtypes of programs by the names of the schema, program.fbs.
NAMES = {
    torch.bool: "Bool",
    torch.uint8: "Byte",
    torch.int8: "Char",
    torch.int16: "Short",
    torch.int32: "Int",
    torch.int64: "Long",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float32: "Float",
    torch.float64: "Double",
    torch.uint16: "UInt16",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}

# Constraints that come before those derived here, by the operator's name ("aten::add.Tensor"):
# {"type_alias": {"T0": ["Float"]}, "type_constraint": [{"self": "T0", "__ret_0": "T0"}]}.
EXPLICIT: dict[str, dict[str, Any]] = {}


class AllowedDtypeSet:
    """The dtypes that a type alias stands for.

    Attributes:
        types: all of them.
    """

    def __init__(self, types: set[torch.dtype]) -> None:
        self.types = types
        self._chosen: torch.dtype | None = None

    def reduce_to(self, t: torch.dtype) -> bool:
        """Let the alias stand for one dtype, until `clear`; False if it does not stand for that."""
        if t in self:
            self._chosen = t
            return True
        return False

    def clear(self) -> None:
        """Let it stand for all again."""
        self._chosen = None

    def __contains__(self, key: object) -> bool:
        return key in self.types if self._chosen is None else key == self._chosen


class FunctionDtypeConstraint:
    """Which dtypes an operator's tensors may have together.

    Args:
        essential_tensor_io_names: the inputs and results that must be given.
        optional_tensor_io_names: inputs that may be given.
        type_alias: the dtypes that each alias stands for.
        type_constraint: the alternatives: an alias for each name. Names with the same alias have
            the same dtype.

    Raises:
        ExportError: an alternative lacks a name.
    """

    def __init__(
        self,
        essential_tensor_io_names: Sequence[str],
        optional_tensor_io_names: Sequence[str],
        type_alias: Mapping[str, Iterable[torch.dtype]],
        type_constraint: list[dict[str, str]],
    ) -> None:
        self.essential_tensor_io_names = list(essential_tensor_io_names)
        self.optional_tensor_io_names = list(optional_tensor_io_names)
        self.type_alias = {alias: AllowedDtypeSet(set(t)) for alias, t in type_alias.items()}
        self.type_constraint = type_constraint
        wanted = {*essential_tensor_io_names, *optional_tensor_io_names}
        for alternative in type_constraint:
            if not wanted <= set(alternative):
                raise ExportError(
                    f"a dtype constraint names {sorted(alternative)}: it must name all tensors, "
                    f"{sorted(wanted)}",
                    code=Code.INVALID_ARGUMENT,
                )

    def validate(self, types: Mapping[str, torch.dtype | None]) -> bool:
        """Whether the tensors may have these dtypes; None stands for a list without tensors."""
        if not all(name in self for name in types):
            return False
        if not all(name in types for name in self.essential_tensor_io_names):
            return False
        return any(self._fits(types, alternative) for alternative in self.type_constraint)

    def _fits(self, types: Mapping[str, torch.dtype | None], alternative: dict[str, str]) -> bool:
        pairs = [(self.type_alias[alternative[name]], t) for name, t in types.items() if t]
        try:
            return all(alias.reduce_to(dtype) for alias, dtype in pairs)
        finally:
            for alias, _ in pairs:
                alias.clear()

    def __contains__(self, key: object) -> bool:
        return key in self.type_constraint[0]

    def __getitem__(self, arg_name: str) -> set[torch.dtype]:
        """All dtypes that a tensor may have in some alternative; none for an unknown name."""
        if arg_name not in self:
            return set()
        aliases = {alternative[arg_name] for alternative in self.type_constraint}
        return set().union(*(self.type_alias[alias].types for alias in aliases))


def constraint_of(op: OpOverload) -> FunctionDtypeConstraint:
    """The constraint of an operator."""
    names = TensorNames.of(op._schema)
    every = (*names.inputs, *names.results)
    info = EXPLICIT.get(op.name())
    if info is not None:
        listed = {alias: [DTYPES[t] for t in types] for alias, types in info["type_alias"].items()}
        alternatives = info["type_constraint"]
    else:
        aliases, rows = _derived(op, names)
        listed = {f"T{i}": list(types) for i, types in enumerate(aliases)}
        alternatives = [{name: f"T{i}" for name, i in zip(every, row, strict=True)} for row in rows]
    essential = (*names.required, *names.results)
    return FunctionDtypeConstraint(essential, names.optional, listed, alternatives)


def _derived(op: OpOverload, names: TensorNames) -> Aliases[torch.dtype]:
    taken = _taken(op, names)
    combined = combinations(op, taken) if taken and not op._schema.is_mutable else None
    known = {one for one in combined or () if all(dtype in NAMES for dtype in one)}
    if known:
        return aggregate(known, key=NAMES.__getitem__)
    every = (*names.inputs, *names.results)
    aliases = [tuple(taken.get(name, NAMES)) for name in every]
    return aliases, [tuple(range(len(every)))]


def _taken(op: OpOverload, names: TensorNames) -> dict[str, list[torch.dtype]]:
    """The dtypes that our kernel takes for each input; empty if there is no kernel."""
    variant = op if op._schema.is_mutable else out_variant(op)
    kernel = manifest().find(runtime_name(variant)) if variant is not None else None
    if kernel is None:
        return {}
    allowed = {name: kernel.takes(name) for name in names.inputs}
    return {
        name: [d for d in NAMES if dtypes is None or str(d).removeprefix("torch.") in dtypes]
        for name, dtypes in allowed.items()
    }


class EdgeDialectArgument:
    """An argument or result of an operator's schema, with what its dtype may be."""

    def __init__(self, argument: torch._C.Argument, name: str, schema: EdgeDialectFunctionSchema):
        self.argument = argument
        self._name, self._schema = name, schema

    @property
    def allowed_types(self) -> set[torch.dtype]:
        """The dtypes that it may have."""
        return self._schema.dtype_constraint[self._name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.argument, name)


class EdgeDialectFunctionSchema:
    """An operator's schema, with what the dtypes of its tensors may be; else it is torch's.

    Attributes:
        schema: torch's.
        arguments, returns: torch's, those of tensors as `EdgeDialectArgument`.
    """

    def __init__(self, op: OpOverload) -> None:
        self._op, self.schema = op, op._schema
        names = TensorNames.of(self.schema)
        results = iter(names.results)
        self.arguments = [
            EdgeDialectArgument(a, a.name, self) if a.name in names.inputs else a
            for a in self.schema.arguments
        ]
        self.returns = [
            EdgeDialectArgument(r, next(results), self) if is_tensor(r) else r
            for r in self.schema.returns
        ]

    @cached_property
    def dtype_constraint(self) -> FunctionDtypeConstraint:
        """The constraint, which is found out when it is first asked for."""
        return constraint_of(self._op)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.schema, name)

    def __str__(self) -> str:
        return str(self.schema)
