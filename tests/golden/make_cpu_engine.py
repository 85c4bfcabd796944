"""Makes the programs of this folder whose delegates are the cpu backend's: `python
make_cpu_engine.py`.

They hold payloads of version 1, which every later runtime must load, and together every operation
of schema/cpu_engine.fbs. A new version of the payload gets files of its own: these stay as they
are. Eager PyTorch's outputs for inputs of ones go to expected.json.
"""

from __future__ import annotations

import json
import pathlib
import typing

import torch
import torch.nn.functional as F
from torch import nn

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.schema import cpu_engine

HERE = pathlib.Path(__file__).parent
VERSION = 1


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


def write(name: str, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> set[str]:
    """The kinds of its steps."""
    exported = torch.export.export(model.eval(), inputs)
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    (HERE / f"{name}.pte").write_bytes(bytes(edge.to_executorch().buffer))
    steps = set()
    for node in edge.exported_program().graph.nodes:
        if node.op == "get_attr":
            lowered = getattr(edge.exported_program().graph_module, node.target)
            graph = cpu_engine.unpack(lowered.processed_bytes)
            assert graph.version == VERSION
            steps |= {type(step.operation).__name__ for step in graph.steps}
    return steps


def main() -> None:
    torch.manual_seed(0)
    path = HERE / "expected.json"
    expected = json.loads(path.read_text())
    programs = {
        "images": (Images(), (torch.ones(2, 3, 12, 12),)),
        "sequence": (Sequence(), (torch.ones(2, 9), torch.ones(64, 24))),
    }
    steps = set()
    for name, (model, inputs) in programs.items():
        name = f"cpu_engine_v{VERSION}_{name}"
        steps |= write(name, model, inputs)
        with torch.no_grad():
            outputs = model(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        expected[f"{name}.forward"] = [output.tolist() for output in outputs]
    assert steps == {kind.__name__ for kind in typing.get_args(cpu_engine.Operation)}
    path.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
