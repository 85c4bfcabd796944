"""Recurrent layers are one node of the engine, and equal eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cpu_models import equal, lowered, operations, operators_of, whole
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.capture import capture
from rushlight.schema import cpu_engine as fb

LAYERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm": ("LSTM", {}),
    "lstm_stacked_both_ways": (
        "LSTM",
        {"num_layers": 3, "bidirectional": True, "batch_first": True, "dropout": 0.5},
    ),
    "lstm_projected": ("LSTM", {"num_layers": 2, "proj_size": 5, "bidirectional": True}),
    "lstm_without_bias": ("LSTM", {"num_layers": 2, "bias": False, "proj_size": 3}),
    "gru": ("GRU", {"num_layers": 2}),
    "gru_both_ways": ("GRU", {"bidirectional": True, "batch_first": True}),
    "gru_without_bias": ("GRU", {"bias": False}),
    "rnn_tanh": ("RNN", {"num_layers": 2, "bidirectional": True}),
    "rnn_relu": ("RNN", {"nonlinearity": "relu", "bias": False}),
}
KINDS = ("LSTM", "GRU", "RNN")
LENGTH, BATCH = Dim("length", min=0, max=40), Dim("batch", min=1, max=9)


def made(kind: str, width: int, units: int, **options: Any) -> nn.Module:
    torch.manual_seed(0)
    return getattr(nn, kind)(width, units, **options).eval()  # type: ignore[no-any-return]


def follows(model: nn.Module, sizes: Any, *calls: tuple[Any, ...]) -> list[str]:
    """Holds a program with dynamic sizes to eager for each of the calls, in this order and back;
    the model is captured with the first. Returns the operators of the delegates."""
    captured = capture(model, calls[0], dynamic_shapes=sizes)
    edge = rl.to_edge_transform_and_lower(captured, partitioner=[CpuPartitioner()])
    program = edge.to_executorch()
    [plan] = program.executorch_program.execution_plan
    assert [len(chain.instructions) for chain in plan.chains] == [1]
    module = rl.load(bytes(program.buffer), check_backends=True, threads=2)
    with torch.no_grad():
        for args in (*calls, *reversed(calls)):
            equal(module(*args), model(*args))
    return operators_of(edge)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("batch", "units"), [(1, 17), (3, 32)])
def test_equals_eager(name: str, batch: int, units: int) -> None:
    kind, options = LAYERS[name]
    shape = (batch, 12, 10) if options.get("batch_first") else (12, batch, 10)
    assert whole(made(kind, 10, units, **options), torch.randn(shape)) == ["Recurrent"]


@pytest.mark.parametrize("length", [1, 2, 8, 9, 56, 57, 120])
def test_equals_eager_at_any_length(length: int) -> None:
    layer = made("GRU", 7, 19, bidirectional=True)
    assert whole(layer, torch.randn(length, 2, 7)) == ["Recurrent"]


@pytest.mark.parametrize("batch", [7, 60])
def test_equals_eager_with_a_large_batch(batch: int) -> None:
    layer = made("LSTM", 7, 19, num_layers=2, batch_first=True)
    assert whole(layer, torch.randn(batch, 5, 7)) == ["Recurrent"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_follows_length_and_batch(kind: str, batch_first: bool) -> None:
    layer = made(kind, 6, 20, num_layers=2, bidirectional=True, batch_first=batch_first)
    sizes = ((2, 5), (1, 1), (9, 40), (7, 13), (1, 39), (3, 2))
    shapes = [(n, t, 6) if batch_first else (t, n, 6) for n, t in sizes]
    dims = {0: BATCH, 1: LENGTH} if batch_first else {0: LENGTH, 1: BATCH}
    calls = [(torch.randn(shape),) for shape in shapes]
    assert follows(layer, (dims,), *calls) == ["Recurrent"]


class Given(nn.Module):
    """A layer with first states; `used` numbers the results that are returned."""

    def __init__(self, layer: nn.Module, used: tuple[int, ...]) -> None:
        super().__init__()
        self.layer = layer
        self.used = used

    def forward(
        self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor | None = None
    ) -> list[torch.Tensor]:
        state: Any = hidden if cell is None else (hidden, cell)
        out, last = self.layer(x, state)
        results = (out, *(last if isinstance(last, tuple) else (last,)))
        return [results[i] for i in self.used]


@pytest.mark.parametrize("used", [(0,), (1,), (1, 0)])
@pytest.mark.parametrize("kind", KINDS)
def test_takes_first_states(kind: str, used: tuple[int, ...]) -> None:
    model = Given(made(kind, 6, 18, num_layers=2), used)
    states = [torch.randn(2, 3, 18) for _ in range(2 if kind == "LSTM" else 1)]
    assert whole(model, torch.randn(5, 3, 6), *states) == ["Recurrent"]


def test_an_empty_sequence_leaves_the_first_states() -> None:
    model = Given(made("LSTM", 6, 20, num_layers=2), (0, 1, 2))
    states = [torch.randn(2, 3, 20) for _ in range(2)]
    captured = capture(
        model,
        (torch.randn(5, 3, 6), *states),
        dynamic_shapes={"x": {0: LENGTH}, "hidden": None, "cell": None},
    )
    edge = rl.to_edge_transform_and_lower(captured, partitioner=[CpuPartitioner()])
    out, *last = rl.load(bytes(edge.to_executorch().buffer))(torch.randn(0, 3, 6), *states)
    assert out.shape == (0, 3, 20)
    equal(last, states)


def test_takes_a_sequence_without_a_batch() -> None:
    assert whole(made("LSTM", 6, 18, bidirectional=True), torch.randn(9, 6)) == ["Recurrent"]


class Tagger(nn.Module):
    """Layers around and after one another, whose states are passed on."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.encoder = nn.GRU(12, 16, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(32)
        self.decoder = nn.LSTM(32, 24, 2, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        encoded, _ = self.encoder(self.embed(tokens))
        decoded, (hidden, cell) = self.decoder(torch.relu(self.norm(encoded)))
        again, _ = self.decoder(0.5 * encoded, (hidden, cell))
        return self.head(decoded + again), hidden[-1]


def test_stands_among_other_layers() -> None:
    torch.manual_seed(0)
    tokens = (torch.randint(0, 30, (n, length)) for n, length in ((3, 11), (8, 31), (1, 2)))
    dims = {0: BATCH, 1: Dim("length", min=2, max=32)}
    operators = follows(Tagger().eval(), (dims,), *((one,) for one in tokens))
    assert operators.count("Recurrent") == 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("batch", [1, 8])
def test_half_precision_keeps_its_weights(dtype: torch.dtype, batch: int) -> None:
    layer = made("LSTM", 64, 64, num_layers=2).to(dtype)
    x = torch.randn(10, batch, 64).to(dtype)
    assert whole(layer, x, tolerance=2e-2).count("Recurrent") == 1
    weights = 2 * sum(p.numel() for p in layer.parameters())
    assert len(lowered(layer, x).to_executorch().buffer) < weights + 20_000


def test_a_large_model_is_one_instruction_of_the_size_of_its_weights() -> None:
    layer = made("LSTM", 80, 256, num_layers=2)
    edge = lowered(layer, torch.randn(200, 1, 80))
    [recurrent] = operations(edge)
    assert isinstance(recurrent, fb.Recurrent)
    assert (recurrent.layers, recurrent.units, recurrent.outputs) == (2, 256, 256)
    program = edge.to_executorch()
    [plan] = program.executorch_program.execution_plan
    assert [len(chain.instructions) for chain in plan.chains] == [1]
    weights = 4 * sum(p.numel() for p in layer.parameters())
    assert len(program.buffer) < weights + 20_000


def test_layers_in_training_are_not_taken() -> None:
    """Dropout between layers is torch's own."""
    layer = made("GRU", 6, 18, num_layers=2, dropout=0.5).train()
    exported = torch.export.export(layer, (torch.randn(3, 1, 6),))
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    assert not any(isinstance(one, fb.Recurrent) for one in operations(edge))


def quantised(recipe: str, model: nn.Module, x: torch.Tensor, **options: Any) -> Any:
    data = [(x,), (torch.randn_like(x),)]
    return rl.quantize(model, (x,), calibrate=data, recipe=recipe, **options)


_OTHERS = [
    pytest.param(name, marks=pytest.mark.full) for name in ("int8-per-tensor", "int4-dynamic")
]


@pytest.mark.parametrize("recipe", ["int8", "int8-dynamic", *_OTHERS])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LSTM", {"num_layers": 2}),
        ("LSTM", {"proj_size": 21, "bidirectional": True}),
        ("GRU", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
        ("RNN", {"bias": False}),
    ],
    ids=str,
)
def test_bytes_are_close_to_eager(recipe: str, kind: str, options: dict[str, Any]) -> None:
    layer = made(kind, 39, 50, **options)
    x = torch.randn(6, 3, 39)
    edge = rl.to_edge_transform_and_lower(
        quantised(recipe, layer, x), partitioner=[CpuPartitioner()]
    )
    assert operators_of(edge) == ["Recurrent"]
    program = edge.to_executorch()
    weights = sum(p.numel() for p in layer.parameters())
    assert len(program.buffer) < 1.3 * weights + 20_000
    module = rl.load(bytes(program.buffer), threads=2)
    with torch.no_grad():
        for got, wanted in zip(
            pytree.tree_leaves(module(x)), pytree.tree_leaves(layer(x)), strict=True
        ):
            assert (torch.as_tensor(got) - wanted).norm() < 0.02 * wanted.norm()


def test_bytes_follow_length_and_batch() -> None:
    layer = made("GRU", 20, 33, num_layers=2)
    program = rl.export(
        quantised(
            "int8-dynamic", layer, torch.randn(5, 2, 20), dynamic_shapes=({0: LENGTH, 1: BATCH},)
        ),
        backend="cpu",
    )
    module = rl.load(program.buffer)
    for length, batch in ((40, 9), (1, 1), (13, 7)):
        x = torch.randn(length, batch, 20)
        got, wanted = torch.as_tensor(module(x)[0]), layer(x)[0].detach()
        assert (got - wanted).norm() < 0.02 * wanted.norm()


def test_rows_without_a_scale_are_not_a_number() -> None:
    """A row with an infinity gives NaN, as in linear layers, and no other row does."""
    layer = made("RNN", 20, 33)
    x = torch.randn(3, 2, 20)
    module = rl.load(rl.export(quantised("int8-dynamic", layer, x), backend="cpu").buffer)
    x[0, 1, 3] = torch.inf
    out = torch.as_tensor(module(x)[0])
    assert out[:, 1].isnan().all() and out[:, 0].isfinite().all()


class Spotter(nn.Module):
    """Convolutions, a recurrent layer and a linear one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(8, 32, 3, padding=1)
        self.gru = nn.GRU(32, 48, batch_first=True, bidirectional=True)
        self.head = nn.Linear(96, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(torch.relu(self.conv(x)).transpose(1, 2))[0])


def test_a_sequence_that_is_bytes_already() -> None:
    torch.manual_seed(0)
    model, x = Spotter().eval(), torch.randn(2, 8, 30)
    edge = rl.to_edge_transform_and_lower(
        quantised("int8", model, x), partitioner=[CpuPartitioner()]
    )
    assert operators_of(edge).count("Recurrent") == 1
    program = edge.to_executorch()
    assert len(program.buffer) < 1.5 * sum(p.numel() for p in model.parameters()) + 20_000
    got, wanted = torch.as_tensor(rl.load(bytes(program.buffer))(x)), model(x).detach()
    assert (got - wanted).norm() < 0.05 * wanted.norm()
