"""What a program of a language model says of itself, and of how many nodes a layer is."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from llm_models import Session, described, small_model

import rushlight as rl
import rushlight.llm
from rushlight.llm.description import KEY
from rushlight.schema import cpu_engine as fb
from rushlight.serialize.pte import read_pte


def _node_counts(
    case: str, layers: int, quantize: str | None, adapters: int | None = None
) -> Counter[str]:
    wide = {"hidden_size": 64, "head_dim": 16, "num_attention_heads": 4}
    model = small_model(case, num_hidden_layers=layers, **wide)
    program = rl.llm.export(model, batch=8, quantize=quantize, adapters=adapters, verify=False)
    assert ("adapters" in described(program)) == (adapters is not None)
    [payload] = program.manager.payloads  # one delegate
    return Counter(type(node.operation).__name__ for node in fb.unpack(payload).nodes)


FLOAT = {"Norm": 2, "Product": 7, "Elementwise": 2, "CachedAttention": 1}
INTEGER = {
    "Norm": 2,
    "QuantizeRows": 4,
    "DynamicProduct": 5,  # queries, keys and values are one
    "Elementwise": 2,
    "CachedAttention": 1,
}


@pytest.mark.parametrize(("quantize", "nodes"), [(None, FLOAT), ("8da4w", INTEGER)])
def test_a_layer_is_few_fused_operators(quantize: str | None, nodes: dict[str, int]) -> None:
    one, two = (_node_counts("llama", layers, quantize) for layers in (1, 2))
    assert two - one == nodes


# Residuals and the gate are added and multiplied after the adapters.
ADAPTED_FLOAT = {**FLOAT, "Adapter": 7, "Elementwise": 5}
ADAPTED_INTEGER = {
    **INTEGER,
    "DynamicProduct": 4,  # as a gate and its factor are
    "Adapter": 4,
    "Elementwise": 5,
}


@pytest.mark.full
@pytest.mark.parametrize(("quantize", "nodes"), [(None, ADAPTED_FLOAT), ("8da4w", ADAPTED_INTEGER)])
def test_a_layer_that_takes_adapters(quantize: str | None, nodes: dict[str, int]) -> None:
    one, two = (_node_counts("llama", layers, quantize, 4) for layers in (1, 2))
    assert two - one == nodes


def test_metadata_methods_have_executorchs_names() -> None:
    model = small_model("llama", num_hidden_layers=1)
    program = rl.llm.export(model, context=96, batch=32, verify=False)
    module = rl.load(program.buffer)
    values = {name: module[name]() for name in module.methods if name != "step"}
    assert values == {
        "get_max_seq_len": 32,
        "get_max_context_len": 96,
        "get_vocab_size": 320,
        "get_n_layers": 1,
        "get_bos_id": 1,
        "get_eos_ids": [2],
        "use_kv_cache": True,
        "enable_dynamic_shape": True,
    }


def test_a_method_for_hidden_states() -> None:
    model = small_model("llama", num_hidden_layers=1)
    program = rl.llm.export(model, batch=16, embed=True)
    tokens = torch.arange(5)
    with torch.no_grad():
        wanted = model.base_model(tokens[None]).last_hidden_state[0]
    got = Session(program, method="embed").give(tokens)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
    plain = rl.llm.export(model, batch=16, verify=False)
    assert len(program.buffer) < len(plain.buffer) + 2**15  # the weights are there once


def test_a_chat_template_travels_in_the_file() -> None:
    model = small_model("llama", num_hidden_layers=1)
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    program = rl.llm.export(model, chat_template=template, verify=False)
    named = read_pte(program.buffer).named_data
    assert bytes(named["rushlight/chat_template"]).decode() == template
    assert described(program)["family"] == "llama" and KEY in named


def test_a_program_is_verified_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("llama", num_hidden_layers=1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = rl.llm.export(model, batch=8, quantize="8da4w")
    assert program.manager._buffer is None  # there are not two copies of the weights
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(rl.ExportError, match=r"cannot write the program to .*set TMPDIR"):
        rl.llm.export(model, batch=8)


CONTEXTS: list[tuple[str, dict[str, Any], str]] = [
    ("gpt2", {"context": 513}, "the model has learned 512 positions"),
    ("llama", {"context": 0}, "context=0: give a positive integer"),
    ("llama-dynamic", {"context": 2048}, "scaled by 'dynamic'.*context=1024 or less"),
]


@pytest.mark.parametrize(("case", "options", "message"), CONTEXTS)
def test_contexts_that_a_model_cannot_have(
    case: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(rl.ExportError, match=message):
        rl.llm.export(small_model(case), **options)


def test_options_that_contradict_each_other() -> None:
    model = small_model("llama", num_hidden_layers=1)
    about = rl.llm.Description(vocabulary=9, layers=1, key_heads=1, width=8, context=8)
    with pytest.raises(rl.ExportError, match=r"description= is for an nn.Module of your own"):
        rl.llm.export(model, description=about)
    with pytest.raises(rl.ExportError, match="LlamaModel has no output layer"):
        rl.llm.export(model.model)
