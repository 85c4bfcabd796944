"""Folders as `peft` writes them, of adapters for the tiny model; any detail can be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

LAYER = "model.layers.0.self_attn.q_proj"
WIDTH = 32  # of the tiny model


class Folder:
    """A folder of peft that may be changed before it is written.

    Attributes:
        path: the folder.
        config, tensors: what it has.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config: dict[str, Any] = {
            "peft_type": "LORA",
            "r": 4,
            "lora_alpha": 8,
            "target_modules": ["q_proj"],
            "bias": "none",
        }
        self.tensors: dict[str, torch.Tensor] = {}
        self.add(LAYER)

    def add(self, layer: str, rank: int = 4, inputs: int = WIDTH, outputs: int = WIDTH) -> None:
        """Add the matrices of a layer."""
        generator = torch.Generator().manual_seed(len(self.tensors))
        for part, shape in (("A", (rank, inputs)), ("B", (outputs, rank))):
            name = f"base_model.model.{layer}.lora_{part}.weight"
            self.tensors[name] = torch.randn(shape, generator=generator)

    def write(self) -> Path:
        """Write the folder."""
        self.path.mkdir(exist_ok=True)
        (self.path / "adapter_config.json").write_text(json.dumps(self.config))
        save_file(self.tensors, self.path / "adapter_model.safetensors")
        return self.path
