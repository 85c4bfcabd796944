"""Hugging Face folders: what is read, and what damaged ones get."""

from __future__ import annotations

import json
import mmap
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from llm_models import Session, described, small_model
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from typer.testing import CliRunner

import rushlight as rl
import rushlight.llm
from rushlight.cli import app
from rushlight.llm.exporter.checkpoint import INDEX
from rushlight.llm.exporter.folder import read_folder
from rushlight.llm.exporter.generation import check_generation

NEW_EOS = [2, 7]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a tied model in bfloat16, in several files."""
    folder = tmp_path_factory.mktemp("models") / "whole"
    model = small_model("smollm", num_hidden_layers=1).to(torch.bfloat16)
    model.generation_config.update(eos_token_id=NEW_EOS, temperature=0.6, do_sample=True)
    model.save_pretrained(folder, max_shard_size="100KB")
    about = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": "{{ 1 }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it that may be damaged."""
    return Path(shutil.copytree(whole, tmp_path / "model"))


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def test_a_folder_is_exported_like_its_model(whole: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(whole)
    program = rl.llm.export(whole, batch=16)
    tokens = torch.arange(12)
    wanted = model.float()(tokens[None]).logits[0]
    got = Session(program).give(tokens)
    assert (got - wanted).abs().max() < 1e-4 * wanted.abs().max()
    about = described(program)
    assert about["eos"] == NEW_EOS and about["generation"]["temperature"] == 0.6
    assert about["tokens"] == {"bos_token": "<s>", "eos_token": "</s>"}


def test_weights_are_not_copied_when_they_are_read(whole: Path) -> None:
    read = read_folder(whole)
    embedding = read.model.get_input_embeddings().weight
    assert embedding.dtype == torch.bfloat16
    lying = read.checkpoint.tensors["model.embed_tokens.weight"]
    assert embedding.data_ptr() == lying.data_ptr()
    assert read.model.lm_head.weight is embedding
    before = embedding.clone()
    read.checkpoint.release()
    assert torch.equal(embedding, before)


def test_systems_without_madvise_keep_the_pages(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(mmap, "MADV_DONTNEED")
    read_folder(whole).release()


def test_gpt2_without_its_prefix_is_read(tmp_path: Path) -> None:
    model = small_model("gpt2", n_layer=1)
    model.save_pretrained(tmp_path)
    [path] = _shards(tmp_path)
    old = {name.removeprefix("transformer."): t for name, t in load_file(path).items()}
    old["h.0.attn.bias"] = torch.ones(1, 1, 8, 8, dtype=torch.bool)  # the mask of old versions
    save_file(old, path)
    read = read_folder(tmp_path)
    assert torch.equal(read.model.transformer.wte.weight, model.transformer.wte.weight)


def test_defaults_for_texts_that_have_no_effect_are_told() -> None:
    generation = {"no_repeat_ngram_size": 3, "num_beams": 1, "suppress_tokens": [], "top_k": -1}
    with pytest.warns(RuntimeWarning, match="x has no_repeat_ngram_size, which the runner"):
        check_generation(generation, 320, Path("x"))


@pytest.mark.parametrize("package", ["transformers", "tokenizers"])
def test_packages_that_are_missing_are_told(
    folder: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_tokenizer(folder, 320)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(rl.ExportError, match=f"{package}, which is not installed: pip install"):
        rl.llm.export(folder, verify=False)


def _add_tokenizer(folder: Path, size: int) -> None:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet)
    made.train_from_iterator(["the lamp was small and the light was low " * 9], trainer)
    made.add_special_tokens([f"<|{i}|>" for i in range(size - made.get_vocab_size())])
    made.save(str(folder / "tokenizer.json"))


def test_the_tokenizer_of_a_folder_travels_in_the_file(folder: Path) -> None:
    _add_tokenizer(folder, 320)
    program = rl.llm.export(folder, quantize="8da4w", verify=False)
    runner = rl.llm.load(program.buffer)
    assert runner.decode(runner.encode("the small lamp")) == "the small lamp"
    assert runner.generate("the lamp", max_tokens=3, temperature=0).tokens


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    _add_tokenizer(folder, 321)
    with pytest.raises(rl.ExportError, match="has 321 tokens, and the model's embedding 320"):
        rl.llm.export(folder)


def test_the_command_exports_a_folder(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.pte"
    call = ["llm", "export", str(folder), "-o", str(path), "--quantize", "int8", "--batch", "8"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    assert rl.load(path)["get_max_seq_len"]() == 8
    done = CliRunner().invoke(app, ["llm", "export", str(tmp_path / "none"), "-o", "m.pte"])
    assert done.exit_code == 1 and "there is no file or folder" in done.output


def _config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _change(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    """Changes the tensors of the first file and its place in the index."""
    path = _shards(folder)[0]
    tensors = load_file(path)
    before = set(tensors)
    change(tensors)
    save_file(tensors, path)
    index = json.loads((folder / INDEX).read_text())
    names = index["weight_map"]
    for name in before - set(tensors):
        del names[name]
    names.update(dict.fromkeys(set(tensors) - before, path.name))
    (folder / INDEX).write_text(json.dumps(index))


def _overwrite(folder: Path, offset: int, data: bytes) -> None:
    with _shards(folder)[0].open("r+b") as file:
        file.seek(offset)
        file.write(data)


def _vocabulary(folder: Path) -> tuple[int, int]:
    """The shape of the embedding."""
    config = json.loads((folder / "config.json").read_text())
    return config["vocab_size"], config["hidden_size"]


def _header(folder: Path, text: str) -> None:
    """Gives the first file another header, and no tensors."""
    data = text.encode()
    _shards(folder)[0].write_bytes(len(data).to_bytes(8, "little") + data)


def _twice(folder: Path, name: str, place: str) -> None:
    """Gives a file with JSON the key `name` a second time, after `place`."""
    path = folder / INDEX
    path.write_text(path.read_text().replace(place, f'{place}"{name}": "x", ', 1))


def _add(folder: Path, name: str) -> None:
    """Gives the first file a tensor that the index does not list there."""
    path = _shards(folder)[0]
    save_file({**load_file(path), name: torch.ones(2)}, path)


def _far_header(folder: Path) -> None:
    with _shards(folder)[0].open("r+b") as file:
        file.write((200_000_000).to_bytes(8, "little"))
        file.truncate(300_000_000)  # a hole


def _entry(folder: Path, shape: str, last: int = 0, kind: str = '"F32"') -> None:
    entry = f'{{"dtype":{kind},"shape":{shape},"data_offsets":[0,{last}]}}'
    _header(folder, f'{{"x":{entry}}}')


def _generation(folder: Path, **changes: Any) -> None:
    (folder / "generation_config.json").write_text(json.dumps(changes))


_NOWHERE = "model-00001-of-.* does not say where 'x' lies"
_DEEP = "[" * 200_000
FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no-config": (lambda f: (f / "config.json").unlink(), "has no config.json"),
    "config-no-json": (lambda f: (f / "config.json").write_text("{"), "is no JSON"),
    "unknown": (
        lambda f: _config(f, model_type="mamba"),
        "architecture 'mamba' are not supported; supported are llama, mistral",
    ),
    "experts": (
        lambda f: _config(f, model_type="mixtral", num_local_experts=8),
        "'mixtral' \\(a mixture of experts\\)",
    ),
    "vision": (
        lambda f: _config(f, model_type="llava", vision_config={}),
        "'llava' \\(with images",
    ),
    "no-type": (lambda f: _config(f, model_type=None), "config.json has no model_type"),
    "type-no-text": (lambda f: _config(f, model_type=[1]), "config.json has no model_type"),
    "config-deep": (lambda f: (f / "config.json").write_text(_DEEP), "config.json is no JSON"),
    "template-bytes": (
        lambda f: (f / "chat_template.jinja").write_bytes(b"\xff"),
        "chat_template.jinja is not UTF-8",
    ),
    "eos-text": (
        lambda f: _generation(f, eos_token_id="2"),
        "'eos_token_id' of .*generation_config.json is '2': write the number",
    ),
    "eos-texts": (
        lambda f: _generation(f, eos_token_id=["</s>"]),
        "'eos_token_id' of .*generation_config.json is .*or a list of such",
    ),
    "bos-list": (
        lambda f: _generation(f, bos_token_id=[1]),
        "'bos_token_id' of .*generation_config.json is",
    ),
    "top-p": (
        lambda f: _generation(f, top_p=0),
        "generation_config.json has a default for sampling that cannot be: top_p is 0; it must be",
    ),
    "temperature-text": (
        lambda f: _generation(f, temperature="a"),
        "generation_config.json has a default .*: temperature='a': give a number",
    ),
    "quantised": (
        lambda f: _config(f, quantization_config={"quant_method": "awq", "bits": 4}),
        r"are quantised, as its quantization_config says \(awq\): export the model that",
    ),
    "eos-far": (lambda f: _generation(f, eos_token_id=2**70), "eos is token 11805916207174113034"),
    "config-eos": (
        lambda f: _config(f, eos_token_id="2"),
        "'eos_token_id' of .*config.json is '2': write the number",
    ),
    "bad-config": (lambda f: _config(f, hidden_size="many"), "cannot make a model"),
    "half-a-tokenizer": (
        lambda f: [(f / name).write_text("") for name in ("vocab.json", "merges.txt")],
        "has vocab.json and merges.txt, and no tokenizer.json.*or give tokenizer=",
    ),
    "no-weights": (
        lambda f: [p.unlink() for p in [*_shards(f), f / INDEX]],
        "has neither model.safetensors nor",
    ),
    "pickle": (
        lambda f: (
            [p.unlink() for p in [*_shards(f), f / INDEX]]
            + [(f / "pytorch_model.bin").write_bytes(b"x")]
        ),
        "pytorch_model.bin is a pickle",
    ),
    "no-shard": (lambda f: _shards(f)[0].unlink(), "has no model-00001-of-.*copy the missing"),
    "no-map": (lambda f: (f / INDEX).write_text("{}"), "has no weight_map"),
    "outside": (
        lambda f: (f / INDEX).write_text(json.dumps({"weight_map": {"a": "../a"}})),
        "weight_map is not from names",
    ),
    "long-header": (lambda f: _overwrite(f, 0, b"\xff" * 8), "reaches beyond its end"),
    "no-header": (lambda f: _overwrite(f, 8, b"x"), "header is no JSON"),
    "deep-header": (lambda f: _header(f, _DEEP), "model-00001-of-.*header is no JSON"),
    "deep-index": (lambda f: (f / INDEX).write_text(_DEEP), "has no weight_map"),
    "wide-header": (_far_header, "header has 200000000 bytes, more than 100000000"),
    "name-twice": (
        lambda f: _header(f, '{"x":{},"x":{}}'),
        "header is no JSON .'x' is there twice.",
    ),
    "index-twice": (
        lambda f: _twice(f, "weight_map", "{"),
        "'weight_map' is there twice",
    ),
    "two-files": (
        lambda f: _add(f, "model.norm.weight"),
        "has tensor 'model.norm.weight', which another file has, too",
    ),
    "many-layers": (
        lambda f: _config(f, num_hidden_layers=2**40),
        "'num_hidden_layers' of .*config.json is 1099511627776, and .* is the most",
    ),
    "many-labels": (
        lambda f: _config(f, num_labels=2**40),
        "'num_labels' of .*config.json is 1099511627776",
    ),
    "infinite": (lambda f: _entry(f, "[1e400]"), _NOWHERE),
    "fraction": (lambda f: _entry(f, "[1.5]", 4), _NOWHERE),
    "negative": (lambda f: _entry(f, "[-1]", 4), _NOWHERE),
    "huge": (lambda f: _entry(f, f"[0, {2**70}]"), _NOWHERE),
    "many-sizes": (lambda f: _entry(f, str([1] * 1000), 4), _NOWHERE),
    "shape-no-list": (lambda f: _entry(f, '"4"'), _NOWHERE),
    "offsets": (lambda f: _entry(f, "[0]", 10**30), "'x' has other bytes than its shape"),
    "kind-no-text": (lambda f: _entry(f, "[0]", kind="[1]"), r"tensor 'x' is \[1\]; supported are"),
    "short": (lambda f: _shards(f)[0].write_bytes(b"123"), "ends within its header"),
    "cut": (
        lambda f: _shards(f)[0].write_bytes(_shards(f)[0].read_bytes()[:-100]),
        "has other bytes than its shape, or none",
    ),
    "own-head": (
        lambda f: _change(f, lambda t: t.update({"lm_head.weight": torch.ones(*_vocabulary(f))})),
        "'lm_head.weight' that differs from 'model.embed_tokens.weight'",
    ),
    "missing-key": (
        lambda f: _change(f, lambda t: t.pop(sorted(t)[0])),
        "has no tensor 'model.*mend config.json",
    ),
    "unexpected-key": (
        lambda f: _change(f, lambda t: t.update({"a.lora_A": torch.zeros(2)})),
        "has a tensor 'a.lora_A'.*adapters are to be merged",
    ),
    "shape": (
        lambda f: _config(f, intermediate_size=96),
        r"is bfloat16\[.*config.json asks for \[.*96.*is of another model",
    ),
    "dtype": (
        lambda f: _change(f, lambda t: t.update({k: v.to(torch.int8) for k, v in t.items()})),
        "is int8.* of a floating dtype",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_damaged_folders_are_refused(folder: Path, fault: str) -> None:
    damage, message = FAULTS[fault]
    damage(folder)
    with pytest.raises(rl.ExportError, match=message):
        rl.llm.export(folder)
