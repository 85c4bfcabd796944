"""The names in a payload, and what its files in JSON have: the layout of ExecuTorch's delegate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SpecKey(Enum):
    """The keys of compile specs.

    `read_specs` takes the first four; the others are options of ExecuTorch's compiler alone.
    """

    COMPUTE_UNITS = "compute_units"
    MODEL_TYPE = "model_type"
    MIN_DEPLOYMENT_TARGET = "min_deployment_target"
    MODEL_COMPUTE_PRECISION = "model_compute_precision"
    OP_LINEAR_QUANTIZER_CONFIG = "op_linear_quantizer_config"
    ENUMERATED_SHAPES = "enumerated_shapes"
    PASS_PIPELINE = "pass_pipeline"
    MULTIMETHOD_WEIGHT_SHARING_STRATEGY = "multimethod_weight_sharing_strategy"


class ModelPath(Enum):
    """The paths in a payload's folder."""

    MODEL = "model.mlpackage"
    COMPILED_MODEL = "model.mlmodelc"
    METADATA = "metadata.json"
    DEBUG_INFO = "debug_info.json"


# The fields have the names that the files have.


@dataclass
class ModelMetadata:
    """The content of `metadata.json`.

    Attributes:
        inputNames, outputNames: the names of the model's values, in the order of the delegate's
            arguments.
        identifier: what a device caches the compiled model under.
    """

    inputNames: list[str]  # noqa: N815
    outputNames: list[str]  # noqa: N815
    identifier: str


@dataclass
class ModelDebugInfo:
    """The content of `debug_info.json`.

    Attributes:
        versionInfo: the versions of the packages that made the model.
        debugSymbolToOperationPath: an operation of the model to where it is.
        debugSymbolToHandles: an operation to the debug handles of the calls that it computes.
    """

    versionInfo: dict[str, str]  # noqa: N815
    debugSymbolToOperationPath: dict[str, list[dict[str, str]]]  # noqa: N815
    debugSymbolToHandles: dict[str, list[int]]  # noqa: N815
