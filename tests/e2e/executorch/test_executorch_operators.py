"""ExecuTorch's own operators: what we export runs there, and what it exports runs here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree

import rushlight
from rushlight.edge import define_executorch_operators
from rushlight.inspect import report_of
from rushlight.ir import kernels
from rushlight.ir.executorch_kernels import LIBRARY_NAMES, NAMES

if TYPE_CHECKING:
    from conftest import ExecuTorch

define_executorch_operators()
llama, quantized = torch.ops.llama, torch.ops.quantized_decomposed
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def real(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def whole(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(low, high, shape, generator=generator).to(dtype)


@dataclass(frozen=True)
class Program:
    """One operator's call."""

    function: Callable[..., Any]
    inputs: Sequence[torch.Tensor]


class Model(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


QUERY, KEYS, VALUES = real(2, 3, 4, 8), real(2, 16, 2, 8), real(2, 16, 2, 8)
BYTES = [whole(-128, 128, *t.shape) for t in (QUERY, KEYS, VALUES)]
ZEROS = [whole(-9, 9, *t.shape[:3], 1) for t in BYTES]
SCALES = [real(*t.shape[:3], 1).abs() * 0.01 for t in BYTES]


def quantized_attention(*inputs: torch.Tensor) -> Any:
    parameters = [p for pair in zip(inputs[3:6], inputs[6:9], strict=True) for p in pair]
    return llama.custom_quantized_sdpa(*inputs[:3], 5, None, 0.0, True, None, *parameters, False)


def embeddings(name: str, low: int, high: int) -> dict[str, Program]:
    operator = getattr(quantized, name)
    weight, groups = whole(0, 256, 9, 8, dtype=torch.uint8), real(9, 2)
    if name == "embedding_byte":
        weight = weight.view(torch.int8)
    index = whole(0, 9, 2, 3, dtype=torch.int64)

    def plain(index: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> Any:
        return operator(weight, scales, None, low, high, index)

    def typed(index: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> Any:
        return operator.dtype(weight, scales, None, low, high, index, dtype=torch.float16)

    return {
        f"{name}.out": Program(plain, (index, weight, groups)),
        f"{name}.dtype_out": Program(typed, (index, weight, groups)),
    }


def add(a: torch.Tensor, b: torch.Tensor) -> Any:
    return quantized.add(a, 0.1, 3, 0, 255, b, 0.05, 9, 0, 255, 0.2, 10, 0, 255)


QUANTIZED = {
    **embeddings("embedding_2bit", -2, 1),
    **embeddings("embedding_4bit", -8, 7),
    **embeddings("embedding_byte", -128, 127),
    "add.out": Program(add, [whole(0, 256, 3, 40, dtype=torch.uint8)] * 2),
    "mixed_linear.out": Program(
        lambda x, w, s: quantized.mixed_linear(x, w, s, None),
        (real(3, 20), whole(-128, 128, 7, 20), real(7, 2)),
    ),
    "mixed_mm.out": Program(
        lambda x, w, s: quantized.mixed_mm(x, w, s, None),
        (real(3, 20), whole(-128, 128, 20, 7), real(20)),
    ),
}
DELTA = [real(1, 2, 3, 4), real(1, 2, 3, 4), real(1, 2, 3, 5), real(1, 2, 3, 4).sigmoid()]
LLAMA = {
    "channelwise_gated_delta_rule.out": Program(
        lambda *inputs: llama.channelwise_gated_delta_rule(*inputs),
        (*DELTA, real(1, 2, 3).sigmoid(), real(1, 2, 4, 5)),
    ),
    "custom_quantized_sdpa.out": Program(quantized_attention, (*BYTES, *ZEROS, *SCALES)),
    "custom_sdpa.out": Program(
        lambda q, k, v: llama.custom_sdpa(q, k, v, 5, None, 0.0, True), (QUERY, KEYS, VALUES)
    ),
    "custom_sdpa.out, masked": Program(
        lambda q, k, v, m: llama.custom_sdpa(q, k, v, 5, m), (QUERY, KEYS, VALUES, real(3, 16))
    ),
    "fallback.out": Program(lambda x: llama.fallback(x), (QUERY,)),
    "fast_hadamard_transform.out": Program(
        lambda x: llama.fast_hadamard_transform(x), (real(3, 16),)
    ),
    "fast_hadamard_transform.out, 28": Program(
        lambda x: llama.fast_hadamard_transform(x), (real(3, 112),)
    ),
}
PROGRAMS = {
    **{f"quantized_decomposed::{name}": program for name, program in QUANTIZED.items()},
    **{f"llama::{name}": program for name, program in LLAMA.items()},
    "preprocess::tile_crop.out": Program(
        lambda x: torch.ops.preprocess.tile_crop(x, 4), (real(3, 8, 12),)
    ),
}


class Cache(torch.nn.Module):
    """State in two caches that operators write."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.register_buffer("keys", torch.zeros(1, 8, 2, 4))
        self.register_buffer("values", torch.zeros(1, 8, 2, 4))

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, place: torch.Tensor
    ) -> torch.Tensor:
        start = place[0, 0].item()
        torch._check(start >= 0)
        torch._check(start + q.shape[1] <= 8)
        if self.kind == "one":
            return llama.sdpa_with_kv_cache(  # type: ignore[no-any-return]
                q, k, v, self.keys, self.values, start, q.shape[1], None, 0.0, True
            )
        if self.kind == "indices":
            llama.update_cache_with_indices(k, self.keys, start, place)
            llama.update_cache_with_indices(v, self.values, start, place)
        else:
            llama.update_cache(k, self.keys, start)
            llama.update_cache(v, self.values, start)
        return llama.custom_sdpa(  # type: ignore[no-any-return]
            q, self.keys, self.values, start, None, 0.0, True
        )


CALLS = [
    (real(1, 2, 4, 4), real(1, 2, 2, 4), real(1, 2, 2, 4), torch.tensor([[start, start + 1]]))
    for start in (0, 2, 5)
]


def equal(got: Any, expected: Any) -> None:
    wanted = [t.detach() for t in pytree.tree_leaves(expected)]
    for g, w in zip(pytree.tree_leaves(got), wanted, strict=True):
        torch.testing.assert_close(torch.as_tensor(np.asarray(g)), w, **TOLERANCE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_our_program_holds_the_operator_and_gives_eagers_results(name: str) -> None:
    program = PROGRAMS[name]
    exported = rushlight.export(Model(program.function), tuple(program.inputs), verify=False)
    names = {operator.name for operator in exported.report().operators}
    assert name.partition(",")[0] in names
    with rushlight.load(exported.buffer) as module:
        equal(module(*program.inputs), program.function(*program.inputs))


@pytest.mark.parametrize("kind", ["one", "indices", "apart"])
def test_a_cache_that_operators_write(kind: str) -> None:
    program = rushlight.export(Cache(kind), CALLS[0], verify=False)
    eager = Cache(kind)
    with rushlight.load(program.buffer) as module:
        for call in CALLS:
            equal(module(*call), eager(*call))


@pytest.mark.interop
@pytest.mark.parametrize("name", PROGRAMS)
def test_executorch_gives_the_same(name: str, executorch: ExecuTorch, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    exported = rushlight.export(Model(program.function), tuple(program.inputs), verify=False)
    (tmp_path / "ours.pte").write_bytes(exported.buffer)
    equal(
        run_there(executorch, tmp_path / "ours.pte", program.inputs),
        program.function(*program.inputs),
    )


@pytest.mark.interop
@pytest.mark.parametrize("kind", ["one", "indices", "apart"])
def test_executorchs_caches_run_here(kind: str, executorch: ExecuTorch, tmp_path: Path) -> None:
    traced = tmp_path / "traced.pt2"
    torch.export.save(torch.export.export(Cache(kind), CALLS[0]), traced)
    executorch.call("export", program=traced, pte=tmp_path / "theirs.pte", own_operators=True)
    eager = Cache(kind)
    written = {"one": "sdpa_with_kv_cache", "indices": "update_cache_with_indices"}
    name = f"llama::{written.get(kind, 'update_cache')}.out"
    report = report_of(tmp_path / "theirs.pte")
    assert name in {operator.name for operator in report.operators}
    with rushlight.load(tmp_path / "theirs.pte") as module:
        for call in CALLS:
            equal(module(*call), eager(*call))


@pytest.mark.interop
def test_all_that_the_wheel_registers_runs_here(executorch: ExecuTorch) -> None:
    there = set(executorch.call("operators"))
    assert there == NAMES | LIBRARY_NAMES
    assert there - {kernel.name for kernel in kernels.manifest()} == set()


def run_there(executorch: ExecuTorch, path: Path, inputs: Sequence[torch.Tensor]) -> list[Any]:
    data, outputs = path.with_suffix(".npz"), path.with_suffix(".out.npz")
    np.savez(data, **{f"in{i}": t.numpy() for i, t in enumerate(inputs)})
    executorch.call("run", pte=path, data=data, outputs=outputs, own_operators=True)
    with np.load(outputs) as arrays:
        return [arrays[f"out{i}"] for i in range(len(arrays))]
