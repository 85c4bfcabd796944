"""Models with control flow and data-dependent sizes, each with inputs that go every way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops.map import map as hop_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

Arguments = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class FlowCase:
    """A model and the calls to compare; the first call's arguments are the example inputs."""

    model: Callable[[], nn.Module]
    calls: Callable[[], list[Arguments]]
    dynamic_shapes: Any = None


class Branches(nn.Module):
    """Two results; weights and a batch norm inside the branches."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.norm.running_mean.normal_()  # type: ignore[union-attr, operator]
        self.point = nn.Conv2d(3, 8, 1)

    def forward(self, x: torch.Tensor) -> Any:
        def deep(x: torch.Tensor) -> Any:
            return self.norm(self.conv(x)).relu(), x.sum()

        def shallow(x: torch.Tensor) -> Any:
            return self.point(x) * 0.5, x.mean()

        y, z = torch.cond(x.mean() > 0, deep, shallow, (x,))
        return y * 2, z


class NestedBranches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def positive(x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.mean() > 1, lambda x: x + 1, lambda x: x - 1, (x,))

        return torch.cond(x.sum() > 0, positive, lambda x: x * 3, (x,))


class SameResultTwice(nn.Module):
    """Results that are one tensor, a view of it, and the operand itself."""

    def forward(self, x: torch.Tensor) -> Any:
        def one(x: torch.Tensor) -> Any:
            y = x + 1
            return y, y.clone(), x.clone(), y.view(-1).clone()

        def other(x: torch.Tensor) -> Any:
            return x * 2, x - 1, x.clone(), x.reshape(-1) * 3

        return torch.cond(x.sum() > 0, one, other, (x,))


class ShapeDecides(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.shape[0] > 3, lambda x: x + 1, lambda x: x - 1, (x,))


class WhileTensor(nn.Module):
    """Stops on its data; a value from before the loop is read in every iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        outer, late = x * 3, torch.relu(x)

        def go_on(i: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
            return (i < 6) & (a.abs().max() < 50)

        def body(i: torch.Tensor, a: torch.Tensor) -> Any:
            mixed = torch.exp(torch.tanh(self.linear(a))) * 0.1
            return i + 1, (mixed @ outer.t()) @ late * 0.1 + a * 1.5

        turns, a = while_loop(go_on, body, (torch.zeros((), dtype=torch.int64), x * 1))
        return a, turns + 1, outer.sum()


class WhileNumber(nn.Module):
    """Carries a Python number, and returns it."""

    def forward(self, x: torch.Tensor) -> Any:
        def body(i: int, a: torch.Tensor) -> Any:
            return i + 1, a * 2

        rows = x.shape[0]
        return while_loop(lambda i, a: i < rows, body, (0, x))


class Swap(nn.Module):
    """Every iteration swaps two values: both must be read before either is written."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        def body(i: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
            return i + 1, b.clone(), a.clone()

        return while_loop(
            lambda i, a, b: i < 3, body, (torch.zeros((), dtype=torch.int64), x + 1, y + 1)
        )


class NestedWhile(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        def body(i: torch.Tensor, a: torch.Tensor) -> Any:
            def inner(j: torch.Tensor, a: torch.Tensor) -> Any:
                return j + 1, a * 1.5 + 1

            start = torch.zeros((), dtype=torch.int64)
            _, a = while_loop(lambda j, a: j < i, inner, (start, a))
            return i + 1, a

        return while_loop(lambda i, a: i < 3, body, (torch.zeros((), dtype=torch.int64), x))


class Generate(nn.Module):
    """A greedy decoder of at most 12 tokens that stops at token 7."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.head = nn.Linear(8, 10)

    def forward(self, token: torch.Tensor) -> Any:
        def go_on(i: torch.Tensor, token: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
            return (i < 12) & (token.sum() != 7)

        def body(i: torch.Tensor, token: torch.Tensor, out: torch.Tensor) -> Any:
            token = self.head(self.embed(token)).argmax(-1)
            return i + 1, token, torch.index_put(out, (i.reshape(1),), token)

        start = (torch.zeros((), dtype=torch.int64), token, torch.zeros(12, dtype=torch.int64))
        return while_loop(go_on, body, start)


class Rows(nn.Module):
    """A map with a weight, an argument that is not mapped, and two results."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, xs: torch.Tensor, y: torch.Tensor) -> Any:
        return hop_map(lambda x, y: (self.linear(x) + y, x.sum()), xs, y)


class Softmaxes(nn.Module):
    """A map over one tensor with one result."""

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        return hop_map(lambda x: x.softmax(-1), xs)


class Recurrence(nn.Module):
    """A scan, backwards."""

    def forward(self, xs: torch.Tensor, h: torch.Tensor) -> Any:
        return scan(lambda h, x: (h * 0.5 + x, (h + x).relu()), h, xs, dim=0, reverse=True)


class BranchInScan(nn.Module):
    """A branch in a scan, beside a counter that outlives the call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, xs: torch.Tensor, h: torch.Tensor) -> Any:
        self.calls += 1

        def cell(h: torch.Tensor, x: torch.Tensor) -> Any:
            def damp(h: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
                return torch.sigmoid(x) * h

            h = torch.cond(h.sum() > 0, lambda h, x: h + x, damp, (h, x))
            return h.clone(), (h * 2).reshape(2, 2)

        h, ys = scan(cell, h, xs, dim=0)
        return h, ys, self.calls * 1


class Listener(nn.Module):
    """A recurrent network over a sequence of any length."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gru(self.lstm(x)[0])[0][-1]


class Reader(nn.Module):
    """Recurrent layers of every kind over a sequence that is too long to be written out."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, num_layers=2, bidirectional=True, proj_size=3, batch_first=True)
        self.gru = nn.GRU(6, 5, batch_first=True)
        self.rnn = nn.RNN(5, 4, bias=False, batch_first=True)
        self.last = nn.RNN(4, 4, nonlinearity="relu", bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, (hidden, cell) = self.lstm(x)
        y, state = self.gru(y)
        return self.last(self.rnn(y)[0])[0], hidden, cell, state


class NonZero(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        indices = torch.nonzero(x > 0)
        return indices * 2, indices.shape[0], x[x > 0] + 1


class RowsThatMatch(nn.Module):
    """A matrix product of a data-dependent number of rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x[:, 0] > 0] @ torch.ones(4, 2)


class ItemInShape(nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        k: Any = n.item()
        torch._check(k >= 0)
        torch._check(k <= 10)
        return torch.zeros(k, 4) + x[0], torch.arange(k), k + 1


class ItemInSlice(nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        k: Any = n.item()
        torch._check(k >= 1)
        torch._check(k <= x.shape[0])
        return x[:k].sum(0), x[k - 1]


class ItemAsNumber(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return x * x.max().item(), x.sum().item()


def _signs(*shape: int) -> list[Arguments]:
    x = torch.rand(shape) + 0.1
    return [(x,), (-x,), (x + 9,), (x - 0.5,)]


ROWS = {0: Dim("rows", min=1, max=8)}


class NumbersInBranches(nn.Module):
    """Tensors made of numbers inside branches, in both of them, nested, written and as indices."""

    def forward(self, x: torch.Tensor) -> Any:
        def body(i: torch.Tensor, x: torch.Tensor) -> Any:
            def up(x: torch.Tensor) -> torch.Tensor:
                increment = torch.tensor([1.0, 2.0, 3.0, 4.0])
                increment += 1
                return x + increment * torch.tensor(0.5)

            def down(x: torch.Tensor) -> torch.Tensor:
                return x[:, [1, 0, 3, 2]] - torch.tensor(2.0)

            return i + torch.tensor(1), torch.cond(x.sum() > 3, down, up, (x,))

        return torch.while_loop(lambda i, x: i < torch.tensor(4), body, (torch.tensor(0), x))


CASES: dict[str, FlowCase] = {
    "cond": FlowCase(Branches, lambda: _signs(1, 3, 6, 6)),
    "cond_nested": FlowCase(NestedBranches, lambda: _signs(3, 4)),
    "cond_same_result_twice": FlowCase(SameResultTwice, lambda: _signs(3, 4)),
    "cond_numbers": FlowCase(NumbersInBranches, lambda: _signs(3, 4)),
    "cond_on_shape": FlowCase(
        ShapeDecides, lambda: [(torch.randn(n, 4),) for n in (3, 8)], (ROWS,)
    ),
    "while": FlowCase(WhileTensor, lambda: [(torch.randn(3, 4) * f,) for f in (1, 20, 0.1)]),
    "while_number": FlowCase(WhileNumber, lambda: [(torch.randn(n, 4),) for n in (3, 8)], (ROWS,)),
    "while_swap": FlowCase(Swap, lambda: [(torch.randn(3, 4), torch.randn(3, 4))]),
    "while_nested": FlowCase(NestedWhile, lambda: _signs(3, 4)),
    "while_decoder": FlowCase(Generate, lambda: [(torch.tensor([t]),) for t in range(10)]),
    "map": FlowCase(Rows, lambda: [(torch.randn(3, 4), torch.ones(4))]),
    "map_one": FlowCase(Softmaxes, lambda: [(torch.randn(3, 4),)]),
    "map_dynamic": FlowCase(
        Rows, lambda: [(torch.randn(n, 4), torch.ones(4)) for n in (3, 8, 1)], (ROWS, None)
    ),
    "scan": FlowCase(Recurrence, lambda: [(torch.randn(3, 4), torch.ones(4))]),
    "scan_dynamic": FlowCase(
        Recurrence, lambda: [(torch.randn(n, 4), torch.ones(4)) for n in (3, 8, 1)], (ROWS, None)
    ),
    "scan_with_branch": FlowCase(
        BranchInScan, lambda: [(torch.randn(5, 4), torch.randn(4)) for _ in range(3)]
    ),
    "recurrent": FlowCase(
        Listener,
        lambda: [(torch.randn(n, 2, 4),) for n in (3, 8, 1)],
        ({0: Dim("n", min=1, max=8)},),
    ),
    "recurrent_fixed": FlowCase(Reader, lambda: [(torch.randn(2, 20, 4),)]),
    "nonzero": FlowCase(NonZero, lambda: _signs(3, 4)),
    "masked_rows": FlowCase(RowsThatMatch, lambda: _signs(5, 4)),
    "item_in_shape": FlowCase(
        ItemInShape, lambda: [(torch.randn(3, 4), torch.tensor(n)) for n in (3, 0, 10)]
    ),
    "item_in_slice": FlowCase(
        ItemInSlice, lambda: [(torch.randn(5, 4), torch.tensor(n)) for n in (3, 1, 5)]
    ),
    "item_as_number": FlowCase(ItemAsNumber, lambda: _signs(3, 4)),
}
