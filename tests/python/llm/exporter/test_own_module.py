"""A decoder that is no model of `transformers`: a small protocol, shown with a nanoGPT."""

from __future__ import annotations

import pytest
import torch
from llm_models import Session, described
from torch import nn
from torch.nn import functional

import rushlight as rl
import rushlight.llm
from rushlight.ir.custom_ops.cached_attention import EagerCache
from rushlight.schema import cpu_engine as fb
from rushlight.schema.common import ScalarType

VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT = 65, 48, 4, 2, 96
Tensor = torch.Tensor


class Block(nn.Module):
    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.norm, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def heads(self, x: Tensor) -> list[Tensor]:
        """Query, key and value, [..., heads, width of a head] each."""
        parts = self.qkv(self.norm(x)).chunk(3, -1)
        return [part.unflatten(-1, (HEADS, WIDTH // HEADS)) for part in parts]

    def after(self, x: Tensor, attended: Tensor) -> Tensor:
        x = x + self.out(attended.flatten(-2))
        return x + self.down(functional.gelu(self.up(self.norm_mlp(x))))

    def forward(self, x: Tensor, positions: Tensor, sequences: Tensor) -> Tensor:
        query, key, value = self.heads(x)
        attended = rl.llm.attention(query, key, value, positions, sequences, layer=self.layer)
        return self.after(x, attended)

    def whole(self, x: Tensor) -> Tensor:
        """The same for a whole text, by torch's own attention."""
        query, key, value = (part.transpose(0, 1) for part in self.heads(x))
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.after(x, attended.transpose(0, 1))


class NanoGPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block(i) for i in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor, positions: Tensor, sequences: Tensor) -> Tensor:
        return self.head(self.norm(self.hidden(tokens, positions, sequences)))

    def hidden(self, tokens: Tensor, positions: Tensor, sequences: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places(positions)
        for block in self.blocks:
            x = block(x, positions, sequences)
        return x

    def whole(self, tokens: Tensor) -> Tensor:
        """The logits of a whole text."""
        x = self.tokens(tokens) + self.places(torch.arange(len(tokens)))
        for block in self.blocks:
            x = block.whole(x)
        return self.head(self.norm(x))


class Selecting(NanoGPT):
    """The same, with logits of the wanted rows alone."""

    def forward(  # type: ignore[override]
        self, tokens: Tensor, positions: Tensor, sequences: Tensor, wanted: Tensor
    ) -> Tensor:
        hidden = functional.embedding(wanted, self.hidden(tokens, positions, sequences))
        return self.head(self.norm(hidden))


ABOUT = rl.llm.Description(
    vocabulary=VOCABULARY, layers=LAYERS, key_heads=HEADS, width=WIDTH // HEADS, context=CONTEXT,
    positions="learned", eos=[0],
)  # fmt: skip


@pytest.mark.parametrize("kind", [NanoGPT, Selecting])
def test_a_module_of_ones_own(kind: type[NanoGPT]) -> None:
    model = kind().eval().requires_grad_(False)
    tokens = torch.randint(0, VOCABULARY, (80,))
    program = rl.llm.export(model, description=ABOUT, batch=64)
    session = Session(program, positions=CONTEXT)
    got = torch.cat([session.give(part) for part in tokens.split((50, 1, 29))])
    torch.testing.assert_close(got, model.whole(tokens), rtol=1e-4, atol=1e-4)
    about = described(program)
    assert (about["positions"], about["batch"], about["wanted"]) == ("learned", 64, 64)


def test_sequences_of_a_step_do_not_see_each_other() -> None:
    model = NanoGPT().eval().requires_grad_(False)
    one, other = torch.randint(0, VOCABULARY, (2, 9))
    rows = (
        torch.cat([one, other]),
        torch.arange(9).repeat(2),
        torch.arange(2).repeat_interleave(9),
    )
    with EagerCache().active():
        got = model(*rows)
    torch.testing.assert_close(got, torch.cat([model.whole(one), model.whole(other)]))


class Untied(NanoGPT):
    """An output layer of its own, and as many positions as tokens if it is asked for."""

    def __init__(self, positions: int = CONTEXT) -> None:
        super().__init__()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.places = nn.Embedding(positions, WIDTH)


def test_the_embedding_of_tokens_alone_is_rounded() -> None:
    model = Untied().eval().requires_grad_(False)
    program = rl.llm.export(model, description=ABOUT, batch=8, quantize_embedding="int8")
    [payload] = program.manager.payloads
    graph = fb.unpack(payload)
    tables = [
        graph.values[node.inputs[0]].dtype
        for node in graph.nodes
        if isinstance(node.operation, fb.Gather)
    ]
    # Those of tokens, of positions, and of the rows that are wanted.
    assert tables == [ScalarType.CHAR, ScalarType.FLOAT, ScalarType.FLOAT]
    with pytest.raises(rl.ExportError, match=r"2 nn.Embedding .* the 65 tokens \(tokens, pl"):
        rl.llm.export(Untied(VOCABULARY), description=ABOUT, quantize_embedding="int8")


def test_what_a_module_must_say() -> None:
    model = NanoGPT()
    with pytest.raises(rl.ExportError, match="context=0: give a positive integer"):
        rl.llm.export(model, description=ABOUT, context=0)
    with pytest.raises(rl.ExportError, match="eos has '</s>': give the number of a token"):
        rl.llm.Description(vocabulary=9, layers=1, key_heads=1, width=8, context=8, eos=["</s>"])
    with pytest.raises(rl.ExportError, match="NanoGPT is no transformers model: pass description="):
        rl.llm.export(model)
    with pytest.raises(rl.ExportError, match="layers=0: give a positive integer"):
        rl.llm.Description(vocabulary=9, layers=0, key_heads=1, width=8, context=8)
    with pytest.raises(rl.ExportError, match="eos is token 9, and the vocabulary has 9 tokens"):
        rl.llm.Description(vocabulary=9, layers=1, key_heads=1, width=8, context=8, eos=[9])
    with pytest.raises(rl.ExportError, match="cannot export int: pass a folder"):
        rl.llm.export(3)
    with pytest.raises(rl.ExportError, match="has one form"):
        rl.llm.export(model, description=ABOUT, backend=["cpu", "portable"])
