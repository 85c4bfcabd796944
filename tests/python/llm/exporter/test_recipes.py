"""Recipes: what is stored, and that programs compute with it what eager computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from llm_models import Session, small_model

import rushlight as rl
import rushlight.llm
from rushlight.ir.custom_ops.cached_attention import EagerCache
from rushlight.llm.exporter.families import decoder_of
from rushlight.llm.exporter.recipes import NAMES, Recipe, convert_layers
from rushlight.llm.exporter.step import Step
from rushlight.schema import cpu_engine as fb

TOKENS = 40
WIDE = {"hidden_size": 144, "head_dim": None, "num_attention_heads": 9, "num_key_value_heads": 3}


def _eager(model: Any, recipe: Recipe, tokens: torch.Tensor) -> torch.Tensor:
    step = Step(*decoder_of(model, 512))
    convert_layers(step, recipe)
    positions = torch.arange(len(tokens))
    with EagerCache().active(), torch.no_grad():
        result: torch.Tensor = step(tokens, positions, torch.zeros_like(positions), positions)
    return result


def _nodes(program: rl.Program) -> list[Any]:
    [payload] = program.manager.payloads
    return [node.operation for node in fb.unpack(payload).nodes]


@pytest.mark.parametrize("case", ["llama3", "smollm", "gemma3", "gpt2"])
@pytest.mark.parametrize("name", NAMES)
def test_programs_compute_what_eager_computes(case: str, name: str) -> None:
    changes = {"n_embd": 96} if case == "gpt2" else WIDE
    model = small_model(case, **changes)
    tokens = torch.randint(0, model.config.vocab_size, (TOKENS,))
    program = rl.llm.export(model, context=512, batch=64, quantize=name)
    got, wanted = Session(program).give(tokens), _eager(model, Recipe(name), tokens)
    # One number that is rounded to another integer of 8 bits changes all that follows it.
    allowed = 2e-2 if Recipe(name).bits else 1e-4
    assert (got - wanted).norm() < allowed * wanted.norm()
