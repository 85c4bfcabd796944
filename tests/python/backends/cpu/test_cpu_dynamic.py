"""The cpu backend where sizes depend on the inputs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from cpu_models import Call, equal, follows
from torch import nn
from torch.export import Dim

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.partition import get_non_lowered_nodes
from rushlight.schema import cpu_engine as fb

Function = Callable[..., Any]

ROWS, LENGTH = Dim("rows", max=9), Dim("length", min=3, max=33)
SEQUENCE = {0: ROWS, 1: LENGTH}
HEIGHT, WIDTH = Dim("height", min=8, max=40), Dim("width", min=8, max=40)
IMAGES = {0: ROWS, 2: HEIGHT, 3: WIDTH}


def sequences(width: int) -> list[torch.Tensor]:
    """Inputs [rows, length, width] of sizes between, least, greatest and odd."""
    return [torch.randn(*sizes, width) for sizes in ((4, 8), (1, 3), (9, 33), (2, 7), (3, 15))]


def images(channels: int) -> list[torch.Tensor]:
    sizes = ((2, 16, 20), (1, 8, 8), (9, 40, 40), (3, 9, 33), (2, 31, 8))
    return [torch.randn(n, channels, h, w) for n, h, w in sizes]


def of_sequence(function: Function, width: int = 6) -> list[str]:
    return follows(Call(function), [SEQUENCE], *((x,) for x in sequences(width)))


# --- operators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.transpose(1, 2).contiguous(),
        lambda x: x.flatten(0, 1).tanh(),
        lambda x: x.transpose(0, 1).flatten(0, 1),
        lambda x: x.reshape(x.shape[0], -1),
        lambda x: x.unflatten(2, (2, 3)).permute(0, 2, 1, 3).flatten(0, 1),
        lambda x: x.chunk(3, -1)[1] * 2,
        lambda x: (x[:, 1:], x[:, -1], x[:, -2:], x[:, ::2], x[:, 0]),
        lambda x: x[:, : x.shape[1] - 1] + x[:, 1:],
        lambda x: torch.cat([x, x[:, :2], x], 1),
        lambda x: torch.stack([x, x.exp()], 2),
        lambda x: x[:, :1].expand(-1, x.shape[1], -1) - x,
        lambda x: x.split([1, x.shape[1] - 1], 1)[1].contiguous(),
        lambda x: F.pad(x, (1, 2, 3, 0)),
        lambda x: F.pad(x, (0, 0, 0, -x.shape[1] % 4)),
        lambda x: F.pad(x, (-1, 2, 0, x.shape[0])),
    ],
)
def test_movement(function: Function) -> None:
    of_sequence(function)


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: (x * 2).relu() + x, ["Elementwise"]),
        (lambda x: x - x[:, :1] * x[:1], ["Elementwise"]),
        (lambda x: torch.where(x > 0, x, x.exp()).transpose(1, 2), ["Elementwise", "Copy"]),
        (lambda x: x.softmax(-1), ["Softmax"]),
        (lambda x: x.log_softmax(1), ["Softmax"]),
        (lambda x: F.layer_norm(x, (6,)), ["Norm"]),
        (lambda x: F.layer_norm(x, x.shape[1:]), ["Norm"]),
        (lambda x: F.rms_norm(x, (6,)), ["Norm"]),
        (lambda x: x.mean(1), ["Reduction"]),
        (lambda x: x.sum((0, 2), keepdim=True), ["Copy", "Reduction"]),
        (lambda x: x.amax(-1), ["Reduction"]),
        (lambda x: x.amin((0, 1)), ["Reduction"]),
        (lambda x: x @ x.transpose(1, 2), ["BatchProduct"]),
        (lambda x: x[0] @ x[0].t(), ["BatchProduct"]),
        (lambda x: torch.baddbmm(x, x @ x.transpose(1, 2), x), None),
    ],
)
def test_rows(function: Function, operators: list[str] | None) -> None:
    assert operators in (of_sequence(function), None)


def test_products() -> None:
    linear, other = nn.Linear(6, 20), nn.Linear(20, 6, bias=False)
    weight = nn.Parameter(torch.randn(6, 5))
    assert of_sequence(lambda x: F.gelu(linear(x))) == ["Product+"]
    assert of_sequence(lambda x: x + other(linear(x).relu())) == ["Product+", "Product+"]
    assert of_sequence(lambda x: (x.flatten(0, 1) @ weight).sigmoid()) == ["Product+"]
    # A tensor that repeats over rows in another order than theirs is copied out first.
    assert of_sequence(lambda x: linear(x) + x[:1, :, :1]) == ["Copy", "Product+"]


def attend(x: torch.Tensor, **options: Any) -> torch.Tensor:
    q, k, v = x.unflatten(2, (3, 2, 8)).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2).flatten(2)


def test_attention() -> None:
    table = nn.Buffer(torch.ones(40, 40, dtype=torch.bool).tril(2))
    bias = nn.Buffer(torch.randn(40, 40))
    for options, operators in (
        (lambda x: {}, ["Attention"]),
        (lambda x: {"is_causal": True}, ["Attention"]),
        (lambda x: {"attn_mask": bias[: x.shape[1], : x.shape[1]]}, ["Attention"]),
        (
            lambda x: {"attn_mask": table[: x.shape[1], : x.shape[1]]},
            ["Elementwise", "Attention"],
        ),
        (
            lambda x: {"attn_mask": (x[:, :, :1] < x[:, None, :, 0])[:, None]},
            ["Elementwise", "Elementwise", "Attention"],
        ),
    ):
        assert of_sequence(lambda x, o=options: attend(x, **o(x)), 48) == operators


def test_a_mask_of_several_layers_is_made_once() -> None:
    def layers(x: torch.Tensor) -> torch.Tensor:
        mask = (x[:, :, :1] < x[:, None, :, 0])[:, None]
        y = attend(x, attn_mask=mask)
        return attend(torch.cat([y, y, y], 2), attn_mask=mask)

    assert of_sequence(layers, 48).count("Elementwise") == 2


def test_past_and_new_rows() -> None:
    past, new = Dim("past", max=20), Dim("new", min=1, max=8)

    def decode(x: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        k, v = torch.cat([k, x], 2), torch.cat([v, x], 2)
        return F.scaled_dot_product_attention(x, k, v), k, v

    calls = [
        tuple(torch.randn(2, 3, n, 8) for n in (a, b, b)) for a, b in ((3, 5), (1, 20), (8, 1))
    ]
    operators = follows(Call(decode), [{2: new}, {2: past}, {2: past}], *calls)
    assert operators.count("Attention") == 1


def test_embeddings() -> None:
    table = nn.Embedding(11, 6)
    ids = [torch.randint(0, 11, (n, s)) for n, s in ((4, 8), (1, 3), (9, 33))]
    positions = nn.Embedding(40, 6)
    calls = [(x, torch.arange(x.shape[1])) for x in ids]
    function = Call(lambda x, at: table(x) + positions(at))
    assert follows(function, [SEQUENCE, {0: LENGTH}], *calls) == ["Gather", "Gather", "Elementwise"]


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(6, 20, 3, padding=1),
        nn.Sequential(nn.Conv2d(6, 16, 1), nn.Conv2d(16, 16, 3, padding=1)),
        nn.Conv2d(6, 6, 3, stride=2, padding=1, groups=6),
        nn.Conv2d(6, 4, (3, 5), stride=(2, 1), padding=(0, 2), dilation=2, groups=2),
        nn.ConvTranspose2d(6, 5, 3, stride=2, padding=1, output_padding=1),
        nn.MaxPool2d(3, 2, 1),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.GroupNorm(2, 6),
        nn.BatchNorm2d(6),
        nn.Sequential(nn.ZeroPad2d((0, 1, 2, 0)), nn.Conv2d(6, 3, 3)),
        nn.Upsample(scale_factor=2),
    ],
    ids=str,
)
def test_images(layer: nn.Module) -> None:
    left = ["aten.upsample_nearest2d.vec"] if isinstance(layer, nn.Upsample) else []
    follows(layer, [IMAGES], *((x,) for x in images(6)), left=left)
    last = [(x.to(memory_format=torch.channels_last),) for x in images(6)]
    follows(layer, [IMAGES], *last, left=left)


def test_lines() -> None:
    layer = nn.Sequential(nn.Conv1d(6, 8, 3, stride=2, padding=1), nn.ReLU())
    calls = [(x.transpose(1, 2).contiguous(),) for x in sequences(6)]
    assert follows(layer, [{0: ROWS, 2: LENGTH}], *calls)[0] == "Convolution+"


def test_empty_inputs() -> None:
    linear = nn.Linear(6, 5)
    calls = [(torch.randn(n, 4, 6),) for n in (3, 0, 9)]
    follows(Call(lambda x: linear(x.relu())[:, 1:].softmax(-1)), [{0: ROWS}], *calls)


# --- where sizes come from ------------------------------------------------------------------------


def test_sizes_of_a_half() -> None:
    half = Dim("half", max=16)
    linear = nn.Linear(12, 5)
    calls = [(torch.randn(2 * n, 6),) for n in (3, 2, 16)]
    operators = follows(Call(lambda x: linear(x.reshape(-1, 12)).relu()), [{0: 2 * half}], *calls)
    assert operators == ["Product+"]


def test_sizes_behind_a_call_that_is_not_taken() -> None:
    one, two = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Conv2d(4, 5, 3, stride=2, padding=1)
    # The second delegate sees (height - 1) // 2 + 1, from which height itself does not follow.
    function = Call(lambda x: two(one(x).cumsum(0)).relu())
    operators = follows(
        function, [IMAGES], *((x,) for x in images(3)), left=["aten.cumsum.default"]
    )
    assert operators == ["Convolution", "Copy", "Convolution+", "Copy"]


def test_sizes_that_are_shown_as_a_sum() -> None:
    other = Dim("other", max=5)
    function = Call(lambda x, y: torch.cat([x, y]).cumsum(0)[1:] * 2)
    calls = [(torch.randn(n, 6), torch.randn(m, 6)) for n, m in ((4, 3), (1, 5), (9, 1))]
    operators = follows(function, [{0: ROWS}, {0: other}], *calls, left=["aten.cumsum.default"])
    assert operators == ["Copy", "Copy", "Elementwise"]


def test_what_does_not_follow_from_a_delegate_s_inputs_stays_outside() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        z = x.flatten().cumsum(0)
        return (z[:, None] * z).flatten()

    calls = [(torch.randn(n, m),) for n, m in ((4, 8), (1, 3), (9, 33))]
    numbers = ["aten.sym_size.int", "<built-in function mul>"]
    left = [*numbers, "aten.cumsum.default", "aten.view_copy.default"]
    assert "Elementwise" in follows(Call(function), [SEQUENCE], *calls, left=left)


def test_sizes_that_are_passed_as_numbers() -> None:
    token = nn.Parameter(torch.randn(1, 1, 6))
    table = nn.Parameter(torch.randn(40, 6))

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        length = x.shape[1]
        tokens = torch.cat([token.expand(x.shape[0], -1, -1), x], 1)
        return tokens, table[:length] * 2, torch.arange(length)

    left = ["aten.sym_size.int", "aten.arange.start_step"]
    follows(Call(function), [SEQUENCE], *((x,) for x in sequences(6)), left=left)
    model = Call(lambda x, n: x[:, :n] * 2)
    calls = [(torch.randn(2, s, 6), n) for s, n in ((8, 3), (33, 20), (3, 2), (5, 4))]
    follows(model, [{1: LENGTH}, Dim.DYNAMIC], *calls)
    one = Call(lambda x, n: x[:, n] * 2)
    follows(one, [{0: ROWS}, Dim.DYNAMIC], *((torch.randn(n, 9, 6), n - 1) for n in (3, 1, 9)))


def test_values_are_those_at_the_upper_bounds() -> None:
    exported = torch.export.export(
        nn.Linear(4, 3), (torch.randn(2, 5, 4),), dynamic_shapes=[SEQUENCE]
    )
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    [part] = lowered_modules(edge.exported_program())
    graph = fb.unpack(part.processed_bytes)
    assert graph.version == 2 and graph.expressions is not None
    argument, result = (graph.values[i] for i in graph.arguments or ())
    assert argument.sizes == [9, 33, 4] and argument.strides == [132, 4, 1]
    assert result.sizes == [9, 33, 3] and result.place is fb.Place.OUTPUT
    kinds = [graph.expressions[i].kind for i in (argument.dynamic_sizes or ())[:2]]
    assert kinds == [fb.ExpressionKind.INPUT_SIZE] * 2 and (argument.dynamic_sizes or ())[2] == -1


def test_integers_are_moved_by_whom_uses_them() -> None:
    table = nn.Embedding(40, 6)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ids = x.unsqueeze(1)
        return table(ids.transpose(1, 2)), ids.cumsum(2)

    calls = [(torch.randint(0, 40, (2, n)),) for n in (5, 3, 33)]
    left = ["aten.cumsum.default", "aten.unsqueeze_copy.default"]
    assert follows(Call(function), [{1: LENGTH}], *calls, left=left) == ["Gather"]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_results_of_other_kernels_lie_as_the_engine_takes_them(layout: torch.memory_format) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        moved = x.to(torch.int64).transpose(1, 2)[:, 1:].to(torch.float32)
        return moved.relu(), x.transpose(2, 3).cumsum(1)[:, :, 1:] * 2

    images = [torch.randn(2, 3, 8, 9) * 5, torch.randn(1, 3, 8, 40) * 5]
    calls = [(x.to(memory_format=layout),) for x in images]
    left = ["aten.cumsum.default", "dim_order_ops._to_dim_order_copy.default"]
    moving = ["aten.permute_copy.default", "aten.slice_copy.Tensor"]
    follows(Call(function), [{0: ROWS, 3: WIDTH}], *calls, left=[*left, *moving])


# --- what it says no to ---------------------------------------------------------------------------


X = torch.randn(4, 8, 6)
TABLE = torch.randn(9, 6)


@pytest.mark.parametrize(
    ("function", "sizes", "reason"),
    [
        (lambda x: x.clamp(max=x.shape[1]), [{1: LENGTH}], "is known only at run time"),
        (lambda x: x[x > 0] * 2, [{}], "has a size that depends on the values of a tensor"),
        (lambda x: TABLE[x.shape[1] - 2] * x, [{1: Dim("n", max=9)}], "its index may count from"),
        (lambda x, n: x[:1].expand(n, -1, -1).sum(0), [{}, Dim.DYNAMIC], "which has no maximum"),
    ],
)
def test_reasons(function: Function, sizes: Any, reason: str) -> None:
    inputs: tuple[Any, ...] = (X, 3)[: len(sizes)]
    exported = torch.export.export(Call(function), inputs, dynamic_shapes=(tuple(sizes),))
    edge = rl.to_edge(exported).exported_program()
    reasons = CpuPartitioner().partition(edge).declined.values()
    assert any(reason in text for text in reasons), reasons


def test_the_runtime_refuses_what_is_beyond_the_bounds() -> None:
    exported = torch.export.export(nn.Linear(6, 3), (X,), dynamic_shapes=[SEQUENCE])
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    module = rl.load(bytes(edge.to_executorch().buffer))
    with pytest.raises(rl.RunError, match="10"):
        module(torch.randn(10, 8, 6))
    equal(module(X), torch.zeros(4, 8, 3) + module(X))


# --- models ---------------------------------------------------------------------------------------


class Inverted(nn.Module):
    """MobileNetV2's block."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        inner = 4 * channels
        self.is_residual = stride == 1 and channels == out
        self.layers = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU6(),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU6(),
            nn.Conv2d(inner, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.is_residual else self.layers(x)


def test_an_image_model_of_any_batch_and_size() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.ReLU6(),
        Inverted(8, 8, 1),
        Inverted(8, 12, 2),
        Inverted(12, 12, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 7),
    )
    operators = follows(model, [IMAGES], *((x,) for x in images(3)), tolerance=2e-4)
    assert (
        len(operators) == 12
        and operators.count("Convolution+") + operators.count("Convolution") == 10
    )


MEMORY = """
import sys
import numpy as np
from rushlight.peers.side import measure_sizes
from rushlight.runtime.load import load

def load_program():
    module = load(sys.argv[1], threads=1)
    return lambda size: module(np.ones((1, 3, size, size), np.float32))

print(*measure_sizes(load_program, [256, 16, 256, 16]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells")
def test_memory_follows_the_sizes(tmp_path: Path) -> None:
    """It runs in a process of its own, in which nothing else allocates memory."""
    side = Dim("side", min=2, max=32)
    model = nn.Sequential(nn.Conv2d(3, 32, 5, padding=2), nn.GELU(), nn.AvgPool2d(4)).eval()
    args, sizes = (torch.randn(1, 3, 64, 64),), [{2: 8 * side, 3: 8 * side}]
    program = rl.export(model, args, dynamic_shapes=sizes, backend="cpu", verify=False)
    program.save(tmp_path / "m.pte", quiet=True)
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "m.pte")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    large, small, large_again, small_again = map(int, printed.split())
    assert min(large, large_again) > 8 << 20  # 32 channels of 256 by 256 pixels
    assert max(small, small_again) < 4 << 20


def test_images_of_any_size_are_joined_again() -> None:
    down, up, out = (
        nn.Conv2d(3, 6, 3, 2, 1),
        nn.ConvTranspose2d(6, 3, 2, 2),
        nn.Conv2d(6, 2, 1),
    )
    half = Dim("half", min=4, max=20)
    calls = [(torch.randn(1, 3, 2 * h, 16),) for h in (5, 4, 20)]
    operators = follows(
        Call(lambda x: out(torch.cat([x, up(down(x))], 1))), [{2: 2 * half}], *calls
    )
    assert operators.count("Convolution") == 3


def config(kind: Any, **options: Any) -> Any:
    return kind(vocab_size=50, bos_token_id=0, eos_token_id=1, pad_token_id=2, **options)


def left_of_masks(edge: rl.EdgeProgramManager) -> set[str]:
    """The dtypes of the tensors that stay outside delegates."""
    kinds = set()
    for node in get_non_lowered_nodes(edge.exported_program().graph):
        if isinstance(node.meta["val"], torch.Tensor):
            kinds.add(str(node.meta["val"].dtype))
    return kinds


def model_follows(model: nn.Module, sizes: Any, *calls: tuple[torch.Tensor, ...]) -> None:
    """Check the results, and that there is one delegate with only positions and masks outside."""
    exported = torch.export.export(model, calls[0], dynamic_shapes=(tuple(sizes),), strict=False)
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    assert len(lowered_modules(edge.exported_program())) == 1
    assert left_of_masks(edge) <= {"torch.int64", "torch.bool"}
    module = rl.load(bytes(edge.to_executorch().buffer), check_backends=True)
    with torch.no_grad():
        for args in (*calls, *reversed(calls)):
            equal(module(*args), model(*args), 2e-4)


def test_gpt2_of_any_length() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    options = config(GPT2Config, n_layer=2, n_embd=32, n_head=2, n_positions=64, use_cache=False)
    model = GPT2LMHeadModel(options).eval()
    function = Call(lambda ids: model(input_ids=ids).logits)
    calls = [(torch.randint(0, 50, (1, n)),) for n in (8, 1, 64, 33)]
    model_follows(function, [{1: Dim("n", min=1, max=64)}], *calls)


def test_bert_of_any_batch_and_length() -> None:
    from transformers import BertConfig, BertModel

    options = config(
        BertConfig,
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    model = BertModel(options).eval()
    function = Call(lambda ids, mask: model(ids, attention_mask=mask).last_hidden_state)
    calls = []
    for rows, n in ((3, 8), (1, 1), (8, 64), (2, 7)):
        mask = (torch.arange(n) <= torch.arange(rows)[:, None] + n // 2).long()
        calls.append((torch.randint(0, 50, (rows, n)), mask))
    sizes = {0: Dim("rows", max=8), 1: Dim("n", min=1, max=64)}
    model_follows(function, [sizes, sizes], *calls)


@pytest.mark.parametrize("name", ["mobilenet_v2_tiny", "resnet50_tiny"])
def test_models_of_any_batch(models: ModuleType, name: str) -> None:
    case = models.build(name)
    [image] = case.leaves()
    calls = [(torch.randn(n, *image.shape[1:]),) for n in (2, 1, 5)]
    sizes = [{0: Dim("rows", max=5)}]
    follows(Call(lambda x: flat(case.module(x))[0]), sizes, *calls, tolerance=2e-4)
