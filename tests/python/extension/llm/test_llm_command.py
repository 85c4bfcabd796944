"""A configuration exports a model, and `TextLLMRunner` writes what the model writes in eager."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from rushlight.errors import ExportError, RunError
from rushlight.extension.llm import command
from rushlight.extension.llm.config.export import Pt2eQuantize
from rushlight.extension.llm.config.llm import LlmConfig
from rushlight.extension.llm.config.model import DtypeOverride
from rushlight.extension.llm.runner import TextLLMRunner
from rushlight.extension.llm.stats import GenerationConfig, Stats

LETTERS = sorted(pre_tokenizers.ByteLevel.alphabet())


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model of letters."""
    folder = tmp_path_factory.mktemp("checkpoint")
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=len(LETTERS),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        eos_token_id=0,
        bos_token_id=1,
        initializer_range=0.3,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(LETTERS)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def config_of(checkpoint: Path, output: Path) -> LlmConfig:
    made = LlmConfig()
    made.base.checkpoint = str(checkpoint)
    made.model.use_kv_cache = True
    made.export.max_seq_length, made.export.max_context_length = 16, 64
    made.export.output_dir, made.export.output_name = str(output), "tiny"
    made.backend.xnnpack.enabled = True
    return made


def written_by_eager(checkpoint: Path, prompt: list[int], count: int) -> list[int]:
    model: Any = transformers.LlamaForCausalLM.from_pretrained(checkpoint).eval()
    tokens = torch.tensor([prompt])
    for _ in range(count):
        next_one = model(tokens).logits[0, -1].argmax()
        tokens = torch.cat([tokens, next_one.reshape(1, 1)], 1)
        if int(next_one) == 0:
            break
    return tokens[0, len(prompt) :].tolist()


@pytest.fixture(scope="module")
def program(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("output")
    path = command.export_llama(config_of(checkpoint, output))
    assert path == str(output / "tiny.pte")
    return Path(path)


def test_the_runner_writes_what_eager_writes(
    checkpoint: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runner = TextLLMRunner(str(program), str(checkpoint / "tokenizer.json"))
    prompt = [LETTERS.index(letter) for letter in "lamp"]
    wanted = written_by_eager(checkpoint, prompt, 5)
    pieces: list[str] = []
    told: list[Stats] = []
    config = GenerationConfig(max_new_tokens=5, temperature=0, echo=True)
    runner.generate("lamp", config, pieces.append, told.append)
    assert pieces[0] == "lamp"
    decoder = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    assert "".join(pieces[1:]) == decoder.decode([t for t in wanted if t != 0])
    [stats] = told
    assert (stats.num_prompt_tokens, stats.num_generated_tokens) == (4, len(wanted))
    assert stats.inference_start_ms <= stats.first_token_ms <= stats.inference_end_ms
    printed = capsys.readouterr().out
    assert printed.startswith("".join(pieces)) and '"prompt_tokens":4' in printed

    runner.reset()  # the same text in two parts, with the token that begins it
    both: list[str] = []
    runner.prefill("la", GenerationConfig(num_bos=1))
    quiet = GenerationConfig(max_new_tokens=5, temperature=0, echo=False, warming=True)
    runner.generate("mp", quiet, both.append)
    wanted = written_by_eager(checkpoint, [1, *prompt], 5)
    assert "".join(both) == decoder.decode([t for t in wanted if t != 0])
    assert capsys.readouterr().out == ""
    assert runner.get_vocab_size() == len(LETTERS)


def test_a_callback_stops_the_text(checkpoint: Path, program: Path) -> None:
    runner = TextLLMRunner(str(program), str(checkpoint / "tokenizer.json"))
    pieces: list[str] = []

    def stop(piece: str) -> None:
        pieces.append(piece)
        runner.stop()

    config = GenerationConfig(echo=False, warming=True, temperature=1.5)
    runner.generate("the light", config, stop)
    assert len(pieces) <= 2


def test_what_a_runner_cannot_do_is_refused(program: Path, checkpoint: Path) -> None:
    with pytest.raises(RunError, match="external constants"):
        TextLLMRunner(str(program), "", "weights.ptd")
    with pytest.raises(RuntimeError, match="none"):
        TextLLMRunner(str(program.parent / "none.pte"), "")
    runner = TextLLMRunner(str(program), str(checkpoint / "tokenizer.json"))
    with pytest.raises(RunError, match="no token can follow"):
        runner.generate("lamp", GenerationConfig(seq_len=4))
    with pytest.raises(RunError, match="num_bos=128"):
        runner.generate("lamp", GenerationConfig(num_bos=128))
    with pytest.raises(RunError, match="the prompt has no token"):
        runner.generate("", GenerationConfig())


def test_options_that_do_not_exist_here_are_refused_by_name(
    checkpoint: Path, tmp_path: Path
) -> None:
    def refused(path: str, value: Any, message: str) -> None:
        config: Any = config_of(checkpoint, tmp_path)
        owner, _, last = path.rpartition(".")
        target = config
        for name in owner.split("."):
            target = getattr(target, name)
        setattr(target, last, value)
        with pytest.raises(ExportError, match=message):
            command.export_llama(config)

    refused("base.params", "params.json", r"base\.params='params.json' .*the checkpoint has")
    refused("base.checkpoint", None, "nothing is downloaded")
    refused("base.checkpoint", str(checkpoint / "config.json"), "convert_llama_weights_to_hf")
    refused("model.use_kv_cache", False, "keep keys and values")
    refused("model.use_attention_sink", "4,8", "shift=True")
    refused("export.export_only", True, r"torch\.export\.export")
    refused("debug.profile_memory", True, "profiler")
    refused("quantization.qmode", "4w", "'8da4w' or 'int8'")
    refused("quantization.embedding_quantize", "4,64", "8,0, 4,32")
    refused("quantization.pt2e_quantize", Pt2eQuantize.qnn_8a8w, "xnnpack_dynamic")
    refused("quantization.pt2e_quantize", "qnn_8a8w", "'qnn_8a8w' is not supported")
    refused("model.dtype_override", "fp99", "give one of 'fp32', 'fp16', 'bf16'")
    refused("backend.openvino.enabled", True, "backend='openvino'")
    refused("backend.qnn.enabled", True, "ExecuTorch itself")
    refused("backend.torchao.use_torchao_kernels_linear", True, "ExecuTorch itself")


def test_options_of_unused_backends_change_nothing(
    checkpoint: Path, program: Path, tmp_path: Path
) -> None:
    config = config_of(checkpoint, tmp_path)
    config.model.dtype_override = cast("DtypeOverride", "fp32")  # as YAML readers may give it
    config.backend.openvino = LlmConfig.from_args(Namespace(group_size=16)).backend.openvino
    assert config.backend.openvino.nncf_compression_group_size == 16
    assert Path(command.export_llama(config)).read_bytes() == program.read_bytes()


def test_the_command_line_names_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    monkeypatch.setattr(sys, "argv", ["export_llm", "--config", str(file), "debug.verbose=True"])
    assert command.parse_config_arg() == (str(file), ["debug.verbose=True"])
    called = []
    monkeypatch.setattr(command, "hydra_main", lambda: called.append(list(sys.argv)))
    command.main()
    folder = ["--config-path", str(tmp_path), "--config-name", "my.yaml"]
    assert called == [["export_llm", "debug.verbose=True", *folder]]


def test_counts_of_tokens_are_bounded() -> None:
    config = GenerationConfig(seq_len=512, max_new_tokens=200)
    assert config.resolve_max_new_tokens(1024, 100) == 200
    assert GenerationConfig(seq_len=512).resolve_max_new_tokens(1024, 100) == 412
    assert GenerationConfig(seq_len=50).resolve_max_new_tokens(1024, 100) == 0
    stats = Stats(model_load_end_ms=3, inference_end_ms=5)
    stats.on_sampling_begin()
    stats.on_sampling_end()
    stats.reset()
    assert (stats.model_load_end_ms, stats.inference_end_ms) == (3, 0)
    stats.reset(all_stats=True)
    assert stats == Stats()
