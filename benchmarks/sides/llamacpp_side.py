"""What llama.cpp makes of GGUF files: its logits, tokens and templates, and files of its quantizer.

It runs in the environment of llama.cpp, and needs NumPy there.

Commands: `quantize`, `logits`, `tokenize`, `template`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "rushlight" / "peers"))

import llama_cpp as api
import numpy as np
import side

_MOST_ROWS = 2048  # of a call


@api.llama_log_callback
def _say_nothing(level: int, text: bytes, data: Any) -> None:
    pass


def quantize(source: str, file: str, kind: str) -> None:
    """Write a file of float weights once more in another type, by `llama_model_quantize`."""
    parameters = api.llama_model_quantize_default_params()
    parameters.ftype = getattr(api, f"LLAMA_FTYPE_MOSTLY_{kind}")
    parameters.nthread = 1
    status = api.llama_model_quantize(source.encode(), file.encode(), ctypes.byref(parameters))
    if status:
        raise RuntimeError(f"llama_model_quantize returns {status} for {source} as {kind}")


@contextmanager
def _opened(file: str, only_words: bool = False) -> Iterator[Any]:
    parameters = api.llama_model_default_params()
    parameters.vocab_only = only_words
    model = api.llama_model_load_from_file(file.encode(), parameters)
    if not model:
        raise RuntimeError(f"llama.cpp cannot load {file}")
    try:
        yield model
    finally:
        api.llama_model_free(model)


def logits(file: str, tokens: list[int], prompt: int, result: str, is_exact: bool) -> None:
    """Write the logits of all tokens [tokens, vocabulary] to an .npy file.

    Args:
        file: the model.
        tokens: of one text.
        prompt: how many of them are computed at once; the others follow one by one.
        result: the .npy file.
        is_exact: whether keys and values are float32 and attention is not fused; otherwise all is
            as llama.cpp has it by default.
    """
    parameters = api.llama_context_default_params()
    parameters.n_ctx = len(tokens)
    parameters.n_batch = parameters.n_ubatch = _MOST_ROWS
    parameters.n_threads = parameters.n_threads_batch = 1
    if is_exact:
        parameters.type_k = parameters.type_v = api.GGML_TYPE_F32
        parameters.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_DISABLED
    with _opened(file) as model:
        context = api.llama_init_from_model(model, parameters)
        vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
        rows = np.empty((len(tokens), vocabulary), np.float32)
        ends = [prompt, *range(prompt + 1, len(tokens) + 1)]
        first = 0
        for end in ends:
            _run(context, tokens[first:end], first, rows)
            first = end
        api.llama_free(context)
    np.save(result, rows)


def _run(context: Any, tokens: list[int], first: int, rows: Any) -> None:
    """Compute tokens at the positions from `first` on, and write the rows of their logits."""
    batch = api.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i] = token, first + i
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
        batch.logits[i] = True
    status = api.llama_decode(context, batch)
    if status:
        raise RuntimeError(f"llama_decode returns {status}")
    for i in range(len(tokens)):
        row = api.llama_get_logits_ith(context, i)
        rows[first + i] = np.ctypeslib.as_array(row, shape=(rows.shape[1],))
    api.llama_batch_free(batch)


def tokenize(file: str, texts: list[str], parse_special: bool) -> list[list[int]]:
    """The tokens of texts, with those that begin and end a text."""
    with _opened(file, only_words=True) as model:
        vocabulary = api.llama_model_get_vocab(model)
        return [_tokens(vocabulary, text.encode(), parse_special) for text in texts]


def _tokens(vocabulary: Any, text: bytes, parse_special: bool) -> list[int]:
    room = len(text) + 8
    tokens = (api.llama_token * room)()
    count = api.llama_tokenize(vocabulary, text, len(text), tokens, room, True, parse_special)
    if count < 0:
        raise RuntimeError(f"llama_tokenize returns {count} for {text!r}")
    return list(tokens[:count])


def template(file: str, conversations: list[list[dict[str, str]]]) -> dict[str, Any]:
    """The chat template of a file, and the prompts that llama-cpp-python renders with it."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    with _opened(file, only_words=True) as model:
        vocabulary = api.llama_model_get_vocab(model)
        source = api.llama_model_chat_template(model, None).decode()
        bos, eos = (
            api.llama_vocab_get_text(vocabulary, token).decode() if token >= 0 else ""
            for token in (api.llama_vocab_bos(vocabulary), api.llama_vocab_eos(vocabulary))
        )
    formatter = Jinja2ChatFormatter(source, eos_token=eos, bos_token=bos)
    prompts = [formatter(messages=one).prompt for one in conversations]
    return {"source": source, "prompts": prompts}


COMMANDS: dict[str, side.Command] = {
    "quantize": quantize,
    "logits": logits,
    "tokenize": tokenize,
    "template": template,
}

if __name__ == "__main__":
    api.llama_log_set(_say_nothing, ctypes.c_void_p(0))
    api.llama_backend_init()
    side.main(COMMANDS, __doc__)
