"""Makes programs of this folder whose delegates are the cpu backend's: `python make_cpu_engine.py
NAME...`.

Every later runtime must load them. Those of version 1 hold together every operation that it has,
those of version 2 Winograd's algorithm, weights in bfloat16, and sizes that follow from the inputs'
sizes, those of version 3 every operation on integers, that of version 4 integers that products add
to their results, those of version 5 products of floats with integers, and float16, those of version
6 recurrent layers, that of version 7 attention over a runner's cache and rows of tables of
integers. A new version of the payload gets files of its own: these stay as they are.
Eager PyTorch's outputs for inputs of ones, of quantised programs their graph's, go to
expected.json, for several sizes of the inputs where these are dynamic: "name.method 2,3 4" is that
of inputs [2, 3] and [4].
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torchao.quantization import IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerAxis, PerGroup

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.capture import capture
from rushlight.ir.custom_ops.cached_attention import EagerCache
from rushlight.llm.exporter.attention import attention
from rushlight.llm.weights.layers import QuantizedEmbedding
from rushlight.llm.weights.rounding import quantised
from rushlight.quantization import (
    CpuQuantizer,
    QuantizationConfig,
    dynamic_config,
    quantize,
    static_config,
)
from rushlight.schema import cpu_engine

HERE = pathlib.Path(__file__).parent


class Images(nn.Module):
    """Convolutions of every kind, pools, and what follows them."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(torch.randn(1, 3, 12, 12))
        self.dense = nn.Conv2d(3, 20, 3, padding=1)
        self.depthwise = nn.Conv2d(20, 20, 3, stride=2, padding=1, groups=20)
        self.grouped = nn.Conv2d(20, 8, 3, padding=2, dilation=2, groups=4)
        self.norm = nn.GroupNorm(2, 8)
        self.pointwise = nn.Conv2d(8, 18, 1)
        self.transposed = nn.ConvTranspose2d(18, 4, 3, stride=2, padding=1, output_padding=1)
        self.head = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu6(self.dense(x * self.scale))
        y = F.hardswish(self.depthwise(y))
        z = self.norm(self.grouped(y))
        z = F.silu(self.pointwise(z)) + self.pointwise(z)
        z = F.max_pool2d(self.transposed(z), 3, 2, 1)
        z = F.avg_pool2d(z, 2, 2, ceil_mode=True, count_include_pad=False)
        return self.head(z.mean((2, 3)))


class Sequence(nn.Module):
    """A transformer's block, with what is around it."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(torch.randn(9, 24))
        self.table = nn.Embedding(7, 24)
        self.norm = nn.LayerNorm(24)
        self.rms = nn.RMSNorm(24)
        self.qkv = nn.Linear(24, 72)
        self.out = nn.Linear(24, 24)
        self.up = nn.Linear(24, 60)
        self.down = nn.Linear(60, 24, bias=False)
        self.mask = nn.Buffer(torch.randn(9, 9))

    def forward(self, x: torch.Tensor, wide: torch.Tensor) -> tuple[torch.Tensor, ...]:
        indices = (x * torch.arange(9.0) * 0.7).to(torch.int64)
        y = self.table(indices) + self.scale
        q, k, v = self.qkv(self.norm(y)).view(2, 9, 3, 3, 8).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        masked = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)
        y = y + self.out((seen + masked).transpose(1, 2).reshape(2, 9, 24))
        y = y + self.down(F.gelu(self.up(self.rms(y))))
        product = torch.bmm(y, y.transpose(1, 2)) * 0.1
        pairs = torch.cat([product[:, ::2], torch.flip(product, (0,))[:, 1:3]], 1)
        turned = (wide * self.scale[:1]).view(4, 6, 64).transpose(1, 2).contiguous()
        return (
            torch.softmax(product, -1),
            torch.log_softmax(product, 1).amax(1),
            pairs.amin(-1),
            torch.where(pairs > 0.5, pairs.tanh(), pairs.sigmoid()).sum(1),
            turned.sum(0),
        )


class SizedImages(nn.Module):
    """Convolutions and pools over images of any number and height."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(torch.randn(1, 3, 1, 12))
        self.dense = nn.Conv2d(3, 20, 3, padding=1)
        self.depthwise = nn.Conv2d(20, 20, 3, stride=2, padding=1, groups=20)
        self.grouped = nn.Conv2d(20, 8, 3, padding=2, dilation=2, groups=4)
        self.pointwise = nn.Conv2d(8, 18, 1)
        self.transposed = nn.ConvTranspose2d(18, 4, 3, stride=2, padding=1, output_padding=1)
        self.head = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu6(self.dense(x * self.scale))
        z = self.grouped(F.hardswish(self.depthwise(y)))
        z = F.silu(self.pointwise(z)) + self.pointwise(z)
        z = F.max_pool2d(self.transposed(z), 3, 2, 1)
        return self.head(z.mean((2, 3)))


class Winograd(nn.Module):
    """Convolutions of 3 by 3 taps by Winograd's algorithm, with all that may follow them."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(torch.randn(1, 16, 16, 17))
        self.first = nn.Conv2d(16, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.scale
        return F.relu6(y + self.second(F.silu(self.first(y)))).mean((2, 3))


class SizedSequence(nn.Module):
    """A transformer's block over sequences of any number and length, and rows behind others."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(torch.randn(24))
        self.table = nn.Embedding(7, 24)
        self.norm = nn.LayerNorm(24)
        self.rms = nn.RMSNorm(24)
        self.qkv = nn.Linear(24, 72)
        self.out = nn.Linear(24, 24)
        self.up = nn.Linear(24, 60)
        self.down = nn.Linear(60, 24, bias=False)
        self.mask = nn.Buffer(torch.randn(16, 16))
        self.positions = nn.Buffer(torch.arange(16.0))

    def forward(self, x: torch.Tensor, past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n, length = x.shape
        indices = (x * self.positions[:length] * 0.7).to(torch.int64)
        y = self.table(indices) + self.scale
        q, k, v = self.qkv(self.norm(y)).view(n, length, 3, 3, 8).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mask = self.mask[:length, :length]
        masked = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = y + self.out((seen + masked).transpose(1, 2).reshape(n, length, 24))
        y = y + self.down(F.gelu(self.up(self.rms(y))))
        product = torch.bmm(y, y.transpose(1, 2)) * 0.1
        longer = torch.cat([past, y], 1)
        return (
            torch.softmax(product, -1),
            torch.log_softmax(product, 1).amax(1),
            longer[:, 1:].amin(-1),
            torch.where(longer > 0.5, longer.tanh(), longer.sigmoid()).sum(1),
            longer.transpose(1, 2).contiguous(),
        )


class Halves(nn.Module):
    """Products whose weights lose nothing as bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(20, 40)
        self.down = nn.Linear(40, 7, bias=False)
        for weight in (self.up.weight, self.down.weight):
            weight.data = weight.data.bfloat16().float()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x * torch.arange(20.0))))


class QuantizedImages(nn.Module):
    """Convolutions, products, sums and pools of integers, two of which give float32."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(torch.randn(1, 4, 9, 11))
        self.dense = nn.Conv2d(4, 20, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(20, 20, 3, padding=1, groups=20)
        self.grouped = nn.Conv2d(20, 8, 3, padding=2, dilation=2, groups=4)
        self.one, self.other = nn.Conv2d(8, 18, 1), nn.Conv2d(8, 18, 1)
        self.head, self.last = nn.Linear(18, 20), nn.Linear(20, 5)
        self.real = nn.Conv2d(18, 3, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = F.hardswish(self.depthwise(F.relu6(self.dense(x * self.scale))))
        y = self.grouped(y)
        one, other = self.one(y), self.other(y)
        z = F.max_pool2d((one + other) * one - other, 3, 2, 1)
        pooled = F.avg_pool2d(z, 2, 2, padding=1, count_include_pad=False)
        head = torch.relu(self.head(z.mean((2, 3))))
        return F.gelu(self.last(head)), F.relu(self.real(z)), self.quantized(pooled)

    def quantized(self, x: torch.Tensor) -> torch.Tensor:
        quantize_per_tensor = torch.ops.quantized_decomposed.quantize_per_tensor
        integers: torch.Tensor = quantize_per_tensor(x, 0.02, -3, -128, 127, torch.int8)
        return integers


class QuantizedResiduals(nn.Module):
    """Convolutions and products of integers whose results are added to, or taken from."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(torch.randn(1, 4, 9, 11))
        self.first, self.dense = nn.Conv2d(4, 36, 3, padding=1), nn.Conv2d(36, 36, 3, padding=1)
        self.grouped = nn.Conv2d(36, 36, 3, padding=1, groups=4)
        self.one, self.other = nn.Conv2d(36, 36, 1), nn.Conv2d(36, 36, 1)
        self.head = nn.Linear(36, 36)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.first(x * self.scale))
        y = F.relu(y + self.dense(y))
        y = self.grouped(y) - y
        y = F.relu(self.one(y) + self.other(y))
        z = y.mean((2, 3))
        return z + self.head(z)


def images_quantizer() -> CpuQuantizer:
    """Integers throughout, but for the results of two layers."""
    config = static_config()
    real = QuantizationConfig(config.input_activation, None, config.weight, None)
    return CpuQuantizer(config).set_module_name("last", real).set_module_name("real", real)


class QuantizedRows(nn.Module):
    """Products of rows that are quantised at run time: weights of 8 bits, and of 4 in groups, whose
    scales lose nothing as bfloat16, or do."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(torch.randn(64))
        self.up, self.gate = nn.Linear(64, 36), nn.Linear(64, 36)
        self.down, self.last = nn.Linear(36, 64, bias=False), nn.Linear(64, 9)
        integers = torch.randint(-8, 8, (9, 64))
        integers[:, ::16] = -8  # so that each group has a scale of 1 / 32
        self.last.weight.data = integers / 32

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x * self.scale
        y = self.down(F.gelu(self.up(x)) * self.gate(x)) + x
        return y, self.last(y)


def rows_quantizer() -> CpuQuantizer:
    quantizer = CpuQuantizer(dynamic_config())
    for name, size in (("gate", 32), ("last", 16)):
        quantizer.set_module_name(name, dynamic_config(weight_bits=4, group_size=size))
    return quantizer


class WeightOnly(QuantizedRows):
    """The same products with activations in float32."""

    def __init__(self) -> None:
        super().__init__()
        for layer, size in ((self.up, 0), (self.down, 0), (self.gate, 32), (self.last, 16)):
            config = IntxWeightOnlyConfig(
                weight_dtype=torch.int4 if size else torch.int8,
                granularity=PerGroup(size) if size else PerAxis(0),
            )
            quantize_(layer, config, lambda module, _: isinstance(module, nn.Linear))


class Float16(nn.Module):
    """A convolution and products of many rows and of few in float16."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv1d(64, 32, 3, padding=1).half(), nn.Linear(32, 130).half()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = F.relu(self.conv(x.to(self.conv.weight.dtype))).mT
        return self.last(y).float(), self.last(y.mean(1)).float()


class Recurrent(nn.Module):
    """Recurrent layers of every kind: stacked, both ways, projected, with first states."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True, proj_size=3)
        self.gru = nn.GRU(6, 17)
        self.tanh, self.relu = nn.RNN(17, 4, 2), nn.RNN(17, 4, nonlinearity="relu", bias=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, (hidden, cell) = self.lstm(x)
        y, last = self.gru(
            y.transpose(0, 1), torch.tanh(x[:, :1, :1]).transpose(0, 1).expand(1, -1, 17)
        )
        return self.tanh(y)[0] + self.relu(y)[0], hidden, cell, last


class QuantizedRecurrent(nn.Module):
    """A layer whose products are of rows that are quantised at run time."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Buffer(torch.randn(9))
        self.gru = nn.GRU(9, 17)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.gru(x * self.scale)  # type: ignore[no-any-return]


class CachedSequences(nn.Module):
    """Tokens of two sequences: rows of tables of integers, and attention over a runner's cache of
    two layers with two heads of keys of 8 elements."""

    def __init__(self) -> None:
        super().__init__()
        self.words = QuantizedEmbedding(quantised(torch.randn(7, 32), 4, 32, "words"))
        self.bytes = QuantizedEmbedding(quantised(torch.randn(7, 32), 8, 0, "bytes"))
        self.numbers = nn.Buffer(torch.arange(9.0) * 0.7)
        self.positions = nn.Buffer(torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3]))
        self.sequences = nn.Buffer(torch.tensor([0] * 5 + [1] * 4))
        self.projections = nn.ModuleList(nn.Linear(32, 64) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        indices = (x * self.numbers[:n]).to(torch.int64)
        y = self.words(indices) + self.bytes(indices)
        for layer, (projection, how) in enumerate(
            zip(self.projections, ((0, 0.0), (3, 1.5)), strict=True)
        ):
            q, k, v = projection(y).unflatten(1, (8, 8)).split((4, 2, 2), 1)
            rows = self.positions[:n], self.sequences[:n]
            y = y + attention(q, k, v, *rows, layer=layer, window=how[0], softcap=how[1]).flatten(1)
        return y


def row_by_row(exported: torch.export.ExportedProgram, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What the quantised layer computes, one time step after the other: torch has no such layer."""
    ops = torch.ops.quantized_decomposed
    held = {**exported.constants, **exported.state_dict}
    [layer] = exported.graph.find_nodes(op="call_function", target=torch.ops.aten.gru.input)
    names = {s.arg.name: str(s.target) for s in exported.graph_signature.input_specs}

    def data(node: torch.fx.Node) -> torch.Tensor:
        if node.op == "placeholder":
            return held[names[node.name]].detach()
        args = [data(a) if isinstance(a, torch.fx.Node) else a for a in node.args]
        return node.target(*args, **node.kwargs)  # type: ignore[operator, no-any-return]

    def rows(x: torch.Tensor) -> torch.Tensor:
        scales = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
        how = (*scales, -128, 127, torch.int8)
        return ops.dequantize_per_token(ops.quantize_per_token(x, *how), *how, torch.float32)

    into, own, into_bias, own_bias = map(data, layer.args[2])
    x = x * next(held[n] for n in held if "scale" in n and held[n].shape == (9,))
    hidden, results = torch.zeros(x.shape[1], own.shape[1]), []
    for row in F.linear(rows(x), into, into_bias):
        a, b = row.chunk(3, -1), F.linear(rows(hidden), own, own_bias).chunk(3, -1)
        reset, update = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        hidden = torch.lerp(torch.tanh(a[2] + reset * b[2]), hidden, update)
        results.append(hidden)
    return torch.stack(results), hidden[None]


QUANTIZERS = {
    "cpu_engine_v3_images": images_quantizer,
    "cpu_engine_v3_rows": rows_quantizer,
    "cpu_engine_v4_residuals": lambda: CpuQuantizer(static_config()),
    "cpu_engine_v6_recurrent_bytes": lambda: CpuQuantizer(dynamic_config()),
}


def program_of(
    name: str, model: nn.Module, inputs: tuple[torch.Tensor, ...], sizes: Any
) -> torch.export.ExportedProgram:
    """What is lowered; `sizes` are the dynamic ones."""
    if name not in QUANTIZERS:
        return capture(model.eval(), inputs, dynamic_shapes=sizes)
    return quantize(
        model.eval(), inputs, calibrate=[inputs], recipe=QUANTIZERS[name](), dynamic_shapes=sizes
    )


def write(name: str, exported: torch.export.ExportedProgram) -> None:
    """The program as the cpu backend runs it."""
    weights = "bfloat16" if name.endswith("bfloat16") else "float32"
    partitioner = CpuPartitioner(weights=weights)
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[partitioner])
    (HERE / f"{name}.pte").write_bytes(bytes(edge.to_executorch().buffer))
    version = int(name.removeprefix("cpu_engine_v")[0])
    module = edge.exported_program().graph_module
    lowered = [getattr(module, n.target) for n in module.graph.nodes if n.op == "get_attr"]
    assert max(cpu_engine.unpack(one.processed_bytes).version for one in lowered) == version


Programs = dict[str, tuple[Callable[[], nn.Module], list[Any], Any]]


def programs() -> Programs:
    """By name: the module, the shapes of its inputs in each case, and the dynamic sizes."""
    images, rows = torch.export.Dim("n", max=3), torch.export.Dim("rows", min=8, max=12)
    many = torch.export.Dim("many", max=12)
    length, past = torch.export.Dim("length", min=2, max=9), torch.export.Dim("past", max=5)
    sized_images = [[(3, 3, 12, 12)], [(1, 3, 9, 12)], [(2, 3, 10, 12)]]
    sized_rows = [[(3, 9), (3, 5, 24)], [(1, 2), (1, 1, 24)], [(2, 7), (2, 3, 24)]]
    return {
        "cpu_engine_v1_images": (Images, [[(2, 3, 12, 12)]], None),
        "cpu_engine_v1_sequence": (Sequence, [[(2, 9), (64, 24)]], None),
        "cpu_engine_v2_images": (SizedImages, sized_images, ({0: images, 2: rows},)),
        "cpu_engine_v2_bfloat16": (Halves, [[(19, 20)]], None),
        "cpu_engine_v2_winograd": (Winograd, [[(2, 16, 16, 17)]], None),
        "cpu_engine_v2_sequence": (
            SizedSequence,
            sized_rows,
            ({0: images, 1: length}, {0: images, 1: past}),
        ),
        "cpu_engine_v3_images": (
            QuantizedImages,
            [[(n, 4, 9, 11)] for n in (1, 3, 2)],
            ({0: images},),
        ),
        "cpu_engine_v3_rows": (QuantizedRows, [[(n, 64)] for n in (1, 12, 8)], ({0: many},)),
        "cpu_engine_v4_residuals": (
            QuantizedResiduals,
            [[(n, 4, 9, 11)] for n in (1, 3, 2)],
            ({0: images},),
        ),
        "cpu_engine_v5_halves": (Float16, [[(1, 64, 9)]], None),
        "cpu_engine_v5_weights": (WeightOnly, [[(n, 64)] for n in (1, 12, 8)], ({0: many},)),
        "cpu_engine_v6_recurrent": (
            Recurrent,
            [[(3, 9, 5)], [(1, 2, 5)], [(2, 7, 5)]],
            ({0: images, 1: length},),
        ),
        "cpu_engine_v6_recurrent_bytes": (
            QuantizedRecurrent,
            [[(9, 3, 9)], [(2, 1, 9)], [(7, 2, 9)]],
            ({0: length, 1: images},),
        ),
        "cpu_engine_v7_cached_attention": (
            CachedSequences,
            [[(9,)], [(2,)], [(7,)]],
            ({0: length},),
        ),
    }


def main(names: list[str]) -> None:
    path = HERE / "expected.json"
    expected = json.loads(path.read_text())
    for name in names:
        make, shapes, sizes = programs()[name]
        torch.manual_seed(0)
        model = make()
        exported = program_of(name, model, tuple(torch.ones(s) for s in shapes[-1]), sizes)
        write(name, exported)
        # Of halves the same in float32, as the engine computes it.
        eager = model.float() if name.endswith("_halves") else exported.module()
        eager = partial(row_by_row, exported) if name.endswith("recurrent_bytes") else eager
        for case in shapes:
            with torch.no_grad(), EagerCache().active():
                outputs = eager(*(torch.ones(shape) for shape in case))
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            shown = " ".join(",".join(map(str, shape)) for shape in case) if sizes else ""
            key = f"{name}.forward {shown}".strip()
            expected[key] = [output.tolist() for output in outputs]
    path.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
