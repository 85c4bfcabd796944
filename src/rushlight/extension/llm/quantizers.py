"""Quantisers for captured language models, by what a command line says."""

from __future__ import annotations

from dataclasses import dataclass

from torchao.quantization.pt2e.quantizer.embedding_quantizer import EmbeddingQuantizer

from rushlight.backends.xnnpack.quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from rushlight.errors import Code, ExportError
from rushlight.ir.custom_ops import executorch
from rushlight.quantization import Quantizer


def _refuse(message: str) -> ExportError:
    return ExportError(message, code=Code.INVALID_ARGUMENT)


@dataclass
class EmbeddingQuantOptions:
    """How embeddings are quantised: to 8 bits, with a scale for each row.

    Raises:
        ExportError: rows have groups.
    """

    is_per_channel: bool = True
    group_size: int = -1

    def __post_init__(self) -> None:
        if self.group_size != -1:
            raise _refuse(
                f"group_size={self.group_size}: embeddings of captured graphs have a scale for "
                f"each row: leave it out"
            )


@dataclass
class DynamicQuantLinearOptions:
    """How linear layers are quantised, whose inputs are quantised at run time.

    Attributes:
        is_per_channel: a scale for each output.
        is_qc4: weights have 4 bits instead of 8.
    """

    is_per_channel: bool = True
    is_qc4: bool = False


@dataclass
class PT2EQuantOptions:
    """What is quantised; None: not at all."""

    quantize_embedding: EmbeddingQuantOptions | None = None
    quantize_linear: DynamicQuantLinearOptions | None = None


def get_pt2e_quantization_params(
    pt2e_quantize: str | None = None, quantization_mode: str | None = None
) -> PT2EQuantOptions | None:
    """The options that a text stands for.

    Args:
        pt2e_quantize: "xnnpack_dynamic" or "xnnpack_dynamic_qc4", "embedding", or both with a comma
            between; names of other backends are passed over.
        quantization_mode: quantises the module before it is captured, in place of the graph.

    Returns:
        None if nothing is quantised.

    Raises:
        ExportError: there are 8 and 4 bits.
        ValueError: there are both.
    """
    if pt2e_quantize is None:
        return None
    if quantization_mode:
        raise ValueError(
            f"pt2e_quantize={pt2e_quantize!r} and quantization_mode={quantization_mode!r}: a model "
            f"is quantised once: give one of them"
        )
    asked = {option.strip() for option in pt2e_quantize.split(",")}
    linear = asked & {"xnnpack_dynamic", "xnnpack_dynamic_qc4"}
    if len(linear) > 1:
        raise _refuse(
            f"pt2e_quantize={pt2e_quantize!r}: linear layers have 8 bits (xnnpack_dynamic) or 4 "
            f"(xnnpack_dynamic_qc4): give one of them"
        )
    if not linear and "embedding" not in asked:
        return None
    is_qc4 = "xnnpack_dynamic_qc4" in linear
    return PT2EQuantOptions(
        EmbeddingQuantOptions() if "embedding" in asked else None,
        DynamicQuantLinearOptions(is_qc4=is_qc4) if linear else None,
    )


def get_pt2e_quantizers(
    quant_params: PT2EQuantOptions | None, so_library: str | None = None
) -> list[Quantizer]:
    """The quantisers for options, for `LLMEdgeManager.pt2e_quantize`.

    Args:
        quant_params: what is quantised.
        so_library: changes nothing: the operators of quantised embeddings are defined here.

    Raises:
        ExportError: linear layers are to have one scale for all outputs.
    """
    made: list[Quantizer] = []
    if quant_params is not None and quant_params.quantize_embedding is not None:
        executorch.define()
        made.append(EmbeddingQuantizer())
    if quant_params is not None and quant_params.quantize_linear is not None:
        linear = quant_params.quantize_linear
        if not linear.is_per_channel:
            raise _refuse("is_per_channel=False: linear layers have a scale for each output")
        made.append(_linear_quantizer(is_dynamic=True, is_qc4=linear.is_qc4))
    return made


def get_coreml_quantizer(pt2e_quantize: str) -> Quantizer:
    """The quantiser for Core ML.

    Args:
        pt2e_quantize: "coreml_baseline_8a_c8w" or "coreml_baseline_8a_c4w": activations of 8 bits,
            and weights of 8 or 4 with a scale for each output.

    Raises:
        ExportError: it is another text.
    """
    known = {"coreml_baseline_8a_c8w": False, "coreml_baseline_8a_c4w": True}
    if pt2e_quantize not in known:
        raise _refuse(
            f"pt2e_quantize={pt2e_quantize!r}: give one of {', '.join(map(repr, known))}, or a "
            f"quantiser of coremltools to rushlight.quantize"
        )
    return _linear_quantizer(is_dynamic=False, is_qc4=known[pt2e_quantize])


def _linear_quantizer(*, is_dynamic: bool, is_qc4: bool) -> Quantizer:
    limits = {"weight_qmin": -8, "weight_qmax": 7} if is_qc4 else {}
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic, **limits)
    made: Quantizer = XNNPACKQuantizer().set_global(config)
    return made
