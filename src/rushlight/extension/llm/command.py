"""Exporting a language model by a configuration: a YAML file, words of a command line, or both.

    python -m executorch.extension.llm.export.export_llm --config FILE +export.output_name=m.pte

Words change fields of the file, and `+` adds one that it does not have. Without a file, all fields
are there.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from rushlight.errors import Code, ExportError
from rushlight.extension.llm.config.export import Pt2eQuantize
from rushlight.extension.llm.config.llm import LlmConfig
from rushlight.extension.llm.config.model import DtypeOverride
from rushlight.llm import export

Chosen = TypeVar("Chosen", bound=Enum)
# Fields that are read, and such as change nothing: what they ask for is always so.
_READ = frozenset(
    """
    base.checkpoint base.tokenizer_path base.model_class
    model.dtype_override model.enable_dynamic_shape model.use_kv_cache
    model.use_sdpa_with_kv_cache model.expand_rope_table
    export.max_seq_length export.max_context_length export.output_dir export.output_name
    debug.generate_full_logits debug.verbose
    quantization.qmode quantization.embedding_quantize quantization.group_size
    quantization.pt2e_quantize quantization.use_hqq
    backend.xnnpack.enabled backend.xnnpack.extended_ops
    """.split()
)
# By the beginning of a field's path, what to do about others.
_ADVICE = {
    "base.params": "the checkpoint has the model's sizes",
    "base.metadata": "the checkpoint says which tokens begin and end a text",
    "base.lora_config": "merge the adapter into the checkpoint first, with merge_and_unload() of "
    "peft, or use rushlight.llm.export(adapters=…)",
    "base.use_lora": "merge the adapter into the checkpoint first, with merge_and_unload() of peft",
    "base.preq": "give a checkpoint of floats with quantization.qmode, or a GGUF file",
    "model.quantize_kv_cache": "rushlight.llm.load(kv='int8') keeps keys and values in 8 bits, for "
    "programs that rushlight.llm.export makes with backend='cpu'",
    "model.local_global_attention": "the checkpoint's configuration has the windows of layers",
    "model.use_attention_sink": "rushlight.llm.load(…).generate(shift=True, keep=…) keeps the "
    "first tokens, with programs that rushlight.llm.export makes with backend='cpu'",
    "model": "change the model in transformers, and give the folder that save_pretrained writes",
    "export.so_library": "the operators of quantised models are defined here",
    "export.export_only": "torch.export.export captures models",
    "export": "weights are part of the program",
    "debug": "call rushlight.llm.export in a script under the profiler of your choice",
    "multimethod": "export each method by itself",
    "quantization.calibration": "weights are quantised without calibration; LLMEdgeManager "
    "calibrates captured graphs",
    "quantization": "give quantization.qmode='8da4w' or 'int8'",
    "backend.openvino": "use rushlight.llm.export(…, backend='openvino')",
    "backend.coreml": "use rushlight.llm.export(…, backend='coreml')",
    "backend": "programs for this backend need ExecuTorch itself; backend.xnnpack is here",
}


def export_llama(llm_config: LlmConfig) -> str:
    """Export the model that a configuration describes, for ExecuTorch's runner and ours.

    Args:
        llm_config: `base.checkpoint` is a folder as `save_pretrained` of transformers writes it, or
            a GGUF file.

    Returns:
        The path of the program.

    Raises:
        ExportError: the configuration asks for something that is not supported, which the error
            names, or the model cannot be exported.
    """
    _refuse_others(llm_config)
    context, batch = llm_config.export.max_context_length, llm_config.export.max_seq_length
    if not llm_config.model.use_kv_cache:
        raise _unsupported("model.use_kv_cache=False", "programs keep keys and values: set it")
    if not llm_config.model.enable_dynamic_shape:
        batch = 1
    program = export(
        _checkpoint(llm_config),
        context=context,
        batch=batch,
        wanted=batch if llm_config.debug.generate_full_logits else None,
        tokenizer=llm_config.base.tokenizer_path,
        backend="xnnpack" if llm_config.backend.xnnpack.enabled else "portable",
        progress=print if llm_config.debug.verbose else None,
        **_weights(llm_config),
    )
    path = _output(llm_config)
    program.save(path)
    return str(path)


def _unsupported(what: str, advice: str) -> ExportError:
    return ExportError(f"{what} is not supported: {advice}", code=Code.NOT_SUPPORTED)


def _refuse_others(config: LlmConfig) -> None:
    """Refuse fields that have other values than their defaults, and are not read, but not those of
    backends that are not used: `--group_size` also sets one of OpenVINO's."""
    for path, value in _changed(config, LlmConfig()):
        if path in _READ or _is_idle(config, path):
            continue
        at = max((a for a in _ADVICE if path.startswith(a)), key=len)
        raise _unsupported(f"{path}={value!r}", f"{_ADVICE[at]}; leave it out")


def _is_idle(config: LlmConfig, path: str) -> bool:
    """Whether a field is an option of a backend that is not used."""
    section, _, rest = path.partition(".")
    if section != "backend":
        return False
    backend = getattr(config.backend, rest.partition(".")[0])
    return not getattr(backend, "enabled", True)


def _changed(one: Any, other: Any, path: str = "") -> list[tuple[str, Any]]:
    """The paths and values of fields that differ."""
    if not is_dataclass(one) or type(one) is not type(other):
        return [] if one == other else [(path, one)]
    prefix = f"{path}." if path else ""
    return [
        found
        for field in fields(one)
        for found in _changed(
            getattr(one, field.name), getattr(other, field.name), prefix + field.name
        )
    ]


def _checkpoint(config: LlmConfig) -> Path:
    """The model's files."""
    given = config.base.checkpoint
    if given is None:
        raise ExportError(
            f"base.checkpoint is missing: give the folder of {_name(config)} as save_pretrained of "
            f"transformers writes it, or its GGUF file; nothing is downloaded",
            code=Code.INVALID_ARGUMENT,
        )
    path = Path(given)
    if path.is_file() and path.suffix != ".gguf":
        raise _unsupported(
            f"base.checkpoint={given!r}",
            "give a folder as save_pretrained of transformers writes it (its script "
            "convert_llama_weights_to_hf.py makes one of Meta's files), or a GGUF file",
        )
    return path


def _name(config: LlmConfig) -> str:
    return str(getattr(config.base.model_class, "value", config.base.model_class))


def _weights(config: LlmConfig) -> dict[str, Any]:
    """How weights are stored, as `rushlight.llm.export` takes it."""
    quantised = config.quantization
    dtype = _member(DtypeOverride, "model.dtype_override", config.model.dtype_override)
    group = quantised.group_size or 32
    made: dict[str, Any] = {}
    embedding = quantised.embedding_quantize
    if embedding is not None:
        made["quantize_embedding"] = _embedding(embedding, group)
    if quantised.qmode == "8da4w" or made.get("quantize_embedding") == "int4":
        made["group_size"] = group
    graph, layers = quantised.pt2e_quantize, quantised.qmode
    if graph is not None and layers is not None:
        raise _unsupported("quantization.qmode with pt2e_quantize", "give one of them")
    if graph is not None:
        graph = _member(Pt2eQuantize, "quantization.pt2e_quantize", graph)
        if graph != Pt2eQuantize.xnnpack_dynamic:
            raise _unsupported(
                f"quantization.pt2e_quantize={graph.value!r}",
                "give 'xnnpack_dynamic', or quantization.qmode='8da4w'",
            )
        layers = "int8"
    if layers is None:
        names = {DtypeOverride.fp32: "float32"}
        return {**made, "quantize": names.get(dtype, dtype.value)}
    if layers not in ("int8", "8da4w"):
        raise _unsupported(
            f"quantization.qmode={layers!r}", "give '8da4w' or 'int8', or a GGUF file"
        )
    if dtype != DtypeOverride.fp32:
        raise _unsupported(
            f"model.dtype_override={dtype.value!r} with quantised weights",
            "what is not quantised is computed in fp32",
        )
    return {**made, "quantize": layers}


def _member(kind: type[Chosen], path: str, value: Any) -> Chosen:
    """The member of an enumeration that a field has, or whose value it has."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(member.value) for member in kind)
        raise ExportError(
            f"{path}={value!r}: give one of {known}", code=Code.INVALID_ARGUMENT
        ) from None


def _embedding(text: str, group_size: int) -> str:
    """A text "BITS,GROUP_SIZE"."""
    known = {"8,0": "int8", f"4,{group_size}": "int4"}
    spaceless = text.replace(" ", "")
    if spaceless not in known:
        raise _unsupported(
            f"quantization.embedding_quantize={text!r}", f"give one of {', '.join(known)}"
        )
    return known[spaceless]


def _output(config: LlmConfig) -> Path:
    name = config.export.output_name or _name(config)
    path = Path(config.export.output_dir, name if name.endswith(".pte") else f"{name}.pte")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def parse_config_arg() -> tuple[str | None, list[str]]:
    """The file after `--config` in the command line, if there is one, and the other words."""
    parser = argparse.ArgumentParser(description="Export a language model.")
    parser.add_argument("--config", help="a YAML file with fields of LlmConfig")
    given, others = parser.parse_known_args()
    return given.config, others


def pop_config_arg() -> str:
    """The file after `--config` in the command line, from which both words are taken."""
    at = sys.argv.index("--config")
    _, path = sys.argv[at : at + 2]
    del sys.argv[at : at + 2]
    return path


def add_hydra_config_args(config_file_path: str) -> None:
    """Name a file to Hydra in the command line, by its folder and its name."""
    folder, name = os.path.split(os.path.abspath(config_file_path))
    sys.argv += ["--config-path", folder, "--config-name", name]


def hydra_main() -> None:
    """Read the command line by Hydra, and export.

    Raises:
        ExportError: Hydra is not installed, or the export fails.
    """
    try:
        import hydra
        from hydra.core.config_store import ConfigStore
        from omegaconf import OmegaConf
    except ModuleNotFoundError as error:
        raise ExportError(
            f"a configuration is read by {error.name}, which is not installed: pip install "
            f"hydra-core, or call rushlight.llm.export",
            code=Code.NOT_FOUND,
        ) from error
    ConfigStore.instance().store(name="llm_config", node=LlmConfig)

    def run(given: Any) -> None:
        merged = OmegaConf.merge(OmegaConf.structured(LlmConfig), given)
        made: Any = OmegaConf.to_object(merged)
        export_llama(made)

    hydra.main(version_base=None, config_name="llm_config", config_path=None)(run)()


def main() -> None:
    """Export the model that the command line describes."""
    path, _ = parse_config_arg()
    if path is not None:
        add_hydra_config_args(pop_config_arg())
    hydra_main()


if __name__ == "__main__":
    main()
