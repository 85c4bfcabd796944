"""The commands of ``executorch_side.py`` for exported programs in files of ``exir.save``.

* ``save_program program= data= path= stage= outputs=``: lower a program of ``torch.export.save`` to
  a stage ("aten", "edge", "xnnpack" or "out"), write it, and then what it computes of the inputs.
* ``load_program path= data= outputs= [pte=]``: read a program and write what it computes; with
  `pte`, lower it on to a file, too. Answers with the ids of the backends that it calls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import side
import torch


def save_program(program: str, data: str, path: str, stage: str, outputs: str) -> None:
    from executorch import exir
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    exported = torch.export.load(program)
    if stage != "aten":
        partitioner = [XnnpackPartitioner()] if stage == "xnnpack" else None
        edge = exir.to_edge_transform_and_lower(exported, partitioner=partitioner)
        exported = (edge.to_executorch() if stage == "out" else edge).exported_program()
    exir.save(exported, path)
    _compute(exported, data, outputs)


def load_program(path: str, data: str, outputs: str, pte: str | None = None) -> list[str]:
    from executorch import exir
    from executorch.exir.lowered_backend_module import get_lowered_backend_modules

    exported = exir.load(path)
    ids = [one.backend_id for one in get_lowered_backend_modules(exported.graph_module)]
    _compute(exported, data, outputs)
    if pte is not None:  # which changes the program
        config = exir.EdgeCompileConfig(_check_ir_validity=False)  # linear is whole in it
        manager = exir.EdgeProgramManager(exir.load(path), compile_config=config)
        made = manager.to_executorch()
        Path(pte).write_bytes(made.buffer)
    return ids


def _compute(exported: Any, data: str, outputs: str) -> None:
    inputs = list(map(torch.from_numpy, side.read_inputs(data)))
    with torch.no_grad():
        computed = torch.utils._pytree.tree_leaves(exported.module()(*inputs))
    np.savez(outputs, **{f"out{i}": np.asarray(value) for i, value in enumerate(computed)})
