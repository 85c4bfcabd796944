"""The operators and backends that programs can use in this process, and kernels of your own.

A program names its operators. Those that the runtime has no kernel for are looked up among the
kernels that are registered here, for all programs of this process, or given with
`rushlight.load(..., kernels=[...])` for one. Libraries that export `rl_get_loaded_kernel_v1`, as
those do that are written for ExecuTorch, are registered once the process has loaded them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rushlight import _core
from rushlight.errors import Code, LoadError
from rushlight.files import AnyPath
from rushlight.runtime.backends import absent_backends, installed_backends
from rushlight.schema.operators import OperatorSchema


class BackendRegistry:
    """The backends that are registered."""

    @property
    def registered_backend_names(self) -> list[str]:
        """Ids, in the order of registration."""
        return _core.backend_names()

    @property
    def installed_backend_names(self) -> list[str]:
        """Ids of the backends that installed packages offer (entry points of the group
        `rushlight.runtime_backends`); each is registered when a program first names it."""
        return installed_backends()

    def is_available(self, backend_name: str) -> bool:
        """Whether a backend works on this machine; one that an installed package offers is
        registered."""
        return not absent_backends([backend_name])


class OperatorRegistry:
    """The operators that have a kernel."""

    @property
    def operator_names(self) -> set[str]:
        """Names with overload: "aten::add.out"."""
        return _core.operator_names()


backend_registry = BackendRegistry()
operator_registry = OperatorRegistry()

KernelFunction = Callable[..., Any]


def register_kernel(
    schema: str, function: KernelFunction, *, replace: bool = False, in_delegates: bool = False
) -> str:
    """Give an operator a kernel in Python, for all programs that are loaded from now on.

    Args:
        schema: the operator's schema, as in "acme::snake(Tensor x, float a) -> Tensor"; a program
            whose own schema of the operator differs is refused.
        function: gets the arguments in the order of the schema: tensors as NumPy arrays over the
            program's memory, valid during the call only, and read-only unless the operator writes
            them; numbers, texts, lists and None as they are. It returns the results as arrays, a
            tuple of them if there are several, which are copied, and None if there are none. It may
            be called by several threads.
        replace: take the place of a kernel that was registered for the operator; methods that are
            loaded keep the old one.
        in_delegates: it may be called inside a delegate, between operators of the cpu backend: the
            sizes of its results depend on the sizes and numbers of its arguments alone, not on
            elements.

    Returns:
        The operator's name in programs, such as "acme::snake.out".

    Raises:
        LoadError: the schema is none, or the operator has a kernel already.
    """
    if not callable(function):
        raise TypeError(f"the kernel must be a function, not {type(function).__name__}")
    try:
        variant = OperatorSchema.read(schema).out_variant()
        signature = variant.signature
    except ValueError as error:
        raise LoadError(str(error), code=Code.INVALID_ARGUMENT) from None
    if replace:
        _core.unregister_kernel(variant.name)
    try:
        _core.register_kernel(
            variant.name, signature, len(variant.outs), function, in_delegates=in_delegates
        )
    except _core.Failure as failure:
        advice = "" if replace else "; pass replace=True to take the place of a registered one"
        raise _load_error(failure, advice) from None
    return variant.name


def register_kernel_library(path: AnyPath) -> list[str]:
    """Register the kernels of a shared library that exports `rl_get_kernel_v1` (`rl_kernel_v1.h`),
    for all programs that are loaded from now on. The library stays loaded, and may be given again.

    Returns:
        The names of the operators that have a kernel now.

    Raises:
        LoadError: the library cannot be loaded, has no kernels or one that this runtime cannot use,
            or an operator has another kernel already.
    """
    return _register_library(path)[1]


def _register_library(path: AnyPath) -> tuple[int, list[str]]:
    """The number of a library that is registered, and the names of its kernels."""
    try:
        return _core.register_kernel_library(os.fsencode(path))
    except _core.Failure as failure:
        raise _load_error(failure) from None


def unregister_kernel(name: str) -> None:
    """Remove a registered kernel; methods that are loaded keep it.

    Args:
        name: the operator's name in programs, such as "acme::snake.out".

    Raises:
        LoadError: none of that name was registered.
    """
    if not _core.unregister_kernel(name):
        have = ", ".join(sorted(registered_kernels())) or "none"
        raise LoadError(
            f"no kernel of {name!r} was registered; registered: {have}", code=Code.NOT_FOUND
        )


def registered_kernels() -> set[str]:
    """The operators that have a registered kernel."""
    return _core.operator_names(own=True)


def kernels_in_delegates() -> set[str]:
    """The operators that have a registered kernel which may be called inside a delegate."""
    return _core.kernels_in_delegates()


@contextmanager
def lent_kernels(paths: Sequence[AnyPath] | None) -> Iterator[None]:
    """Register the kernels of libraries for as long as the context; those that were registered
    before stay so.

    Args:
        paths: the libraries.

    Raises:
        LoadError: as `register_kernel_library`.
    """
    numbers: list[int] = []
    try:
        for path in _paths(paths):
            numbers.append(_register_library(path)[0])
        yield
    finally:
        for number in numbers:
            _core.unregister_kernel_library(number)


def library_paths(kernels: Sequence[AnyPath] | None) -> list[bytes]:
    """The paths of libraries of kernels for the extension.

    Args:
        kernels: the argument of `load`.

    Raises:
        LoadError: it is no list of paths.
    """
    return [os.fsencode(path) for path in _paths(kernels)]


def _paths(kernels: Sequence[AnyPath] | None) -> list[AnyPath]:
    if kernels is None:
        return []
    is_path = isinstance(kernels, str | bytes | os.PathLike)
    is_list = isinstance(kernels, Iterable) and not is_path
    libraries = list(kernels) if is_list else []
    if not is_list or not all(isinstance(path, str | bytes | os.PathLike) for path in libraries):
        raise LoadError(
            f"kernels={kernels!r}: give a list of paths of shared libraries, as in "
            f"kernels=['libacme.so']; a kernel in Python is given to "
            f"rushlight.runtime.register_kernel",
            code=Code.INVALID_ARGUMENT,
        )
    return libraries


def _load_error(failure: _core.Failure, advice: str = "") -> LoadError:
    return LoadError(failure.args[1] + advice, code=Code(failure.args[0]))
