"""Trials of mixes: each quantises the model and measures it; several can run at a time."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import cloudpickle
import torch
import torch.utils._pytree as pytree
from joblib import Parallel, delayed, parallel_config
from torch.export import ExportedProgram
from torchao.quantization.pt2e.quantizer import QuantizationConfig

from rushlight.accuracy.search import Mix, Outcome
from rushlight.errors import Code, ExportError
from rushlight.files import write_text
from rushlight.quantization import CpuQuantizer, quantize
from rushlight.quantization.calibrate import Item

Metric = Callable[[torch.nn.Module], float]


@dataclass
class Task:
    """The data that all trials share; it is sent to other processes as one file.

    Attributes:
        program: the captured float model.
        layers: the paths of the modules.
        configs: the configuration of each level.
        elsewhere: how operators outside the layers are quantised; None if they stay float.
        items: the inputs, for calibration and comparison.
        metric: a function of the quantised module; greater is better.
    """

    program: ExportedProgram
    layers: Sequence[str]
    configs: Mapping[str, QuantizationConfig]
    elsewhere: QuantizationConfig | None
    items: Sequence[Item]
    metric: Metric

    def quantized(self, mix: Mix) -> ExportedProgram:
        """The program with each layer of `mix` quantised at its level; itself if there is none."""
        if not mix:
            return self.program
        quantizer = CpuQuantizer(self.elsewhere)
        for layer in self.layers:
            level = mix.get(layer)
            quantizer.set_module_name(layer, self.configs[level] if level else None)
        data = [item.args if not item.kwargs else dict(item.kwargs) for item in self.items]
        return quantize(self.program, calibrate=data, recipe=quantizer)

    def run(self, mix: Mix) -> Outcome:
        """Quantise, and measure the metric and the noise relative to the float model."""
        module = self.quantized(mix).module()
        signal = noise = 0.0
        for exact, value in zip(self._exact, self._results(module), strict=True):
            signal += float(exact.square().sum())
            noise += float((value - exact).square().sum())
        return Outcome(measured(self.metric, module), noise / signal if signal > 0 else 0.0)

    def __getstate__(self) -> dict[str, Any]:
        file = io.BytesIO()  # torch has a format of its own for programs
        torch.export.save(self.program, file)
        return {**vars(self), "program": file.getvalue()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        program = torch.export.load(io.BytesIO(state["program"]))
        vars(self).update({**state, "program": program})

    @cached_property
    def _exact(self) -> list[torch.Tensor]:
        return list(self._results(self.program.module()))

    def _results(self, module: torch.nn.Module) -> Iterator[torch.Tensor]:
        """All float results of all inputs, in float64."""
        for item in self.items:
            with torch.no_grad():
                leaves = pytree.tree_leaves(module(*item.args, **item.kwargs))
            for leaf in leaves:
                if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
                    yield leaf.double()


def measured(metric: Metric, module: torch.nn.Module) -> float:
    """The metric of a module.

    Raises:
        ExportError: the metric does not return a number.
    """
    with torch.no_grad():
        value = metric(module)
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ExportError(
            f"metric gave {type(value).__name__}, not a number: let it return one float for its "
            f"module, greater for a better model",
            code=Code.INVALID_ARGUMENT,
        ) from error


class Trials:
    """Runs trials, and reads and writes a file of finished ones if there is one.

    Args:
        task: the data that all trials share.
        workers: the number of trials at a time; each has a process.
        ray: run the trials on a Ray cluster that this process is, or can be, connected to.
        resume: a file of finished trials, which is read first and added to.
        progress: called with a line before each batch.
    """

    def __init__(
        self,
        task: Task,
        *,
        workers: int = 1,
        ray: bool = False,
        resume: str | os.PathLike[str] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._task = task
        self._workers = workers
        self._ray = ray
        self._say = progress or (lambda line: None)
        self._journal = Journal(resume, fingerprint(task)) if resume is not None else None

    def __call__(self, mixes: Sequence[Mix]) -> list[Outcome]:
        """The outcomes of mixes, in their order."""
        known = self._journal.known if self._journal else {}
        keys = [_key(mix) for mix in mixes]
        fresh = [(key, mix) for key, mix in zip(keys, mixes, strict=True) if key not in known]
        outcomes = dict(known)
        if fresh:
            self._say(f"{len(fresh)} trials")
            for (key, _), outcome in zip(fresh, self._run([m for _, m in fresh]), strict=True):
                outcomes[key] = outcome
                if self._journal:
                    self._journal.add(key, outcome)
        return [outcomes[key] for key in keys]

    def _run(self, mixes: Sequence[Mix]) -> Iterator[Outcome]:
        """Outcomes as trials finish, so that each is written at once."""
        if self._ray:
            _register_ray()
            data = _packed(self._task)  # not as a file: workers may be other machines
            with parallel_config(backend="ray"):
                yield from Parallel(n_jobs=-1)(delayed(_run_one)(data, dict(m)) for m in mixes)
        elif self._workers > 1:
            with tempfile.TemporaryDirectory(prefix="rushlight-trials-") as folder:
                path = Path(folder) / "task"
                path.write_bytes(_packed(self._task))
                parallel = Parallel(n_jobs=self._workers, return_as="generator")
                yield from parallel(delayed(_run_one)(str(path), dict(m)) for m in mixes)
        else:
            yield from (self._task.run(mix) for mix in mixes)


def _packed(task: Task) -> bytes:
    try:
        return bytes(cloudpickle.dumps(task))
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise ExportError(
            f"the metric or the data cannot go to other processes ({error}): take open files, "
            f"locks and generators out of the metric, or leave workers at 1",
            code=Code.INVALID_ARGUMENT,
        ) from error


def _run_one(task: str | bytes, mix: Mix) -> Outcome:
    torch.set_num_threads(1)
    return _loaded(task).run(mix)


@lru_cache(maxsize=1)
def _loaded(task: str | bytes) -> Task:
    data = task if isinstance(task, bytes) else Path(task).read_bytes()
    loaded: Task = cloudpickle.loads(data)
    return loaded


def _register_ray() -> None:
    try:
        from ray.util.joblib import register_ray
    except ModuleNotFoundError as error:
        raise ExportError(
            "ray=True needs Ray, which is not installed: pip install 'rushlight[ray]', or give "
            "workers=",
            code=Code.NOT_FOUND,
        ) from error
    register_ray()


def _key(mix: Mix) -> str:
    return json.dumps(sorted(mix.items()))


def fingerprint(task: Task) -> str:
    """A hash of what outcomes depend on: the graph, weights, data and levels."""
    digest = hashlib.sha256(str(task.program.graph).encode())
    digest.update(repr([(k, str(v)) for k, v in task.configs.items()]).encode())
    tensors = [*task.program.state_dict.values(), *task.program.constants.values()]
    tensors += pytree.tree_leaves([(item.args, item.kwargs) for item in task.items])
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor):
            data = tensor.detach().cpu().contiguous().flatten().view(torch.uint8)
            digest.update(data.numpy().tobytes())
    return digest.hexdigest()


class Journal:
    """A file with a line for each finished trial.

    Args:
        path: the file's path; it is made if it does not exist.
        task: the fingerprint of the trials' task.

    Raises:
        ExportError: the file is of another search, or is not a file of trials.
    """

    def __init__(self, path: str | os.PathLike[str], task: str) -> None:
        self._path = Path(path)
        self.known: dict[str, Outcome] = {}
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        head = _parsed(lines[0]) if lines else {"task": task}
        if head.get("task") != task:
            raise ExportError(
                f"{self._path} holds trials of another model, data or choice of recipes: give "
                f"resume= another path, or remove that file",
                code=Code.INVALID_ARGUMENT,
            )
        for line in lines[1:]:
            trial = _parsed(line)
            if trial.keys() == {"mix", "metric", "noise"}:  # the last line may be cut
                self.known[trial["mix"]] = Outcome(trial["metric"], trial["noise"])
        rows = [head, *(_row(key, outcome) for key, outcome in self.known.items())]
        write_text(self._path, "".join(json.dumps(row) + "\n" for row in rows))

    def add(self, key: str, outcome: Outcome) -> None:
        """Append a finished trial to the file."""
        self.known[key] = outcome
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_row(key, outcome)) + "\n")


def _row(key: str, outcome: Outcome) -> dict[str, Any]:
    return {"mix": key, "metric": outcome.metric, "noise": outcome.noise}


def _parsed(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        return {}
    return row if isinstance(row, dict) else {}
