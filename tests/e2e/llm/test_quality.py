"""What integers cost a trained model: in its weights, and in its cache of keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.llm import character_model, real_attention

CACHES = ("float32", "float16", "int8", "auto")


@pytest.fixture(scope="module")
def model(trained: Callable[[], Any]) -> Any:
    return trained()


@pytest.fixture(scope="module")
def exact(model: Any) -> float:
    """The perplexity that transformers computes."""
    return character_model.perplexity(character_model.eager_score(model))


@pytest.mark.full
@pytest.mark.parametrize(
    ("recipe", "allowed"), [("float32", 1e-4), ("int8", 0.01), ("8da4w", 0.03)]
)
def test_perplexity_of_a_trained_model(
    model: Any, exact: float, recipe: str, allowed: float
) -> None:
    runners = character_model.runners(model, recipe, CACHES)
    perplexities = {kv: character_model.perplexity(runner.score) for kv, runner in runners.items()}
    assert 1.5 < exact < 8  # it has learned, and not everything
    assert perplexities["float32"] == pytest.approx(exact, rel=allowed)
    # What makes int8 the default.
    assert runners["auto"].cache_type == "int8"
    assert perplexities["float16"] == pytest.approx(perplexities["float32"], rel=1e-3)
    assert perplexities["int8"] == pytest.approx(perplexities["float32"], rel=5e-3)
    assert perplexities["auto"] == perplexities["int8"]


def test_attention_over_keys_and_values_of_a_real_model() -> None:
    for float32, float16, int8 in real_attention.errors(("float32", "float16", "int8")):
        assert float32 < 1e-5
        assert float16 < 1e-3
        assert int8 < 1e-2
