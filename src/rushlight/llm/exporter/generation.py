"""A model's own defaults for texts: `generation_config.json`, checked as it travels in the file."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rushlight import _core
from rushlight.errors import Code, ExportError, RunError
from rushlight.llm.options import read_option
from rushlight.runtime.failures import run_errors

_OPTIONS = ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty")
_UNSUPPORTED: Mapping[str, tuple[Any, ...]] = {
    "num_beams": (1,),
    "no_repeat_ngram_size": (0,),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "penalty_alpha": (0,),
    "guidance_scale": (1,),
    **dict.fromkeys(
        (
            *("bad_words_ids", "sequence_bias", "suppress_tokens", "begin_suppress_tokens"),
            *("forced_bos_token_id", "forced_eos_token_id", "stop_strings"),
            "exponential_decay_length_penalty",
        ),
        (),
    ),
}
"""What else changes texts, with the values that do not."""


def check_generation(generation: Mapping[str, Any], vocabulary: int, where: Path) -> None:
    """Check the defaults for sampling, and warn of those that have no effect here.

    Args:
        generation: what the model says, with the names of `generation_config.json`.
        vocabulary: how many tokens there are.
        where: the file that says it, for messages.

    Raises:
        ExportError: a value is none that the option can have.
    """
    options = _core.LlmOptions()
    try:
        for name in _OPTIONS:
            value = generation.get(name)
            if value is None or (name == "top_k" and value in (0, -1)):  # all tokens
                continue
            read_option(options, name, value)
        with run_errors():
            options.check(vocabulary)
    except RunError as error:
        raise ExportError(
            f"{where} has a default for sampling that cannot be: {error}",
            code=Code.INVALID_EXTERNAL_DATA,
        ) from None
    idle = [
        name
        for name, neutral in _UNSUPPORTED.items()
        if generation.get(name) not in (None, [], {}, *neutral)
    ]
    if idle:
        warnings.warn(
            f"{where} has {', '.join(idle)}, which the runner does not have: texts are generated "
            f"without",
            RuntimeWarning,
            stacklevel=2,
        )
