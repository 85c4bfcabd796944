"""Sorting, indexing and scans from model to run, the ones without a kernel of their own included.

The inputs have many equal elements, so the indices of equals must be eager's as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

import rushlight as rl
from rushlight.errors import ExportError, RunError


class Model(torch.nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
        return self.call(x, i)


MODELS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "sort": lambda x, i: x.sort(dim=-1, stable=True),
    "argsort": lambda x, i: x.argsort(dim=0, descending=True, stable=True),
    "msort": lambda x, i: x.msort(),
    "topk": lambda x, i: x.topk(3, 1),
    "median": lambda x, i: (x.median(), x.median(1)),
    "nanmedian": lambda x, i: x.nanmedian(0),
    "kthvalue": lambda x, i: x.kthvalue(4, 1),
    "mode": lambda x, i: x.mode(1),
    "quantile": lambda x, i: x.quantile(0.3, 1),
    "cumprod": lambda x, i: x.cumprod(1),
    "cummax": lambda x, i: x.cummax(1),
    "logcumsumexp": lambda x, i: x.logcumsumexp(0),
    "searchsorted": lambda x, i: torch.searchsorted(x.sort(1).values, x),
    "bucketize": lambda x, i: torch.bucketize(x, x[0].sort().values, right=True),
    "isin": lambda x, i: torch.isin(i, torch.arange(3)),
    "histc": lambda x, i: x.histc(5, -3.0, 3.0),
    "scatter_reduce mean": lambda x, i: x.scatter_reduce(1, i, x + 1.0, "mean"),
    "scatter_reduce mean of integers": lambda x, i: i.scatter_reduce(
        1, i, i * 3, "mean", include_self=False
    ),
    "scatter_reduce amax": lambda x, i: x.scatter_reduce(1, i, x, "amax", include_self=False),
    "index_reduce": lambda x, i: x.index_reduce(1, i[0, :4], x[:, :4], "prod"),
    "index_reduce mean": lambda x, i: x.index_reduce(0, i[0, :4] % 6, x[:4], "mean"),
    "index_add": lambda x, i: x.index_add(1, i[0], x, alpha=2.0),
    "index_fill": lambda x, i: x.index_fill(0, i[0] % 6, 7.0),
    "put": lambda x, i: x.put(i[0], x[0], accumulate=True),
    "take": lambda x, i: (x.take(i), x.take(i[0, 0])),
    "take_along_dim": lambda x, i: x.take_along_dim(i, 1),
    "masked_scatter": lambda x, i: x.masked_scatter(i > 3, x * 2.0),
    "diagonal_scatter": lambda x, i: x.diagonal_scatter(x[0, :6], 1),
    "renorm": lambda x, i: x.renorm(2.0, 0, 1.0),
    "trace": lambda x, i: x.trace(),
}


# These only select and move numbers, add or multiply whole ones; the rest compute in another order.
ROUNDED = {"quantile", "logcumsumexp", "renorm"}


@pytest.mark.parametrize("name", MODELS)
def test_equals_eager(name: str) -> None:
    generator = torch.Generator().manual_seed(4)
    x = torch.randint(-3, 4, (6, 8), generator=generator).float()
    i = torch.randint(0, 8, (6, 8), generator=generator)
    model = Model(MODELS[name])
    expected = model(x, i)
    got = rl.load(rl.export(model, (x, i), verify=False).buffer)(x, i)
    assert isinstance(got, torch.Tensor) == isinstance(expected, torch.Tensor)
    pairs = list(zip(tree_leaves(got), tree_leaves(expected), strict=True))
    assert pairs
    for ours, eager in pairs:  # the indices of equal elements among them: integers are exact
        torch.testing.assert_close(ours, eager, rtol=1e-6 if name in ROUNDED else 0, atol=0)


def test_an_index_out_of_range_is_named() -> None:
    x, i = torch.zeros(6, 8), torch.zeros(6, 8, dtype=torch.int64)
    module = rl.load(rl.export(Model(MODELS["scatter_reduce amax"]), (x, i)).buffer)
    with pytest.raises(RunError, match="index 8 is out of bounds for dimension 1"):
        module(x, i + 8)


def test_sizes_without_bound_are_refused() -> None:
    with pytest.raises(ExportError, match=r"has no maximum.*torch\._check"):
        rl.export(
            Model(lambda x, i: i[0].bincount()),
            (torch.zeros(6, 8), torch.zeros(6, 8, dtype=torch.int64)),
        )
