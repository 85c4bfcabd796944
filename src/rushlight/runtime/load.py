"""Opening programs: `load`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight import _core
from rushlight.errors import Code, LoadError
from rushlight.runtime import contract as contracts
from rushlight.runtime.backends import BackendOptions, read_options
from rushlight.runtime.choice import load_chosen
from rushlight.runtime.failures import load_error
from rushlight.runtime.forms import KEY as FORMS
from rushlight.runtime.forms import read_index
from rushlight.runtime.module import Module

_MOST_THREADS = 1 << 31  # that are passed on: far beyond what there can be
Source = str | os.PathLike[str] | bytes | bytearray | memoryview


def load(
    program: Source,
    *,
    threads: int | None = None,
    backend: str | None = None,
    verify: str = "full",
    data: Source | None = None,
    trace: bool = False,
    memory_limit: int | None = None,
    methods: Sequence[str] | None = None,
    backend_options: BackendOptions | None = None,
    check_backends: bool | None = None,
) -> Module:
    """Load a program (.pte). Needs no torch.

    Args:
        program: a path, which is mapped and must not be changed while the module lives, or the
            bytes of a file. `bytes` are used where they lie; a bytearray is copied.
        threads: how many threads kernels may use, the caller's among them; None: as many as there
            are physical cores that this process may use. 1: none beside the caller's. All modules
            share one pool of threads, and a call that finds it at work does its own work itself.
            Results do not depend on the number. `Module.threads` tells it. A number below 1, or
            above that of the cores, is used as well as it can be, with a RuntimeWarning, and so is
            one for which the system does not start as many threads.
        backend: of a fat program, the form to use; None chooses the first whose backends are here
            and whose known answer comes out right. `Module.forms` says what was chosen and why.
        verify: "full": everything in the file is checked before it is used. There is no other way.
        data: a data file (.ptd) with the weights that the program leaves out: a path or bytes.
        trace: record how long each instruction takes, for `Module.trace`.
        memory_limit: bytes that arenas, structures and scratch of all methods may take together;
            a program that needs more is refused.
        methods: load only these methods; None loads all.
        backend_options: what backends are told when they load: a backend's id, or a pair of a
            method and an id, to a dict of keys to bool, int or str. What is given for a method
            comes before what is given for all. At most 8 backends; keys have up to 63 bytes, texts
            up to 255. Which keys there are says the backend.
        check_backends: after every call of a delegate, compare the method's memory with what it
            held before, so that a backend that writes anything but its outputs is found. Slow, and
            takes as much memory again as the arenas. None: only in a build with assertions.

    Returns:
        A module with all its methods loaded.

    Raises:
        LoadError: if the file is not a sound program, or needs what this runtime does not have. Of
            missing operators and backends all are named; backends that installed packages offer
            are found by themselves (`rushlight.runtime.backends`). Nothing stays loaded.
    """
    _check_options(threads, verify, memory_limit)
    where = describe_source(program)
    if threads is not None and threads < 1:
        warnings.warn(
            f"threads={threads}: there must be 1 at least; one for each core is used instead",
            RuntimeWarning,
            stacklevel=2,
        )
    core = open_program(
        program,
        data=data,
        trace=trace,
        memory_limit=memory_limit,
        threads=threads,
        check_backends=check_backends,
    )
    try:
        names = core.method_names()
        index = read_index(core.named_data(FORMS), names)
        if index is not None:
            names = [name for name in names if name not in index.hidden()]
        wanted = names if methods is None else [_known(m, names, where) for m in methods]
        plans = {m: [m] if index is None else index.plans_of(m) for m in wanted}
        set_backend_options(core, backend_options, plans)
        contracts = read_contracts(core, wanted)
        if index is not None:
            return load_chosen(core, contracts, index, wanted, backend, where)
        if backend not in (None, "portable"):
            raise LoadError(
                f"backend={backend!r}: the program has one form only; leave backend= out, or "
                f"export it with backend=[{backend!r}, 'portable']",
                code=Code.NOT_FOUND,
                where=where,
            )
        return Module(core, contracts, [(name, name) for name in wanted], where)
    except _core.Failure as failure:
        raise load_error(failure, where, core) from failure.__cause__
    finally:
        for line in _core.take_log():
            warnings.warn(line, RuntimeWarning, stacklevel=2)


def set_backend_options(
    core: _core.Program, options: BackendOptions | None, plans: Mapping[str, Sequence[str]]
) -> None:
    """Give the methods' backends options, before they are loaded.

    Args:
        core: the program.
        options: as `load` takes them.
        plans: method to its plans in the file: itself, and its other forms.

    Raises:
        LoadError: for a backend or a method that is not there, or an option that breaks a limit.
    """
    if options is None:
        return
    backends = {m: [b for p in mine for b in core.meta(p)["backends"]] for m, mine in plans.items()}
    found = read_options(options, backends)
    core.set_backend_options(
        [(b, plan, values) for b, m, values in found for plan in plans.get(m, [m])]
    )


def _check_options(threads: int | None, verify: str, memory_limit: int | None) -> None:
    if threads is not None and not isinstance(threads, int):
        raise LoadError(
            f"threads={threads!r}: give a number, or leave it out",
            code=Code.INVALID_ARGUMENT,
        )
    if verify != "full":
        raise LoadError(
            f"verify={verify!r}: programs are always verified fully; leave it out, or pass 'full'",
            code=Code.NOT_SUPPORTED,
        )
    if memory_limit is not None and (not isinstance(memory_limit, int) or memory_limit < 1):
        raise LoadError(
            f"memory_limit={memory_limit!r}: give a number of bytes", code=Code.INVALID_ARGUMENT
        )


def _known(method: str, names: Sequence[str], where: str) -> str:
    if method not in names:
        raise LoadError(
            f"no method {method!r}; the program has {', '.join(names) or 'no methods'}",
            code=Code.NOT_FOUND,
            where=where,
        )
    return method


def describe_source(source: object) -> str:
    """A path, or "program in memory", for messages."""
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    return "program in memory"


def open_program(
    program: Source,
    *,
    data: Source | None = None,
    trace: bool = False,
    memory_limit: int | None = None,
    threads: int | None = None,
    check_backends: bool | None = None,
) -> _core.Program:
    """Open and verify a program without loading methods.

    Raises:
        LoadError: if it cannot be read or is not sound.
    """
    where = describe_source(program)
    path, image = _source(program, "a program")
    external_path, external = _source(data, "data") if data is not None else (None, None)
    try:
        return _core.Program.open(
            path,
            image,
            external_path,
            external,
            memory_limit or 0,
            trace,
            min(max(threads or 0, 0), _MOST_THREADS),
            check_backends,
        )
    except _core.Failure as failure:
        raise load_error(failure, where) from None


def _source(source: object, what: str) -> tuple[bytes | None, bytes | None]:
    """(path, None) or (None, bytes)."""
    if isinstance(source, str | os.PathLike):
        path = os.fsencode(source)
        if not os.path.isfile(path):
            raise LoadError(
                "no such file: check the path, or pass the program's bytes",
                code=Code.ACCESS_FAILED,
                where=os.fsdecode(path),
            )
        return path, None
    if isinstance(source, memoryview) and type(source.obj) is bytes:
        source = source.obj if source.nbytes == len(source.obj) else bytes(source)
    if isinstance(source, bytes):
        return None, source
    if isinstance(source, bytearray | memoryview):
        return None, bytes(source)  # a copy: what was verified must not change afterwards
    advice = ": pass its buffer" if hasattr(source, "buffer") else ""
    raise LoadError(
        f"{what} is given as a path or as bytes, not as {type(source).__name__}{advice}",
        code=Code.INVALID_ARGUMENT,
    )


def read_contracts(core: _core.Program, names: Sequence[str]) -> dict[str, contracts.Contract]:
    """The contract of each method, made from its tensors where the program carries none."""
    data = core.named_data(contracts.KEY)
    found: dict[str, Any] = {} if data is None else contracts.read_contracts(data)
    return {n: contracts.make_contract(n, found.get(n), core.meta(n)) for n in names}
