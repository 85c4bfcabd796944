"""ExecuTorch over PyTorch's operator database: runs in its own environment.

Of ours it imports only ``tests/ops/opinfo.py``, which says what the calls are and when results are
equal. Commands, as in ``executorch_side.py``:

* ``outcome name= index=``: export one call for the portable kernels, run it and compare with eager;
  answers with [kind, reason], or null if eager refuses the call.
* ``program path=``: the same for a file of ``torch.export.save`` with its example inputs.
* ``suite folder=``: write every case of ExecuTorch's own operator suite that eager runs and
  torch.export captures as such a file, named by module, test and call; answers with how many.
* ``serve``: answer requests (see ``rushlight/peers/side.py``).
"""

from __future__ import annotations

import logging
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "rushlight" / "peers"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import side
import torch
from torch.utils import _pytree as pytree

from ops import opinfo

torch.set_num_threads(1)
logging.disable(logging.ERROR)


@lru_cache(maxsize=4)
def _calls(name: str) -> list[opinfo.Call]:
    return list(opinfo.calls_to_export(name, whole=True))


def outcome(name: str, index: int) -> list[str] | None:
    call = _calls(name)[int(index)]
    try:
        expected = call.expected(name)
    except Exception:
        return None
    module, inputs = opinfo.as_module(call)
    try:
        with opinfo.quiet(), torch.no_grad():
            program = torch.export.export(module, opinfo.copied(inputs))
    except Exception as error:
        return ["refused", f"{type(error).__name__}: {error}"[:300]]
    return _lowered(program, inputs, expected, opinfo.compared(name))


def program(path: str) -> list[str]:
    exported = torch.export.load(path)
    expected, compared = opinfo.results_of(exported)
    return _lowered(exported, exported.example_inputs[0], expected, compared)


def _lowered(program: Any, inputs: Any, expected: Any, compared: int) -> list[str]:
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

    try:
        with opinfo.quiet():
            # As ExecuTorch's own suite does it: what is not Core ATen may have a kernel as well.
            config = EdgeCompileConfig(_check_ir_validity=False)
            lowered = to_edge_transform_and_lower(program, compile_config=config)
            buffer = lowered.to_executorch().buffer
    except Exception as error:
        return ["refused", f"{type(error).__name__}: {error}"[:300]]
    try:
        leaves = pytree.tree_leaves(opinfo.copied(inputs))
        got = _load_for_executorch_from_buffer(buffer).run_method("forward", tuple(leaves))
    except Exception as error:
        return ["broken", f"run: {type(error).__name__}: {error}"[:300]]
    try:
        wanted = pytree.tree_leaves(opinfo.as_tuples(expected))
        assert len(got) == len(wanted), f"{len(got)} results, eager has {len(wanted)}"
        for at, (g, e) in enumerate(zip(got, wanted, strict=True)):
            opinfo.assert_equal(at, g, e, compared)
    except AssertionError as error:
        return ["broken", f"result: {error}"[:300]]
    return ["passes", ""]


class _Plain(torch.nn.Module):
    """A module whose named tuples are tuples."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any) -> Any:
        return opinfo.as_tuples(self.module(*args))


class _Saver:
    """Stands where the suite's runner does: keeps what a test would lower and run."""

    _flow = SimpleNamespace(name="portable", quantize=False, is_delegated=False)

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.calls = 0
        self.saved = 0

    def lower_and_run_model(
        self, model: torch.nn.Module, inputs: Any, dynamic_shapes: Any = None, **_: Any
    ) -> None:
        name = f"{self.name}.{self.calls}"
        self.calls += 1
        try:
            with torch.no_grad():
                result = model(*opinfo.copied(inputs))
                if isinstance(result, tuple) and type(result) is not tuple:
                    model = _Plain(model)  # a file of torch.export.save cannot name its type
                program = torch.export.export(model, tuple(inputs), dynamic_shapes=dynamic_shapes)
        except Exception:
            return
        torch.export.save(program, self.folder / f"{name}.pt2")
        self.saved += 1


def suite(folder: str) -> int:
    import importlib
    import pkgutil
    import unittest

    sys.modules.setdefault("pytest", _pytest())
    from executorch.backends.test.suite import operators

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    saved = 0
    for entry in pkgutil.iter_modules(operators.__path__):
        module = importlib.import_module(f"{operators.__name__}.{entry.name}")
        for name in sorted(n for n in dir(module) if n.startswith("test")):
            function = getattr(module, name)
            saver = _Saver(target, f"{entry.name}.{name}")
            torch.manual_seed(0)
            for arguments in getattr(function, "parameters", [{}]):
                try:
                    with opinfo.quiet():
                        function(saver, **arguments)
                except unittest.SkipTest:
                    continue
            saved += saver.saved
    return saved


def _pytest() -> ModuleType:
    """What the suite uses of pytest, which ExecuTorch's environment does not have."""

    def parametrize(name: str, values: list[Any], **_: Any) -> Any:
        def decorate(function: Any) -> Any:
            function.parameters = [{name: value} for value in values]
            return function

        return decorate

    module = ModuleType("pytest")
    module.mark = SimpleNamespace(parametrize=parametrize)  # type: ignore[attr-defined]
    return module


COMMANDS: dict[str, side.Command] = {"outcome": outcome, "program": program, "suite": suite}

if __name__ == "__main__":
    side.main(COMMANDS, __doc__)
