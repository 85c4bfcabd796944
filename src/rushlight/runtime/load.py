"""Opening programs: `load`."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight import _core
from rushlight.errors import Code, LoadError
from rushlight.files import AnyPath
from rushlight.runtime import contract as contracts
from rushlight.runtime.backends import BackendOptions, read_options
from rushlight.runtime.choice import load_chosen
from rushlight.runtime.failures import load_error
from rushlight.runtime.forms import KEY as FORMS
from rushlight.runtime.forms import read_index
from rushlight.runtime.module import Module
from rushlight.runtime.registries import library_paths
from rushlight.runtime.source import Source, describe_source, read_source
from rushlight.runtime.trace import TraceOptions, core_options

_MAX_THREADS = 1 << 31  # a greater number of threads is passed on as this
_MAX_BYTES = (1 << 64) - 1  # a greater limit of memory is passed on as this


def load(
    program: Source,
    *,
    threads: int | None = None,
    backend: str | None = None,
    data: Source | None = None,
    trace: bool | TraceOptions = False,
    memory_limit: int | None = None,
    map: bool = True,
    guard: bool = False,
    methods: Sequence[str] | None = None,
    backend_options: BackendOptions | None = None,
    check_backends: bool | None = None,
    failure_report: AnyPath | None = None,
    kernels: Sequence[AnyPath] | None = None,
) -> Module:
    """Load a program (.pte). Needs no torch.

    Args:
        program: a path; the content of a file, as `bytes`, which are used without a copy, or in
            another object with a buffer (a bytearray, an array, an mmap), which is copied; or an
            open binary file, which is read from its current position.
        threads: how many threads kernels may use, the caller's included; None: as many as there
            are physical cores that this process may use. All modules share one pool of threads; a
            call that finds it busy computes on its own thread alone. Results do not depend on the
            number. `Module.threads` is the number that is used: one below 1, above that of the
            cores, or for which the system does not start as many threads is corrected, with a
            RuntimeWarning.
        backend: the form of a fat program to use; None chooses the first whose backends are
            available and whose known answer comes out right. `Module.forms` says what was chosen
            and why.
        data: a data file (.ptd) with the weights that are not in the program, as for `program`. One
            that belongs to another program is refused.
        trace: record how long each instruction takes, and values if options ask for them, for
            `Module.trace`.
        memory_limit: bytes that arenas, structures and scratch of all methods may take together;
            a program that needs more is refused.
        map: map the files into memory, so that loading takes no time and processes share them.
            A mapped file must not be written to while a module lives; to replace it by renaming
            another over it, as `save` does, is safe. False: read the files, so that later changes
            of them have no effect.
        guard: before each call, compare the size and times of each mapped file with those when it
            was loaded: RunError if one has changed. A change during a call is not noticed.
        methods: the names of the methods to load; None loads all.
        backend_options: options of backends, which they get when they load: a mapping of a
            backend's id, or of a pair of a method and an id, to a dict of keys to bool, int or str.
            Options for a method win over options for all. At most 8 backends, keys of at most 63
            bytes, texts of at most 255. Each backend documents its keys.
        check_backends: after every call of a delegate, compare the method's memory with its
            content before, which finds a backend that writes anything but its outputs. Slow, and
            takes as much memory again as the arenas. None: only in a build with assertions.
        failure_report: a file that is written when a method cannot be loaded, or a call is refused
            or fails, over the one before: `rushlight explain` says from it what happened, also on
            another machine. While a method runs, it costs a look at the clock for each
            instruction. See `rushlight.runtime.install_crash_report`, too.
        kernels: shared libraries of kernels (`rl_kernel_v1.h`) for operators of your own, for this
            module and its clones; `rushlight.runtime.register_kernel` adds one in Python for all.

    Returns:
        A module with its methods loaded.

    Raises:
        LoadError: the file is damaged, cannot be read, or needs what this runtime does not have:
            all missing operators and backends are named. Backends of installed packages are found
            without being registered (`rushlight.runtime.register_backend` does that for others).
    """
    _check_methods(methods)
    where = describe_source(program)
    if threads is not None and _integer("threads", threads, "a number of threads") < 1:
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
        map=map,
        guard=guard,
        failure_report=failure_report,
        kernels=kernels,
    )
    try:
        return _load_methods(core, where, methods, backend, backend_options)
    finally:
        for line in _core.take_log():
            warnings.warn(line, RuntimeWarning, stacklevel=2)


def load_to_compare(program: Source, method: str, form: str | None) -> Module:
    """Load one method without a check of known answers, to compare its results with eager's.

    Raises:
        LoadError: as `load` does.
    """
    where = describe_source(program)
    core = open_program(program)
    try:
        return _load_methods(core, where, [method], form, None, known_answers=False)
    finally:
        for line in _core.take_log():
            warnings.warn(line, RuntimeWarning, stacklevel=2)


def _load_methods(
    core: _core.Program,
    where: str,
    methods: Sequence[str] | None,
    backend: str | None,
    backend_options: BackendOptions | None,
    *,
    known_answers: bool = True,
) -> Module:
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
            return load_chosen(
                core, contracts, index, wanted, backend, where, known_answers=known_answers
            )
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


def set_backend_options(
    core: _core.Program, options: BackendOptions | None, plans: Mapping[str, Sequence[str]]
) -> None:
    """Pass options to the methods' backends, before these are loaded.

    Args:
        core: the program.
        options: the argument of `load`.
        plans: the plans of each method in the file: the method itself and its other forms.

    Raises:
        LoadError: for an unknown backend or method, or an option that exceeds a limit.
    """
    if options is None:
        return
    backends = {m: [b for p in mine for b in core.meta(p)["backends"]] for m, mine in plans.items()}
    entries = read_options(options, backends)
    core.set_backend_options(
        [(b, plan, values) for b, m, values in entries for plan in plans.get(m, [m])]
    )


def _check_methods(methods: Sequence[str] | None) -> None:
    if isinstance(methods, str):
        raise LoadError(
            f"methods={methods!r}: give a list of names: methods=[{methods!r}]",
            code=Code.INVALID_ARGUMENT,
        )
    if isinstance(methods, Mapping):
        raise LoadError(
            f"methods={methods!r}: give the names of the methods to load, methods={[*methods]!r}; "
            f"constant methods are given when a model is exported, "
            f"rushlight.export(…, constant_methods={{…}})",
            code=Code.INVALID_ARGUMENT,
        )


def _integer(name: str, value: object, what: str) -> int:
    """The value of an option that is an integer of Python or NumPy."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise LoadError(f"{name}={value!r}: give {what}, or leave it out", code=Code.INVALID_ARGUMENT)


def _limit(memory_limit: object) -> int:
    """The limit for the extension; 0 for no limit."""
    if memory_limit is None:
        return 0
    limit = _integer("memory_limit", memory_limit, "a number of bytes")
    if limit < 1:
        raise LoadError(
            f"memory_limit={memory_limit!r}: give at least 1 byte, or leave it out",
            code=Code.INVALID_ARGUMENT,
        )
    return min(limit, _MAX_BYTES)


def _known(method: str, names: Sequence[str], where: str) -> str:
    if method not in names:
        raise LoadError(
            f"no method {method!r}; the program has {', '.join(names) or 'no methods'}",
            code=Code.NOT_FOUND,
            where=where,
        )
    return method


def open_program(
    program: Source,
    *,
    data: Source | None = None,
    trace: bool | TraceOptions = False,
    memory_limit: int | None = None,
    threads: int | None = None,
    check_backends: bool | None = None,
    map: bool = True,
    guard: bool = False,
    failure_report: AnyPath | None = None,
    kernels: Sequence[AnyPath] | None = None,
) -> _core.Program:
    """Open and verify a program without loading methods; the arguments are those of `load`.

    Raises:
        LoadError: if it cannot be read or is not sound.
    """
    where = describe_source(program)
    wanted = 0 if threads is None else _integer("threads", threads, "a number of threads")
    limit = _limit(memory_limit)
    path, image = read_source(program, "a program")
    external_path, external = read_source(data, "data") if data is not None else (None, None)
    try:
        return _core.Program.open(
            path,
            image,
            external_path,
            external,
            limit,
            core_options(trace),
            min(max(wanted, 0), _MAX_THREADS),
            check_backends,
            bool(map),
            bool(guard),
            b"" if failure_report is None else os.path.abspath(os.fsencode(failure_report)),
            library_paths(kernels),
        )
    except _core.Failure as failure:
        raise load_error(failure, where) from None


def contracts_of(
    core: _core.Program, names: Sequence[str], where: str
) -> dict[str, contracts.Contract]:
    """`read_contracts` of a program that is only opened; LoadError for a method that is damaged.

    Args:
        core: the program.
        names: the methods.
        where: the file, for the message.
    """
    try:
        return read_contracts(core, names)
    except _core.Failure as failure:
        raise load_error(failure, where, core) from None


def read_contracts(core: _core.Program, names: Sequence[str]) -> dict[str, contracts.Contract]:
    """The contract of each method, made from its tensors where the program carries none."""
    data = core.named_data(contracts.KEY)
    documents: dict[str, Any] = {} if data is None else contracts.read_contracts(data)
    return {n: contracts.make_contract(n, documents.get(n), core.meta(n)) for n in names}
