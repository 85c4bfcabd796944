"""GGUF files beside llama.cpp itself: logits, tokens and prompts."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "benchmarks" / "llm"))

import llm_gguf  # noqa: E402
import tokenizer_corpus as corpus  # noqa: E402
from gguf_files import PRE_TOKENIZERS, of_tokenizer, write_gguf  # noqa: E402
from llm_models import described, small_model  # noqa: E402

import rushlight as rl  # noqa: E402
import rushlight.llm  # noqa: E402
from rushlight.llm.template import ChatTemplate  # noqa: E402
from rushlight.llm.tokenizer import Tokenizer  # noqa: E402
from rushlight.peers.side import Side  # noqa: E402
from rushlight.serialize.pte import read_pte  # noqa: E402

pytestmark = pytest.mark.full
TEMPLATES = ROOT / "tests" / "python" / "llm" / "template" / "templates"
CONVERSATIONS = [
    [{"role": "user", "content": "What is a lamp?"}],
    [
        {"role": "user", "content": "  Zürich 🏔\n<s> </s>"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": ""},
    ],
]
CHARACTERS = 60_000


@pytest.fixture(scope="module")
def side() -> Iterator[Side]:
    """llama.cpp, in an environment that is made on first use."""
    with llm_gguf.llama_cpp() as side:
        yield side


@pytest.mark.parametrize("name", [*llm_gguf.FAMILIES, llm_gguf.TRAINED])
def test_logits_are_no_farther_than_those_of_llama_cpp(
    name: str, trained: Callable[[], Any]
) -> None:
    distances = llm_gguf.measured(name, trained)
    assert len(distances) == len(llm_gguf.BY_GGUF) + len(llm_gguf.BY_LLAMA_CPP)
    for file, one in distances.items():
        # Both round rows to 8 bits: which of them is nearer is chance where nothing else differs.
        assert one.ours < 1.02 * one.theirs, (file, one)
        assert 0 < one.theirs < 0.2, (file, one)


@pytest.mark.parametrize("family", [*PRE_TOKENIZERS, "llama2", "gemma"])
def test_tokens_are_those_of_llama_cpp(family: str, side: Side, tmp_path: Path) -> None:
    entries = llm_gguf.tokenizer_of(family)
    model = small_model("llama", num_hidden_layers=1, vocab_size=len(entries["tokens"]))
    path = write_gguf(model, tmp_path / "m.gguf", **of_tokenizer(entries))
    data = read_pte(rl.llm.export(path, batch=8, verify=False).buffer).named_data
    ours = Tokenizer(bytes(data["rushlight/tokenizer"]))
    texts = [text for text in corpus.texts(family, CHARACTERS) if text]
    if family.startswith("qwen"):  # llama.cpp does not compose characters
        texts = [unicodedata.normalize("NFC", text) for text in texts]
    theirs = side.call("tokenize", file=str(path), texts=texts, parse_special=True)
    different = [
        (text[:80], ours.encode(text)[:20], tokens[:20])
        for text, tokens in zip(texts, theirs, strict=True)
        if ours.encode(text) != tokens
    ]
    assert not different, (len(different), len(texts), different[:3])


@pytest.mark.parametrize("name", ["chatml", "llama2", "gemma2", "zephyr", "phi3"])
def test_prompts_are_those_of_llama_cpp(name: str, side: Side, tmp_path: Path) -> None:
    source = (TEMPLATES / f"{name}.jinja").read_text("utf-8")
    entries = llm_gguf.tokenizer_of("llama3")
    model = small_model("llama", num_hidden_layers=1, vocab_size=len(entries["tokens"]))
    changes = {**of_tokenizer(entries), "tokenizer__chat_template": source}
    path = write_gguf(model, tmp_path / "m.gguf", **changes)
    program = rl.llm.export(path, batch=8, verify=False)
    stored = bytes(read_pte(program.buffer).named_data["rushlight/chat_template"]).decode()
    theirs = side.call("template", file=str(path), conversations=CONVERSATIONS)
    assert stored == theirs["source"] == source
    ours = ChatTemplate(stored, described(program)["tokens"])
    assert [ours.render(one).text for one in CONVERSATIONS] == theirs["prompts"]
