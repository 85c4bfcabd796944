"""GPT with the interface of nanoGPT's model.py, which the guide downloads with GPT-2's weights.

Neither can be had without the network, so `GPT.from_pretrained` gives a small model that is trained
on a shipped text, or the real sizes with random weights if NANOGPT_SIZE is "full".
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

TEXT = Path(os.environ.get("NANOGPT_TEXT", "text.txt"))
WEIGHTS = Path("small.pt")


@dataclass
class GPTConfig:
    block_size: int = 1024
    vocab_size: int = 50257
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768


SMALL = GPTConfig(block_size=64, vocab_size=128, n_layer=2, n_head=4, n_embd=64)


class SelfAttention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.c_attn(x).split(width, dim=2)
        heads = [
            part.view(batch, length, self.n_head, width // self.n_head).transpose(1, 2)
            for part in parts
        ]
        y = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = SelfAttention(config)
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(functional.gelu(self.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    """Tokens [1, length] to the logits of the next one [1, 1, vocabulary], and the loss or None."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        length = idx.shape[1]
        assert length <= self.config.block_size
        x = self.wte(idx) + self.wpe(torch.arange(0, length, dtype=torch.long))
        for block in self.h:
            x = block(x)
        x = self.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @classmethod
    def from_pretrained(cls, name: str) -> GPT:
        if name != "gpt2":
            raise ValueError(f"{name}: only 'gpt2' is made here")
        torch.manual_seed(1)
        if os.environ.get("NANOGPT_SIZE") == "full":
            return cls(GPTConfig()).eval()
        model = cls(SMALL)
        if not WEIGHTS.exists():
            train(model)
            torch.save(model.state_dict(), WEIGHTS)
        model.load_state_dict(torch.load(WEIGHTS))
        return model.eval()


def train(model: GPT, iterations: int = 400) -> None:
    """Teaches a model the characters of a text."""
    data = torch.tensor([min(byte, 127) for byte in TEXT.read_bytes()])
    size = model.config.block_size
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(iterations):
        starts = torch.randint(0, len(data) - size - 1, (16,))
        rows = torch.stack([data[start : start + size + 1] for start in starts])
        _, loss = model(rows[:, :-1], rows[:, 1:])
        assert loss is not None
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def write_vocabulary(path: str = "vocab.json") -> None:
    """The tokens of the small model: characters. GPT-2 writes spaces as Ġ, ends of lines as Ċ."""
    names = {" ": "\u0120", "\n": "\u010a"}
    tokens = {names.get(chr(code), chr(code)): code for code in range(SMALL.vocab_size)}
    Path(path).write_text(json.dumps(tokens), encoding="utf-8")


def greedy(prompt: str, count: int) -> str:
    """What the model writes after a prompt."""
    model = GPT.from_pretrained("gpt2")
    tokens = [min(byte, 127) for byte in prompt.encode()]
    made = []
    with torch.no_grad():
        for _ in range(count):
            logits, _ = model(torch.tensor([tokens[-model.config.block_size :]]))
            made.append(int(logits.argmax()))
            tokens.append(made[-1])
    return bytes(made).decode()
