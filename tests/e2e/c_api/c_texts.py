"""Language models through the C interface: what the tests of several folders call."""

from __future__ import annotations

import ctypes
from typing import Any

from c_library import Library


class Reader:
    """Collects pieces; stops after some tokens."""

    def __init__(self, library: Library, stop_after: int = 1 << 30) -> None:
        self.tokens: list[list[int]] = []
        self.texts: list[bytes] = []
        self.finish: list[int] = []
        self.logprobs: list[float] = []
        self._stop_after = stop_after
        self.write = library.types["rl_piece_fn"](self._take)

    def _take(self, _: object, piece: Any) -> int:
        p = piece.contents
        while len(self.tokens) <= p.choice:
            self.tokens.append([])
            self.texts.append(b"")
            self.finish.append(0)
        self.tokens[p.choice] += p.tokens[: p.n_tokens]
        self.texts[p.choice] += ctypes.string_at(p.text.data, p.text.size)
        self.finish[p.choice] = p.finish
        if p.logprobs:
            self.logprobs += p.logprobs[: p.n_tokens]
        return len(self.tokens[0]) >= self._stop_after


def generate_options(library: Library, llm: ctypes.c_void_p, **fields: Any) -> Any:
    options = library.make("rl_generate_options")
    library.call("rl_llm_default_options", llm, ctypes.byref(options))
    for name, value in fields.items():
        setattr(options, name, value)
    return options


def generate(library: Library, name: str, handle: Any, tokens: list[int], options: Any) -> Reader:
    reader = Reader(library)
    prompt = (ctypes.c_int32 * len(tokens))(*tokens)
    library.call(name, handle, prompt, len(tokens), ctypes.byref(options), reader.write, None, None)
    return reader
