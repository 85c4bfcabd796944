"""Folders of `peft` as files: what is written, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft_folders import LAYER, WIDTH, Folder
from tiny_model import make_model
from typer.testing import CliRunner

import rushlight.llm
from rushlight.cli import app
from rushlight.errors import Code, ExportError, RunError
from rushlight.llm.adapters.convert import ENTRY
from rushlight.llm.description import KEY
from rushlight.llm.runner import Runner
from rushlight.serialize.ptd import read_ptd, write_ptd
from rushlight.serialize.pte import read_pte, write_pte


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "lora")


def _convert(folder: Folder, program: Path, **options: Any) -> Path:
    out = folder.path.parent / "a.ptd"
    rushlight.llm.adapter(folder.write(), base=program, out=out, **options)
    return out


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_what_a_file_has(folder: Folder, program: Path, dtype: str) -> None:
    entries = read_ptd(_convert(folder, program, dtype=dtype).read_bytes())
    site = "layers.0.self_attn.q_proj"
    assert set(entries) == {ENTRY, f"lora/{site}/a", f"lora/{site}/b"}
    about = json.loads(bytes(entries[ENTRY].data))
    assert about["sites"] == [site] and about["rank"] == 4 and about["name"] == "lora"
    a, b = folder.tensors.values()
    made = {}
    for part in ("a", "b"):
        entry = entries[f"lora/{site}/{part}"]
        assert entry.layout is not None
        numbers = np.frombuffer(bytes(entry.data), np.dtype(dtype))
        made[part] = torch.tensor(numbers.reshape(entry.layout.sizes))
    kind = getattr(torch, dtype)
    assert torch.equal(made["a"], a.to(kind))
    # Panels of 16 outputs, with the scale alpha / r.
    assert torch.equal(made["b"].transpose(1, 2).reshape(WIDTH, 4), (b * 2).to(kind))


def test_the_scale_of_rslora(folder: Folder, program: Path) -> None:
    folder.config["use_rslora"] = True
    entries = read_ptd(_convert(folder, program, dtype="float32").read_bytes())
    entry = entries["lora/layers.0.self_attn.q_proj/b"]
    numbers = torch.tensor(np.frombuffer(bytes(entry.data), np.float32)).reshape(2, 4, 16)
    wanted = list(folder.tensors.values())[1] * 4
    assert torch.allclose(numbers.transpose(1, 2).reshape(WIDTH, 4), wanted)


@pytest.mark.parametrize(
    ("key", "scale"),
    [
        ("q_proj", 3),
        ("self_attn.q_proj", 3),
        (r"model\.layers\.0\.self_attn\.q_proj", 3),
        ("^model.layers.0.self_attn.q_proj$", 3),
        (r"layers.0\..*_proj", 3),
        ("^layers.0.self_attn.q_proj", 2),
        ("proj", 2),
        ("layers.1.*", 2),
    ],
)
def test_layers_with_another_alpha(folder: Folder, program: Path, key: str, scale: float) -> None:
    folder.config["alpha_pattern"] = {key: 12}
    entries = read_ptd(_convert(folder, program, dtype="float32").read_bytes())
    entry = entries["lora/layers.0.self_attn.q_proj/b"]
    numbers = torch.tensor(np.frombuffer(bytes(entry.data), np.float32)).reshape(2, 4, 16)
    wanted = list(folder.tensors.values())[1] * scale
    assert torch.equal(numbers.transpose(1, 2).reshape(WIDTH, 4), wanted)


def test_inputs_that_fill_no_panels(folder: Folder, program: Path, runner: Runner) -> None:
    folder.config["target_modules"] = ["k_proj", "down_proj"]
    folder.tensors.clear()
    folder.add("model.layers.0.self_attn.k_proj", 5, WIDTH, WIDTH // 2)
    folder.add("model.layers.0.mlp.down_proj", 5, WIDTH * 3 // 2, WIDTH)
    folder.config["r"] = 5
    assert runner.load_adapter(_convert(folder, program)).rank == 5


@pytest.mark.parametrize("prefix", ["", "model."])
def test_names_with_and_without_the_models_prefix(
    folder: Folder, program: Path, prefix: str
) -> None:
    folder.tensors.clear()
    folder.add(f"{prefix}layers.0.self_attn.q_proj")
    assert ENTRY in read_ptd(_convert(folder, program).read_bytes())


def test_weights_in_bfloat16(folder: Folder, program: Path, runner: Runner) -> None:
    folder.tensors = {name: one.bfloat16() for name, one in folder.tensors.items()}
    assert runner.load_adapter(_convert(folder, program)).rank == 4


# --- what is refused


def _without_adapters(program: Path) -> bytes:
    """A program that says nothing of adapters."""
    pte = read_pte(program.read_bytes())
    about = json.loads(bytes(pte.named_data[KEY]))
    del about["adapters"]
    return write_pte(replace(pte, named_data={**pte.named_data, KEY: json.dumps(about).encode()}))


def _set(name: str, value: Any) -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        folder.config[name] = value

    return change


def _rank(rank: int) -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        folder.config["r"] = rank
        folder.tensors.clear()
        folder.add(LAYER, rank)

    return change


def _other_layer(name: str, inputs: int = WIDTH) -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        folder.tensors.clear()
        folder.add(name, inputs=inputs)

    return change


def _twice(folder: Folder) -> None:
    folder.add(LAYER.removeprefix("model."))


def _add_tensor(name: str) -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        folder.tensors[name] = torch.zeros(4, 4)

    return change


def _lose(part: str) -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        del folder.tensors[f"base_model.model.{LAYER}.lora_{part}.weight"]

    return change


def _fill(value: float) -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        folder.tensors[f"base_model.model.{LAYER}.lora_B.weight"][3, 1] = value

    return change


REFUSED: dict[str, tuple[Callable[[Folder], None], str]] = {
    "another kind": (_set("peft_type", "IA3"), "peft_type 'IA3'; supported is 'LORA'"),
    "DoRA": (_set("use_dora", True), "use_dora=True"),
    "whole layers": (_set("modules_to_save", ["lm_head"]), r"modules_to_save=\['lm_head'\]"),
    "bias": (_set("bias", "lora_only"), "bias='lora_only'"),
    "bias of matrices": (_set("lora_bias", True), "lora_bias=True"),
    "tokens": (_set("trainable_token_indices", [1]), "trainable_token_indices"),
    "parameters": (_set("target_parameters", ["x"]), "target_parameters"),
    "layers that repeat": (_set("layer_replication", [[0, 1]]), "layer_replication"),
    "activated": (_set("alora_invocation_tokens", [5]), "alora_invocation_tokens"),
    "PiSSA": (_set("init_lora_weights", "pissa_niter_4"), "changed weights of the model"),
    "another rank than said": (_set("r", 5), "whose ranks are not the one of"),
    "an expression": (_set("alpha_pattern", {"(q|k)_proj": 1}), r"'\(q\|k\)_proj': supported are"),
    "a star alone": (_set("rank_pattern", {"q*": 1}), r"'q\*': supported are"),
    "no patterns": (_set("rank_pattern", [4]), r"rank_pattern \[4\], which is no object"),
    "a layer twice": (_twice, "q_proj' twice"),
    "no alpha": (_set("lora_alpha", None), "lora_alpha None"),
    "an alpha too great": (_set("lora_alpha", 10**400), "lora_alpha 1000.*give a positive"),
    "a negative alpha": (_set("lora_alpha", -1), "lora_alpha -1"),
    "a rank too high": (_rank(9), r"has rank 9 .* up to rank 8: export it with adapters=9"),
    "a rank that none takes": (_rank(257), "256 is the most that a program takes; merge"),
    "another layer": (_other_layer("model.layers.0.self_attn.c_attn"), "c_attn', which is none of"),
    "more layers": (_other_layer("model.layers.1.self_attn.q_proj"), "layers.1.* is of another"),
    "the output layer": (_other_layer("lm_head"), "'lm_head', which is none of"),
    "other sizes": (_other_layer(LAYER, inputs=48), "48 inputs and 32 outputs, .* has 32 and 32"),
    "fewer layers": (_set("target_modules", ["q_proj", "v_proj"]), "no matrices for .*v_proj"),
    "an embedding": (
        _add_tensor("base_model.model.model.embed_tokens.lora_embedding_A"),
        "no matrix of a linear layer",
    ),
    "another tensor": (_add_tensor("base_model.model.lm_head.weight"), "lm_head.weight"),
    "a matrix alone": (_lose("B"), "has lora_A of .* alone"),
    "no tensors": (lambda folder: folder.tensors.clear(), "has no tensors"),
    "NaN": (_fill(torch.nan), "NaN or infinite"),
    "beyond float16": (_fill(1e5), "beyond 65504 .* dtype='float32'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, folder: Folder, program: Path) -> None:
    change, reason = REFUSED[case]
    change(folder)
    with pytest.raises(ExportError, match=reason):
        _convert(folder, program)
    assert not (folder.path.parent / "a.ptd").exists()


def test_damaged_folders(folder: Folder, program: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.ptd"
    with pytest.raises(ExportError, match=r"has no adapter_config\.json"):
        rushlight.llm.adapter(tmp_path, base=program, out=out)
    path = folder.write()
    for text, reason in (("{", "is no JSON"), ("[]", "is no JSON object")):
        (path / "adapter_config.json").write_text(text)
        with pytest.raises(ExportError, match=reason):
            rushlight.llm.adapter(path, base=program, out=out)
    folder.write()
    weights = path / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(ExportError, match="is damaged"):
        rushlight.llm.adapter(path, base=program, out=out)
    weights.unlink()
    with pytest.raises(ExportError, match=r"has no adapter_model\.safetensors"):
        rushlight.llm.adapter(path, base=program, out=out)
    with pytest.raises(ExportError, match="give one of float16, float32"):
        rushlight.llm.adapter(path, base=program, out=out, dtype="int8")


def test_programs_of_other_models(
    folder: Folder, program: Path, runner: Runner, tmp_path: Path
) -> None:
    file = _convert(folder, program)
    path = tmp_path / "without.pte"
    path.write_bytes(_without_adapters(program))
    without = rushlight.llm.load(path, threads=1)
    with pytest.raises(RunError, match="takes no adapters: export it with adapters="):
        without.load_adapter(file)
    with pytest.raises(RunError, match="takes no adapters"):
        without.session(adapter=runner.load_adapter(file))


@pytest.mark.full
def test_a_model_with_other_weights(folder: Folder, program: Path, tmp_path: Path) -> None:
    file = _convert(folder, program)
    changed = make_model()
    with torch.no_grad():
        changed.model.layers[0].mlp.up_proj.weight.mul_(1.5)
    other = tmp_path / "other.pte"
    rushlight.llm.export(changed, context=64, batch=16, adapters=8, verify=False).save(
        other, quiet=True
    )
    with pytest.raises(RunError, match="was made for another model"):
        rushlight.llm.load(other, threads=1).load_adapter(file)


def test_bases_that_take_none(folder: Folder, program: Path, tmp_path: Path) -> None:
    path, out = folder.write(), tmp_path / "a.ptd"
    other = tmp_path / "other.pte"
    for data, reason in (
        (_without_adapters(program), "takes no adapters: export it with adapters="),
        (b"x" * 100, "not a .pte file"),
        (program.read_bytes()[:3000], "it ends at byte"),
    ):
        other.write_bytes(data)
        with pytest.raises(ExportError, match=reason):
            rushlight.llm.adapter(path, base=other, out=out)
    with pytest.raises(ExportError, match="cannot read"):
        rushlight.llm.adapter(path, base=tmp_path / "nothing.pte", out=out)


# --- damaged files


def _damaged(folder: Folder, program: Path, change: Callable[[dict[str, Any]], None]) -> bytes:
    entries = read_ptd(_convert(folder, program).read_bytes())
    change(entries)
    return write_ptd(entries)


SITE = "lora/layers.0.self_attn.q_proj/"


def _entry(**fields: Any) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        about = {**json.loads(bytes(entries[ENTRY].data)), **fields}
        entries[ENTRY].data = json.dumps(about).encode()

    return change


def _without(key: str) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        del entries[key]

    return change


def _copied(to: str, source: str) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        entries[to] = entries[source]

    return change


def _no_layout(entries: dict[str, Any]) -> None:
    entries[SITE + "a"].layout = None


DAMAGED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "no entry": (_without(ENTRY), "it is no adapter"),
    "no JSON": (lambda entries: setattr(entries[ENTRY], "data", b"{"), "its description"),
    "another version": (_entry(version=2), "has version 2"),
    "another base": (_entry(base="0" * 32), "was made for another model"),
    "no layers": (_entry(sites=[]), "its layers"),
    "no list of layers": (_entry(sites=7), "its layers"),
    "no name of a layer": (_entry(sites=[7]), "changes the layer '', which the program has not"),
    "another layer": (_entry(sites=["x"]), "changes the layer 'x', which the program has not"),
    "a layer twice": (_entry(sites=["layers.0.self_attn.q_proj"] * 2), "is there twice"),
    "no A": (_without(SITE + "a"), "self_attn.q_proj/a"),
    "no B": (_without(SITE + "b"), "self_attn.q_proj/b"),
    "B for A": (_copied(SITE + "a", SITE + "b"), "self_attn.q_proj/a"),
    "A for B": (_copied(SITE + "b", SITE + "a"), "self_attn.q_proj/b"),
    "no layout": (_no_layout, "self_attn.q_proj/a"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_adapters(
    case: str, folder: Folder, program: Path, runner: Runner, tmp_path: Path
) -> None:
    change, reason = DAMAGED[case]
    path = tmp_path / "damaged.ptd"
    path.write_bytes(_damaged(folder, program, change))
    with pytest.raises(RunError, match=reason) as error:
        runner.load_adapter(path)
    assert error.value.code is Code.INVALID_EXTERNAL_DATA


def test_files_that_are_cut(folder: Folder, program: Path, runner: Runner, tmp_path: Path) -> None:
    whole = _convert(folder, program).read_bytes()
    path = tmp_path / "cut.ptd"
    for size in (0, 10, 200, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(RunError):
            runner.load_adapter(path)


# --- the command


def test_the_command(folder: Folder, program: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["llm", "adapter", str(folder.write()), "--base", str(program)])
    assert told.exit_code == 0, told.output
    assert "wrote lora.ptd" in told.output
    assert ENTRY in read_ptd((tmp_path / "lora.ptd").read_bytes())
    _set("use_dora", True)(folder)
    told = CliRunner().invoke(app, ["llm", "adapter", str(folder.write()), "--base", str(program)])
    assert told.exit_code == 1 and "use_dora" in told.output


def test_a_chat_with_adapters(folder: Folder, program: Path, tmp_path: Path) -> None:
    path = _convert(folder, program)
    arguments = ["llm", "chat", str(program), "--adapter", f"x={path}", "--max-tokens", "2"]
    lines = "/adapter y\n/adapter\n/adapter x\n/exit\n"
    told = CliRunner().invoke(app, arguments, input=lines)
    assert told.exit_code == 0, told.output
    assert "there are x" in told.output
    told = CliRunner().invoke(app, [*arguments, "--adapter", f"x={path}"], input=lines)
    assert told.exit_code == 1 and "a name of its own" in told.output
