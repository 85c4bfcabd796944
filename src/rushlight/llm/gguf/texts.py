"""What a GGUF file says of texts: special tokens, the chat template, how to sample."""

from __future__ import annotations

from typing import Any

from rushlight.llm.gguf.file import GgufFile
from rushlight.llm.gguf.tokenizer import Vocabulary
from rushlight.llm.tokenizer.from_sentencepiece import Type as TokenType

_ROLES = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
_ENDS = ("eos", "eot", "eom")  # of a text, of a turn, of a message
_END_TEXTS = frozenset(
    "<|eot_id|> <|im_end|> <|end|> <end_of_turn> <|endoftext|> <|end_of_text|> <|eom_id|> <EOT> "
    "</s> <eos>".split()
)
"""Control tokens that end a reply, also if no other entry says so: llama.cpp has such a list."""
_SAMPLING = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "penalty_repeat": "repetition_penalty",
}
"""Keys of `general.sampling` and their names in `generation_config.json`."""


def special_tokens(vocabulary: Vocabulary) -> dict[str, str]:
    """The texts of special tokens by their role."""
    tokens = {name: vocabulary.token(role) for role, name in _ROLES.items()}
    return {name: vocabulary.texts[t] for name, t in tokens.items() if t is not None}


def generation_of(vocabulary: Vocabulary) -> dict[str, Any]:
    """What `generation_config.json` of a folder would say."""
    file = vocabulary.file
    ends = [vocabulary.token(role) for role in _ENDS]
    pairs = zip(vocabulary.texts, vocabulary.types, strict=True)
    ends += [
        token
        for token, (text, kind) in enumerate(pairs)
        if kind == TokenType.CONTROL and text in _END_TEXTS
    ]
    found: dict[str, Any] = {}
    listed = list(dict.fromkeys(token for token in ends if token is not None))
    if listed:
        found["eos_token_id"] = listed
    begin = vocabulary.token("bos")
    if begin is not None:
        found["bos_token_id"] = begin
    for key, name in _SAMPLING.items():
        full = f"general.sampling.{key}"
        if full in file.metadata:
            found[name] = file.integer(full) if key == "top_k" else file.number(full)
    return found


def template_of(file: GgufFile) -> str | None:
    """The chat template; None if there is none."""
    return file.text("tokenizer.chat_template", "") or None
