"""Folders of encoders: heads, old names, and what sentence-transformers writes beside a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from encoder_models import small_encoder
from llm_models import small_model
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models

import rushlight as rl
import rushlight.llm
from rushlight.llm.exporter.folder import read_folder
from rushlight.llm.exporter.sentences import read_sentences

ST = "sentence_transformers.models."
POOLING = {"path": "1_Pooling", "type": ST + "Pooling"}
TRANSFORMER = {"path": "", "type": ST + "Transformer"}
NORMALIZE = {"path": "2_Normalize", "type": ST + "Normalize"}


def _write(folder: Path, modules: list[dict[str, str]], pooling: dict[str, Any]) -> None:
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    (folder / "modules.json").write_text(json.dumps(modules))


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"word_embedding_dimension": 48, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_lasttoken": True, "include_prompt": True}, "last"),
        ({"pooling_mode": "lasttoken"}, "last"),
    ],
)
def test_poolings(tmp_path: Path, config: dict[str, Any], pooling: str) -> None:
    _write(tmp_path, [{**TRANSFORMER, "path": "0_Transformer"}, POOLING, NORMALIZE], config)
    found = read_sentences(tmp_path)
    assert (found.path, found.pooling) == (tmp_path / "0_Transformer", pooling)


@pytest.mark.parametrize(
    ("modules", "pooling", "told"),
    [
        ([TRANSFORMER, POOLING], {"pooling_mode_max_tokens": True}, "asks for the pooling max"),
        (
            [TRANSFORMER, POOLING],
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
            "cls and mean; supported is one",
        ),
        ([TRANSFORMER, POOLING], {}, "asks for the pooling of nothing"),
        ([TRANSFORMER, {"path": "2_Dense", "type": ST + "Dense"}], {}, "a module 'Dense'"),
        (["x"], {}, "is no list of modules"),
        ([POOLING], {"pooling_mode": 5}, r"1_Pooling.config.json has pooling_mode 5: give a name"),
        ([POOLING], {"pooling_mode": [["mean"]]}, r"has pooling_mode \[\['mean'\]\]: give a name"),
    ],
)
def test_what_is_refused(tmp_path: Path, modules: Any, pooling: Any, told: str) -> None:
    _write(tmp_path, modules, pooling)
    with pytest.raises(rl.ExportError, match=told):
        read_sentences(tmp_path)


def test_a_prompt_before_every_text_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, [TRANSFORMER, POOLING], {"pooling_mode_cls_token": True})
    prompts: dict[str, Any] = {"prompts": {"query": "query: "}, "default_prompt_name": None}
    path = tmp_path / "config_sentence_transformers.json"
    path.write_text(json.dumps(prompts))
    assert read_sentences(tmp_path).pooling == "cls"
    path.write_text(json.dumps({**prompts, "default_prompt_name": "query"}))
    with pytest.raises(rl.ExportError, match="the prompt 'query' before every text"):
        read_sentences(tmp_path)


def test_files_that_are_missing_or_damaged(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(json.dumps([TRANSFORMER, POOLING]))
    with pytest.raises(rl.ExportError, match=r"cannot read .*1_Pooling"):
        read_sentences(tmp_path)
    (tmp_path / "modules.json").write_text("[")
    with pytest.raises(rl.ExportError, match=r"modules.json is no JSON"):
        read_sentences(tmp_path)
    (tmp_path / "modules.json").write_text("[" * 100_000)
    with pytest.raises(rl.ExportError, match=r"modules.json is no JSON"):
        read_sentences(tmp_path)


@pytest.mark.parametrize("length", ["512", 0, True, 5.0])
def test_a_length_that_is_none(tmp_path: Path, length: Any) -> None:
    _write(tmp_path, [TRANSFORMER, POOLING], {"pooling_mode_cls_token": True})
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": length}))
    with pytest.raises(rl.ExportError, match=r"sentence_bert_config.json has max_seq_length"):
        read_sentences(tmp_path)


@pytest.mark.parametrize("case", ["bert", "xlm-roberta", "modernbert"])
def test_heads_of_a_checkpoint_are_left_out(case: str, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM

    model = small_encoder(case)
    with_head = AutoModelForMaskedLM.from_config(model.config)
    missing, _ = with_head.base_model.load_state_dict(model.state_dict(), strict=False)
    assert not missing
    with_head.save_pretrained(tmp_path)
    read = read_folder(tmp_path)
    state = read.model.state_dict()
    assert state and all(torch.equal(state[name], model.state_dict()[name]) for name in state)


def test_old_names_of_a_checkpoint(tmp_path: Path) -> None:
    model = small_encoder("bert")
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta"): t
        for name, t in load_file(path).items()
    }
    old["embeddings.position_ids"] = torch.arange(100)[None]
    save_file(old, path)
    norm = read_folder(tmp_path).model.embeddings.LayerNorm
    assert torch.equal(norm.weight, model.embeddings.LayerNorm.weight)
    del old["encoder.layer.0.attention.self.query.weight"]
    save_file(old, path)
    with pytest.raises(rl.ExportError, match=r"no tensor 'encoder.layer.0.attention.self.query"):
        read_folder(tmp_path)


def test_what_a_folder_says_of_its_texts(tmp_path: Path) -> None:
    small_encoder("roberta").save_pretrained(tmp_path)
    _write(tmp_path, [TRANSFORMER, POOLING], {"pooling_mode_cls_token": True})
    about = {"max_seq_length": 100, "do_lower_case": True}
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps(about))
    read = read_folder(tmp_path)
    assert read.longest_text == 98  # as many as it has positions
    tokenizer = Tokenizer(models.WordPiece({"Ab": 0, "ab": 1, "x": 2}, unk_token="x"))
    with pytest.raises(rl.ExportError, match="do_lower_case, and the tokenizer keeps upper case"):
        rl.llm.export(tmp_path, tokenizer=tokenizer, verify=False)


def test_options_that_contradict_each_other() -> None:
    encoder = small_encoder("bert")
    with pytest.raises(rl.ExportError, match="context=101: the model has 100 positions"):
        rl.llm.export(encoder, context=101)
    with pytest.raises(rl.ExportError, match="pooling='max': give one of last, mean, cls"):
        rl.llm.export(encoder, pooling="max")
    with pytest.raises(rl.ExportError, match="a bert model with is_decoder=True is no encoder"):
        rl.llm.export(small_encoder("bert", is_decoder=True))
    with pytest.raises(rl.ExportError, match="pooling='mean' is for a method that embeds texts"):
        rl.llm.export(small_model("llama", num_hidden_layers=1), pooling="mean")
