"""`rushlight.llm.export`: from a language model to a program that a runner takes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from rushlight.api import Program
from rushlight.api import export as export_program
from rushlight.check import to_run
from rushlight.errors import Code, ExportError
from rushlight.files import AnyPath
from rushlight.forms import Form, forms_of
from rushlight.ir.mapped_weights import also_release, weights_in_files, were_read
from rushlight.llm.description import KEY, Description
from rushlight.llm.exporter.adapters import adapt_layers, adapters_of
from rushlight.llm.exporter.encoders import encoder_description, encoder_of, is_encoder
from rushlight.llm.exporter.families import Decoder, Head, decoder_of, description_of
from rushlight.llm.exporter.folder import Folder, read_folder
from rushlight.llm.exporter.forward import (
    FORWARD,
    capture_forward,
    check_forward,
    constant_methods,
    forward_of,
)
from rushlight.llm.exporter.generation import check_generation
from rushlight.llm.exporter.recipes import Recipe, convert_layers
from rushlight.llm.exporter.step import Step, capture_step, copied
from rushlight.llm.exporter.texts import TEMPLATE, TOKENIZER, template_of, tokenizer_of
from rushlight.llm.exporter.verify import check_steps
from rushlight.llm.gguf.model import GgufModel, read_gguf
from rushlight.llm.packages import needs_packages
from rushlight.runtime.registries import lent_kernels

STEP, EMBED = "step", "embed"
_WANTED = 64  # of a step


@needs_packages()
@weights_in_files()
def export(
    model: Any,
    *,
    description: Description | None = None,
    context: int | None = None,
    batch: int = 512,
    wanted: int | None = None,
    quantize: str | None = None,
    group_size: int | None = None,
    quantize_embedding: str | None = None,
    embed: bool = False,
    pooling: str | None = None,
    adapters: int | None = None,
    tokenizer: Any = None,
    chat_template: str | None = None,
    backend: Any = "cpu",
    verify: bool = True,
    strict: bool | float = False,
    debug: str = "lines",
    progress: Callable[[str], None] | None = None,
    kernels: Sequence[AnyPath] | None = None,
) -> Program:
    """Turn a language model into a program, for `rushlight.llm.load`.

    With backend="cpu" it has a method `step`, whose cache is the runner's. With another backend it
    has the form that ExecuTorch's runner for language models runs, too: a method `forward`, whose
    cache is state of the program.

    An encoder becomes a program whose only method is `embed`.

    Args:
        model: a folder as `save_pretrained` of `transformers` or sentence-transformers writes it; a
            GGUF file; a `transformers` model for causal language modelling, or an encoder; or an
            `nn.Module` of your own, whose forward takes (tokens, positions, sequences), int64 [n]
            each, calls `rushlight.llm.attention` in its layers, and returns logits [n, vocabulary].
            If its forward also takes `wanted`, int64 [m], it returns the logits of these rows
            alone.
        description: of an `nn.Module` of your own.
        context: the greatest number of positions of a sequence; default: the model's own.
        batch: the greatest number of tokens of one step, which memory is planned for; of an
            encoder, it is the context.
        wanted: the greatest number of tokens of one step whose logits are computed; default: 64.
            In the form for ExecuTorch's runner: 1, the default, for the last token's, or `batch`
            for those of all.
        quantize: in what weights are stored: "float32", "fp16", "bf16"; "int8" or "8da4w": integers
            of 8 or 4 bits, multiplied with rows that are quantised to 8 bits at run time. Default:
            the dtypes that the model has. All else is computed in float32.
        group_size: of weights of 4 bits: how many of a row share a scale: 32 (the default), 64, 128
            or 256.
        quantize_embedding: "int8" or "int4" for an embedding of tokens in integers. Not for one
            that is tied to the output layer, which is stored once, as that layer.
        embed: whether there is also a method `embed`, which returns hidden states after the last
            norm in place of logits. Encoders have it anyway.
        pooling: what becomes the embedding of a text: "last", the last token's hidden state;
            "mean", the mean of all; or "cls", the first token's. Default: the folder's; or else
            "last" for decoders and "mean" for encoders.
        adapters: the greatest rank of the adapters (LoRA) that sessions may have, up to 256; None
            for a program that takes none.
        tokenizer: what `rushlight.llm.tokenizer.compile` takes; default: the folder's.
        chat_template: a Jinja template; default: the folder's.
        backend: where it runs, as `rushlight.export` takes it, but not a list of forms: "cpu", or
            "xnnpack" for a program that real ExecuTorch runs.
        verify: run steps in the runtime and compare their results with eager's.
        strict, debug, progress, kernels: as `rushlight.export` takes them.

    Raises:
        ExportError: the model is not supported, a file of it is missing or damaged, or its program
            does not compute what the model computes.
    """
    say = progress or (lambda stage: None)
    recipe = Recipe(quantize, group_size, quantize_embedding)
    form = _form(backend)
    folder = None
    if isinstance(model, str | os.PathLike):
        say("read the model")
        folder = _read(Path(model))
        also_release(folder.release)
        model = folder.model
    if context is None and isinstance(folder, Folder):
        context = folder.longest_text
    has_cache = _has_runners_cache(form)
    wanted = (_WANTED if has_cache else 1) if wanted is None else wanted
    step, about = _step_of(model, description, context, batch, wanted)
    about = _with_folder(about, folder) if folder else about
    about = _with_embedding(about, model, step, embed, pooling)
    about = _with_adapters(about, step, adapters, has_cache)
    texts = _texts(about, tokenizer, chat_template, folder)
    _convert(step, about, recipe, say)
    say("capture")
    captured = _methods(step, about, has_cache)
    with lent_kernels(kernels):
        program = export_program(
            captured,
            backend=backend,
            constant_methods=_constants(about, captured),
            verify=False,
            strict=strict,
            debug=debug,
            progress=progress,
        )
        program.quantization += folder.losses() if isinstance(folder, GgufModel) else []
        for key, data in {KEY: about.to_json(), **texts}.items():
            program.manager.add_named_data(key, data)
        were_read()
        if verify:
            _verify(program, captured, about, form, say)
    return program


def _verify(
    program: Program,
    captured: dict[str, ExportedProgram],
    about: Description,
    form: Form,
    say: Callable[[str], None],
) -> None:
    """Check the methods of a finished program."""
    with to_run(program.manager) as file:
        were_read()
        for name, one in captured.items():
            say(f"{name}: verify")
            check = check_forward if name == FORWARD else check_steps
            check(program.manager, name, one, about, form.partitioners, file)


def _methods(step: Step, about: Description, has_cache: bool) -> dict[str, ExportedProgram]:
    """The captured methods of the program, by name; `has_cache`: the runner has its cache."""
    is_forward = not has_cache and not about.is_encoder
    if is_forward and about.hidden:
        raise ExportError(
            "embed=True: a program for ExecuTorch's runner gives no hidden states: leave it out, "
            "or use backend='cpu'",
            code=Code.NOT_SUPPORTED,
        )
    if is_forward:
        return {FORWARD: capture_forward(forward_of(step, about), about)}
    if about.is_encoder:
        return {EMBED: capture_step(step, about, EMBED)}
    captured = {STEP: capture_step(step, about, STEP)}
    if about.hidden:
        about = dataclasses.replace(about, wanted=about.batch)
        captured[EMBED] = capture_step(_embedding_step(step), about, EMBED)
    return captured


def _constants(about: Description, captured: dict[str, ExportedProgram]) -> dict[str, Any]:
    """The methods without inputs."""
    return constant_methods(about) if FORWARD in captured else about.constant_methods()


def _with_embedding(
    about: Description, model: Any, step: Step, embed: bool, pooling: str | None
) -> Description:
    """A description with what it says of embeddings."""
    if about.is_encoder:
        return dataclasses.replace(about, pooling=pooling or about.pooling)
    if not embed:
        if pooling is not None:
            raise ExportError(
                f"pooling={pooling!r} is for a method that embeds texts: add embed=True, or leave "
                f"it out",
                code=Code.INVALID_ARGUMENT,
            )
        return about
    if step.head is None:
        raise ExportError(
            "embed=True: what a module of your own returns are its logits; it has no hidden states",
            code=Code.INVALID_ARGUMENT,
        )
    hidden = model.config.hidden_size
    return dataclasses.replace(about, hidden=hidden, pooling=pooling or about.pooling)


def _read(path: Path) -> Folder | GgufModel:
    """A folder of Hugging Face, or a GGUF file."""
    if not path.exists():
        raise ExportError(
            f"there is no file or folder {path}: give a folder as save_pretrained of transformers "
            f"writes it, or a GGUF file; what is on a hub is downloaded first",
            code=Code.NOT_FOUND,
        )
    is_file = path.is_file() or path.suffix == ".gguf"
    return read_gguf(path) if is_file else read_folder(path)


def _form(backend: Any) -> Form:
    """The only form of a program."""
    [form, *others] = forms_of(backend)
    if others:
        raise ExportError(
            "a language model has one form, since the cache of its runner is that of one backend: "
            "give one backend, or a tuple of several that take their parts in order",
            code=Code.NOT_SUPPORTED,
        )
    return form


def _has_runners_cache(form: Form) -> bool:
    """Whether a form can use the cache of our runner, which attention of the engine reads."""
    from rushlight.backends.cpu import CpuPartitioner

    return any(isinstance(one, CpuPartitioner) for one in form.partitioners)


def _convert(
    step: Step,
    about: Description,
    recipe: Recipe,
    say: Callable[[str], None],
) -> None:
    """Store the layers of a step as a recipe has them, and let them take adapters if asked to."""
    say("quantise" if recipe.bits or recipe.embedding else "convert weights")
    embedding = _embedding_of_tokens(step, about) if recipe.embedding else None
    convert_layers(step, recipe, embedding=embedding)
    if about.adapters is not None:
        adapt_layers(step, about.adapters)


def _with_adapters(
    about: Description, step: Step, rank: int | None, has_cache: bool
) -> Description:
    """A description with the adapters that its program takes."""
    if rank is None:
        return about
    if not has_cache:
        raise ExportError(
            "adapters=: a program for ExecuTorch's runner takes none, since they are the runner's: "
            "use backend='cpu', or merge the adapter into the model first, with merge_and_unload() "
            "of peft",
            code=Code.NOT_SUPPORTED,
        )
    return dataclasses.replace(about, adapters=adapters_of(step, about, rank))


def _texts(
    about: Description, tokenizer: Any, template: str | None, folder: Folder | GgufModel | None
) -> dict[str, bytes]:
    """The named data of the tokenizer and the chat template, as far as there are such."""
    if folder is not None:
        tokenizer = folder.tokenizer if tokenizer is None else tokenizer
        template = template or folder.template
    texts = {}
    if tokenizer is not None:
        lowers = isinstance(folder, Folder) and folder.sentences.lowers
        texts[TOKENIZER] = tokenizer_of(tokenizer, about, lowers)
    if template is not None:
        texts[TEMPLATE] = template_of(template, about)
    return texts


def _embedding_step(step: Step) -> Step:
    """The step that returns hidden states after the last norm."""
    assert isinstance(step.head, Head)
    norm = step.head.norm
    return Step(step.decoder, Head(norm, None, 0.0))


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
        if is_encoder(model.config.model_type):
            description = encoder_description(model.config, context)
            return Step(encoder_of(model, description.context), None), description
        description = description_of(model.config, context, batch=batch, wanted=wanted)
        return Step(*decoder_of(model, description.context)), description
    if not isinstance(model, torch.nn.Module):
        raise ExportError(
            f"cannot export {type(model).__name__}: pass a folder, a transformers model, or an "
            f"nn.Module of your own with description=",
            code=Code.INVALID_ARGUMENT,
        )
    if description is None:
        raise ExportError(
            f"{type(model).__name__} is no transformers model: pass description="
            f"rushlight.llm.Description(vocabulary=…, layers=…, key_heads=…, width=…, context=…)",
            code=Code.INVALID_ARGUMENT,
        )
    about = dataclasses.replace(
        description,
        context=description.context if context is None else context,
        batch=batch,
        wanted=wanted,
    )
    return Step(copied(model), None), about


def _embedding_of_tokens(step: Step, about: Description) -> Any:
    """The layer that has a row for each token.

    Raises:
        ExportError: it is not known which one it is.
    """
    if isinstance(step.decoder, Decoder):
        return step.decoder.embedding
    candidates = {
        name: layer
        for name, layer in step.decoder.named_modules()
        if isinstance(layer, torch.nn.Embedding) and layer.num_embeddings == about.vocabulary
    }
    if len({id(layer.weight) for layer in candidates.values()}) != 1:
        names = f" ({', '.join(candidates)})" if candidates else ""
        raise ExportError(
            f"quantize_embedding=: the module has {len(candidates)} nn.Embedding with a row for "
            f"each of the {about.vocabulary} tokens{names}, and must have one: leave "
            f"quantize_embedding out",
            code=Code.INVALID_ARGUMENT,
        )
    return next(iter(candidates.values()))


def _with_folder(about: Description, folder: Folder | GgufModel) -> Description:
    """A description with what a folder says of texts: `generation_config.json` before the rest."""
    ends = folder.generation.get("eos_token_id")
    eos = list(about.eos) if ends is None else ends if isinstance(ends, list) else [ends]
    begin = folder.generation.get("bos_token_id")
    check_generation(folder.generation, about.vocabulary, folder.generation_file)
    if isinstance(folder, Folder) and folder.sentences.pooling:
        about = dataclasses.replace(about, pooling=folder.sentences.pooling)
    return dataclasses.replace(
        about,
        eos=eos,
        bos=about.bos if begin is None else begin,
        tokens=folder.tokens,
        generation=folder.generation,
    )
