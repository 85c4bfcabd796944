"""A tiny model of random weights, with a tokenizer and a chat template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import rushlight.llm
from rushlight.llm.tokenizer import compile

TEXT = (
    "the lamp was small and the light was low, äöü 日本 and the night was long "
    '{"name": "lamp", "arguments": {"color": "red"}} <tool_call> </tool_call> <think> </think> '
) * 20
VOCABULARY = 400
TEMPLATE = (
    "{% for tool in tools or [] %}<|user|>{{ tool | tojson }} in <tool_call><|end|>{% endfor %}"
    "{% for m in messages %}<|user|>{{ m.role }}: {{ m.content }}"
    "{% for call in m.tool_calls or [] %}{{ call.function.arguments.items() | list }}{% endfor %}"
    "<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|user|>assistant: "
    "{% if enable_thinking is defined %}<think>\n"
    "{% if not enable_thinking %}\n</think>\n\n{% endif %}{% endif %}{% endif %}"
)


def make_tokenizer(text: str = TEXT) -> Tokenizer:
    """A byte-level tokenizer with some words of a text, and fewer tokens than the model has."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 40,
        special_tokens=["<|end|>", "<|user|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator([text], trainer)
    return made


def make_model(
    width: int = 32, spread: float = 0.3, context: int = 2048
) -> transformers.LlamaForCausalLM:
    """A decoder of one layer, the same at each call."""
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=width * 3 // 2,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        eos_token_id=0,
        bos_token_id=None,
        initializer_range=spread,
    )
    return transformers.LlamaForCausalLM(config).eval()


def save(
    model: torch.nn.Module,
    tokenizer: Tokenizer,
    path: Path,
    *,
    template: str = TEMPLATE,
    **options: Any,
) -> Path:
    """Write a program with a tokenizer and a template; `options` are those of the export."""
    program = rushlight.llm.export(model, batch=64, verify=False, **options)
    program.manager.add_named_data("rushlight/tokenizer", compile(tokenizer))
    program.manager.add_named_data("rushlight/chat_template", template.encode())
    program.save(path, quiet=True)
    return path
