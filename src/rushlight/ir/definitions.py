"""Defines operators that ExecuTorch's package defines too.

Torch accepts one definition of an operator in a process; a second one is an error, and if it comes
from a C++ library, it ends the process. So an operator that another package has defined is used as
it is, and our definitions are removed when an ExecuTorch module that defines the same operators is
imported. Graphs that were made before still run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from threading import Lock
from types import ModuleType
from typing import Any

import torch
from torch._ops import OpOverload

_UNUSED = "PrivateUse3"  # a kind of device that nobody has
_LOCK = Lock()


class Definitions:
    """Our operators of one namespace, until a module that defines them too is imported.

    Args:
        namespace: the part of the operators' names before "::".
        theirs: the modules that define the operators too.
        held: our code keeps the operators in constants, so they must stay the same objects.
    """

    def __init__(self, namespace: str, theirs: Sequence[str], *, held: bool = False) -> None:
        self._namespace = namespace
        self._held = held
        self._theirs = frozenset(theirs)
        self._own: torch.library.Library | None = None
        # A kernel that is never called keeps torch's entry of an operator alive while its
        # definition changes: references to the operator refer to that entry.
        self._kept = torch.library.Library(namespace, "IMPL")

    def define(
        self,
        schema: str,
        kernel: Callable[..., Any] | None = None,
        key: str = "CompositeExplicitAutograd",
        fake: Callable[..., Any] | None = None,
    ) -> bool:
        """Define an operator, unless one of that name is defined in this process.

        Args:
            schema: the schema, without the namespace.
            kernel: the function that computes it, if it is ever run.
            key: the kernel's dispatch key.
            fake: gives the shapes of the results; without it the kernel does.

        Returns:
            Whether the operator was defined by this call.
        """
        name = schema.partition("(")[0]
        with _LOCK:
            if self.schema_of(name) is not None:
                return False
            if self._own is None:
                self._own = torch.library.Library(self._namespace, "FRAGMENT")
                if self not in sys.meta_path:
                    sys.meta_path.insert(0, self)
            self._own.define(schema)
            if kernel is not None:
                self._own.impl(name, kernel, key)
            if fake is not None:
                torch.library.register_fake(f"{self._namespace}::{name}", fake, lib=self._own)
            if f"{self._namespace}/{name}/{_UNUSED}" not in self._kept._op_impls:
                self._kept.impl(name, torch.library.fallthrough_kernel, _UNUSED)
        return True

    def schema_of(self, name: str) -> torch._C.FunctionSchema | None:
        """The schema of a defined operator, by a name such as "add" or "add.out"; else None."""
        base, _, overload = name.partition(".")
        for schema in torch._C._jit_get_schemas_for_operator(f"{self._namespace}::{base}"):
            if schema.overload_name == overload:
                return schema
        return None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called for every import, as an import finder; it watches for `theirs`, finds nothing."""
        package = sys.modules.get(name.partition(".")[0])
        # Modules of a package that gives our own names under theirs define nothing.
        if name in self._theirs and not hasattr(package, "__rushlight__"):
            self._give_way()
        return None

    def _give_way(self) -> None:
        """Undefine all operators that we defined."""
        with _LOCK:
            if self._own is None:
                return
            namespace = getattr(torch.ops, self._namespace)
            names = {n.partition("::")[2].partition(".")[0] for n in self._own._op_defs}
            packets = {name: getattr(namespace, name) for name in names if self._held}
            self._own._destroy()
            self._own = None  # first: deleting a library removes its operators once more
            for name, packet in packets.items():
                setattr(namespace, name, packet)
                namespace._dir.append(name)
                for overload in vars(packet).values():
                    if isinstance(overload, OpOverload):
                        overload._dispatch_cache.clear()
