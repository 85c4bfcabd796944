"""`rushlight.llm.export`: from a language model to a program that a runner takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from rushlight.api import Program
from rushlight.api import export as export_program
from rushlight.errors import Code, ExportError
from rushlight.llm.description import KEY, Description
from rushlight.llm.exporter.families import decoder_of, description_of
from rushlight.llm.exporter.recipes import Recipe, convert_layers
from rushlight.llm.exporter.step import Step, capture_step

METHOD = "step"


def export(
    model: Any,
    *,
    description: Description | None = None,
    context: int | None = None,
    batch: int = 512,
    wanted: int = 64,
    quantize: str | None = None,
    group_size: int = 32,
    quantize_embedding: str | None = None,
    backend: Any = "cpu",
    strict: bool | float = False,
    debug: str = "lines",
    progress: Callable[[str], None] | None = None,
) -> Program:
    """Turn a language model into a program with the method `step`, for `rushlight.llm.load`.

    Args:
        model: a `transformers` model for causal language modelling, or an `nn.Module` of your own,
            whose forward takes (tokens, positions, sequences), int64 [n] each, calls
            `rushlight.llm.attention` in its layers, and returns logits [n, vocabulary].
        description: of an `nn.Module` of your own.
        context: the greatest number of positions of a sequence; default: the model's own.
        batch: the greatest number of tokens of one step, which memory is planned for.
        wanted: the greatest number of tokens of one step whose logits are computed.
        quantize: in what weights are stored: "float32", "fp16", "bf16"; "int8" or "8da4w": integers
            of 8 or 4 bits, multiplied with rows that are quantised to 8 bits at run time. Default:
            the dtypes that the model has. All else is computed in float32.
        group_size: of "8da4w": how many weights of a row share a scale: 32, 64, 128 or 256.
        quantize_embedding: "int8" or "int4" for an embedding in integers. An embedding that is
            tied to the output layer is stored once, as the output layer.
        backend: where it runs, as `rushlight.export` takes it.
        strict, debug, progress: as `rushlight.export` takes them.

    Raises:
        ExportError: the model is not supported, or cannot be exported.
    """
    say = progress or (lambda stage: None)
    recipe = Recipe(quantize, group_size, quantize_embedding)
    step, description = _step_of(model, description, context, batch, wanted)
    say("quantise" if recipe.bits or recipe.embedding else "convert weights")
    convert_layers(step, recipe)
    say("capture")
    captured = capture_step(step, description, METHOD)
    program = export_program(
        {METHOD: captured},
        backend=backend,
        constant_methods=description.constant_methods(),
        verify=False,
        strict=strict,
        debug=debug,
        progress=progress,
    )
    program.manager.add_named_data(KEY, description.to_json())
    return program


def _step_of(
    model: Any, description: Description | None, context: int | None, batch: int, wanted: int
) -> tuple[Step, Description]:
    """The step of a model, and its description."""
    if hasattr(model, "config") and hasattr(model, "get_output_embeddings"):
        if description is not None:
            raise ExportError(
                "description= is for an nn.Module of your own: a transformers model has its "
                "configuration",
                code=Code.INVALID_ARGUMENT,
            )
        description = description_of(model.config, context, batch=batch, wanted=wanted)
        return Step(*decoder_of(model, description.context)), description
    if not isinstance(model, torch.nn.Module):
        raise ExportError(
            f"cannot export {type(model).__name__}: pass a transformers model, or an nn.Module of "
            f"your own with description=",
            code=Code.INVALID_ARGUMENT,
        )
    if description is None:
        raise ExportError(
            f"{type(model).__name__} is no transformers model: pass description="
            f"rushlight.llm.Description(vocabulary=…, layers=…, key_heads=…, width=…, context=…)",
            code=Code.INVALID_ARGUMENT,
        )
    limits = {"context": context or description.context, "batch": batch, "wanted": wanted}
    return Step(model, None), dataclasses.replace(description, **limits)
