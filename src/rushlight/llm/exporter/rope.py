"""Rotary position embeddings: the cosines and sines of a step's positions.

`transformers` computes the frequencies of each kind of scaling; what its modules do with them while
a model runs is replaced. There, two kinds follow the length of the text, which differs between the
sequences of a step: `longrope` takes the factors for the context that the program is made for, and
`dynamic` must not be scaled in it.
"""

from __future__ import annotations

from typing import Any

import torch

from rushlight.errors import Code, ExportError

Tensor = torch.Tensor
KINDS = ("default", "linear", "dynamic", "yarn", "longrope", "llama3")


class Rotary(torch.nn.Module):
    """The cosines and sines of positions, in the form in which models of `transformers` ask.

    Args:
        frequencies: by the kind of layer, or by None for all layers alike: the frequencies and the
            factor of cosines and sines.
    """

    def __init__(self, frequencies: dict[str | None, tuple[Tensor, float]]) -> None:
        super().__init__()
        self._factors: dict[str | None, float] = {}
        for kind, (frequency, factor) in frequencies.items():
            self.register_buffer(_name(kind), frequency.float(), persistent=False)
            self._factors[kind] = factor

    def forward(
        self, x: Tensor, position_ids: Tensor, layer_type: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """Cosines and sines [batch, tokens, width], in the dtype of `x`."""
        angles = position_ids.unsqueeze(-1).float() * getattr(self, _name(layer_type))
        factor = self._factors[layer_type]
        parts = [torch.cos(angles), torch.sin(angles)]
        if factor != 1:
            parts = [part * factor for part in parts]
        cos, sin = (torch.cat([part, part], -1).to(x.dtype) for part in parts)
        return cos, sin


def _name(kind: str | None) -> str:
    return f"frequencies_{kind}" if kind else "frequencies"


def rotary_of(module: Any, config: Any, context: int) -> Rotary:
    """What replaces the rotary embedding `module` of a model.

    Args:
        module: of `transformers`.
        config: of the model.
        context: the greatest number of positions of a sequence.

    Raises:
        ExportError: a kind of scaling that does not fit a program.
    """
    rope = config.rope_parameters
    kinds: list[str | None] = (
        [kind for kind, of_kind in rope.items() if of_kind is not None]
        if rope and all(isinstance(of_kind, dict | None) for of_kind in rope.values())
        else [None]
    )
    return Rotary({kind: _frequencies(module, config, context, kind) for kind in kinds})


def _frequencies(module: Any, config: Any, context: int, kind: str | None) -> tuple[Tensor, float]:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = config.rope_parameters if kind is None else config.rope_parameters[kind]
    scaling = rope["rope_type"]
    given: dict[str, Any] = {} if kind is None else {"layer_type": kind}
    if scaling not in KINDS:
        raise ExportError(
            f"the model's rotary embedding is scaled by {scaling!r}; supported are "
            f"{', '.join(KINDS)}",
            code=Code.NOT_SUPPORTED,
        )
    if scaling == "default":
        made: tuple[Tensor, float] = module.compute_default_rope_parameters(config, **given)
        return made
    if scaling == "dynamic" and context > config.max_position_embeddings:
        raise ExportError(
            f"context={context}: the model's rotary embedding is scaled by 'dynamic', whose "
            f"frequencies change with the length of a text beyond {config.max_position_embeddings} "
            f"tokens, and a program's are fixed: export with context="
            f"{config.max_position_embeddings} or less, or give the model another scaling, such as "
            f"'yarn'",
            code=Code.NOT_SUPPORTED,
        )
    if scaling == "longrope":
        given["seq_len"] = context  # the long factors if it is beyond the original context
    made = ROPE_INIT_FUNCTIONS[scaling](config, torch.device("cpu"), **given)
    return made
