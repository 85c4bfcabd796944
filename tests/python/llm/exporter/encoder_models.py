"""Small random-weight encoders of every family that `rushlight.llm.export` takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

PAD = 1
SMALL: dict[str, Any] = {
    "vocab_size": 320,
    "pad_token_id": PAD,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "max_position_embeddings": 100,
}
ENCODER_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", {}),
    "distilbert": ("distilbert", {"hidden_dim": 80}),
    "electra": ("electra", {"embedding_size": 32}),
    "roberta": ("roberta", {}),
    "xlm-roberta": ("xlm-roberta", {}),
    "camembert": ("camembert", {}),
    # Layers of both kinds, and texts longer than a window.
    "modernbert": ("modernbert", {"local_attention": 16, "global_attn_every_n_layers": 2}),
}


def small_encoder(case: str, **changes: Any) -> Any:
    """A `transformers` encoder with random weights, whose hidden states differ clearly."""
    from transformers import AutoConfig, AutoModel

    name, own = ENCODER_CASES[case]
    options = {**SMALL, **own, **changes}
    model = AutoModel.from_config(AutoConfig.for_model(name, **options))
    model = model.eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 1.2 * parameter.shape[1] ** -0.5)
        else:
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def padded(texts: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and mask of texts, padded to the longest one."""
    longest = max(map(len, texts))
    ids = torch.tensor([[*text, *[PAD] * (longest - len(text))] for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
    return ids, mask


def pooled(hidden: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """The embeddings of texts: as sentence-transformers pools them."""
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "last":
        return hidden[torch.arange(len(hidden)), mask.sum(1) - 1]
    weights = mask.unsqueeze(-1).float()
    return (hidden * weights).sum(1) / weights.sum(1)
