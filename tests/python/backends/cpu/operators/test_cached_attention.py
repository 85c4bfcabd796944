"""Attention over the key-value cache of a runner, in delegates of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from cpu_models import equal, operations
from torch import nn
from torch.export import Dim

import rushlight as rl
from rushlight import _core
from rushlight.backends.cpu import CpuPartitioner
from rushlight.ir.custom_ops.cached_attention import EagerCache, cached_attention
from rushlight.partition import get_non_lowered_nodes
from rushlight.schema import cpu_engine as fb

VOCABULARY, LAYERS, HEADS, KEY_HEADS, WIDTH = 13, 2, 4, 2, 8
SEQUENCES, POSITIONS = 3, 192
BATCH, WANTED = 96, 8
Call = tuple[torch.Tensor, ...]


class Decoder(nn.Module):
    """A decoder of few layers in the form that language models are exported in."""

    def __init__(self, value_width: int = WIDTH, window: int = 0, softcap: float = 0.0) -> None:
        super().__init__()
        hidden = HEADS * WIDTH
        self.embedding = nn.Embedding(VOCABULARY, hidden)
        self.projections = nn.ModuleList(
            nn.Linear(hidden, (HEADS + KEY_HEADS) * WIDTH + KEY_HEADS * value_width)
            for _ in range(LAYERS)
        )
        self.outs = nn.ModuleList(nn.Linear(HEADS * value_width, hidden) for _ in range(LAYERS))
        self.head = nn.Linear(hidden, VOCABULARY)
        self.value_width, self.window, self.softcap = value_width, window, softcap

    def forward(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        sequences: torch.Tensor,
        wanted: torch.Tensor,
    ) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer, (projection, out) in enumerate(zip(self.projections, self.outs, strict=True)):
            sizes = [HEADS * WIDTH, KEY_HEADS * WIDTH, KEY_HEADS * self.value_width]
            q, k, v = projection(x).split(sizes, -1)
            attended = torch.ops.rushlight.cached_attention(
                q.unflatten(-1, (HEADS, WIDTH)),
                k.unflatten(-1, (KEY_HEADS, WIDTH)),
                v.unflatten(-1, (KEY_HEADS, self.value_width)),
                *(positions, sequences, layer, WIDTH**-0.5, self.window, self.softcap),
            )
            x = x + out(attended.flatten(1))
        return self.head(nn.functional.embedding(wanted, x))


def inputs_of(*rows: tuple[int, Sequence[int]], wanted: Sequence[int] | None = None) -> Call:
    """The inputs of a call with these (sequence, positions), and the tokens of `wanted` logits."""
    positions = torch.tensor([p for _, places in rows for p in places], dtype=torch.int64)
    sequences = torch.tensor([s for s, places in rows for _ in places], dtype=torch.int64)
    tokens = torch.randint(0, VOCABULARY, positions.shape)
    some = range(len(positions))[-WANTED:] if wanted is None else wanted
    return tokens, positions, sequences, torch.tensor(list(some), dtype=torch.int64)


def lowered(model: nn.Module) -> rl.EdgeProgramManager:
    n, m = Dim("n", min=1, max=BATCH), Dim("m", min=0, max=WANTED)
    shapes = ({0: n}, {0: n}, {0: n}, {0: m})
    with EagerCache().active():
        exported = torch.export.export(
            model.eval(), inputs_of((0, range(5))), dynamic_shapes=shapes
        )
    return rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])


def program_of(model: nn.Module) -> bytes:
    edge = lowered(model)
    assert not get_non_lowered_nodes(edge.exported_program().graph)
    nodes = [type(o) for o in operations(edge)]
    assert nodes.count(fb.CachedAttention) == LAYERS
    return bytes(edge.to_executorch().buffer)


@pytest.fixture(scope="module")
def plain() -> bytes:
    """The program of a decoder without options."""
    return program_of(Decoder())


def load(
    program: bytes, dtype: str = "float32", *, threads: int = 2, value_width: int = WIDTH
) -> tuple[Any, Any]:
    module = rl.load(program, check_backends=True, threads=threads)
    cache = _core.KvCache(dtype, LAYERS, KEY_HEADS, WIDTH, value_width, SEQUENCES, POSITIONS)
    return module, cache


CALLS = [
    [(0, range(5))],
    [(0, [5])],
    [(0, [6]), (1, range(70))],
    [(2, range(3)), (0, [7]), (1, [70])],
    [(1, range(71, 160)), (2, [3])],
    [(1, [160]), (2, [4, 5, 6]), (0, [8])],
    [(1, range(60, 66))],  # rewound
    [(1, [66]), (0, [9])],
]


@pytest.mark.parametrize(
    ("options", "dtype", "tolerance"),
    [
        ({}, "float32", 1e-5),
        ({"value_width": 5}, "float16", 1e-3),
        ({"window": 7}, "int8", 1e-2),
        ({"window": 90, "softcap": 1.5}, "float32", 1e-5),
    ],
)
def test_equals_eager(options: dict[str, Any], dtype: str, tolerance: float) -> None:
    torch.manual_seed(0)
    model = Decoder(**options)
    module, cache = load(program_of(model), dtype, value_width=model.value_width)
    module["forward"]._core.set_kv_cache(cache)
    with EagerCache().active(), torch.no_grad():
        for rows in CALLS:
            inputs = inputs_of(*rows)
            equal(module(*inputs), model(*inputs), tolerance)
            cut = (*inputs[:3], torch.empty(0, dtype=torch.int64))  # the same tokens, no logits
            assert module(*cut).shape == (0, VOCABULARY)


def test_results_do_not_depend_on_threads(plain: bytes) -> None:
    for dtype in ("float32", "float16", "int8"):
        results = []
        for threads in (1, 2):
            torch.manual_seed(1)
            module, cache = load(plain, dtype, threads=threads)
            module["forward"]._core.set_kv_cache(cache)
            results.append([module(*inputs_of(*rows)) for rows in CALLS])
        assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_a_run_without_a_cache_says_what_it_needs(plain: bytes) -> None:
    module, cache = load(plain)
    with pytest.raises(rl.RunError, match="needs the key-value cache of a language model's runner"):
        module(*inputs_of((0, [0])))
    module["forward"]._core.set_kv_cache(cache)
    module(*inputs_of((0, [0])))
    module["forward"]._core.set_kv_cache(None)
    with pytest.raises(rl.RunError, match=r"load the program with rushlight\.llm\.load"):
        module(*inputs_of((0, [0])))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(3, [0])], r"sequences\[0\] is 3, but the key-value cache has 3 sequences"),
        ([(0, [0]), (-1, [0])], r"sequences\[1\] is -1"),
        ([(1, [191, 192])], r"positions\[1\] is 192, but sequence 1 has 3 pages"),
        ([(1, [-1])], r"positions\[0\] is -1"),
        ([(0, [3, 5])], r"positions\[1\] is 5 after position 3 of the same sequence"),
        ([(0, [3]), (1, [0]), (0, [4])], r"sequences\[2\] is 0, which has tokens before"),
        ([(2, [3, 4]), (0, [1]), (1, [0]), (0, [2])], r"sequences\[4\] is 0, which has tokens bef"),
    ],
)
def test_tokens_that_do_not_fit_the_cache_are_refused(
    plain: bytes, rows: Any, message: str
) -> None:
    module, cache = load(plain)
    module["forward"]._core.set_kv_cache(cache)
    with pytest.raises(rl.RunError, match=message):
        module(*inputs_of(*rows))
    module(*inputs_of((0, [0])))  # usable afterwards


def test_a_cache_of_another_model_is_refused(plain: bytes) -> None:
    module, _ = load(plain)
    for layers, heads, width in ((1, KEY_HEADS, WIDTH), (LAYERS, 1, WIDTH), (LAYERS, KEY_HEADS, 4)):
        cache = _core.KvCache("float32", layers, heads, width, WIDTH, 1, 64)
        module["forward"]._core.set_kv_cache(cache)
        with pytest.raises(rl.RunError, match="does not fit the key-value cache of"):
            module(*inputs_of((0, [0])))


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
def test_other_backends_refuse_it_by_name(backend: str) -> None:
    with EagerCache().active(), pytest.raises(rl.ExportError, match="backend='cpu'") as caught:
        rl.export(Decoder(), inputs_of((0, range(5))), backend=backend, verify=False)
    assert "rushlight::cached_attention" in str(caught.value)


class _Unused(nn.Module):
    """Stores keys twice, and uses neither result."""

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            torch.ops.rushlight.cached_attention(x, x, x, positions, positions, 0, 1.0)
        return x + 1


def test_what_it_stores_is_neither_removed_nor_merged() -> None:
    with EagerCache().active():
        exported = torch.export.export(_Unused(), (torch.ones(3, 2, 4), torch.arange(3)))
    edge = rl.to_edge(exported).exported_program()
    assert [n.target for n in edge.graph.nodes].count(cached_attention) == 2


@pytest.mark.parametrize("window", [0, 3])
def test_an_export_is_verified_with_a_cache_of_its_own(window: int) -> None:
    torch.manual_seed(0)
    n, m = Dim("n", min=1, max=BATCH), Dim("m", min=0, max=WANTED)
    shapes = ({0: n}, {0: n}, {0: n}, {0: m})
    args = inputs_of((0, range(5)), (1, range(2)))
    program = rl.export(
        Decoder(value_width=5, window=window).eval(), args, dynamic_shapes=shapes, backend="cpu"
    )
    assert not program.quantization  # it is eager's
    gap = inputs_of((0, range(3, 5)))
    with pytest.raises(
        rl.ExportError, match=r"position 3 .* positions in between were never given"
    ):
        rl.export(Decoder().eval(), gap, dynamic_shapes=shapes, backend="cpu")
