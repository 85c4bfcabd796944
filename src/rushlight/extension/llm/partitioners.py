"""Partitioners for exports of language models, by what a command line says of each backend."""

from __future__ import annotations

from typing import Any

from rushlight.errors import Code, ExportError
from rushlight.partition import CompileSpec, Partitioner


def get_xnnpack_partitioner(dynamic_quant_only_partitioner: bool = True) -> Partitioner:
    """XNNPACK's partitioner.

    Args:
        dynamic_quant_only_partitioner: for linear layers whose inputs are quantised at run time
            alone; otherwise for all calls that XNNPACK takes.
    """
    from rushlight.backends.xnnpack import XnnpackPartitioner
    from rushlight.backends.xnnpack.partitioner import XnnpackDynamicallyQuantizedPartitioner

    if dynamic_quant_only_partitioner:
        return XnnpackDynamicallyQuantizedPartitioner()
    return XnnpackPartitioner()


def get_openvino_partitioner(device: str) -> Partitioner:
    """OpenVINO's partitioner.

    Args:
        device: where OpenVINO computes, such as "CPU".
    """
    from rushlight.backends.openvino import OpenvinoPartitioner

    return OpenvinoPartitioner([CompileSpec("device", device.encode())])


def get_coreml_partitioner(
    ios: int = 15,
    embedding_quantize: str | None = None,
    pt2e_quantize: str | None = None,
    coreml_quantize: str | None = None,
    coreml_compute_units: str | None = None,
) -> Partitioner:
    """Core ML's partitioner.

    Args:
        ios: the oldest release that the program must run on: 15 to 18.
        embedding_quantize, pt2e_quantize: how the model is quantised; checked against `ios`.
        coreml_quantize: refused: quantise the model itself.
        coreml_compute_units: "cpu_only" (the default), "cpu_and_gpu", "cpu_and_ne" or "all".

    Raises:
        ExportError: coremltools is not installed, or `coreml_quantize` is given.
        ValueError: the release does not have what is asked for.
    """
    _check_release(ios, embedding_quantize, pt2e_quantize or coreml_quantize or "")
    if coreml_quantize is not None:
        raise ExportError(
            f"coreml_quantize={coreml_quantize!r}: weights are stored as the model has them: leave "
            f"it out, and quantise the model with rushlight.quantize or torchao before",
            code=Code.NOT_SUPPORTED,
        )
    from rushlight.backends.coreml import CoreMLBackend, CoreMLPartitioner
    from rushlight.backends.coreml.tools import coremltools as ct

    tools: Any = ct
    units = (coreml_compute_units or "cpu_only").upper()
    specs = CoreMLBackend.generate_compile_specs(
        minimum_deployment_target=getattr(tools.target, f"iOS{ios}"),
        compute_precision=tools.precision.FLOAT16,
        compute_unit=tools.ComputeUnit[units],
    )
    return CoreMLPartitioner(compile_specs=specs)


def _check_release(ios: int, embedding: str | None, quantised: str) -> None:
    if ios not in (15, 16, 17, 18):
        raise ValueError(f"ios={ios}: give 15, 16, 17 or 18")
    needs = (
        (embedding is not None, 18, "groups of weights with a scale each"),
        (quantised != "", 16, "quantisation"),
        ("8a" in quantised, 17, "activations of 8 bits"),
        ("4w" in quantised, 18, "weights of 4 bits"),
    )
    for is_asked, least, what in needs:
        if is_asked and ios < least:
            raise ValueError(f"ios={ios} does not have {what}: give {least} or more")
