"""Which weights of a model are quantised, and how."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LAYER = re.compile(r"layers\.(\d+)\.")


@dataclass(frozen=True)
class QuantConfig:
    """How a weight is quantised.

    Attributes:
        bits: 4, 5, 6 or 8.
        group_size: how many neighbours of a row share a scale.
        symmetric: whether there are no zero points.
        method: "min_max", or "hqq" for scales that are searched for.
    """

    bits: int
    group_size: int
    symmetric: bool
    method: str


@dataclass
class QuantRule:
    """A rule for weights whose names match an expression.

    Attributes:
        pattern: a regular expression that matches whole names.
        config: how they are quantised; None: not at all.
        layers: the numbers N of `layers.N.` in names that it is for; None: all names.
    """

    pattern: str
    config: QuantConfig | None
    layers: set[int] | None = field(default=None, repr=False)

    def matches(self, fqn: str) -> bool:
        """Whether the rule is for a weight of this name."""
        if self.layers is not None:
            layer = _LAYER.search(fqn)
            if layer is None or int(layer[1]) not in self.layers:
                return False
        return re.fullmatch(self.pattern, fqn) is not None


@dataclass
class QuantRecipe:
    """Rules, of which the first that matches a weight counts."""

    rules: list[QuantRule]

    def get_config(self, fqn: str) -> QuantConfig | None:
        """How the weight of this name is quantised; None: not at all."""
        return next((rule.config for rule in self.rules if rule.matches(fqn)), None)
