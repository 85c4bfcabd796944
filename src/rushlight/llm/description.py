"""What a runner must know of a language model: its cache, its limits and its special tokens."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.errors import Code, ExportError

KEY = "rushlight/llm"
"""The key in a program's named data."""
VERSION = 1
POOLINGS = ("last", "mean", "cls")
"""What becomes a text's embedding: the last token's hidden state, the mean of all, the first's."""

_CACHE = ("layers", "key_heads", "width")
MOST_RANK = 256
"""Of an adapter."""


@dataclass(frozen=True)
class Site:
    """A linear layer that adapters may change.

    Attributes:
        name: of the layer in the model, such as "layers.0.self_attn.q_proj".
        inputs, outputs: the sizes of its weight.
    """

    name: str
    inputs: int
    outputs: int


@dataclass(frozen=True)
class Adapters:
    """What a program says of the adapters that it takes.

    Attributes:
        rank: the greatest that an adapter may have, up to `MOST_RANK`.
        base: a digest of the model, which adapters name.
        sites: the layers, by the numbers that the program has for them.
    """

    rank: int
    base: str
    sites: Sequence[Site]


@dataclass(frozen=True)
class Description:
    """A model as its runner sees it.

    Attributes:
        vocabulary: how many tokens there are.
        layers: how many layers have a cache; 0 for an encoder, whose texts are embedded whole. Then
            `key_heads` and `width` are 0, too.
        key_heads: how many heads of keys and values each layer has.
        width, value_width: the elements of a key and of a value of one head; 0 for `value_width`
            means as many as `width`.
        context: the greatest number of positions of one sequence.
        batch: the greatest number of tokens of one step.
        wanted: the greatest number of tokens of one step whose logits are computed.
        family: the architecture, such as "llama"; for messages.
        positions: "rope" or "learned".
        bos: the token that begins a text; None for none.
        eos: the tokens that end one.
        tokens: the texts of special tokens by their role, such as {"bos_token": "<s>"}.
        generation: the model's own `generation_config.json`.
        hidden: the elements of an embedding; 0 for a program without a method `embed`.
        pooling: what becomes a text's embedding: one of `POOLINGS`.
        adapters: which adapters the program takes; None for none.
    """

    vocabulary: int
    layers: int
    key_heads: int
    width: int
    context: int
    value_width: int = 0
    batch: int = 512
    wanted: int = 64
    family: str = "custom"
    positions: str = "rope"
    bos: int | None = None
    eos: Sequence[int] = ()
    tokens: Mapping[str, str] = field(default_factory=dict)
    generation: Mapping[str, Any] = field(default_factory=dict)
    hidden: int = 0
    pooling: str = "last"
    adapters: Adapters | None = None

    def __post_init__(self) -> None:
        counts = ["vocabulary", "context", "batch", "wanted"]
        for name in (*counts, "hidden") if self.is_encoder else (*counts, *_CACHE):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ExportError(
                    f"{name}={value!r}: give a positive integer", code=Code.INVALID_ARGUMENT
                )
        if self.positions not in ("rope", "learned"):
            raise ExportError(
                f"positions={self.positions!r}: give 'rope' or 'learned'",
                code=Code.INVALID_ARGUMENT,
            )
        if self.pooling not in POOLINGS:
            raise ExportError(
                f"pooling={self.pooling!r}: give one of {', '.join(POOLINGS)}",
                code=Code.INVALID_ARGUMENT,
            )
        if not isinstance(self.eos, list | tuple):
            raise ExportError(
                f"eos={self.eos!r}: give a list of numbers of tokens", code=Code.INVALID_ARGUMENT
            )
        for name, token in (("bos", self.bos), *(("eos", token) for token in self.eos)):
            if token is None and name == "bos":
                continue
            if not isinstance(token, int) or isinstance(token, bool):
                raise ExportError(
                    f"{name} has {token!r}: give the number of a token", code=Code.INVALID_ARGUMENT
                )
            if not 0 <= token < self.vocabulary:
                raise ExportError(
                    f"{name} is token {token}, and the vocabulary has {self.vocabulary} tokens: "
                    f"give one of them",
                    code=Code.INVALID_ARGUMENT,
                )
        object.__setattr__(self, "value_width", self.value_width or self.width)
        object.__setattr__(self, "batch", min(self.batch, self.context))
        object.__setattr__(self, "wanted", min(self.wanted, self.batch))

    @property
    def is_encoder(self) -> bool:
        """Whether it has no cache, and no method but `embed`."""
        return not (self.layers or self.key_heads or self.width)

    def to_json(self) -> bytes:
        """The bytes for a program's named data."""
        record = {"version": VERSION, **dataclasses.asdict(self)}
        if self.adapters is None:
            del record["adapters"]
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()

    def constant_methods(self) -> dict[str, Any]:
        """The methods by which ExecuTorch's programs describe themselves, with its names."""
        methods: dict[str, Any] = {
            "get_max_seq_len": self.batch,
            "get_max_context_len": self.context,
            "get_vocab_size": self.vocabulary,
            "get_n_layers": self.layers,
            "use_kv_cache": not self.is_encoder,
            "enable_dynamic_shape": True,
        }
        if self.bos is not None:
            methods["get_bos_id"] = self.bos
        if self.eos:
            methods["get_eos_ids"] = list(self.eos)
        return methods
