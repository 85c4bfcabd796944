"""What a generation is told, and the times of one."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, fields


def time_in_ms() -> int:
    """A time in milliseconds, for differences."""
    return time.monotonic_ns() // 1_000_000


@dataclass(kw_only=True)
class GenerationConfig:
    """What a generation is told.

    Attributes:
        echo: the prompt is given out first.
        max_new_tokens: the most tokens to generate; -1: as many as there is room for.
        warming: nothing is printed.
        seq_len: the most tokens of the text with the prompt; -1: the model's context.
        temperature: 0 takes the most probable token, always.
        num_bos: tokens that begin a text, before the prompt.
        num_eos: tokens that end a text, after it.
    """

    echo: bool = True
    max_new_tokens: int = -1
    warming: bool = False
    seq_len: int = -1
    temperature: float = 0.8
    num_bos: int = 0
    num_eos: int = 0

    def resolve_max_new_tokens(self, max_context_len: int, num_tokens_occupied: int) -> int:
        """How many tokens may be generated.

        Args:
            max_context_len: the model's context.
            num_tokens_occupied: tokens that are there, with the prompt's.
        """
        whole = max_context_len if self.seq_len == -1 else min(self.seq_len, max_context_len)
        room = whole - num_tokens_occupied
        return max(0, room if self.max_new_tokens == -1 else min(room, self.max_new_tokens))


@dataclass
class Stats:
    """Times of a generation in milliseconds, and counts of tokens.

    Attributes:
        inference_start_ms: after the model is loaded, before the prompt becomes tokens.
        aggregate_sampling_time_ms: between calls of `on_sampling_begin` and `on_sampling_end`.
    """

    model_load_start_ms: int = 0
    model_load_end_ms: int = 0
    inference_start_ms: int = 0
    token_encode_end_ms: int = 0
    model_execution_start_ms: int = 0
    model_execution_end_ms: int = 0
    prompt_eval_end_ms: int = 0
    first_token_ms: int = 0
    inference_end_ms: int = 0
    aggregate_sampling_time_ms: int = 0
    num_prompt_tokens: int = 0
    num_generated_tokens: int = 0

    SCALING_FACTOR_UNITS_PER_SECOND = 1000
    _sampling_start = 0

    def on_sampling_begin(self) -> None:
        """A token is drawn from here on."""
        self._sampling_start = time_in_ms()

    def on_sampling_end(self) -> None:
        """The token is drawn."""
        self.aggregate_sampling_time_ms += time_in_ms() - self._sampling_start

    def reset(self, all_stats: bool = False) -> None:
        """Set all to 0; the times of the model's load only if `all_stats`."""
        for field in fields(self):
            if all_stats or not field.name.startswith("model_load"):
                setattr(self, field.name, 0)

    def to_json_string(self) -> str:
        """The times and counts as JSON, in one line."""
        times = (
            "model_load_start_ms model_load_end_ms inference_start_ms inference_end_ms "
            "prompt_eval_end_ms first_token_ms aggregate_sampling_time_ms "
            "SCALING_FACTOR_UNITS_PER_SECOND"
        )
        counts = {
            "prompt_tokens": self.num_prompt_tokens,
            "generated_tokens": self.num_generated_tokens,
        }
        told = {**counts, **{name: getattr(self, name) for name in times.split()}}
        return json.dumps(told, separators=(",", ":"))
