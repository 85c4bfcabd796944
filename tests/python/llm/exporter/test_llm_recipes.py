"""Recipes: what is stored, and that programs compute with it what eager computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from llm_models import Session, converted_step, eager_logits, small_model

import rushlight as rl
import rushlight.llm
from rushlight.llm.exporter.recipes import Recipe
from rushlight.llm.weights.layers import QuantizedEmbedding
from rushlight.schema import cpu_engine as fb

TOKENS = 40
WIDE = {"hidden_size": 144, "head_dim": None, "num_attention_heads": 9, "num_key_value_heads": 3}
CHANGES: dict[str, dict[str, Any]] = {
    "llama3": {**WIDE, "num_hidden_layers": 1},
    "gemma3": {**WIDE, "num_hidden_layers": 1, "layer_types": ["sliding_attention"]},
    "gpt2": {"n_embd": 96},
}


def _nodes(program: rl.Program) -> list[Any]:
    [payload] = program.manager.payloads
    return [node.operation for node in fb.unpack(payload).nodes]


@pytest.mark.parametrize(
    ("case", "name"),
    [
        *(("llama3", "bf16"), ("llama3", "8da4w"), ("gemma3", "int8")),
        pytest.param("llama3", "float32", marks=pytest.mark.full),
        pytest.param("llama3", "fp16", marks=pytest.mark.full),
        pytest.param("llama3", "int8", marks=pytest.mark.full),
        pytest.param("gpt2", "8da4w", marks=pytest.mark.full),
    ],
)
def test_programs_compute_what_eager_computes(case: str, name: str) -> None:
    model = small_model(case, **CHANGES[case])
    tokens = torch.randint(0, model.config.vocab_size, (TOKENS,))
    program = rl.llm.export(model, context=512, batch=64, quantize=name, verify=False)
    got, wanted = Session(program).give(tokens), eager_logits(model, tokens, Recipe(name))
    # One number that is rounded to another integer of 8 bits changes all that follows it.
    allowed = 2e-2 if Recipe(name).bits else 1e-4
    assert (got - wanted).norm() < allowed * wanted.norm()


@pytest.mark.parametrize("name", ["bf16", "8da4w"])
def test_a_tied_embedding_is_stored_once(name: str) -> None:
    model = small_model("smollm", num_hidden_layers=1)
    program = rl.llm.export(model, batch=8, quantize=name, verify=False)
    [payload] = program.manager.payloads
    graph = fb.unpack(payload)
    first, last = graph.nodes[0], graph.nodes[-1]
    assert isinstance(first.operation, fb.Gather)
    panels = {fb.Product: 1, fb.DynamicProduct: 2}[type(last.operation)]
    assert first.inputs[0] == last.inputs[panels]


@pytest.mark.parametrize(("embedding", "group"), [("int8", None), ("int4", 64)])
def test_an_embedding_of_integers(embedding: str, group: int | None) -> None:
    model = small_model("llama", num_hidden_layers=1, hidden_size=192)
    tokens = torch.arange(9)
    program = rl.llm.export(model, batch=16, quantize_embedding=embedding, group_size=group)
    recipe = Recipe(None, group, embedding)
    got, wanted = Session(program).give(tokens), eager_logits(model, tokens, recipe)
    assert (got - wanted).abs().max() < 1e-4 * wanted.abs().max()
    assert isinstance(_nodes(program)[0], fb.Gather)


def test_positions_are_no_embedding_of_tokens() -> None:
    model = small_model("gpt2", n_layer=1, tie_word_embeddings=False)
    step = converted_step(model, Recipe(None, 64, "int4"))
    assert isinstance(step.decoder.embedding, QuantizedEmbedding)
    assert step.decoder.base.wpe.weight.dtype == torch.float32


def test_options_that_would_change_nothing_are_refused() -> None:
    tied = small_model("smollm", num_hidden_layers=1)
    with pytest.raises(rl.ExportError, match="'int8': the model's embedding is tied to its output"):
        rl.llm.export(tied, quantize="8da4w", quantize_embedding="int8")
    for quantize in (None, "int8", "bf16"):
        with pytest.raises(rl.ExportError, match="group_size=64: only weights of 4 bits"):
            rl.llm.export(tied, quantize=quantize, group_size=64)


def test_recipes_that_there_are_not() -> None:
    model = small_model("llama", num_hidden_layers=1)
    with pytest.raises(rl.ExportError, match=r"quantize='q4'.*float32, fp16, bf16, int8, 8da4w"):
        rl.llm.export(model, quantize="q4")
    with pytest.raises(rl.ExportError, match="group_size=48: give one of 32, 64, 128"):
        rl.llm.export(model, quantize="8da4w", group_size=48)
    with pytest.raises(rl.ExportError, match="quantize_embedding='int2'"):
        rl.llm.export(model, quantize_embedding="int2")


def test_weights_that_are_not_finite_are_refused() -> None:
    model = small_model("llama", num_hidden_layers=1)
    model.model.layers[0].mlp.up_proj.weight[3, 5] = torch.nan
    with pytest.raises(rl.ExportError, match=r"mlp\.up_proj have NaN or infinite elements"):
        rl.llm.export(model, quantize="8da4w")


def test_the_users_model_is_not_changed() -> None:
    model = small_model("gemma2", num_hidden_layers=1).train().requires_grad_(True)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    layers = [type(module) for module in model.modules()]
    rl.llm.export(model, quantize="int8", verify=False)
    assert model.training and all(p.requires_grad for p in model.parameters())
    assert [type(module) for module in model.modules()] == layers
    assert model.config._attn_implementation != "rushlight"
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
