"""Operators that write a part of a cache: in place where nothing reads the old content later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from graphs import captured, operators

import rushlight
from rushlight.edge import EdgeCompileConfig, define_executorch_operators, to_edge_dialect
from rushlight.lower import lower

define_executorch_operators()
update = torch.ops.llama.update_cache
CLONE, COPY = "dim_order_ops._clone_dim_order.out", "copy_.default"
WRITE = "llama.update_cache.out"
Result = torch.Tensor | tuple[torch.Tensor, ...]


class Cache(torch.nn.Module):
    """State that a function is given beside the inputs."""

    def __init__(self, function: Callable[..., Result]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("keys", torch.arange(6.0).reshape(1, 6, 1, 1))
        self.register_buffer("values", torch.zeros(1, 6, 1, 1))

    def forward(self, x: torch.Tensor) -> Result:
        return self.function(x, self.keys, self.values)


def once(x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Result:
    update(x, keys, 1)
    return keys * 2.0


def read_before(x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Result:
    before = keys.sum() + x
    update(x, keys, 1)
    return before * 2.0, keys * 2.0


def twice(x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Result:
    update(x, keys, 1)
    between = keys.sum() * 2.0
    update(x + 1.0, keys, 2)
    return between, keys * 2.0


def two_buffers(x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Result:
    update(x, keys, 1)
    update(x + 1.0, values, 3)
    return keys + values


def saved(x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Result:
    before = keys.clone()
    update(x, keys, 1)
    return before, keys * before


def moved(x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Result:
    update(x, keys, 1)
    values.copy_(keys)
    return keys * 2.0


def not_state(x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Result:
    own = keys * 3.0
    update(x, own, 4)
    return own + keys


def returned(x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Result:
    update(x, keys, 1)
    return keys.clone(), x + 1.0


CASES: dict[Callable[..., Result], int] = {  # how many copies of whole caches a call makes
    once: 0,
    read_before: 0,
    twice: 0,
    two_buffers: 0,
    saved: 3,  # for the update, the result, and back
    moved: 2,  # the second buffer's new content, which is a copy of the first's
    not_state: 1,
    returned: 1,  # the result
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_writes_are_in_place_where_they_can_be(function: Callable[..., Result]) -> None:
    x = torch.full((1, 2, 1, 1), 7.0)
    names = operators(lower(to_edge_dialect(captured(Cache(function), x), _CONFIG)).graph)
    writes = {twice: 2, two_buffers: 2}
    assert names.count(WRITE) == writes.get(function, 1)
    assert names.count(CLONE) + names.count(COPY) == CASES[function]


_CONFIG = EdgeCompileConfig()


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_results_are_eagers_call_after_call(function: Callable[..., Result]) -> None:
    eager = Cache(function)
    program = rushlight.export(Cache(function), (torch.ones(1, 2, 1, 1),))
    with rushlight.load(program.buffer) as module:
        for i in range(3):
            x = torch.full((1, 2, 1, 1), 10.0 * i)
            _equal(module(x), eager(x))


def _equal(got: Any, wanted: Any) -> None:
    for one, other in zip(_tensors(got), _tensors(wanted), strict=True):
        torch.testing.assert_close(torch.as_tensor(one), other)


def _tensors(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


class Whole(torch.nn.Module):
    """A cache of any rank and batch, and what the operator leaves in it."""

    def __init__(self, shape: tuple[int, ...], update: Callable[..., Any]) -> None:
        super().__init__()
        self.update = update
        self.register_buffer("cache", torch.zeros(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.update(x, self.cache)
        return self.cache * 1.0


def _at_indices(x: torch.Tensor, cache: torch.Tensor) -> None:
    indices = torch.tensor([[4, 1]], dtype=torch.int32)
    torch.ops.llama.update_cache_with_indices(x, cache, 0, indices)


@pytest.mark.parametrize(
    ("shape", "x", "update"),
    [
        ((1, 6, 2, 3), torch.ones(1, 2, 2, 3, dtype=torch.float16), lambda x, c: update(x, c, 1)),
        ((2, 6, 2, 3), torch.ones(1, 2, 2, 3), lambda x, c: update(x, c, 1)),
        ((1, 6, 4), torch.ones(1, 2, 4), lambda x, c: update(x, c, 3)),
        ((1, 6, 2, 3), torch.ones(1, 2, 2, 3), _at_indices),
    ],
    ids=["half", "batch", "rank", "int32"],
)
def test_tokens_are_converted_as_eager_does(
    shape: tuple[int, ...], x: torch.Tensor, update: Callable[..., Any]
) -> None:
    eager = Whole(shape, update)
    with rushlight.load(rushlight.export(Whole(shape, update), (x,)).buffer) as module:
        for _ in range(2):
            _equal(module(x), eager(x))
