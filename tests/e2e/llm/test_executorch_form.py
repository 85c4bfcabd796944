"""Programs of the form that ExecuTorch's runner for language models takes: a runner of ours reads
them as others, though they have the cache of one text."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from torch.export import Dim
from typer.testing import CliRunner

import rushlight
import rushlight.llm
from rushlight.cli import app
from rushlight.edge import define_executorch_operators
from rushlight.errors import LoadError, RunError
from rushlight.llm.runner import Runner

define_executorch_operators()
llama = torch.ops.llama
VOCABULARY, CONTEXT, BATCH = 50, 64, 16
METADATA: dict[str, Any] = {
    "get_max_seq_len": BATCH,
    "get_max_context_len": CONTEXT,
    "get_bos_id": 1,
    "get_eos_ids": [VOCABULARY - 1],
    "use_kv_cache": True,
}


class Sums(torch.nn.Module):
    """The next token is the sum of all tokens times their places, so that one that is missing or
    out of place gives another text."""

    def __init__(
        self,
        *,
        gives_all: bool = False,
        takes_positions: bool = False,
        writes_at_indices: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.gives_all, self.takes_positions = gives_all, takes_positions
        self.writes_at_indices, self.dtype = writes_at_indices, dtype
        self.register_buffer("seen", torch.zeros(1, CONTEXT, 1, 1))

    def forward(self, tokens: torch.Tensor, input_pos: torch.Tensor) -> torch.Tensor:
        start: Any = input_pos[0].item()
        count = tokens.shape[1]
        rows = input_pos if self.takes_positions else input_pos + torch.arange(count)
        values = tokens.float().reshape(1, -1, 1, 1)
        if self.writes_at_indices:
            llama.update_cache_with_indices(values, self.seen, start, rows.unsqueeze(0))
        else:
            llama.update_cache(values, self.seen, start)
        places = torch.arange(CONTEXT)
        known = places <= rows.unsqueeze(1)
        sums = (self.seen.reshape(1, -1) * (places + 1) * known).sum(1, keepdim=True)
        logits = -(torch.arange(VOCABULARY) - sums.remainder(VOCABULARY)).abs().to(self.dtype)
        return logits.unsqueeze(0) if self.gives_all else logits[-1:]


def expected(tokens: Sequence[int], count: int) -> list[int]:
    text = list(tokens)
    while len(text) < len(tokens) + count:
        text.append(sum((i + 1) * token for i, token in enumerate(text)) % VOCABULARY)
    return text[len(tokens) :]


def exported(model: Any, path: Path, metadata: dict[str, Any] | None = None) -> Path:
    rows = Dim("rows", min=1, max=BATCH)
    positions = {0: rows} if model.takes_positions else {}
    start = torch.arange(3) if model.takes_positions else torch.zeros(1, dtype=torch.int64)
    program = rushlight.export(
        model,
        (torch.tensor([[3, 4, 5]]), start),
        dynamic_shapes=({1: rows}, positions),
        constant_methods=METADATA if metadata is None else metadata,
        verify=False,
    )
    program.save(path, quiet=True)
    return path


VARIANTS: dict[str, dict[str, Any]] = {
    "last": {},
    "all": {"gives_all": True},
    "positions": {"takes_positions": True, "dtype": torch.float16},
    "indices": {"writes_at_indices": True, "dtype": torch.bfloat16},
}


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def runner(variant: str, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    path = tmp_path_factory.mktemp("form") / "m.pte"
    return rushlight.llm.load(exported(Sums(**VARIANTS[variant]), path), threads=1)


def generate(source: Any, prompt: Sequence[int], count: int, **options: Any) -> list[int]:
    reply = source.generate(list(prompt), max_tokens=count, ignore_eos=True, **options)
    return list(reply.tokens)


@pytest.mark.parametrize("length", [1, BATCH, 40])
def test_texts_are_the_models(runner: Runner, length: int) -> None:
    prompt = [(5 * i + length) % VOCABULARY for i in range(length)]
    assert generate(runner, prompt, 20) == expected(prompt, 20)


def test_sessions_fork_rewind_and_are_restored(runner: Runner, tmp_path: Path) -> None:
    session = runner.session()
    session.generate([3, 1, 4], max_tokens=6, ignore_eos=True)
    before = list(session.tokens)
    fork = session.fork()
    assert generate(fork, [9], 5) == expected([*before, 9], 5)
    assert generate(session, [8], 5) == expected([*before, 8], 5)
    session.rewind(6)
    assert session.tokens == before
    session.save(tmp_path / "text.session")
    assert generate(fork, [], 3) == expected(fork.tokens[:-3], 3)
    restored = runner.restore(tmp_path / "text.session")
    assert generate(restored, [7], 5) == expected([*before, 7], 5)


def test_two_streams_in_turns(runner: Runner) -> None:
    prompts = [[3, 5, 7], [3, 5, 9, 2]]
    streams = [runner.stream(p, max_tokens=40, ignore_eos=True) for p in prompts]
    texts: list[list[int]] = [[], []]
    while any(len(text) < 40 for text in texts):
        for text, stream in zip(texts, streams, strict=True):
            piece = next(stream, None)
            text += [token.id for token in piece.tokens] if piece is not None else []
    assert texts == [expected(p, 40) for p in prompts]


def test_threads_share_a_runner(runner: Runner) -> None:
    results: dict[int, list[int]] = {}

    def work(seed: int) -> None:
        results[seed] = generate(runner, [seed, 2, seed], 12)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {seed: expected([seed, 2, seed], 12) for seed in range(3, 8)}


def test_what_the_cache_holds_is_not_computed_again(variant: str, runner: Runner) -> None:
    prompt = [11 + i for i in range(20)]
    generate(runner, [40, 41], 2)
    first = runner.generate(prompt, max_tokens=2, ignore_eos=True).statistics
    other = runner.generate([*prompt[:10], 1], max_tokens=2, ignore_eos=True).statistics
    assert first.reused_tokens == 0
    assert other.reused_tokens == (0 if variant == "indices" else 10)  # a ring is not rewound


def test_several_texts_of_a_prompt_and_log_probabilities(runner: Runner) -> None:
    reply = runner.generate([4, 5, 6], n=3, max_tokens=8, temperature=0.5, seed=1)
    again = runner.generate([4, 5, 6], n=3, max_tokens=8, temperature=0.5, seed=1)
    assert [c.tokens for c in reply.choices] == [c.tokens for c in again.choices]
    best = expected([4, 5, 6], 4)
    sums = [sum(math.exp(-abs(i - token)) for i in range(VOCABULARY)) for token in best]
    wanted = [-math.log(total) for total in sums]
    assert runner.score([4, 5, 6, *best])[2:] == pytest.approx(wanted, abs=1e-4)


def test_the_context_is_full(runner: Runner) -> None:
    reply = runner.generate([2, 3], ignore_eos=True)
    assert len(reply.tokens) == CONTEXT - 2 and reply.finish == "context"
    assert generate(runner, [2, 3], 70, context_full="shift")[:62] == expected([2, 3], 62)


def test_the_end_token_of_the_program(tmp_path: Path) -> None:
    metadata = {**METADATA, "get_eos_ids": [45, expected([3, 1, 4], 3)[2]]}
    runner = rushlight.llm.load(exported(Sums(), tmp_path / "m.pte", metadata), threads=1)
    reply = runner.generate([3, 1, 4])
    assert reply.tokens == expected([3, 1, 4], 2) and reply.finish == "stop"


class Recurrent(torch.nn.Module):
    """The next token is the sum of the last two, the first of which is kept as recurrent layers
    keep what they need: in state without a place for each position."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.takes_positions = False
        self.register_buffer("last", torch.zeros(*shape))

    def forward(self, tokens: torch.Tensor, input_pos: torch.Tensor) -> torch.Tensor:
        texts = torch.cat([self.last.reshape(1, 1), tokens.float()], 1)
        sums = (texts[:, :-1] + texts[:, 1:]).remainder(3)
        self.last.copy_(texts[:, -1:].reshape(self.last.shape))
        logits = -(torch.arange(VOCABULARY) - sums.unsqueeze(-1)).abs()
        return logits + 0 * input_pos


def sums_of_two(tokens: Sequence[int], count: int) -> list[int]:
    text = [0, *tokens]
    while len(text) <= len(tokens) + count:
        text.append((text[-1] + text[-2]) % 3)
    return text[1 + len(tokens) :]


@pytest.mark.parametrize("shape", [(1, 1), (1, 1, 1, 1)])
def test_recurrent_state_is_not_rewound(shape: Sequence[int], tmp_path: Path) -> None:
    runner = rushlight.llm.load(exported(Recurrent(shape), tmp_path / "m.pte"), threads=1)
    prompt = [1, 2, 0, 2, 1]
    reply = runner.generate(prompt, max_tokens=40, ignore_eos=True)
    assert reply.tokens == sums_of_two(prompt, 40)
    # The text repeats, but a guess that is wrong could not be taken back.
    assert reply.statistics.guessed_tokens == 0 and reply.statistics.steps == 40
    session = runner.session()
    session.generate(prompt, max_tokens=10, ignore_eos=True)
    session.rewind(3)
    assert generate(session, [], 8) == sums_of_two([*prompt, *reply.tokens[:7]], 8)
    fork = session.fork()
    assert generate(session, [1], 5) == sums_of_two(session.tokens[:-5], 5)
    assert generate(fork, [2], 5) == sums_of_two(fork.tokens[:-5], 5)


# --- a tokenizer beside the program ---------------------------------------------------------------


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer.json with a token for each of some characters."""
    alphabet = [chr(ord("0") + i) for i in range(VOCABULARY)]
    made = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    made.decoder = decoders.Fuse()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


def test_a_tokenizer_from_a_file(letters: Path, tmp_path: Path) -> None:
    path = exported(Sums(), tmp_path / "m.pte")
    template = "{% for m in messages %}{{ m.content }}{% endfor %}{{ bos_token }}"
    runner = rushlight.llm.load(path, tokenizer=letters, chat_template=template, threads=1)
    tokens = runner.encode("5678")
    assert tokens == [5, 6, 7, 8]
    reply = runner.generate("5678", max_tokens=6, ignore_eos=True)
    assert reply.text == "".join(chr(ord("0") + t) for t in expected(tokens, 6))
    assert runner.encode_chat([{"role": "user", "content": "56"}]) == [5, 6, 1]
    arguments = ["llm", "chat", str(path), "--tokenizer", str(letters), "--max-tokens", "6"]
    chat = CliRunner().invoke(app, arguments, input="5678\n/exit\n", catch_exceptions=False)
    assert runner.generate("5678", max_tokens=6).text in chat.output


# --- what is refused ------------------------------------------------------------------------------


class NoPosition(torch.nn.Module):
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1, VOCABULARY) + tokens.sum()


class Fixed(torch.nn.Module):
    def forward(self, tokens: torch.Tensor, input_pos: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1, VOCABULARY) + tokens.sum() + input_pos


class Wide(torch.nn.Module):
    def forward(self, tokens: torch.Tensor, input_pos: torch.Tensor) -> torch.Tensor:
        return (tokens + input_pos).float().repeat(1, (1 << 24) + 1)


TOKENS, START = torch.tensor([[1, 2, 3]]), torch.zeros(1, dtype=torch.int64)
PROGRAMS: list[tuple[Any, tuple[torch.Tensor, ...], dict[str, Any], str]] = [
    (NoPosition(), (TOKENS,), METADATA, "takes no position.*use_kv_cache"),
    (Fixed(), (TOKENS, START), METADATA, "takes 3 tokens, never fewer"),
    (Fixed(), (TOKENS.float(), START), METADATA, r"does not take tokens \[1, n\]"),
    (Fixed(), (TOKENS[0], START), METADATA, r"does not take tokens \[1, n\]"),
    (Fixed(), (TOKENS[:, :1], START), {}, "get_max_seq_len"),
    (Fixed(), (TOKENS[:, :1], START), {"get_max_seq_len": -4}, "get_max_seq_len"),
    (Fixed(), (TOKENS[:, :1], START), {**METADATA, "use_kv_cache": False}, "without a cache"),
    (
        Fixed(),
        (TOKENS[:, :1], START),
        {**METADATA, "get_max_context_len": (1 << 24) + 1},
        "a context of 16777217 tokens; this runtime takes at most 16777216",
    ),
    (Wide(), (TOKENS[:, :1], START), METADATA, "a vocabulary of 16777217 tokens; this runtime"),
]


@pytest.mark.parametrize(("model", "args", "metadata", "message"), PROGRAMS)
def test_programs_of_other_forms_are_refused(
    model: Any, args: Any, metadata: dict[str, Any], message: str
) -> None:
    program = rushlight.export(model, args, constant_methods=metadata, verify=False)
    with pytest.raises(LoadError, match=message):
        rushlight.llm.load(program.buffer)


def test_options_that_need_a_cache_of_the_runner(letters: Path, tmp_path: Path) -> None:
    path = exported(Sums(), tmp_path / "m.pte")
    for option in ({"kv": "int8"}, {"cache_limit": 1 << 30}):
        with pytest.raises(LoadError, match="leave kv and cache_limit out"):
            rushlight.llm.load(path, **option)  # type: ignore[arg-type]
    with pytest.raises(LoadError, match=r"tokenizer=: .* is not a tokenizer\.json"):
        rushlight.llm.load(path, tokenizer=path)
    with pytest.raises(LoadError, match="tokenizer that was given: these bytes"):
        rushlight.llm.load(path, tokenizer=b"no table of a tokenizer")


def test_what_needs_a_tokenizer_or_a_template(letters: Path, tmp_path: Path) -> None:
    path = exported(Sums(), tmp_path / "m.pte")
    with pytest.raises(RunError, match=r"needs the model's tokenizer.*tokenizer= to load\(\)"):
        rushlight.llm.load(path).encode("567")
    runner = rushlight.llm.load(path, tokenizer=letters)
    with pytest.raises(RunError, match=r"need the model's chat template.*chat_template= to load"):
        runner.encode_chat([{"role": "user", "content": "56"}])


def test_a_runner_is_usable_after_a_failure(tmp_path: Path) -> None:
    metadata = {**METADATA, "get_max_context_len": 2 * CONTEXT}  # more than its buffer has room for
    runner = rushlight.llm.load(exported(Sums(), tmp_path / "m.pte", metadata), threads=1)
    with pytest.raises(RunError, match="do not fit a cache of 64"):
        generate(runner, [3] * (CONTEXT + 5), 4)
    assert generate(runner, [3, 1, 4], 8) == expected([3, 1, 4], 8)
