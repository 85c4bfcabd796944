"""Which dtypes an operator's tensors may have together: what eager PyTorch computes.

An operator is called on small tensors of ones, with simple values for its other arguments, for each
choice of dtypes; what it refuses is left out.
"""

from __future__ import annotations

import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch._ops import OpOverload

Combination = tuple[torch.dtype, ...]
T = TypeVar("T")
# Types that aliases stand for, and alternatives: an alias for each place. Places with the same
# alias have the same type.
Aliases = tuple[list[tuple[T, ...]], list[tuple[int, ...]]]

_SHAPES = ((2, 2), (2,), (1, 2, 2), (2, 2, 2, 2))
_LISTS = ([0], [1, 1], [2], [1, 0], [2, 2])
_MOST = 2  # inputs whose dtypes are tried independently; kernels with more compute in one dtype
_INDICES = (torch.int64, torch.int32)


@dataclass(frozen=True)
class TensorNames:
    """The tensors of an operator, by the names of their arguments; results are `__ret_0`….

    Attributes:
        required: inputs that a call must give.
        optional: inputs that it may give.
        results: the results.
        inputs: all inputs in the order of the schema.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    results: tuple[str, ...]
    inputs: tuple[str, ...]

    @staticmethod
    def of(schema: torch._C.FunctionSchema) -> TensorNames:
        """Those of a schema."""
        kinds = {a.name: str(a.type) for a in schema.arguments if is_tensor(a)}
        returned = [r.name for r in schema.returns if is_tensor(r)]
        return TensorNames(
            tuple(name for name, kind in kinds.items() if kind != "Optional[Tensor]"),
            tuple(name for name, kind in kinds.items() if kind == "Optional[Tensor]"),
            tuple(name or f"__ret_{i}" for i, name in enumerate(returned)),
            tuple(kinds),
        )


def is_tensor(argument: torch._C.Argument) -> bool:
    """Whether an argument or result is a tensor, or a list of tensors."""
    return str(argument.type) in ("Tensor", "Optional[Tensor]", "List[Tensor]")


def combinations(
    op: OpOverload, dtypes: Mapping[str, Iterable[torch.dtype]]
) -> set[Combination] | None:
    """The dtypes of inputs and results that go together, in the order of `TensorNames`.

    Args:
        op: without writes; where it has more than 2 inputs, those with the same dtypes to choose
            from are tried with one dtype for all.
        dtypes: what to try for each input.

    Returns:
        None if no arguments are found that the operator takes.
    """
    names = TensorNames.of(op._schema).inputs
    choices = [list(dtypes[name]) for name in names]
    allowed: set[Combination] = set()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        sample = next((s for s in _samples(op) if _works(op, s, choices)), None)
        if sample is None:
            return None
        for chosen in _choices(choices):
            results = _call(op, sample, chosen)
            if results is not None:
                allowed.add((*chosen, *results))
    return allowed


def _choices(choices: list[list[torch.dtype]]) -> Iterator[Combination]:
    if len(choices) <= _MOST:
        yield from itertools.product(*choices)
        return
    groups = list(dict.fromkeys(map(tuple, choices)))
    for picked in itertools.product(*groups):
        yield tuple(picked[groups.index(tuple(own))] for own in choices)


def _samples(op: OpOverload) -> Iterator[dict[str, Any]]:
    """Arguments to try; a tensor is given by its shape, a list of tensors by a list of one."""
    arguments = op._schema.arguments
    places = {a.name: i for i, a in enumerate(filter(is_tensor, arguments))}
    for shape, large in itertools.product(_SHAPES, (len(places), 1, 2)):
        for values in itertools.product(_LISTS, (0, 1)):
            yield {
                a.name: _value(a, shape if places.get(a.name, 0) < large else (2,), *values)
                for a in arguments
            }


def _value(argument: torch._C.Argument, shape: Any, numbers: list[int], number: int) -> Any:
    kind = str(argument.type)
    if kind in ("Tensor", "Optional[Tensor]"):
        return torch.Size(shape)
    if kind == "List[Tensor]":
        return [torch.Size(shape)]
    if kind == "List[Optional[Tensor]]":
        return [torch.zeros(2, dtype=torch.int64)]
    if argument.has_default_value():
        return argument.default_value
    if kind.startswith("Optional"):
        return None
    if kind.startswith("List[bool"):
        return [False]
    if kind.startswith("List"):
        return numbers
    simple = {"bool": False, "float": 1.0, "number": 1, "str": "none"}
    return simple.get(kind, number)


def _works(op: OpOverload, sample: dict[str, Any], choices: list[list[torch.dtype]]) -> bool:
    """Whether the operator takes these arguments with some dtype."""
    for wanted in (torch.float32, torch.int64, torch.bool):
        indices = [next((d for d in _INDICES if d in own), own[0]) for own in choices]
        chosen = [wanted if wanted in own else i for own, i in zip(choices, indices, strict=True)]
        if _call(op, sample, tuple(chosen)) is not None:
            return True
    return False


def _call(op: OpOverload, sample: dict[str, Any], dtypes: Combination) -> Combination | None:
    """The dtypes of the results; None if the call is refused, or a result is no tensor."""
    left = iter(dtypes)

    def made(value: Any) -> Any:
        if isinstance(value, torch.Size):
            return torch.ones(value, dtype=next(left))
        if isinstance(value, list) and value and isinstance(value[0], torch.Size):
            return [torch.ones(value[0], dtype=next(left))]
        return value

    try:
        arguments = {name: made(value) for name, value in sample.items()}
        positional = [a.name for a in op._schema.arguments if not a.kwarg_only]
        named = {k: v for k, v in arguments.items() if k not in positional}
        returned = op(*(arguments[name] for name in positional), **named)
    except Exception:  # whatever a kernel raises for dtypes that it does not take
        return None
    results = returned if isinstance(returned, tuple) else (returned,)
    parts = [r[0] if isinstance(r, list) and r else r for r in results]
    return (
        tuple(p.dtype for p in parts) if all(isinstance(p, torch.Tensor) for p in parts) else None
    )


def aggregate(combinations: set[tuple[T, ...]], key: Callable[[T], Any]) -> Aliases[T]:
    """Write combinations of types as few alternatives of aliases.

    Args:
        combinations: the types that go together, one for each place.
        key: what types are sorted by.
    """
    groups: dict[tuple[Any, ...], dict[tuple[T, ...], T]] = defaultdict(dict)
    for one in combinations:
        for places, varied in _places(one):
            rest = tuple(None if i in places else t for i, t in enumerate(one))
            groups[places, rest][one] = varied
    # Ties are broken by the types themselves, so that the result depends on nothing else.
    order = sorted(groups, key=lambda group: _sorted(groups[group], key))
    left = set(combinations)
    chosen: list[tuple[Any, dict[tuple[T, ...], T]]] = []
    while left:
        best = max(order, key=lambda g: (len(left & groups[g].keys()), len(g[0])))
        members = {c: t for c, t in groups[best].items() if c in left or len(best[0]) == 1}
        chosen.append((best, members))
        left -= members.keys()
    rows: list[list[tuple[T, ...]]] = []
    for (places, rest), members in chosen:
        types = tuple(sorted(set(members.values()), key=key))
        rows.append([types if i in places else (t,) for i, t in enumerate(rest)])
    aliases = sorted({a for row in rows for a in row}, key=lambda types: [key(t) for t in types])
    return aliases, sorted({tuple(aliases.index(a) for a in row) for row in rows})


def _sorted(members: dict[tuple[T, ...], T], key: Callable[[T], Any]) -> list[Any]:
    return sorted([key(t) for t in one] for one in members)


def _places(one: tuple[T, ...]) -> Iterator[tuple[tuple[int, ...], T]]:
    """Places of a combination that have the same type, and the type."""
    for varied in set(one):
        same = [i for i, t in enumerate(one) if t == varied]
        for count in range(1, len(same) + 1):
            yield from ((places, varied) for places in itertools.combinations(same, count))
