"""Backends: the interface of one in Python, registration, and backends of installed packages.

A program names the backends of its delegates. A backend that is not registered when a program is
loaded is looked up among the entry points of the group `rushlight.runtime_backends`, so installing
a package is enough to use its backend.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rushlight import _core
from rushlight.errors import Code, LoadError
from rushlight.runtime import identity

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "rushlight.runtime_backends"
_CAPSULE = "rl_backend_v1"
_MAX_ID = 63  # bytes, ExecuTorch's limit
_MAX_CALLS = 4  # of functions that an entry point leads to, each returning the next

Option = bool | int | str
BackendOptions = Mapping[str | tuple[str, str], Mapping[str, Option]]


class BackendContext(Protocol):
    """The interface to the runtime that a backend in Python gets for one delegate; the same object
    in `init` and in every `execute` of that delegate.

    Attributes:
        method: the method that the delegate belongs to.
        payload: the result of `preprocess`, read-only, in the memory of the program's file without
            a copy; None after `destroy`. Arrays made of it keep the program's memory alive.
        compile_specs: key to bytes.
        options: the options given at load, key to bool, int or str.
    """

    method: str
    payload: memoryview
    compile_specs: dict[str, bytes]
    options: dict[str, Option]

    @property
    def is_traced(self) -> bool:
        """Whether a trace is recorded: calls of `event` and `value` do nothing without one."""

    def named_data(self, key: str) -> memoryview | None:
        """The bytes of this name in the program or its data file, read-only and not copied; None
        if there are none. Arrays made of them keep the program's memory alive."""

    def release_payload(self) -> None:
        """In `init`: free the payload's memory, because it will not be read again."""

    def fail_at(self, id: int | str) -> None:
        """Before raising an exception, say where in the delegate it happened: an id of the
        debug-handle map that `preprocess` returned."""

    def resize(self, index: int, shape: Sequence[int]) -> Any:
        """In `execute`: give output `args[index]` another shape, within its bound; returns a new
        array to write instead of `args[index]`."""

    def event(self, id: int | str, start_ns: int, stop_ns: int, metadata: bytes = b"") -> None:
        """Report the time from `start_ns` to `stop_ns` inside the delegate, for `Module.trace`.

        Args:
            id: the place, as for `fail_at`.
            start_ns, stop_ns: on the clock of `time.perf_counter_ns` or any other.
            metadata: bytes of the backend's own, which `Inspector(delegate_metadata_parser=)` gets.
        """

    def wants_value(self, id: int | str) -> bool:
        """Whether a call of `value` for this place is recorded."""

    def value(self, id: int | str, array: Any) -> None:
        """In `execute`: report what a place inside the delegate computed, for traces with values
        (`TraceOptions(values=)`) and `rushlight debug`. Does nothing if it is not wanted.

        Args:
            id: the place, as for `event`.
            array: a NumPy array, a torch tensor or another array on the CPU, which is copied.
        """


class Backend(Protocol):
    """A backend in Python: any object with these methods. `is_available`, `version` and `destroy`
    may be left out. An exception that they raise becomes the cause of a LoadError or RunError with
    its text.
    """

    def is_available(self) -> bool:
        """Whether it can work on this machine."""

    def version(self) -> str:
        """The version of other code that its results depend on, such as a library that it calls."""

    def init(self, context: BackendContext) -> Any:
        """Prepare a payload for `execute`; the result is passed to it as its handle."""

    def execute(self, context: BackendContext, handle: Any, args: tuple[Any, ...]) -> None:
        """Run once.

        Args:
            context: the context of the delegate.
            handle: the result of `init`.
            args: inputs, then outputs. Tensors are NumPy arrays over the program's own memory, not
                copies: inputs read-only, outputs to be written (`args[-1][...] = result`). They are
                valid during this call only: copy values to keep them. If anything still refers to
                one of the arrays when this returns, the call fails, and the module cannot run again
                before that reference is gone. Without ml_dtypes, bfloat16 and other types that
                NumPy lacks appear as unsigned integers. Scalars are Python numbers.
        """

    def destroy(self, handle: Any) -> None:
        """Called once when the delegate is freed."""


def register_backend(id: str, backend: Any, *, replace: bool = False) -> None:
    """Make a backend known to all programs that are loaded from now on.

    Args:
        id: the backend's name in programs, 1 to 63 bytes.
        backend: a `Backend`, or its class, which is called without arguments.
        replace: replace a backend with the same id; methods that are loaded keep the old one.

    Raises:
        LoadError: if the id is taken, or 16 backends are registered already.
        TypeError: if the backend has no `init` or no `execute`.
    """
    if not isinstance(id, str) or not 1 <= len(id.encode()) <= _MAX_ID or "\0" in id:
        raise LoadError(
            f"the id of a backend is a text of 1 to {_MAX_ID} bytes, not {id!r}",
            code=Code.INVALID_ARGUMENT,
        )
    if isinstance(backend, type):
        backend = backend()
    lacking = [n for n in ("init", "execute") if not callable(getattr(backend, n, None))]
    if lacking:
        raise TypeError(
            f"{type(backend).__name__} is not a backend: it has no {' and no '.join(lacking)}"
        )
    if replace:
        _core.unregister_backend(id)
    try:
        _core.register_backend(id, backend)
    except _core.Failure as failure:
        advice = "" if replace else "; pass replace=True to take its place"
        raise _load_error(failure, id, advice) from None
    identity.made_of_nothing_known(id)


def register_backend_library(path: str | os.PathLike[str]) -> list[str]:
    """Register the backends of a shared library that exports `rl_get_backend_v1`
    (`rl_backend_v1.h`). The library stays loaded.

    Returns:
        The ids of the backends.

    Raises:
        LoadError: if the library cannot be loaded, has no backends, or one that this runtime cannot
            use.
    """
    try:
        ids = _core.register_backend_library(os.fsencode(path))
    except _core.Failure as failure:
        raise _load_error(failure, "") from None
    for id in ids:
        identity.made_of_files(id, Path(path).resolve())
    return ids


def register_backend_capsule(capsule: Any) -> str:
    """Register the backend in a PyCapsule named "rl_backend_v1"; returns its id.

    Raises:
        LoadError: if this runtime cannot use it.
    """
    try:
        id = _core.register_backend_capsule(capsule)
    except _core.Failure as failure:
        raise _load_error(failure, "") from None
    identity.made_of_nothing_known(id)
    return id


def unregister_backend(id: str) -> None:
    """Remove a backend from the registry; methods that are loaded keep it.

    Raises:
        LoadError: if there is none of that id.
    """
    if not _core.unregister_backend(id):
        have = ", ".join(_core.backend_names()) or "none"
        raise LoadError(f"no backend {id!r} is registered; registered: {have}", code=Code.NOT_FOUND)


def include_path() -> Path:
    """The folder of `rl_backend_v1.h`, `rl_kernel_v1.h` and `custom_kernel.h`, to build backends
    and kernels against."""
    return Path(__file__).resolve().parents[1] / "include"


def installed_backends() -> list[str]:
    """The ids of the backends that installed packages offer."""
    return sorted({point.name for point in _entry_points()})


def _entry_points(name: str = "") -> Iterable[EntryPoint]:
    """Those of backends, or of one name. What reads them takes long to import, and few programs
    need it."""
    from importlib.metadata import entry_points

    return entry_points(group=GROUP, name=name) if name else entry_points(group=GROUP)


def find_backends(program: _core.Program, methods: Iterable[str]) -> dict[str, str]:
    """Register the backends that the methods need, from installed packages.

    Returns:
        The ids of backends that a package offers but that cannot be registered, each with the
        reason.
    """
    wanted = {b for method in methods for b in program.meta(method)["backends"]}
    return {id: problem for id, problem in _find(wanted).items() if problem}


def absent_backends(ids: Iterable[str]) -> list[str]:
    """The backends among `ids` that cannot work here, each with the reason if it is known: "npu",
    or "npu (offered by npu-tools, which fails: …)". Backends of installed packages are registered
    first.
    """
    wanted = sorted(set(ids))
    reasons = dict.fromkeys(wanted, "it says that it does not work on this machine") | _find(wanted)
    absent = [id for id in wanted if not _core.backend_is_available(id)]
    return [f"{id} ({reasons[id]})" if reasons[id] else id for id in absent]


def _find(ids: Iterable[str]) -> dict[str, str]:
    """Register the backends among `ids` that installed packages offer.

    Returns:
        The ids that are still not registered, each with the reason ("": no package offers it).
    """
    missing = sorted(set(ids) - set(_core.backend_names()))
    problems = {id: _register_installed(id) for id in missing}
    return {id: problems[id] for id in missing if id not in _core.backend_names()}


def _register_installed(id: str) -> str:
    """Register the backend of an entry point. Returns why that fails; "" if there is no such entry
    point or it succeeds."""
    points = list(_entry_points(id))
    if not points:
        return ""
    sources = sorted({p.dist.name if p.dist is not None else p.value for p in points})
    if len(sources) > 1:
        return f"offered by several packages: {', '.join(sources)}. Uninstall all but one"
    try:
        backend = _register_loaded(id, points[0].load(), _MAX_CALLS)
        if id in _core.backend_names():
            identity.made_of_package(id, points[0], backend)
            return ""
    except Exception as error:
        return f"offered by {sources[0]}, which fails: {type(error).__name__}: {error}"
    return f"offered by {sources[0]}, which does not have it: its entry point has another id"


def _register_loaded(id: str, loaded: Any, calls: int) -> Any:
    """Register the object of an entry point: a backend, a class, a capsule, a path, or a function
    that returns one of these. Returns the backend if it is one in Python."""
    if isinstance(loaded, str | os.PathLike):
        register_backend_library(loaded)
    elif type(loaded).__name__ == "PyCapsule":
        register_backend_capsule(loaded)
    elif isinstance(loaded, type) or hasattr(loaded, "execute"):
        backend = loaded() if isinstance(loaded, type) else loaded
        register_backend(id, backend)
        return backend
    elif callable(loaded) and calls > 0:
        return _register_loaded(id, loaded(), calls - 1)
    else:
        raise TypeError(
            f"its entry point gives {type(loaded).__name__}, not a backend, its class, a capsule "
            f"{_CAPSULE!r}, the path of a library, or a function that returns one of these"
        )
    return None


def read_options(
    options: BackendOptions | None, program_backends: Mapping[str, Sequence[str]]
) -> list[tuple[str, str, list[tuple[str, Option]]]]:
    """Convert the `backend_options` of a load for the extension.

    Args:
        options: the user's options.
        program_backends: the backends that each method's delegates name.

    Raises:
        LoadError: for a backend or method that the program does not have, or a value of another
            type.
    """
    return [_read_entry(key, values, program_backends) for key, values in (options or {}).items()]


def _read_entry(
    key: Any, values: Any, program_backends: Mapping[str, Sequence[str]]
) -> tuple[str, str, list[tuple[str, Option]]]:
    pair = key if isinstance(key, tuple) else ("", key)
    if len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise _wrong_option(
            f"{key!r} is neither a backend's id nor a pair of a method and a backend's id"
        )
    method, backend = pair
    if method and method not in program_backends:
        have = ", ".join(program_backends) or "none"
        raise _wrong_option(f"the program has no method {method!r}; it has {have}")
    known = {b for m, ids in program_backends.items() if method in ("", m) for b in ids}
    if backend not in known:
        have = ", ".join(sorted(known)) or "none"
        whose = f"the method {method!r}" if method else "the program"
        raise _wrong_option(f"{whose} has no delegate for a backend {backend!r}; it has: {have}")
    if not isinstance(values, Mapping):
        raise _wrong_option(f"the options of {key!r} are a {type(values).__name__}, not a dict")
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, bool | int | str):
            raise _wrong_option(
                f"{backend}: {name!r}: {value!r} is a {type(value).__name__}; keys are str, values "
                f"bool, int or str"
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise _wrong_option(f"{backend}: {name!r}: {value} does not fit 64 bits")
    return backend, method, list(values.items())


def _wrong_option(problem: str) -> LoadError:
    return LoadError(f"backend_options: {problem}", code=Code.INVALID_ARGUMENT)


def _load_error(failure: _core.Failure, where: str, advice: str = "") -> LoadError:
    return LoadError(failure.args[1] + advice, code=Code(failure.args[0]), where=where)
