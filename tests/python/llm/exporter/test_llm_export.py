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
from rushlight.check import to_run
from rushlight.llm.description import KEY
from rushlight.schema import cpu_engine as fb
from rushlight.serialize.pte import read_pte

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
WIDE = {"hidden_size": 64, "head_dim": 16, "num_attention_heads": 4}
FLOAT = {"Norm": 2, "Product": 7, "Elementwise": 2, "CachedAttention": 1}
INTEGER = {
    "Norm": 2,
    "QuantizeRows": 4,
    "DynamicProduct": 5,  # queries, keys and values are one
    "Elementwise": 2,
    "CachedAttention": 1,
}


def _model(layers: int) -> Any:
    return small_model("llama", num_hidden_layers=layers, **WIDE)


@pytest.fixture(scope="module")
def model() -> Any:
    return _model(1)


@pytest.fixture(scope="module")
def plain(model: Any) -> rl.Program:
    """Its program, with a template."""
    return rl.llm.export(model, context=96, batch=32, chat_template=TEMPLATE, verify=False)


def _node_counts(program: rl.Program) -> Counter[str]:
    [payload] = program.manager.payloads  # one delegate
    return Counter(type(node.operation).__name__ for node in fb.unpack(payload).nodes)


def test_a_layer_is_few_fused_operators(plain: rl.Program) -> None:
    two = _node_counts(rl.llm.export(_model(2), batch=8, verify=False))
    assert two - _node_counts(plain) == FLOAT


def test_a_layer_of_integers_is_few_fused_operators() -> None:
    one, two = (
        _node_counts(rl.llm.export(_model(layers), batch=8, quantize="8da4w", verify=False))
        for layers in (1, 2)
    )
    assert two - one == INTEGER


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
    options: dict[str, Any] = {"batch": 8, "quantize": quantize, "verify": False}
    one, two = (rl.llm.export(_model(layers), adapters=4, **options) for layers in (1, 2))
    assert _node_counts(two) - _node_counts(one) == nodes
    assert "adapters" in described(one)
    assert "adapters" not in described(rl.llm.export(_model(1), **options))


def test_metadata_methods_have_executorchs_names(plain: rl.Program) -> None:
    module = rl.load(plain.buffer)
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


def test_a_method_for_hidden_states(model: Any, plain: rl.Program) -> None:
    program = rl.llm.export(model, context=96, batch=32, embed=True, verify=False)
    tokens = torch.arange(5)
    with torch.no_grad():
        wanted = model.base_model(tokens[None]).last_hidden_state[0]
    got = Session(program, method="embed").give(tokens)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)
    assert len(program.buffer) < len(plain.buffer) + 2**15  # the weights are there once


def test_a_chat_template_travels_in_the_file(plain: rl.Program) -> None:
    named = read_pte(plain.buffer).named_data
    assert bytes(named["rushlight/chat_template"]).decode() == TEMPLATE
    assert described(plain)["family"] == "llama" and KEY in named


def test_a_program_is_verified_from_a_file(
    model: Any, plain: rl.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = rl.llm.export(model, batch=8)
    assert program.manager._buffer is None  # there are not two copies of the weights
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    told = r"cannot write the program to .*set TMPDIR"
    with pytest.raises(rl.ExportError, match=told), to_run(plain.manager):
        pass


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
