"""The options of the Core ML backend, as compile specs with ExecuTorch's keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from rushlight.backends.coreml.files import SpecKey
from rushlight.backends.coreml.tools import coremltools as ct
from rushlight.errors import Code, ExportError
from rushlight.partition import CompileSpec, spec_texts

T = TypeVar("T")
_UNITS = {unit.name.lower(): unit for unit in ct.ComputeUnit}
_PRECISIONS = {precision.value: precision for precision in ct.precision}
_TARGETS = {str(target.value): target for target in ct.target}


class ModelType(Enum):
    """The kind of payload; see `CoreMLBackend.MODEL_TYPE`."""

    MODEL = "model"
    COMPILED_MODEL = "compiled_model"


@dataclass(frozen=True)
class Options:
    """The options of one partition.

    Attributes:
        units: the units of the device that may compute it.
        precision: the precision of its floats.
        target: the oldest system it must run on; None leaves the choice to coremltools.
    """

    units: ct.ComputeUnit = ct.ComputeUnit.ALL
    precision: ct.precision = ct.precision.FLOAT16
    target: ct.target | None = None


def write_specs(
    units: ct.ComputeUnit, target: ct.target | None, precision: ct.precision, kind: ModelType
) -> list[CompileSpec]:
    """Options as compile specs.

    Raises:
        ExportError: for a value of another type.
    """
    for name, value, kind_of in (
        ("compute_unit", units, ct.ComputeUnit),
        ("minimum_deployment_target", target, ct.target),
        ("compute_precision", precision, ct.precision),
        ("model_type", kind, ModelType),
    ):
        if not isinstance(value, kind_of) and (name, value) != ("minimum_deployment_target", None):
            raise ExportError(
                f"{name} is {value!r}; allowed are {', '.join(str(one) for one in kind_of)}",
                code=Code.INVALID_ARGUMENT,
            )
    values = {
        SpecKey.COMPUTE_UNITS: units.name.lower(),
        SpecKey.MIN_DEPLOYMENT_TARGET: "" if target is None else str(target.value),
        SpecKey.MODEL_COMPUTE_PRECISION: precision.value,
        SpecKey.MODEL_TYPE: kind.value,
    }
    return [CompileSpec(key.value, value.encode()) for key, value in values.items()]


def read_specs(specs: Sequence[CompileSpec]) -> Options:
    """The options in compile specs.

    Raises:
        ExportError: for an unknown key or value; it lists the known ones.
    """
    texts = spec_texts(specs)
    units = _one_of(texts, SpecKey.COMPUTE_UNITS, _UNITS, Options.units)
    precision = _one_of(texts, SpecKey.MODEL_COMPUTE_PRECISION, _PRECISIONS, Options.precision)
    target = _one_of(texts, SpecKey.MIN_DEPLOYMENT_TARGET, {"": None, **_TARGETS}, None)
    kinds = {kind.value: kind for kind in ModelType}
    if _one_of(texts, SpecKey.MODEL_TYPE, kinds, ModelType.MODEL) is ModelType.COMPILED_MODEL:
        raise ExportError(
            "model_type=compiled_model needs Core ML's compiler, which is on macOS only: use "
            "model_type=model, which the device compiles when it loads the program",
            code=Code.NOT_SUPPORTED,
        )
    if texts:
        raise ExportError(
            f"unknown compile specs {sorted(texts)}; allowed are compute_units, "
            f"min_deployment_target, model_compute_precision and model_type",
            code=Code.INVALID_ARGUMENT,
        )
    return Options(units, precision, target)


def _one_of(texts: dict[str, str], key: SpecKey, allowed: dict[str, T], default: T) -> T:
    value = texts.pop(key.value, None)
    if value is None:
        return default
    if value not in allowed:
        raise ExportError(
            f"the compile spec {key.value} is {value!r}; allowed are {', '.join(sorted(allowed))}",
            code=Code.INVALID_ARGUMENT,
        )
    return allowed[value]
