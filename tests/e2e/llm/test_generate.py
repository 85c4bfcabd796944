"""From a transformers model to text: what `rushlight.llm.load` generates equals transformers."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import rushlight.llm
from rushlight.errors import LoadError, RunError
from rushlight.llm.runner import Runner

CONTEXT = 256


def _config() -> transformers.LlamaConfig:
    return transformers.LlamaConfig(
        vocab_size=320,
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=1024,
        eos_token_id=2,
        pad_token_id=0,
    )


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(1)
    return transformers.LlamaForCausalLM(_config()).eval()


@pytest.fixture(scope="module")
def program(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llm") / "model.pte"
    rushlight.llm.export(model, context=CONTEXT, batch=64).save(path, quiet=True)
    return path


@pytest.fixture(scope="module")
def runner(program: Path) -> Runner:
    return rushlight.llm.load(program, threads=1, kv="float32")


def test_one_token_at_a_time(model: Any) -> None:
    program = rushlight.llm.export(model, context=CONTEXT, batch=1, wanted=1, verify=False)
    one = rushlight.llm.load(program.buffer, threads=1, kv="float32")
    prompt = _prompt(4, 9)
    assert one.generate(prompt, max_tokens=8).tokens == _expected(model, prompt, 8)


def _prompt(seed: int, count: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, 320, (count,), generator=generator).tolist()


def _expected(model: Any, prompt: list[int], count: int) -> list[int]:
    with torch.no_grad():
        out = model.generate(torch.tensor([prompt]), max_new_tokens=count, do_sample=False)
    return out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("length", [1, 64, 150])
def test_greedy_tokens_equal_transformers(model: Any, runner: Runner, length: int) -> None:
    prompt = _prompt(length, length)
    reply = runner.generate(prompt, max_tokens=40, temperature=0)
    wanted = _expected(model, prompt, 40)
    assert reply.tokens == [token for token in wanted if token != 2]


def test_the_defaults_of_a_folder_are_those_of_transformers(model: Any, tmp_path: Path) -> None:
    prompt = _prompt(12, 20)
    model.save_pretrained(tmp_path)
    about = {"repetition_penalty": 1.3, "max_new_tokens": 12, "eos_token_id": 2}
    (tmp_path / "generation_config.json").write_text(json.dumps(about))
    whole = _with_own_defaults(tmp_path, prompt)
    about["eos_token_id"] = [2, whole[7]]
    (tmp_path / "generation_config.json").write_text(json.dumps(about))
    wanted = _with_own_defaults(tmp_path, prompt)
    assert len(whole) == 12 and wanted[-1] == whole[7]
    program = rushlight.llm.export(tmp_path, context=CONTEXT, batch=64, verify=False)
    runner = rushlight.llm.load(program.buffer, threads=1, kv="float32")
    reply = runner.generate(prompt)
    assert (reply.tokens, reply.finish) == (wanted[:-1], "stop")
    reply = runner.generate(prompt, ignore_eos=True)
    assert (reply.tokens, reply.finish) == (whole, "length")


def _with_own_defaults(folder: Path, prompt: list[int]) -> list[int]:
    """What `transformers` generates with what a folder says of texts."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad():
        tokens: list[int] = model.generate(torch.tensor([prompt]))[0, len(prompt) :].tolist()
    return tokens


def test_logprobs_are_those_of_the_model(model: Any, runner: Runner) -> None:
    prompt = _prompt(5, 20)
    reply = runner.generate(prompt, max_tokens=8, temperature=0.7, seed=3, logprobs=4)
    tokens = reply.choices[0].tokens
    with torch.no_grad():
        logits = model(torch.tensor([prompt + reply.tokens])).logits[0]
    wanted = logits.log_softmax(-1)[len(prompt) - 1 :]
    for i, token in enumerate(tokens):
        assert token.logprob == pytest.approx(wanted[i, token.id].item(), abs=1e-4)
        assert [index for index, _ in token.top] == wanted[i].topk(4).indices.tolist()


def test_scores_are_those_of_the_model(model: Any, runner: Runner) -> None:
    text = _prompt(6, 150)
    with torch.no_grad():
        logprobs = model(torch.tensor([text])).logits[0].log_softmax(-1)
    wanted = [logprobs[i, token].item() for i, token in enumerate(text[1:])]
    assert runner.score(text) == pytest.approx(wanted, abs=1e-4)


def test_threads_generate_together(model: Any, runner: Runner) -> None:
    prompts = [_prompt(seed, 10 + 20 * seed) for seed in range(6)]
    results: dict[int, list[int]] = {}

    def work(i: int) -> None:
        reply = runner.generate(prompts[i], max_tokens=30, temperature=0, ignore_eos=True)
        results[i] = reply.tokens

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, prompt in enumerate(prompts):
        single = runner.generate(prompt, max_tokens=30, temperature=0, ignore_eos=True)
        assert results[i] == single.tokens


def test_a_session_goes_on_forks_and_rewinds(runner: Runner) -> None:
    prompt = _prompt(7, 90)
    options: dict[str, Any] = {"temperature": 0, "ignore_eos": True}
    whole = runner.generate(prompt, max_tokens=40, **options).tokens
    session = runner.session()
    first = session.generate(prompt, max_tokens=10, **options).tokens
    fork = session.fork()
    assert first + session.generate(max_tokens=30, **options).tokens == whole
    assert first + fork.generate(max_tokens=30, **options).tokens == whole
    session.rewind(35)
    assert session.tokens == prompt + whole[:5]
    again = session.generate(max_tokens=35, **options)
    assert whole[:5] + again.tokens == whole
    assert again.statistics.reused_tokens == len(prompt) + 4


def test_the_same_prompt_is_computed_once(runner: Runner) -> None:
    prompt = _prompt(8, 140)
    first = runner.generate(prompt, max_tokens=5, temperature=0)
    second = runner.generate(prompt, max_tokens=5, temperature=0)
    assert second.tokens == first.tokens
    assert (first.statistics.reused_tokens, second.statistics.reused_tokens) == (0, 139)


def test_a_saved_session_goes_on(program: Path, runner: Runner, tmp_path: Path) -> None:
    options: dict[str, Any] = {"temperature": 0, "ignore_eos": True}
    session = runner.session()
    session.generate(_prompt(11, 100), max_tokens=10, **options)
    path = tmp_path / "chat.session"
    session.save(path)
    other = rushlight.llm.load(program, threads=1, kv="float32")
    restored = other.restore(path)
    assert restored.tokens == session.tokens
    assert (restored.cached, session.cached) == (64, 109)  # a file has full pages
    wanted = session.generate(max_tokens=20, **options).tokens
    assert restored.generate(max_tokens=20, **options).tokens == wanted
    wrong = rushlight.llm.load(program, threads=1, kv="int8")
    with pytest.raises(RunError, match="cache of another type"):
        wrong.restore(path)
    with pytest.raises(RunError, match="no such file"):
        other.restore(tmp_path / "missing")
    with pytest.raises(RunError, match="cannot save the session"):
        session.save(tmp_path / "no folder" / "x")


def test_cancelling_from_another_thread(runner: Runner) -> None:
    stream = runner.stream(_prompt(9, 10), temperature=0, ignore_eos=True)
    next(stream)
    thread = threading.Thread(target=stream.cancel)
    thread.start()
    thread.join()
    pieces = list(stream)
    assert pieces[-1].finish == "cancelled"
    assert sum(len(piece.tokens) for piece in pieces) <= 1


@pytest.mark.parametrize(
    ("prompt", "options", "told"),
    [
        ([], {}, "the prompt is empty"),
        ([1] * CONTEXT, {}, "256 tokens; the model's context has 256"),
        ([320], {}, "token 0 of the prompt is 320"),
        ([1], {"best_of": 2}, "there is no option 'best_of'"),
        ([1], {"max_new_tokens": 2}, "write max_tokens="),
        ([1], {"temperature": -1}, "temperature is -1"),
        ([1], {"temperature": 0, "top_p": 0.5}, "top_p= has no effect"),
        ([1], {"stop": "x"}, "the program has none"),
        ("text", {}, "the program has none"),
        ([1], {"logit_bias": {400: 1.0}}, "token 400"),
        ([1], {"logit_bias": {"a": 1.0}}, "no tokenizer: use token ids"),
        ([1], {"dry_multiplier": 1, "dry_breakers": [1, "a"]}, "no tokenizer: use token ids"),
        ([1], {"keep": 4}, "context_full='shift'"),
        (b"text", {}, "a list of token ids"),
    ],
)
def test_what_is_refused(runner: Runner, prompt: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(RunError, match=told):
        runner.generate(prompt, **options)
    assert runner.generate([5], max_tokens=1).finish in ("length", "stop")


def test_texts_at_once(program: Path, runner: Runner) -> None:
    one = rushlight.llm.load(program, threads=1, kv="float32", texts=1)
    prompt = _prompt(3, 10)
    options: dict[str, Any] = {"max_tokens": 5, "temperature": 0}
    assert one.generate(prompt, **options).tokens == runner.generate(prompt, **options).tokens
    with pytest.raises(LoadError, match=r"texts is 65.* give at most 64"):
        rushlight.llm.load(program, texts=65)


def test_a_session_whose_text_fills_the_context(runner: Runner) -> None:
    session = runner.session()
    options: dict[str, Any] = {"temperature": 0, "ignore_eos": True}
    assert session.generate(_prompt(1, 200), **options).finish == "context"
    assert len(session.tokens) == CONTEXT
    with pytest.raises(RunError, match="shorten the prompt"):
        session.generate(_prompt(2, 10), **options)
    before = session.tokens
    shifted = session.generate(
        _prompt(2, 10), max_tokens=5, context_full="shift", keep=16, **options
    )
    text = before[:16] + before[16 + 120 :] + _prompt(2, 10)
    assert session.tokens == text + shifted.tokens
    assert shifted.tokens == runner.generate(text, max_tokens=5, **options).tokens


def test_a_program_that_is_no_language_model(tmp_path: Path) -> None:
    program = rushlight.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    with pytest.raises(LoadError, match=r"no language model.*rushlight\.llm\.export"):
        rushlight.llm.load(program.buffer)
