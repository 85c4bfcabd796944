"""Exports a network by recipes, quantised and not, and runs both programs.

python export_and_run.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from executorch.backends.xnnpack.recipes import XNNPackRecipeType
from executorch.export import ExportRecipe, export
from executorch.runtime import Runtime

RECIPES = {
    "float": XNNPackRecipeType.FP32,
    "int8": XNNPackRecipeType.PT2E_INT8_STATIC_PER_CHANNEL,
}


class Regressor(torch.nn.Module):
    """A small perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = Regressor().eval()
    samples = [(torch.randn(8, 16),) for _ in range(4)]
    expected = model(*samples[0])
    for name, recipe in RECIPES.items():
        session = export(
            model=model, example_inputs=samples, export_recipe=ExportRecipe.get_recipe(recipe)
        )
        session.save_to_pte(str(folder / name))
        program = Runtime.get().load_program(folder / f"{name}.pte")
        output = program.load_method("forward").execute(samples[0])[0]
        error = (output - expected).abs().max() / expected.abs().max()
        methods = sorted(program.method_names)
        print(f"{name}: {methods}, output {tuple(output.shape)}, error below 5 %: {error < 0.05}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
