"""`rushlight bench --compare`: a model in all its forms and in other runtimes, in one run."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rushlight.cli.common import console
from rushlight.errors import Code, Error, RunError

if TYPE_CHECKING:
    from rich.table import Table

    from rushlight.peers.compare import Candidate, Peer, Row

PEERS = ("eager", "compile", "executorch", "onnxruntime", "openvino")
# The demo backend only shows how a backend is written.
_LEFT_OUT = ("demo",)
# Backends with a thread pool of their own, and their option for its size.
_THREADS = {"openvino": ("OpenvinoBackend", "INFERENCE_NUM_THREADS")}

Progress = Callable[[str], None]


@dataclass
class Options:
    """The command's arguments; see `rushlight.cli.bench`."""

    model: str
    inputs: Sequence[str]
    threads: int | None
    repeat: int
    warmup: int
    seed: int
    backend: str | None
    data: str | None
    peers: Sequence[str]
    only: Sequence[str]
    plot: str | None

    def takes(self, name: str) -> bool:
        """Whether a form or a runtime of this name takes part."""
        return not self.only or name in self.only


@dataclass
class _Entrants:
    """The forms and runtimes to time, those that cannot run and why, and notes to print."""

    candidates: list[Candidate] = field(default_factory=list)
    unable: list[tuple[str, str]] = field(default_factory=list)  # title and reason
    notes: list[str] = field(default_factory=list)


def run_comparison(options: Options) -> None:
    """Time everything, print the table, write the picture.

    Raises:
        Error: the model cannot be read, or nothing of it can be timed.
    """
    from rushlight import _core
    from rushlight.cli import plot
    from rushlight.cli.export import Stages
    from rushlight.peers.compare import Row, compare

    if options.plot is not None:
        plot.check(options.plot)  # before the measurements, which take minutes
    threads = options.threads or 0
    if threads < 1:  # as `load` does, take all cores
        threads = _core.usable_cores()
    with tempfile.TemporaryDirectory(prefix="rushlight-compare-") as name:
        folder = Path(name)
        with Stages(console(stderr=True)) as stages:
            if options.model.endswith(".pte"):
                entrants = _of_program(options, folder, stages)
            else:
                entrants = _of_model(options, folder, threads, stages)
            rows = compare(
                entrants.candidates,
                str(folder / "data.npz"),
                threads=threads,
                repeat=options.repeat,
                warmup=options.warmup,
                progress=stages,
            )
    rows += [Row(title, reason) for title, reason in entrants.unable]
    rows.sort(key=lambda row: row.median if row.seconds else float("inf"))
    title = f"{options.model}, {threads} thread{'s' if threads > 1 else ''}"
    timed = [row for row in rows if row.seconds]
    out = console()
    if timed:
        out.print(_table(title, timed))
    if len(timed) < len(rows):
        out.print(_unable([row for row in rows if not row.seconds]))
    for note in entrants.notes:
        out.print(note, style="dim", markup=False)
    if not timed:
        raise RunError("nothing could be timed: see above", code=Code.NOT_SUPPORTED)
    if options.plot is not None:
        plot.write(options.plot, title, timed)
        out.print(f"wrote {options.plot}", markup=False)


# --- candidates -----------------------------------------------------------------------------------


def _of_model(options: Options, folder: Path, threads: int, progress: Progress) -> _Entrants:
    """The candidates for a model that can be exported: every form of it, and every peer."""
    if options.inputs or options.data:
        raise RunError(
            "--input and --data go with a .pte; a model is timed on its example inputs",
            code=Code.INVALID_ARGUMENT,
        )
    progress("import PyTorch")
    import torch

    from rushlight.capture import capture
    from rushlight.cli.target import read_target
    from rushlight.partition.registry import installed

    forms = [name for name in installed() if name not in _LEFT_OUT or name in options.only]
    _check_names(options, [*forms, *PEERS])
    target = read_target(options.model)
    progress("capture")
    exported = capture(target.model, target.args, target.kwargs)
    _save_example(exported, folder / "data.npz")
    program = str(folder / "model.pt2")
    torch.export.save(exported, program)
    entrants = _Entrants()
    for form in filter(options.takes, forms):
        progress(f"export for {form}")
        _add_form(entrants, exported, form, folder, threads)
    _add_peers(entrants, options, program, folder, progress)
    return entrants


def _check_names(options: Options, known: Sequence[str]) -> None:
    for name in options.only:
        if name not in known:
            raise RunError(
                f"--only {name!r} is not one of the runtimes: {', '.join(known)}",
                code=Code.INVALID_ARGUMENT,
            )


def _add_form(entrants: _Entrants, exported: Any, form: str, folder: Path, threads: int) -> None:
    from rushlight.api import export
    from rushlight.inspect import report_of
    from rushlight.peers.compare import Candidate
    from rushlight.runtime.forms import PORTABLE

    title, file = f"Rushlight {form}", folder / f"{form}.pte"
    try:
        export(exported, backend=form, verify=False).save(file, quiet=True)
    except Error as error:
        entrants.unable.append((title, str(error)))
        return
    if form != PORTABLE and not any(method.delegates for method in report_of(file).methods):
        entrants.unable.append((title, "the backend takes no part of this model"))
        return
    options = {}
    if form in _THREADS:
        backend, key = _THREADS[form]
        options["backend_options"] = {backend: {key: threads}}
    entrants.candidates.append(Candidate(title, "rushlight", sys.executable, str(file), options))


def _add_peers(
    entrants: _Entrants, options: Options, program: str, folder: Path, progress: Progress
) -> None:
    from rushlight.peers.compare import find_peers, lower_for

    pythons = [sys.executable, *options.peers]
    wanted = [name for name in PEERS if options.takes(name)]
    peers = find_peers(pythons, wanted)
    for peer in peers:
        progress(f"make it ready for {peer.title}")
        candidate, reason = lower_for(peer, pythons, program, folder)
        if candidate is None:
            entrants.unable.append((peer.title, reason))
        else:
            entrants.candidates.append(candidate)
    entrants.notes += _absent(wanted, peers)


def _absent(wanted: Sequence[str], peers: Sequence[Peer]) -> list[str]:
    """A note that names the wanted runtimes that are not among the peers."""
    from rushlight.peers.runtimes import RUNTIMES

    missing = [RUNTIMES[n].title for n in wanted if n not in {peer.runtime for peer in peers}]
    if not missing:
        return []
    names = ", ".join(missing)
    return [f"not installed: {names}. --peer names the Python of an environment that has them"]


def _save_example(exported: Any, path: Path) -> None:
    """Write the program's example inputs and eager's results for them to a file.

    Raises:
        RunError: the program has no example inputs, or they are not all tensors that NumPy can
            hold.
    """
    import numpy as np
    import torch
    from torch.utils import _pytree as pytree

    from rushlight.peers.runtimes import arrays_of

    if exported.example_inputs is None:
        raise RunError(
            "the exported program has no example inputs to time it on; export it with some",
            code=Code.INVALID_ARGUMENT,
        )
    args, kwargs = exported.example_inputs
    inputs = pytree.tree_leaves((args, kwargs))
    arrays = {f"in{i}": _array(value) for i, value in enumerate(inputs)}
    with torch.inference_mode():
        outputs = pytree.tree_leaves(exported.module()(*args, **kwargs))
    arrays.update({f"out{i}": array for i, array in enumerate(arrays_of(outputs))})
    np.savez(path, **arrays)


def _array(value: Any) -> Any:
    """An example input as a NumPy array."""
    try:
        return value.detach().numpy().copy()
    except (AttributeError, TypeError) as error:  # no tensor, or of a dtype that NumPy lacks
        kind = getattr(value, "dtype", type(value).__name__)
        raise RunError(
            f"--compare takes models whose inputs are tensors that every runtime takes, not "
            f"{kind}; wrap the model in one that makes it",
            code=Code.NOT_SUPPORTED,
        ) from error


def _of_program(options: Options, folder: Path, progress: Progress) -> _Entrants:
    """The candidates for a .pte: each of its forms, and ExecuTorch if that can run it."""
    import numpy as np

    from rushlight.cli.inputs import complete, read_inputs
    from rushlight.inspect import report_of
    from rushlight.peers.compare import Candidate, find_peers
    from rushlight.runtime.load import load

    progress("read the program")
    method = load(options.model, threads=1, data=options.data)["forward"]
    values = read_inputs(options.inputs, method.contract.inputs)
    flat = complete(method, values, random=True, seed=options.seed)
    if not all(isinstance(value, np.ndarray) for value in flat):
        raise RunError(
            "--compare takes programs whose inputs are arrays; bench without it times this one",
            code=Code.NOT_SUPPORTED,
        )
    arrays: dict[str, Any] = {f"in{i}": x for i, x in enumerate(flat)}
    np.savez(folder / "data.npz", **arrays)
    report = report_of(options.model)
    forms = [form.name for form in report.forms]
    _check_names(options, [*forms, "executorch"])
    entrants = _Entrants()
    data = {"data": options.data} if options.data else {}
    for form in filter(options.takes, forms):
        more = (sys.executable, options.model, {"backend": form, **data})
        entrants.candidates.append(Candidate(f"Rushlight {form}", "rushlight", *more))
    if not forms:
        entrants.candidates.append(
            Candidate("Rushlight", "rushlight", sys.executable, options.model, data)
        )
    entrants.notes.append(
        "a .pte holds what it was exported for: only itself can be compared. Other runtimes and "
        "other forms need the model, model.py:build"
    )
    if not options.takes("executorch"):
        return entrants
    if report.executorch or options.data:
        why = report.executorch[0] if report.executorch else "its weights are in a data file"
        entrants.notes.append(f"ExecuTorch cannot run it: {why}")
        return entrants
    peers = find_peers([sys.executable, *options.peers], ("executorch",))
    entrants.notes += _absent(("executorch",), peers)
    for peer in peers:
        entrants.candidates.append(Candidate(peer.title, peer.runtime, peer.python, options.model))
    return entrants


# --- tables ---------------------------------------------------------------------------------------


def _table(title: str, rows: Sequence[Row]) -> Table:
    from rich.text import Text

    from rushlight.inspect.text import table_of

    columns = ("", "median ms", "p10 – p90", "of the fastest", "load ms", "MB", "off eager's")
    table = table_of(title, *columns, right=(1, 2, 3, 4, 5, 6), drop=(4, 5, 2, 6))
    best = min((row.median for row in rows), default=0.0)
    for row in rows:
        low, high = row.p10_p90
        table.add_row(
            Text(row.title),
            *(
                ms_text(row.median),
                f"{ms_text(low)} – {ms_text(high)}",
                f"{row.median / best:.2f}x",
            ),
            ms_text(row.load),
            "-" if row.memory is None else f"{row.memory / 1e6:.1f}",
            "-" if row.error is None else f"{row.error:.0e}",
        )
    return table


def _unable(rows: Sequence[Row]) -> Table:
    from rich.text import Text

    from rushlight.inspect.text import table_of

    table = table_of("not timed", "", "why")
    for row in rows:
        table.add_row(Text(row.title), Text(row.reason, style="yellow"))
    return table


def ms_text(seconds: float) -> str:
    """Milliseconds with about three digits, without the unit: for columns."""
    ms = 1e3 * seconds
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.3g}"
