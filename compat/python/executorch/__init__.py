"""ExecuTorch's Python names, each of which is an object of Rushlight's.

    from executorch.exir import to_edge  # is rushlight.pipeline.to_edge

`executorch/_names/` has the tables of all modules and names; modules are made of them when they
are imported, and a name is looked up when it is first used, so that what needs no torch loads
none. What newer releases of PyTorch have lost comes with `import executorch.torch_shims`, or if
the environment variable EXECUTORCH_TORCH_SHIMS is 1.
"""

from __future__ import annotations

import os
from importlib import metadata

from executorch import _finder


def _check_alone() -> None:
    """Refuses to stand beside real ExecuTorch, whose files it would mix with its own."""
    try:
        real = metadata.distribution("executorch")
    except metadata.PackageNotFoundError:
        return
    raise ImportError(
        f"two distributions provide the package 'executorch': executorch {real.version} and "
        "rushlight-executorch, which gives ExecuTorch's names to Rushlight. Keep one: "
        "`pip uninstall executorch` to run on Rushlight, or `pip uninstall rushlight-executorch`, "
        "and then `pip install --force-reinstall executorch`, to run on ExecuTorch"
    )


__rushlight__ = True  # tells Rushlight that modules of this package define no operators

_check_alone()
_finder.install()
if os.environ.get("EXECUTORCH_TORCH_SHIMS") == "1":
    from executorch import torch_shims as torch_shims
