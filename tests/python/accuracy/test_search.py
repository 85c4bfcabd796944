"""The search among mixes, with models of noise instead of models."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from rushlight.accuracy.search import FLOAT, Outcome, SearchResult, Space, search

LEVELS = ("int4", "int8")
_BITS = {"int4": 4, "int8": 8, FLOAT: 32}


class Model:
    """Layers whose noise adds up; the metric falls with it."""

    def __init__(self, noise: dict[str, tuple[float, float]], sizes: dict[str, int]) -> None:
        self.noise = {
            (n, level): v for n, vs in noise.items() for level, v in zip(LEVELS, vs, strict=True)
        }
        self.space = Space(tuple(noise), LEVELS, lambda n, level: sizes[n] * _BITS[level] // 8)
        self.batches: list[int] = []

    def outcome(self, mix: dict[str, str]) -> Outcome:
        noise = math.fsum(self.noise[pair] for pair in mix.items())
        return Outcome(1 - noise, noise)

    def search(self, least: float) -> SearchResult:
        def evaluate(mixes):
            self.batches.append(len(mixes))
            return [self.outcome(mix) for mix in mixes]

        return search(self.space, least, evaluate)

    def best_bytes(self, least: float) -> int:
        """The bytes of the best mix, found by trying all of them."""
        names = self.space.layers
        sizes = []
        for levels in itertools.product((*LEVELS, FLOAT), repeat=len(names)):
            mix = {n: v for n, v in zip(names, levels, strict=True) if v != FLOAT}
            if self.outcome(mix).metric >= least:
                sizes.append(self.space.size(mix))
        return min(sizes)


def model(seed: int, layers: int = 6) -> Model:
    draw = random.Random(seed)
    sizes = {f"layer{i}": draw.choice([100, 400, 1600]) for i in range(layers)}
    noise = {name: (16 * (v := 10 ** draw.uniform(-4, -2)), v) for name in sizes}
    return Model(noise, sizes)


def test_all_layers_have_the_lowest_precision_where_the_budget_allows_it():
    result = model(0).search(least=0.0)
    assert set(result.mix.values()) == {"int4"} and len(result.mix) == 6


def test_nothing_is_quantised_where_the_budget_allows_nothing():
    one = model(1)
    result = one.search(least=1.0)
    assert result.mix == {} and result.outcome.metric == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_the_mix_keeps_the_budget_and_is_nearly_as_small_as_the_smallest(seed):
    one = model(seed)
    result = one.search(least=0.97)
    assert result.outcome == one.outcome(result.mix)
    assert result.outcome.metric >= 0.97
    assert one.space.size(result.mix) <= 1.35 * one.best_bytes(0.97)


def test_a_layer_whose_noise_is_not_a_number_stays_float():
    one = model(3)
    for level in LEVELS:
        one.noise["layer2", level] = float("nan")
    assert "layer2" not in one.search(least=0.9).mix


def test_no_mix_is_tried_twice_and_batches_are_few():
    one = model(5, layers=40)
    result = one.search(least=0.9)
    assert sum(one.batches) == result.trials
    assert len([n for n in one.batches if n]) <= 12
