"""Language models and real ExecuTorch: its runner runs our programs, ours runs its programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import rushlight.llm
from rushlight.inspect import report_of

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop
# Every token is a whole character: ExecuTorch's runner in Python cannot give parts of one.
ALPHABET = ["<end>", "<begin>", *map(chr, range(ord("!"), ord("~") + 1)), "Ġ"]
CONTEXT, BATCH, COUNT = 96, 16, 24
PROMPT = "the lamp was small and the light low"
CONFIG = {
    "vocab_size": len(ALPHABET),
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "bos_token_id": None,
    "eos_token_id": 0,
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Tokenizer(models.BPE({piece: i for i, piece in enumerate(ALPHABET)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(ALPHABET[:2])
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


def departure(
    path: Path,
    tokens: list[int],
    pieces: list[int],
    executorch: ExecuTorch,
    *,
    is_theirs: bool = False,
) -> float:
    """The greatest difference of a text's logits here and there, relative to the largest logit."""
    outputs = Path(path).with_suffix(".npz")
    executorch.call("logits", pte=path, tokens=tokens, pieces=pieces, outputs=outputs)
    theirs = np.load(outputs)["logits"]
    position, worst = 0, 0.0
    with rushlight.load(path, threads=1) as module:
        for count, wanted in zip(pieces, theirs, strict=True):
            piece = np.array([tokens[position : position + count]])
            start: Any = np.array([position])
            if is_theirs:  # the structure that ExecuTorch's exporter gives its inputs
                start = {"input_pos": start}
            got = np.asarray(module(piece, start)).reshape(-1, len(wanted))[-1]
            worst = max(worst, float(np.abs(got - wanted).max() / np.abs(wanted).max()))
            position += count
    return worst


EXPORTS: dict[str, dict[str, Any]] = {
    "float32": {},
    "8da4w": {"quantize": "8da4w", "quantize_embedding": "int4"},
    "int8": {"quantize": "int8", "quantize_embedding": "int8", "wanted": BATCH},
}


@pytest.mark.parametrize("recipe", EXPORTS)
def test_executorchs_runner_generates_the_same_text(
    recipe: str, tokenizer: Path, executorch: ExecuTorch, tmp_path: Path
) -> None:
    torch.manual_seed(5)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG)).eval()
    options = {"context": CONTEXT, "batch": BATCH, "tokenizer": tokenizer, **EXPORTS[recipe]}
    path = tmp_path / "m.pte"
    rushlight.llm.export(model, backend="xnnpack", **options).save(path, quiet=True)
    runner = rushlight.llm.load(path, threads=1)
    reply = runner.generate(PROMPT, max_tokens=COUNT, special=True)
    texts = executorch.call(
        "generate", pte=path, tokenizer=tokenizer, prompt=PROMPT, count=len(reply.tokens)
    )
    assert texts == [reply.text, reply.text] and len(reply.text) > 4
    names = {operator.name for operator in report_of(path).operators}
    assert {"llama::update_cache.out", "llama::custom_sdpa.out"} <= names
    assert ("quantized_decomposed::embedding_4bit.out" in names) == (recipe == "8da4w")


@pytest.mark.full
@pytest.mark.parametrize("family", ["gemma2", "gemma3_text", "gpt2", "qwen3", "mistral"])
def test_other_families(family: str, executorch: ExecuTorch, tmp_path: Path) -> None:
    torch.manual_seed(7)
    more = {"sliding_window": 20, "head_dim": 16} if family != "gpt2" else {}
    if family == "gpt2":
        more = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}
    tokens_of = {name: CONFIG[name] for name in ("vocab_size", "bos_token_id", "eos_token_id")}
    shared = CONFIG if family != "gpt2" else tokens_of
    config = transformers.AutoConfig.for_model(family, **{**shared, **more})
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 1.5 * parameter.shape[1] ** -0.5)
    path = tmp_path / "m.pte"
    program = rushlight.llm.export(model, backend="xnnpack", context=CONTEXT, batch=64)
    program.save(path, quiet=True)
    tokens = [2 + 7 * i % 90 for i in range(40)]  # longer than a window
    ours = rushlight.llm.load(path, threads=1).generate(tokens, max_tokens=COUNT, ignore_eos=True)
    with torch.no_grad():
        wanted = model.generate(
            torch.tensor([tokens]), max_new_tokens=COUNT, do_sample=False, eos_token_id=None
        )
    assert ours.tokens == wanted[0, len(tokens) :].tolist()
    assert departure(path, [*tokens, *ours.tokens], [40, *[1] * COUNT], executorch) < 1e-4


# --- programs of ExecuTorch's own exporter --------------------------------------------------------

PARAMS = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": len(ALPHABET),
    "hidden_dim": 96,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
THEIRS: dict[str, dict[str, Any]] = {
    "8da4w": {
        "quantization.qmode": "8da4w",
        "quantization.group_size": 32,
        "quantization.embedding_quantize": "4,32",
    },
    "integers in the cache": {"model.quantize_kv_cache": True},
    "all logits": {"debug.generate_full_logits": True},
    "one token": {"model.enable_dynamic_shape": False},
    "a ring": {"model.local_global_attention": [32, 0]},
}


def _checkpoint(folder: Path) -> dict[str, Path]:
    """A Llama as Meta writes it."""
    torch.manual_seed(3)
    width, hidden, keys = PARAMS["dim"], PARAMS["hidden_dim"], 32
    shapes = {"attention.wq": (width, width), "attention.wo": (width, width)}
    shapes |= {"attention.wk": (keys, width), "attention.wv": (keys, width)}
    shapes |= {"feed_forward.w1": (hidden, width), "feed_forward.w3": (hidden, width)}
    shapes |= {"feed_forward.w2": (width, hidden)}
    weights = {"norm.weight": torch.ones(int(width))}
    for name in ("tok_embeddings", "output"):
        weights[f"{name}.weight"] = torch.randn(len(ALPHABET), int(width)) * 0.2
    for layer in range(int(PARAMS["n_layers"])):
        for name, shape in shapes.items():
            weight = torch.randn(int(shape[0]), int(shape[1])) * 1.5 * shape[1] ** -0.5
            weights[f"layers.{layer}.{name}.weight"] = weight
        for name in ("attention_norm", "ffn_norm"):
            weights[f"layers.{layer}.{name}.weight"] = torch.ones(int(width))
    torch.save(weights, folder / "checkpoint.pth")
    (folder / "params.json").write_text(json.dumps(PARAMS))
    return {"checkpoint": folder / "checkpoint.pth", "params": folder / "params.json"}


@pytest.mark.full
@pytest.mark.parametrize("kind", THEIRS)
def test_programs_of_executorchs_exporter_run_here(
    kind: str, tokenizer: Path, executorch: ExecuTorch, tmp_path: Path
) -> None:
    options = {
        "base.metadata": '{"get_eos_ids": [0]}',
        "model.use_kv_cache": True,
        "model.use_sdpa_with_kv_cache": True,
        "export.max_seq_length": 64,
        "export.max_context_length": CONTEXT,
        "backend.xnnpack.enabled": True,
        "backend.xnnpack.extended_ops": True,
        **THEIRS[kind],
    }
    path = executorch.call(
        "export_llama", folder=tmp_path, options=options, **_checkpoint(tmp_path)
    )
    runner = rushlight.llm.load(path, tokenizer=tokenizer, threads=1)
    prompt = runner.encode(PROMPT)
    reply = runner.generate(PROMPT, max_tokens=COUNT, ignore_eos=True)
    pieces = [1] * len(prompt) if kind == "one token" else [len(prompt)]
    text = [*prompt, *reply.tokens]
    # A row that is rounded to integers departs by more where one of them is another one.
    most = 0.1 if kind in ("8da4w", "integers in the cache") else 1e-4
    all_pieces = [*pieces, *[1] * COUNT]
    assert departure(path, text, all_pieces, executorch, is_theirs=True) < most
    session = runner.session()
    session.generate(PROMPT, max_tokens=9, ignore_eos=True)
    session.rewind(6)
    again = session.generate([], max_tokens=COUNT - 3, ignore_eos=True)
    assert again.tokens == reply.tokens[3:]
