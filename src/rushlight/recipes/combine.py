"""Joins the parts of several recipes, and refuses those that contradict each other."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from rushlight.edge import EdgeCompileConfig
from rushlight.recipes.lowering_recipe import LoweringRecipe
from rushlight.recipes.quantization_recipe import QuantizationRecipe

Value = TypeVar("Value")
_PASSES = ("pre_prepare_passes", "post_prepare_passes", "pre_convert_passes", "post_convert_passes")
# Operators to keep, in any order.
_SETS = ("preserve_ops", "_core_aten_ops_exception_list")


def agreed(argument: str, values: Iterable[tuple[str, Value]]) -> Value:
    """The value that all recipes have.

    Args:
        argument: the name of the field.
        values: the name of each recipe, and its value; at least one.

    Raises:
        ValueError: they differ.
    """
    listed = list(values)
    first = listed[0][1]
    if any(value != first for _, value in listed):
        told = ", ".join(f"{name}={value!r}" for name, value in listed)
        raise ValueError(
            f"recipes with different {argument} cannot be combined: {told}; give all the same"
        )
    return first


def joined(lists: Iterable[Sequence[Value] | None]) -> list[Value] | None:
    """The elements of all lists in order; None if there are none."""
    return [one for some in lists for one in some or ()] or None


def combined_quantization(
    recipes: Sequence[tuple[str, QuantizationRecipe]],
) -> QuantizationRecipe | None:
    """One recipe that does what all do; None if none does anything.

    Args:
        recipes: each with its name.

    Raises:
        ValueError: one trains and another one calibrates, or two want to train.
    """
    if not recipes:
        return None
    is_qat = agreed("is_qat", ((name, one.is_qat) for name, one in recipes))
    trained = [(name, one.train_fn) for name, one in recipes if one.train_fn is not None]
    if len(trained) > 1:
        raise ValueError(
            f"recipes that each have a train_fn cannot be combined: {trained[0][0]}, "
            f"{trained[1][0]}; give one function that trains for all, to one of them"
        )
    parts: dict[str, list[Any] | None] = {
        field: joined(getattr(one, field) for _, one in recipes)
        for field in ("quantizers", "ao_quantization_configs", *_PASSES)
    }
    if not any(parts.values()):
        return None
    return QuantizationRecipe(
        **parts,
        is_qat=is_qat,
        dynamic_batch_size=any(one.dynamic_batch_size for _, one in recipes),
        calibration_inputs_fn=_chained([one.calibration_inputs_fn for _, one in recipes]),
        train_fn=trained[0][1] if trained else None,
    )


@dataclasses.dataclass(frozen=True)
class _Chain:
    """A function that gives the inputs of several; a class, so that it can be pickled."""

    functions: tuple[Callable[[], Iterable[tuple[Any, ...]]], ...]

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        for function in self.functions:
            yield from function()


def _chained(
    functions: Sequence[Callable[[], Iterable[tuple[Any, ...]]] | None],
) -> Callable[[], Iterable[tuple[Any, ...]]] | None:
    given = tuple(one for one in functions if one is not None)
    return _Chain(given) if len(given) > 1 else given[0] if given else None


def combined_lowering(recipes: Sequence[tuple[str, LoweringRecipe]]) -> LoweringRecipe | None:
    """One recipe that lowers as all do, in order; None if none does anything.

    Args:
        recipes: each with its name.

    Raises:
        ValueError: the options of the Edge dialect differ, or some partitioners are for all
            methods and others by method.
    """
    by_method = [name for name, one in recipes if isinstance(one.partitioners, Mapping)]
    config = _one_config(
        [(name, one.edge_compile_config) for name, one in recipes if one.edge_compile_config]
    )
    for name, one in recipes:
        if by_method and one.partitioners and name not in by_method:
            raise ValueError(
                f"the partitioners of {name} are for all methods, those of {by_method[0]} by "
                f"method, which cannot be combined: give a mapping of methods to lists for both"
            )
    partitioners: Any
    if by_method:
        partitioners = {}
        for _, one in recipes:
            for method, listed in dict(one.partitioners or {}).items():  # type: ignore[arg-type]
                partitioners.setdefault(method, []).extend(listed)
    else:
        partitioners = joined(one.partitioners for _, one in recipes)  # type: ignore[misc]
    passes = joined(one.edge_transform_passes for _, one in recipes)
    manager_passes = joined(one.edge_manager_transform_passes for _, one in recipes)
    if not (partitioners or passes or manager_passes or config):
        return None
    return LoweringRecipe(
        partitioners or None, passes, manager_passes, config or EdgeCompileConfig()
    )


def _one_config(configs: Sequence[tuple[str, EdgeCompileConfig]]) -> EdgeCompileConfig | None:
    """A copy of the options, which must be the same for all."""
    told = []
    for field in (one.name for one in dataclasses.fields(EdgeCompileConfig)):
        values = [getattr(config, field) for _, config in configs]
        if field in _SETS:
            values = [sorted({str(operator) for operator in value or ()}) for value in values]
        if any(value != values[0] for value in values):
            names = (name for name, _ in configs)
            shown = (f"{n}={v}" for n, v in zip(names, values, strict=True))
            told.append(f"{field} ({', '.join(shown)})")
    if told:
        raise ValueError(
            f"recipes whose edge_compile_configs differ cannot be combined: {'; '.join(told)}; "
            f"give all the same"
        )
    return copy.deepcopy(configs[0][1]) if configs else None
