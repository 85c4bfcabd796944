"""Makes xnnpack_*.pte with ExecuTorch 1.4.1: `python make_xnnpack.py [NAME]` in its environment.

Their delegates are what its XNNPACK partitioner takes: between them they have nearly all of the
nodes that it writes. The outputs that ExecuTorch computes for inputs of ones are added to
expected.json.
"""

from __future__ import annotations

import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

HERE = pathlib.Path(__file__).parent


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, stride=2)
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.wide = nn.Conv2d(8, 12, 3, groups=2, dilation=2, padding=2, bias=False)
        self.up = nn.ConvTranspose2d(12, 8, 2, stride=2)
        self.slope = nn.PReLU(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        y = F.hardswish(self.stem(x))
        y = F.relu6(self.deep(y) + y)
        z = self.wide(F.pad(y, (1, 0, 0, 1), value=0.5)).relu()
        z = self.slope(self.up(z))
        z = F.interpolate(z, (9, 7), mode="bilinear", align_corners=False)
        z = F.max_pool2d(z, 3, 2, 1) + F.avg_pool2d(z, 3, 2, 1, count_include_pad=False)
        return self.head(z.mean((2, 3), keepdim=True).reshape(2, 8)), y[:, 2:6]


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(24, 24) for _ in range(3))
        self.up, self.down = nn.Linear(24, 40, bias=False), nn.Linear(40, 24)
        self.weight = nn.Parameter(torch.randn(24, 10) * 0.1)

    def heads(self, x):
        return x.view(2, 7, 3, 8).permute(0, 2, 1, 3).reshape(6, 7, 8)

    def forward(self, x, scale):
        q, k, v = (self.heads(f(x)) for f in (self.q, self.k, self.v))
        scores = torch.bmm(q, k.permute(0, 2, 1)) * scale
        mixed = torch.bmm(F.softmax(scores, -1), v).reshape(2, 3, 7, 8)
        x = x + mixed.permute(0, 2, 1, 3).reshape(2, 7, 24)
        x = self.down(F.gelu(self.up(x))) + x
        y = torch.cat([x.sin(), x.cos().abs().sqrt(), x.floor()], -1)
        y = torch.maximum(y, y.exp().clamp(-1, 3)) - torch.minimum(y, y.tanh())
        z = torch.mm(x.reshape(14, 24), self.weight) / (x.reshape(14, 24)[:, :10].abs() + 1).log()
        return -y * torch.sigmoid(y), F.leaky_relu(z.ceil().pow(2) - 3, 0.1)


class Halves(nn.Module):
    """In float16, but for what goes in and comes out."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1, stride=2)
        self.head = nn.Linear(6, 20)
        self.weight = nn.Parameter(torch.randn(20, 18))
        self.half()

    def forward(self, x):
        y = F.pad(self.stem(x.half()).relu(), (0, 1))
        z = self.head(y.permute(0, 2, 3, 1))
        z = torch.mm(torch.sigmoid(z).reshape(-1, 20), self.weight) * 0.25
        return torch.cat([z, z + 1], 1).float(), F.max_pool2d(y, 2, 2).float()


class Integers(nn.Module):
    """Whose values are int8 between two conversions."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1, stride=2)
        self.deep = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.head = nn.Linear(6 * 6, 5)

    def forward(self, x):
        y = self.stem(x).relu()
        y = self.deep(y) + y
        return self.head(F.max_pool2d(y, 2, 2).flatten(1)), y.mean((2, 3), keepdim=True)


class Scales(nn.Module):
    """Whose paddings and functions lie between values of different scales."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3, groups=6)
        self.c, self.d = nn.Conv2d(6, 4, 1), nn.Conv2d(6, 4, 3)

    def forward(self, x):
        y = F.relu6(self.a(F.pad(x, (0, 1, 0, 1))))
        z = F.relu6(self.b(F.pad(y, (1, 1, 1, 1))))
        w = F.pad(z, (1, 1, 1, 1), value=0.7)
        return self.c(F.pad(z, (0, 0, 0, 0))), self.d(w), F.pad(w, (2, 0, 0, 0)).clamp(0.1, 0.5)


class Rows(nn.Module):
    """Whose rows are made int8 when they come."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(24, 40), nn.Linear(40, 7, bias=False)

    def forward(self, x):
        return self.down(self.up(x).relu())


def quantized(model, inputs, dynamic):
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
    captured = torch.export.export(model.eval(), inputs).module()
    observed = prepare_pt2e(captured, XNNPACKQuantizer().set_global(config))
    observed(*(torch.randn_like(x) for x in inputs))
    return convert_pt2e(observed)


def main() -> None:
    torch.manual_seed(0)
    path = HERE / "expected.json"
    expected = json.loads(path.read_text())
    image, rows = (torch.ones(1, 3, 8, 12),), (torch.ones(3, 24),)
    for name, model, inputs in (
        ("images", Images(), (torch.ones(2, 3, 12, 14),)),
        ("sequence", Sequence(), (torch.ones(2, 7, 24), torch.ones(1))),
        ("halves", Halves(), (torch.ones(1, 3, 8, 6),)),
        ("integers", quantized(Integers(), image, dynamic=False), image),
        ("scales", quantized(Scales(), image, dynamic=False), image),
        ("rows", quantized(Rows(), rows, dynamic=True), rows),
    ):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        if not isinstance(model, torch.fx.GraphModule):
            model = model.eval()
        exported = torch.export.export(model, inputs)
        edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
        file = HERE / f"xnnpack_{name}.pte"
        file.write_bytes(edge.to_executorch().buffer)
        method = Runtime.get().load_program(file).load_method("forward")
        expected[f"xnnpack_{name}.forward"] = [out.tolist() for out in method.execute(inputs)]
    path.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
