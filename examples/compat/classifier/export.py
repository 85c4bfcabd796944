"""Trains a small network to tell shapes apart, and exports it with test images and labels.

python export.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower

LABELS = ("square", "cross", "disc", "stripes")
SIZE = 32


def draw(label: int, shift: int) -> torch.Tensor:
    """An image of one of the shapes, (3, SIZE, SIZE), with values from 0 to 1."""
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    y, x = y - SIZE // 2 - shift, x - SIZE // 2 + shift
    quarter = SIZE // 4
    shape = (
        (x.abs() < quarter) & (y.abs() < quarter),
        (x.abs() < 3) | (y.abs() < 3),
        x**2 + y**2 < quarter**2,
        (x + y) % 8 < 4,
    )[label]
    return shape.float().expand(3, SIZE, SIZE) * torch.tensor([1.0, 0.8, 0.6]).reshape(3, 1, 1)


class Classifier(torch.nn.Module):
    """Two convolutions and a linear layer; takes values from 0 to 1."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            *(torch.nn.Conv2d(3, 8, 5, stride=2), torch.nn.ReLU()),
            *(torch.nn.Conv2d(8, 16, 5, stride=2), torch.nn.ReLU()),
            *(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, len(LABELS))),
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """The probability of each label."""
        return torch.softmax(self.layers((image - 0.5) / 0.25), dim=-1)


def train(model: Classifier) -> None:
    """A few turns are enough for four shapes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for turn in range(100):
        labels = torch.arange(len(LABELS)).repeat(4)
        images = torch.stack([draw(int(label), turn % 5 - i % 3) for i, label in enumerate(labels)])
        images = images + 0.1 * torch.rand_like(images)
        loss = torch.nn.functional.nll_loss(torch.log(model(images) + 1e-6), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def write_ppm(image: torch.Tensor, file: Path) -> None:
    """An image as a binary PPM file."""
    pixels = (image * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous()
    header = f"P6 {pixels.shape[1]} {pixels.shape[0]} 255\n".encode()
    file.write_bytes(header + bytes(pixels.flatten().tolist()))


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = Classifier()
    train(model)
    exported = torch.export.export(model.eval(), (torch.zeros(1, 3, SIZE, SIZE),))
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    with open(folder / "classifier.pte", "wb") as file:
        lowered.to_executorch().write_to_file(file)
    (folder / "labels.txt").write_text("\n".join(LABELS) + "\n")
    for label, name in enumerate(LABELS):
        large = draw(label, shift=2).repeat_interleave(2, -1).repeat_interleave(2, -2)
        write_ppm(large, folder / f"{name}.ppm")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
