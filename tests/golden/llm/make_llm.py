"""Writes v1.pte, a tiny language model with tokenizer and chat template, and what it says.

    python tests/golden/llm/make_llm.py

A file that is there is kept: it must load for ever. A new version gets a new file.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import rushlight.llm
from rushlight.llm.tokenizer import compile

FOLDER = Path(__file__).parent
PROMPT = "the lamp was"
MESSAGES = [{"role": "user", "content": "lamp"}]
TEMPLATE = (
    "{% for m in messages %}<|user|>{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|user|>assistant: {% endif %}"
)


def _tokenizer() -> Tokenizer:
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({piece: i + 2 for i, piece in enumerate(pieces)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|end|>", "<|user|>"])
    return made


def main() -> None:
    path = FOLDER / "v1.pte"
    if path.exists():
        raise SystemExit(f"{path} is there already")
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=264,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=256,
        eos_token_id=None,
        bos_token_id=None,
        initializer_range=0.4,
        tie_word_embeddings=True,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    program = rushlight.llm.export(model, batch=32, embed=True)
    program.manager.add_named_data("rushlight/tokenizer", compile(_tokenizer()))
    program.manager.add_named_data("rushlight/chat_template", TEMPLATE.encode())
    program.save(path, quiet=True)
    runner = rushlight.llm.load(path, threads=1, kv="float32")
    expected = {
        "tokens": runner.generate(PROMPT, max_tokens=20, temperature=0).tokens,
        "chat": runner.encode_chat(MESSAGES),
        "vector": runner.embed([PROMPT])[0].tolist(),
    }
    (FOLDER / "v1.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
