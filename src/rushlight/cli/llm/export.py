"""`rushlight llm export`: a folder or file of a language model becomes a program."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rushlight.cli.common import TracebackOption, console, help_text, reports_errors
from rushlight.cli.export import (
    DebugOption,
    OutputOption,
    Stages,
    StrictOption,
    VerifyOption,
    print_report,
)
from rushlight.cli.llm.common import read_template

NAME = "export"
HELP = help_text(
    "Turn a language model into a program (.pte) with weights, tokenizer and chat template. MODEL "
    "is a folder as save_pretrained of transformers or sentence-transformers writes it, a GGUF "
    "file, or FILE.py:NAME of a function that returns, or an attribute that is, a transformers "
    "model. Encoders, such as MiniLM, become programs that embed texts.",
    (
        "rushlight llm export SmolLM2-135M-Instruct -o m.pte --quantize 8da4w",
        "rushlight llm export llama -o m.pte --quantize 8da4w --group-size 128 --context 8192",
        "rushlight llm export SmolLM2-135M-Instruct-Q4_0.gguf -o m.pte",
        "rushlight llm export model.py:build -o m.pte --tokenizer folder",
        "rushlight llm export SmolLM2-135M-Instruct -o m.pte --quantize 8da4w --backend xnnpack",
    ),
)


QuantizeOption = Annotated[
    str | None,
    typer.Option(
        "--quantize",
        metavar="float32|fp16|bf16|int8|8da4w",
        help="In what weights are stored; default: the dtypes that the model has.",
    ),
]
GroupOption = Annotated[
    int | None,
    typer.Option("--group-size", help="Of weights of 4 bits: how many share a scale; default: 32."),
]
EmbeddingOption = Annotated[
    str | None,
    typer.Option(
        "--quantize-embedding", metavar="int8|int4", help="Store the embedding in integers."
    ),
]
ContextOption = Annotated[
    int | None,
    typer.Option("--context", help="The most tokens of a text; default: the model's own."),
]
BatchOption = Annotated[int, typer.Option("--batch", help="The most tokens of one step.")]
WantedOption = Annotated[
    int | None,
    typer.Option(
        "--wanted",
        help="The most tokens of one step whose logits are computed; default: 64, and with another "
        "--backend than cpu 1, for the last token's. As many as --batch are all.",
    ),
]
EmbedOption = Annotated[
    bool, typer.Option("--embed", help="Also embed texts; encoders do nothing else.")
]
PoolingOption = Annotated[
    str | None,
    typer.Option(
        "--pooling",
        metavar="last|mean|cls",
        help="What becomes a text's embedding; default: what the model's folder says.",
    ),
]
AdaptersOption = Annotated[
    int | None,
    typer.Option(
        "--adapters",
        metavar="RANK",
        help="Take adapters (LoRA) of ranks up to this one; see rushlight llm adapter.",
    ),
]
TokenizerOption = Annotated[
    str | None, typer.Option("--tokenizer", metavar="PATH", help="Default: that of the model.")
]
TemplateOption = Annotated[
    str | None,
    typer.Option(
        "--chat-template",
        metavar="PATH",
        help="A file with a Jinja template; default: that of the model.",
    ),
]
BackendOption = Annotated[
    str,
    typer.Option(
        "--backend", help="cpu, or xnnpack for a program that real ExecuTorch's runner runs."
    ),
]


@reports_errors
def main(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A folder, model.gguf, or model.py:build.")
    ],
    output: OutputOption = None,
    quantize: QuantizeOption = None,
    group_size: GroupOption = None,
    quantize_embedding: EmbeddingOption = None,
    context: ContextOption = None,
    batch: BatchOption = 512,
    wanted: WantedOption = None,
    embed: EmbedOption = False,
    pooling: PoolingOption = None,
    adapters: AdaptersOption = None,
    tokenizer: TokenizerOption = None,
    chat_template: TemplateOption = None,
    backend: BackendOption = "cpu",
    verify: VerifyOption = True,
    strict: StrictOption = False,
    debug: DebugOption = "lines",
    traceback: TracebackOption = False,
) -> None:
    """The command; `HELP` is its help page."""
    from rushlight.llm.packages import needs_packages

    with needs_packages(), Stages(console(stderr=True)) as stages:
        stages("import PyTorch")
        from rushlight.cli.target import default_output, read_target
        from rushlight.llm.exporter.export import export
        from rushlight.serialize.file import check_program_path

        is_source = os.path.exists(model) or ":" not in model  # which names a Python function
        name = os.path.basename(os.path.normpath(model)).removesuffix(".gguf") + ".pte"
        path = output or (name if is_source else default_output(model))
        check_program_path(path)  # now, and not after an export of minutes
        program = export(
            model if is_source else read_target(model).model,
            context=context,
            batch=batch,
            wanted=wanted,
            quantize=quantize,
            group_size=group_size,
            quantize_embedding=quantize_embedding,
            embed=embed,
            pooling=pooling,
            adapters=adapters,
            tokenizer=tokenizer,
            chat_template=read_template(chat_template),
            backend=backend,
            verify=verify,
            strict=strict,
            debug=debug,
            progress=stages,
        )
        stages("write")
        program.save(path, quiet=True)
    print_report(program, path)
