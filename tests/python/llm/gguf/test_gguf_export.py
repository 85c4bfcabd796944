"""What exports of GGUF files write, and what their recipes do to weights that are integers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizer_byte_level as byte_level
import tokenizer_corpus as corpus
import torch
from gguf_files import byte_level_entries, of_tokenizer, take_weights, write_gguf
from llm_models import Session, converted_step, small_model
from typer.testing import CliRunner

import rushlight.llm
from rushlight.cli import app
from rushlight.errors import ExportError
from rushlight.llm.exporter.adapters import adapters_of
from rushlight.llm.exporter.families import decoder_of, description_of
from rushlight.llm.exporter.recipes import Recipe
from rushlight.llm.exporter.step import Step
from rushlight.llm.gguf.model import read_gguf
from rushlight.llm.tokenizer import Tokenizer
from rushlight.llm.weights.layers import QuantizedLinear, StoredLinear
from rushlight.serialize.pte import read_pte

WIDE = {"hidden_size": 256, "intermediate_size": 256, "head_dim": 32, "num_attention_heads": 8}
SHALLOW = {**WIDE, "num_hidden_layers": 1}
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"


def _texts() -> dict[str, Any]:
    """The metadata of a tokenizer with 1,000 tokens, and of a template."""
    peer = byte_level.train("llama3", 1000, corpus.prose()[:100_000])
    made = of_tokenizer(byte_level_entries(peer, "llama-bpe"))
    return {**made, "tokenizer__chat_template": TEMPLATE, "general__sampling__temp": 0.5}


def test_programs_have_what_files_say_of_texts(tmp_path: Path) -> None:
    model = small_model("llama", vocab_size=1024, num_hidden_layers=1)
    path = write_gguf(model, tmp_path / "small.gguf", "F16", **_texts())
    output = tmp_path / "out.pte"
    result = CliRunner().invoke(app, ["llm", "export", str(path), "-o", str(output)])
    assert result.exit_code == 0, result.output
    data = read_pte(output.read_bytes()).named_data
    about = json.loads(bytes(data["rushlight/llm"]))
    begin, end = about["bos"], about["eos"][0]
    assert about["tokens"] == {
        "bos_token": "<|start|>",
        "eos_token": "<|end|>",
        "pad_token": "<|end|>",
    }
    assert about["generation"]["temperature"] == 0.5 and about["family"] == "llama"
    assert bytes(data["rushlight/chat_template"]).decode() == TEMPLATE
    tokenizer = Tokenizer(bytes(data["rushlight/tokenizer"]))
    assert tokenizer.encode("<|end|>") == [begin, end]


def test_requantised_tensors_are_told(tmp_path: Path) -> None:
    path = write_gguf(small_model("llama", **WIDE), tmp_path / "m.gguf", "Q4_K")
    losses = read_gguf(path).losses()
    [line] = [line for line in losses if line.startswith("ffn_down.weight of 2")]
    assert "Q4_K in the file, is stored as int8 in groups of 32: signal-to-noise" in line
    assert "token_embd.weight, Q4_K in the file" in "\n".join(losses)


def _up_proj(path: Path, recipe: Recipe) -> Any:
    """A linear layer of a file's model as a recipe converts it."""
    return converted_step(read_gguf(path).model, recipe).decoder.base.layers[1].mlp.up_proj


def test_recipes_keep_integers_that_fit_them(tmp_path: Path) -> None:
    path = write_gguf(small_model("llama", **WIDE), tmp_path / "m.gguf", "Q4_0")
    as_they_are = _up_proj(path, Recipe())
    kept = _up_proj(path, Recipe("8da4w"))
    assert isinstance(as_they_are, QuantizedLinear) and isinstance(kept, QuantizedLinear)
    assert torch.equal(kept.integers, as_they_are.integers)
    assert torch.equal(kept.scales, as_they_are.scales)
    other = _up_proj(path, Recipe("8da4w", 128))
    assert other.scales.shape[1] == 2
    real = _up_proj(path, Recipe("float32"))
    assert isinstance(real, StoredLinear) and torch.equal(real.weight, as_they_are.weight.real())


def test_adapters_fit_the_model_and_its_file(tmp_path: Path) -> None:
    model = small_model("llama", **WIDE)
    made = read_gguf(write_gguf(model, tmp_path / "m.gguf")).model
    about = description_of(model.config, 512)
    own, files = (adapters_of(Step(*decoder_of(one, 512)), about, 8) for one in (model, made))
    assert own == files and len(own.sites) == 14
    with torch.no_grad():
        model.model.layers[1].self_attn.k_proj.weight[0, 0] += 1
    assert adapters_of(Step(*decoder_of(model, 512)), about, 8).base != own.base


@pytest.mark.parametrize(("kind", "name"), [("Q4_0", "8da4w"), ("Q8_0", "int8"), ("Q8_0", "bf16")])
def test_recipes_take_quantised_files(kind: str, name: str, tmp_path: Path) -> None:
    model = small_model("qwen3", **SHALLOW)
    path = write_gguf(model, tmp_path / "m.gguf", kind)
    take_weights(model, path)
    tokens = torch.randint(0, 320, (40,))
    program = rushlight.llm.export(path, context=512, batch=64, quantize=name, verify=False)
    with torch.no_grad():
        wanted = model(tokens[None]).logits[0]
    assert (Session(program).give(tokens) - wanted).norm() < 0.05 * wanted.norm()


def test_integers_of_other_sizes_are_requantised_as_floats_are(tmp_path: Path) -> None:
    model = small_model("qwen3", **SHALLOW)
    path = write_gguf(model, tmp_path / "m.gguf", "Q8_0")
    take_weights(model, path)
    got, wanted = (
        {
            name: layer
            for name, layer in converted_step(one, Recipe("8da4w")).named_modules()
            if isinstance(layer, QuantizedLinear)
        }
        for one in (read_gguf(path).model, model)
    )
    assert len(got) == 8 and got.keys() == wanted.keys()
    for name, layer in wanted.items():
        assert torch.equal(got[name].integers, layer.integers)
        torch.testing.assert_close(got[name].scales, layer.scales)


def test_tied_embeddings_are_stored_once(tmp_path: Path) -> None:
    model = small_model("llama", **SHALLOW, vocab_size=4096, tie_word_embeddings=True)
    path = write_gguf(model, tmp_path / "m.gguf", "Q8_0")
    size = len(rushlight.llm.export(path, context=64, verify=False).buffer)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    assert size == pytest.approx(numbers * (1 + 2 / 32), rel=0.05)  # two thirds are the embedding


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"llama__block_count": 3}, "no tensor 'blk.2.attn_norm.weight'"),
        ({"llama__block_count": 1}, "tensor 'blk.1"),
        ({"llama__block_count": 0}, "is 0, and must be a positive integer"),
        ({"llama__block_count": None}, "has no 'llama.block_count'"),
        ({"llama__attention__head_count": 4}, r"'blk.0.attn_q.weight' .* has the shape \[96, 48\]"),
        ({"llama__attention__head_count": "six"}, "is 'six', and must be an integer"),
        ({"llama__attention__head_count_kv": [2, 1]}, "layers of .* differ in"),
        ({"llama__attention__value_length": 8}, "keys of 16 elements and values of others"),
        ({"llama__feed_forward_length": 2**31 - 1}, "the metadata asks for"),
        ({"llama__attention__layer_norm_rms_epsilon": float("nan")}, "must be finite"),
        ({"llama__expert_count": 8}, "'llama.expert_count' = 8 .of a mixture of experts."),
        ({"llama__logit_scale": 2.0}, "'llama.logit_scale' = 2.0, which is not supported"),
        ({"llama__attention__scale": 0.5}, "attention.scale .* is 0.5; supported is"),
        ({"llama__attention__causal": False}, "is an encoder"),
        ({"llama__rope__scaling__type": "su"}, "scaling.type .* is 'su'; supported are none"),
        (
            {"llama__rope__scaling__attn_factor": 2.0},
            "attn_factor of .* is 2.0, .*type 'none': export",
        ),
        (
            {
                "llama__rope__scaling__type": "linear",
                "llama__rope__scaling__factor": 2.0,
                "llama__rope__scaling__attn_factor": 0.5,
            },
            "attn_factor of .* is 0.5, .*type 'linear': export the folder",
        ),
        ({"llama__rope__dimension_count": 18}, "dimension_count .* is 18, and heads have 16"),
        (
            {"llama__rope__dimension_count": 8},
            "only a part of each head .*architecture 'llama'",
        ),
        ({"split__count": 3}, "is one part of several: put them together"),
        ({"general__architecture": "mamba"}, "'mamba', which is not supported; supported are"),
        ({"tokenizer__ggml__eos_token_id": 320}, "eos_token_id .* is 320, and 'token_embd.weight'"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = write_gguf(small_model("llama"), tmp_path / "m.gguf", **changes)
    with pytest.raises(ExportError, match=message):
        read_gguf(path)


@pytest.mark.parametrize("case", ["llama3", "phi4"])
def test_tables_of_factors_beside_another_scaling_are_refused(case: str, tmp_path: Path) -> None:
    family = {"llama3": "llama", "phi4": "phi3"}[case]
    factor: dict[str, Any] = {f"{family}__rope__scaling__factor": 4.0}
    path = write_gguf(small_model(case), tmp_path / "m.gguf", **factor)
    with pytest.raises(ExportError, match=r"by tables of factors and by the rope\.scaling\.factor"):
        read_gguf(path)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"there is no file .*no\.gguf"):
        rushlight.llm.export(tmp_path / "no.gguf")
