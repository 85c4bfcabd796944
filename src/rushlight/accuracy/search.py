"""The smallest mix of precisions whose metric stays within a budget.

Each layer's precisions are tried alone first. Their noise is about additive, so the noise of a mix
is estimated as the sum. From the lowest precision everywhere, layers are raised one by one, always
the one that removes the most noise per byte (the greedy solution of the knapsack problem); the
number of raises that the metric needs is found by bisection. Then layers are lowered again as far
as the budget allows. Batches of trials do not depend on how many run at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

FLOAT = "float"


@dataclass(frozen=True)
class Outcome:
    """The result of a trial.

    Attributes:
        metric: the metric of the quantised model; greater is better.
        noise: the noise to signal ratio of its outputs, relative to the float model's.
    """

    metric: float
    noise: float


# The precision of each layer that is not float.
Mix = Mapping[str, str]
Evaluate = Callable[[Sequence[Mix]], list[Outcome]]
AreGood = Callable[[Sequence[Mix]], list[bool]]


@dataclass(frozen=True)
class Space:
    """The layers and precisions to choose from.

    Attributes:
        layers: names, in the order of the model.
        levels: recipes from the lowest precision to the highest; then comes float.
        bytes: computes the size of a layer's weights at a level.
    """

    layers: tuple[str, ...]
    levels: tuple[str, ...]
    bytes: Callable[[str, str], int]

    def all_levels(self) -> tuple[str, ...]:
        """The levels and float."""
        return (*self.levels, FLOAT)

    def size(self, mix: Mix) -> int:
        """Bytes of the layers' weights."""
        return sum(self.bytes(layer, mix.get(layer, FLOAT)) for layer in self.layers)


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Attributes:
        mix: the precision of each layer that is not float.
        outcome: the outcome of that mix.
        alone: the outcomes of each layer at each level, the rest in float.
        trials: the number of mixes that were tried.
    """

    mix: dict[str, str]
    outcome: Outcome
    alone: dict[tuple[str, str], Outcome]
    trials: int


def search(space: Space, least: float, evaluate: Evaluate) -> SearchResult:
    """The smallest mix found whose metric is `least` or more.

    Args:
        space: the layers and levels.
        least: the least metric that is allowed.
        evaluate: tries mixes; the same mix always has the same outcome.
    """
    known: dict[tuple[tuple[str, str], ...], Outcome] = {}

    def tried(mixes: Sequence[Mix]) -> list[Outcome]:
        keys = [tuple(sorted(mix.items())) for mix in mixes]
        fresh = list(dict.fromkeys(key for key in keys if key not in known))
        for key, outcome in zip(fresh, evaluate([dict(k) for k in fresh]), strict=True):
            known[key] = outcome
        return [known[key] for key in keys]

    pairs = [(layer, level) for layer in space.layers for level in space.levels]
    alone = dict(zip(pairs, tried([{layer: level} for layer, level in pairs]), strict=True))

    def are_good(mixes: Sequence[Mix]) -> list[bool]:
        return [outcome.metric >= least for outcome in tried(mixes)]

    mix = _first(_raised(space, alone), are_good)
    mix = _lowered(space, mix, are_good)
    return SearchResult(mix, tried([mix])[0], alone, len(known))


_PROBES = 4  # tried at a time, whatever number can run at a time


def _first(mixes: Sequence[dict[str, str]], are_good: AreGood) -> dict[str, str]:
    """The first good mix. All mixes after a good one are good, and so is the last one."""
    low, high = 0, len(mixes) - 1
    while low < high:
        distance = max((high - low) // (_PROBES + 1), 1)
        probes = list(range(low, high, distance))[:_PROBES]
        good = are_good([mixes[i] for i in probes])
        if any(good):
            at = good.index(True)
            low, high = (probes[at - 1] + 1 if at else low), probes[at]
        else:
            low = probes[-1] + 1
    return mixes[low]


def _raised(space: Space, alone: Mapping[tuple[str, str], Outcome]) -> list[dict[str, str]]:
    """Mixes from all layers at the lowest level to all in float, one layer raised at a time."""
    levels = space.all_levels()
    at = dict.fromkeys(space.layers, 0)
    mixes = [_mix_of(at, levels)]

    def gain(layer: str) -> float:
        here, above = levels[at[layer]], levels[at[layer] + 1]
        noise = _noise(alone, layer, here) - _noise(alone, layer, above)
        return noise / max(space.bytes(layer, above) - space.bytes(layer, here), 1)

    while waiting := [layer for layer in space.layers if at[layer] < len(space.levels)]:
        at[max(waiting, key=gain)] += 1
        mixes.append(_mix_of(at, levels))
    return mixes


def _mix_of(at: Mapping[str, int], levels: Sequence[str]) -> dict[str, str]:
    return {layer: levels[i] for layer, i in at.items() if levels[i] != FLOAT}


def _noise(alone: Mapping[tuple[str, str], Outcome], layer: str, level: str) -> float:
    if level == FLOAT:
        return 0.0
    noise = alone[layer, level].noise
    return noise if noise == noise else float("inf")  # NaN counts as the worst


def _lowered(space: Space, mix: dict[str, str], are_good: AreGood) -> dict[str, str]:
    """The mix with some layers one level lower: of the layers that the budget allows to lower
    alone, as many as it allows together, the largest savings first."""
    levels = space.all_levels()
    lower: list[tuple[int, str, str]] = []
    for layer in space.layers:
        i = levels.index(mix.get(layer, FLOAT))
        if i > 0:
            saved = space.bytes(layer, levels[i]) - space.bytes(layer, levels[i - 1])
            lower.append((saved, layer, levels[i - 1]))
    good = are_good([{**mix, layer: level} for _, layer, level in lower])
    kept = [change for change, fits in zip(lower, good, strict=True) if fits]
    mixes = [mix]
    for _, layer, level in sorted(kept, key=lambda change: (-change[0], change[1])):
        mixes.append({**mixes[-1], layer: level})
    return _first(mixes[::-1], are_good)
