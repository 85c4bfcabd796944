"""Adapters (LoRA) of `peft`: what sessions compute with them equals peft and transformers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from encoder_models import small_encoder
from llm_models import small_model

import rushlight.llm
from rushlight import _core
from rushlight.errors import Code, ExportError, RunError
from rushlight.llm.runner import Runner

RANK = 12
LENGTH = 70
ONE_LAYER = {
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "attention_bias": True,
}


def _model(family: str, **changes: Any) -> Any:
    """A small model without an end token, the same at each call."""
    torch.manual_seed(5)
    model = small_model(family, **changes)
    for config in (model.config, model.generation_config):
        config.eos_token_id = config.bos_token_id = None
    return model


def _adapted(model: Any, seed: int, folder: Path, **options: Any) -> Any:
    """A copy of the model with an adapter of random weights, which is written to a folder."""
    torch.manual_seed(seed)
    config = peft.LoraConfig(
        **{"r": 8, "lora_alpha": 16, "target_modules": "all-linear", **options}
    )
    adapted = peft.get_peft_model(copy.deepcopy(model), config).eval()
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, 0, 0.6 * parameter.shape[1] ** -0.5)
    adapted.save_pretrained(folder)
    return adapted


def _tokens(seed: int, count: int = LENGTH) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    tokens: list[int] = torch.randint(0, 320, (count,), generator=generator).tolist()
    return tokens


def _logprobs(model: Any, tokens: list[int]) -> tuple[torch.Tensor, float]:
    """What the model says of each token but the first, and the greatest logit."""
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
    chosen = logits.log_softmax(-1)[:-1].gather(1, torch.tensor(tokens[1:])[:, None])
    return chosen[:, 0], float(logits.abs().max())


def _round(adapted: Any, dtype: torch.dtype) -> None:
    """Round an adapter's weights as its file does, which has the scale in B."""
    for module in adapted.modules():
        if isinstance(module, peft.tuners.lora.LoraLayer):
            for name, scale in module.scaling.items():
                down, up = module.lora_A[name].weight, module.lora_B[name].weight
                down.data = down.data.to(dtype).float()
                up.data = (scale * up.data).to(dtype).float() / scale


def _check_equal(model: Any, runner: Runner, adapter: Any) -> None:
    """Compare the probabilities of a text, and a text that is written, with `model`."""
    tokens = _tokens(11)
    wanted, greatest = _logprobs(model, tokens)
    got = torch.tensor(runner.score(tokens, adapter=adapter))
    assert (got - wanted).abs().max() < 1e-4 * greatest
    reply = runner.generate(tokens, adapter=adapter, max_tokens=24, temperature=0, logprobs=True)
    written = [*tokens, *reply.tokens]
    wanted, greatest = _logprobs(model, written)
    got = torch.tensor([token.logprob for token in reply.choices[0].tokens])
    assert (got - wanted[-24:]).abs().max() < 1e-4 * greatest
    with torch.no_grad():
        logits = model(torch.tensor([written])).logits[0]
    assert logits[len(tokens) - 1 : -1].argmax(-1).tolist() == reply.tokens


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama3", {}),
    "llama-some": (
        "llama3",
        {
            "target_modules": ["q_proj", "v_proj", "down_proj"],
            "rank_pattern": {"v_proj": 3},
            "alpha_pattern": {"layers.1.self_attn.q_proj": 5},
            "use_rslora": True,
        },
    ),
    "llama-one-layer": ("llama3", {"target_modules": ["o_proj"], "layers_to_transform": [1]}),
    "gpt2": ("gpt2", {"fan_in_fan_out": True}),
    "phi3": ("phi3", {}),
    "gemma2": ("gemma2", {}),
}


@pytest.mark.full
@pytest.mark.parametrize("case", OPTIONS)
def test_logits_equal_peft(case: str, tmp_path: Path) -> None:
    family, options = OPTIONS[case]
    model = _model(family)
    base = tmp_path / "m.pte"
    program = rushlight.llm.export(model, context=128, batch=32, adapters=RANK, verify=False)
    program.save(base, quiet=True)
    adapted = _adapted(model, 1, tmp_path / "lora", **options)
    runner = rushlight.llm.load(base, threads=1, kv="float32")
    for dtype in ("float32", "float16"):
        out = tmp_path / f"{dtype}.ptd"
        rushlight.llm.adapter(tmp_path / "lora", base=base, out=out, dtype=dtype)
        _round(adapted, getattr(torch, dtype))
        _check_equal(adapted, runner, runner.load_adapter(out))
    _check_equal(model, runner, None)


class Files:
    """A program of integers, whose products of queries, keys and values are one, and its adapters.

    Attributes:
        model: with random weights.
        base: the program.
        adapted: two copies of the model, with adapters of all layers and of a few.
        adapters: their files.
    """

    def __init__(self, folder: Path, quantize: str) -> None:
        self.model = _model("llama", **ONE_LAYER)
        self.base = folder / "m.pte"
        program = rushlight.llm.export(
            self.model, context=256, batch=64, quantize=quantize, adapters=RANK, verify=False
        )
        program.save(self.base, quiet=True)
        self.adapted, self.adapters = [], []
        for seed, options in ((1, {}), (2, {"r": 12, "target_modules": ["k_proj", "up_proj"]})):
            self.adapted.append(_adapted(self.model, seed, folder / f"lora{seed}", **options))
            self.adapters.append(folder / f"{seed}.ptd")
            rushlight.llm.adapter(folder / f"lora{seed}", base=self.base, out=self.adapters[-1])


@pytest.fixture(scope="module", params=["int8", pytest.param("8da4w", marks=pytest.mark.full)])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("adapters"), request.param)


@pytest.fixture
def runner(files: Files) -> Runner:
    return rushlight.llm.load(files.base, threads=1)


@pytest.fixture
def pair(runner: Runner, files: Files) -> list[_core.LlmAdapter]:
    return [runner.load_adapter(path) for path in files.adapters]


GREEDY: dict[str, Any] = {"max_tokens": 12, "temperature": 0, "logprobs": 3}


def _write(runner: Runner, prompt: list[int], adapter: Any = None) -> Any:
    return runner.generate(prompt, adapter=adapter, **GREEDY).choices[0].tokens


def test_integers_are_as_near_to_peft_as_without_adapters(files: Files) -> None:
    runner = rushlight.llm.load(files.base, threads=1, kv="float32")
    adapters = [None, *(runner.load_adapter(path) for path in files.adapters)]
    tokens = _tokens(11)
    errors = []
    for model, adapter in zip((files.model, *files.adapted), adapters, strict=True):
        wanted, greatest = _logprobs(model, tokens)
        got = torch.tensor(runner.score(tokens, adapter=adapter))
        errors.append(float((got - wanted).abs().max()) / greatest)
    assert max(errors[1:]) < 1.5 * errors[0]


def test_adapters_beside_each_other_are_as_alone(files: Files) -> None:
    prompts = [_tokens(seed, 40 + seed) for seed in range(4)]

    def loaded() -> tuple[Runner, list[Any]]:
        runner = rushlight.llm.load(files.base, threads=2)
        first, second = (runner.load_adapter(path) for path in files.adapters)
        return runner, [first, None, second, first]

    wanted = []
    for i, prompt in enumerate(prompts):
        runner, adapters = loaded()
        wanted.append(_write(runner, prompt, adapters[i]))
    runner, adapters = loaded()
    streams = [
        runner.stream(prompt, adapter=adapter, **GREEDY)
        for prompt, adapter in zip(prompts, adapters, strict=True)
    ]
    assert [stream.reply().choices[0].tokens for stream in streams] == wanted
    # Most steps had tokens of all four.
    assert sum(stream.statistics.steps for stream in streams) > 3 * streams[0].statistics.steps
    texts = [tuple(token.id for token in tokens) for tokens in wanted]
    assert len(set(texts)) == 4


def test_a_text_with_an_adapter_shares_no_pages_with_others(
    runner: Runner, pair: list[_core.LlmAdapter]
) -> None:
    prompt = _tokens(3, 150)
    alone = [_write(runner, prompt, adapter) for adapter in (None, *pair)]
    assert len({tuple(tokens) for tokens in alone}) == 3
    for adapter, tokens in zip((None, *pair), alone, strict=True):
        reply = runner.generate(prompt, adapter=adapter, **GREEDY)
        assert reply.choices[0].tokens == tokens
        assert reply.statistics.reused_tokens >= 128  # of the text with the same adapter


def test_sessions_keep_their_adapter(
    runner: Runner, pair: list[_core.LlmAdapter], tmp_path: Path
) -> None:
    first, second = pair
    prompt = _tokens(4, 130)
    wanted = _write(runner, prompt, first)
    session = runner.session(adapter=first)
    assert session.adapter == first and session.adapter != second
    assert session.generate(prompt, **GREEDY).choices[0].tokens == wanted
    fork = session.fork()
    assert fork.adapter == first
    fork.rewind(12)
    assert fork.generate([], **GREEDY).choices[0].tokens == wanted
    session.rewind(12)
    session.save(tmp_path / "s.session")
    again = rushlight.llm.restore(tmp_path / "s.session", runner, adapter=first)
    assert again.adapter == first
    assert again.generate([], **GREEDY).choices[0].tokens == wanted
    for adapter, reason in ((None, "another model or adapter"), (second, "another model or")):
        with pytest.raises(RunError, match=reason) as error:
            runner.restore(tmp_path / "s.session", adapter=adapter)
        assert error.value.code is Code.INVALID_EXTERNAL_DATA
    plain = runner.session()
    plain.tokens = prompt
    plain.save(tmp_path / "p.session")
    with pytest.raises(RunError, match="was saved without an adapter"):
        runner.restore(tmp_path / "p.session", adapter=first)


def test_an_adapter_is_changed_only_without_tokens(
    runner: Runner, pair: list[_core.LlmAdapter]
) -> None:
    first, second = pair
    prompt = _tokens(6, 20)
    session = runner.session(adapter=first)
    session.generate(prompt, **GREEDY)
    with pytest.raises(RunError, match="32 tokens, which were computed with another adapter"):
        session.adapter = second
    with pytest.raises(RunError, match="the adapter is not the session's"):
        session.generate([], adapter=second, **GREEDY)
    assert session.adapter == first
    session.adapter = first
    session.rewind(32)
    for adapter in (second, None):
        session.tokens = []
        session.adapter = adapter
        assert session.generate(prompt, **GREEDY).choices[0].tokens == _write(
            runner, prompt, adapter
        )


def test_an_adapter_lives_as_long_as_its_sessions(files: Files, tmp_path: Path) -> None:
    runner = rushlight.llm.load(files.base, threads=1)
    copied = tmp_path / "a.ptd"
    copied.write_bytes(files.adapters[0].read_bytes())
    adapter = runner.load_adapter(copied)
    wanted = _write(runner, _tokens(7), adapter)
    session = runner.session(adapter=adapter)
    stream = runner.stream(_tokens(8), adapter=adapter, **GREEDY)
    assert _is_mapped(copied)
    del adapter
    assert session.generate(_tokens(7), **GREEDY).choices[0].tokens == wanted
    del session
    assert _is_mapped(copied)
    stream.close()
    assert not _is_mapped(copied)
    # Its pages do not serve the model alone, nor another adapter.
    assert runner.generate(_tokens(7), **GREEDY).statistics.reused_tokens == 0


def _is_mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


@pytest.mark.full
def test_other_forms_of_a_model_take_its_adapters(
    files: Files, runner: Runner, pair: list[_core.LlmAdapter], tmp_path: Path
) -> None:
    # The same model in another form, which takes lower ranks.
    low = tmp_path / "low.pte"
    model = _model("llama", **ONE_LAYER)
    program = rushlight.llm.export(model, context=64, adapters=8, verify=False)
    program.save(low, quiet=True)
    refusing = rushlight.llm.load(low, threads=1)
    reason = "has rank 12, and the program takes adapters up to rank 8"
    with pytest.raises(RunError, match=reason):
        refusing.load_adapter(files.adapters[1])
    with pytest.raises(RunError, match=reason):
        refusing.generate([1, 2], adapter=pair[1])
    with pytest.raises(RunError, match=reason):
        refusing.session(adapter=pair[1])
    assert _write(refusing, [1, 2], refusing.load_adapter(files.adapters[0]))


def test_what_is_no_adapter_is_refused(
    runner: Runner, pair: list[_core.LlmAdapter], tmp_path: Path
) -> None:
    for wrong in ("1.ptd", 7):
        with pytest.raises(RunError, match=r"what Runner\.load_adapter returned"):
            runner.generate([1, 2], adapter=wrong)
    with pytest.raises(RunError, match="there is no such file"):
        runner.load_adapter(tmp_path / "nothing.ptd")
    assert _write(runner, [1, 2], pair[0])


def test_forms_without_adapters_are_refused() -> None:
    for options, reason in (
        ({"backend": "xnnpack"}, "a program for ExecuTorch's runner takes none"),
        ({"adapters": 0}, "from 1 to 256"),
        ({"adapters": 257}, "from 1 to 256"),
        ({"adapters": True}, "from 1 to 256"),
    ):
        with pytest.raises(ExportError, match=reason):
            rushlight.llm.export(_model("llama", **ONE_LAYER), **{"adapters": 8, **options})
    with pytest.raises(ExportError, match="an encoder takes none"):
        rushlight.llm.export(small_encoder("bert"), adapters=8)
