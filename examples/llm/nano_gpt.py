"""Trains a small GPT from nothing in a few seconds, and exports it to one file with its tokenizer.

The model reads bytes, and learns to write like ``examples/data/almanac.txt``; more ``--iterations``
make it know the text by heart. The file runs in Python here, in the other examples of this folder,
and in C++ alone:

    python examples/llm/nano_gpt.py
    cmake -S examples/llm -B build/story -D CMAKE_PREFIX_PATH=/where/rushlight/is/installed
    cmake --build build/story && build/story/story build/nano.pte "Bread rises"
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor, nn
from torch.nn import functional

import rushlight.llm

HERE = Path(__file__).resolve().parent
WIDTH, HEADS, LAYERS, CONTEXT = 128, 4, 3, 1024
VOCABULARY = 257  # all bytes, and the end of a text
END = "<|end|>"
LENGTH, BATCH = 96, 12  # of a step of training
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


class Block(nn.Module):
    """One layer: attention, then two linear layers."""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.norm, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor, positions: Tensor, sequences: Tensor | None) -> Tensor:
        heads = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        query, key, value = heads.unbind(-3)
        if sequences is None:  # whole texts, in training
            rows = [part.transpose(1, 2) for part in (query, key, value)]
            attended = functional.scaled_dot_product_attention(*rows, is_causal=True)
            attended = attended.transpose(1, 2)
        else:  # rows of a step, with the keys and values that the runner keeps
            attended = rushlight.llm.attention(
                query, key, value, positions, sequences, layer=self.layer
            )
        x = x + self.out(attended.flatten(-2))
        return x + self.down(functional.gelu(self.up(self.norm_mlp(x))))


class NanoGPT(nn.Module):
    """Tokens to the logits of those that follow: [texts, tokens] in training, else [tokens]."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block(layer) for layer in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        nn.init.normal_(self.places.weight, std=0.02)  # at first all places are alike

    def forward(self, tokens: Tensor, positions: Tensor, sequences: Tensor | None = None) -> Tensor:
        x = self.tokens(tokens) + self.places(positions)
        for block in self.blocks:
            x = block(x, positions, sequences)
        return self.head(self.norm(x))


def train(model: NanoGPT, text: bytes, iterations: int) -> float:
    """Train on pieces of a text at all places of the context; the loss at the end."""
    data = torch.tensor(list(text))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=iterations)
    loss = torch.tensor(0.0)
    for _ in range(iterations):
        starts = torch.randint(len(data) - LENGTH, (BATCH, 1))
        batch = data[starts + torch.arange(LENGTH + 1)]
        first = torch.randint(CONTEXT - LENGTH, (BATCH, 1))
        logits = model(batch[:, :-1], first + torch.arange(LENGTH))
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.item()


def byte_tokenizer() -> Tokenizer:
    """A token for each byte, by its number, and one for the end of a text."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    names = {byte: chr(byte) for byte in plain}
    names |= {byte: chr(256 + i) for i, byte in enumerate(others)}
    tokenizer = Tokenizer(models.BPE({names[byte]: byte for byte in range(256)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, default=HERE.parent / "data" / "almanac.txt")
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--output", type=Path, default=Path("build/nano.pte"))
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # so small a model has no work for more
    model = NanoGPT()
    start = time.perf_counter()
    loss = train(model, options.text.read_bytes(), options.iterations)
    print(
        f"{options.iterations} iterations in {time.perf_counter() - start:.1f} s, loss {loss:.2f}"
    )

    description = rushlight.llm.Description(
        vocabulary=VOCABULARY, layers=LAYERS, key_heads=HEADS, width=WIDTH // HEADS,
        context=CONTEXT, positions="learned", eos=[256],
    )  # fmt: skip
    program = rushlight.llm.export(
        model.eval(),
        description=description,
        quantize="int8",
        tokenizer=byte_tokenizer(),
        chat_template=TEMPLATE,
    )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    program.save(options.output, quiet=True)

    runner = rushlight.llm.load(options.output)
    for beginning in ("Bread rises", "An octopus", "Cats were"):
        for piece in runner.stream(beginning, echo=True, max_tokens=80, stop="\n"):
            print(piece.text, end="", flush=True)
        print()


if __name__ == "__main__":
    main()
