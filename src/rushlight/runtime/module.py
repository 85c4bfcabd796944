"""Programs that can be called: `Module` and its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from rushlight import _core
from rushlight.errors import Code, RunError
from rushlight.runtime.arguments import Arguments
from rushlight.runtime.backends import find_backends
from rushlight.runtime.contract import Contract
from rushlight.runtime.copies import NotCopied
from rushlight.runtime.failures import (
    is_missing,
    load_error,
    missing_error,
    run_error,
    write_report,
)
from rushlight.runtime.forms import FormChoice
from rushlight.runtime.measures import CaseResult, Memory
from rushlight.runtime.signature import Signature
from rushlight.runtime.state import State
from rushlight.runtime.trace import Trace
from rushlight.runtime.tree import Tree, TreeError


class Method(NotCopied):
    """One method of a module; call it as the model's method was called."""

    def __init__(self, name: str, contract: Contract, core: _core.Method, owner: _core.Program):
        self.name = name
        self.contract = contract
        self._core = core
        self._program = owner  # for the lines of messages
        core.narrow(contract.input_specs(), len(contract.symbols))
        self._structure = _structure(contract.out_spec)
        core.set_structure(self._structure or "list")
        core.describe(
            [v.label for v in contract.inputs],
            [f"output {path}" if path else "the output" for path in contract.out_spec.paths()],
            [v.type_text for v in contract.outputs],
        )
        self._arguments = Arguments(name, contract)
        self._in_order = self._arguments.in_order
        plain = all(part.kind == "leaf" for part in self._arguments.parts)
        strings = any(v.kind == "str" for v in contract.inputs)
        # The extension checks such a call by itself; all others are checked here first.
        self._direct = plain and not strings and not contract.needs_python

    def set_kv_cache(self, cache: _core.KvCache | None) -> None:
        """Lend a key-value cache to all later runs of a language model's method.

        Programs are checked with it; `rushlight.llm.load` has caches of its own.

        Args:
            cache: the cache; None for none.
        """
        self._core.set_kv_cache(cache)

    @property
    def signature(self) -> Signature:
        """The method's inputs and results."""
        return Signature.of(self.name, self.contract)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the method; RunError if the inputs are refused or the run fails."""
        return self.call(args, kwargs)

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the method; `method(*args, **kwargs)` without unpacking."""
        try:
            if self._direct and len(args) <= self.contract.positional:
                result = self._core.call(self._in_order(args, kwargs) if kwargs else args)
                if result is not NotImplemented:
                    return result if self._structure else self._unflatten(result)
            flat = self.flatten(args, kwargs)
            result = self._core.call(flat)
            if result is NotImplemented:
                raise self._refused()
        except _core.Failure as failure:
            raise run_error(failure, self._program) from failure.__cause__
        except RunError as refusal:
            self._report(refusal)
            raise
        return result if self._structure else self._unflatten(result)

    def call_flat(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Run the method and return its results flattened, in order."""
        return self.contract.out_spec.leaves(self.call(args, kwargs))

    def call_values(self, leaves: list[Any]) -> list[Any]:
        """Run the method on flattened inputs as the model takes them; its results, flattened."""
        args, kwargs = self.contract.in_spec.unflatten(iter(leaves))
        return self.call_flat(args, kwargs)

    def call_into(self, outputs: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Run the method and write its results into `outputs`; see `Module.execute_into`."""
        arrays = self._flatten_outputs(outputs)
        try:
            values = self._in_order(args, kwargs) if kwargs else args
            direct = self._direct and len(args) <= self.contract.positional
            if direct and self._core.call_into(list(values), arrays):
                return
            if not self._core.call_into(self.flatten(args, kwargs), arrays):
                raise self._refused()
        except _core.Failure as failure:
            raise run_error(failure, self._program) from failure.__cause__
        except RunError as refusal:
            self._report(refusal)
            raise

    def verify(
        self, index: int, *, rtol: float | None = None, atol: float | None = None, name: str = ""
    ) -> CaseResult:
        """Run a test case of the bundled program that was loaded, as in the first call after a
        load; the state that calls have left is lost.

        Args:
            index: which of the method's cases.
            rtol, atol: in place of the tolerances in the file.
            name: for the result.

        Raises:
            RunError: the run fails, there is no such case, or it is damaged.
        """
        try:
            report = self._core.verify(
                *(self.name, index),
                *(-1.0 if rtol is None else rtol, -1.0 if atol is None else atol),
            )
        except _core.Failure as failure:
            raise run_error(failure, self._program) from failure.__cause__
        return CaseResult.of(report, self.name, index, name)

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The flattened inputs of a call as the program takes them, checked against the contract.

        Raises:
            RunError: if they are not what the method takes.
        """
        return self.contract.to_program(self._arguments.flatten(args, kwargs))

    def _report(self, refusal: RunError) -> None:
        with suppress(_core.Failure):  # within one of the module's own calls
            text = str(refusal).encode(errors="replace").decode()
            write_report(refusal, self._core.report_refusal(refusal.code, text))

    def _refused(self) -> RunError:
        return RunError(
            f"the inputs are not what the program takes: {self.signature}",
            code=Code.INVALID_ARGUMENT,
            where=self.name,
        )

    def _unflatten(self, leaves: list[Any]) -> Any:
        return self.contract.out_spec.unflatten(iter(leaves))

    def _flatten_outputs(self, outputs: Any) -> list[Any]:
        if self._structure == "single":
            return list(outputs) if _is_flat(outputs, 1) else [outputs]
        arrays: list[Any] = []
        try:
            self.contract.out_spec.flatten(outputs, "outputs", arrays)
        except TreeError as error:
            if _is_flat(outputs, len(self.contract.outputs)):
                return list(outputs)
            raise RunError(str(error), code=Code.INVALID_TYPE, where=self.name) from None
        return arrays

    def __repr__(self) -> str:
        return f"<method {self.signature!r}>"


def _is_flat(outputs: Any, n: int) -> bool:
    """Whether `outputs` is a plain list or tuple of `n` arrays."""
    return isinstance(outputs, list | tuple) and len(outputs) == n


def _structure(out_spec: Tree) -> str | None:
    """The structure of the result if the extension can build it by itself; else None."""
    if out_spec.kind == "leaf":
        return "single"
    if out_spec.kind in ("tuple", "list") and all(c.kind == "leaf" for c in out_spec.children):
        return out_spec.kind
    return None


class Module(NotCopied):
    """A loaded program. `rushlight.load` makes it.

    `module(*args, **kwargs)` calls the method `forward`; `module.name(...)` and `module["name"]`
    give any other, the second even one that is named like an attribute here. Inputs may be NumPy
    arrays, torch tensors, anything with DLPack, and Python scalars, in the structure that the
    model took; results are torch tensors if any input was one, else NumPy arrays, in the structure
    that eager returned, and own their memory.

    A module may be used from several threads: a call waits until the one before is done, and the
    GIL is free while a method runs. `clone()` gives a thread a module of its own. Every call may
    raise RunError. Inputs that are refused change nothing.

    Attributes:
        threads: how many threads kernels may use.
        forms: of a fat program, every form and why it was chosen or left out; else empty.
    """

    forms: tuple[FormChoice, ...] = ()

    def __init__(
        self,
        core: _core.Program,
        contracts: Mapping[str, Contract],
        plans: Sequence[tuple[str, str]],
        where: str,
    ) -> None:
        """`plans` are the methods' names, each with that of the plan in the file."""
        self.threads = core.threads()
        self._core = core
        self._contracts = contracts
        self._where = where
        self._plans = tuple(plans)
        self._state = State(core)
        self._methods = {n: Method(n, contracts[n], c, core) for n, c in _load(core, plans, where)}
        forward = self._methods.get("forward")
        self._call = forward.call if forward is not None else self._no_forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method `forward`.

        Args:
            args, kwargs: its inputs, as the model takes them: tensors of the dtypes, ranks and
                sizes that `signature` tells. One in another layout is copied.

        Returns:
            What eager returns: tensors in its structure, torch tensors if any input was one, NumPy
            arrays otherwise. They own their memory.

        Raises:
            RunError: an input is not what the method takes, and nothing has changed; or the run
                fails.
        """
        return self._call(args, kwargs)

    def __getitem__(self, name: str) -> Method:
        """The method `name`; RunError if it is not loaded."""
        try:
            return self._methods[name]
        except KeyError:
            have = ", ".join(self._methods) or "none"
            raise RunError(
                f"no method {name!r}; loaded methods: {have}",
                code=Code.NOT_FOUND,
                where=self._where,
            ) from None

    def __getattr__(self, name: str) -> Method:
        methods = self.__dict__.get("_methods", {})
        if name in methods:
            method: Method = methods[name]
            return method
        raise AttributeError(
            f"this module has no method {name!r}; methods: {', '.join(methods) or 'none'}"
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._methods]

    def __repr__(self) -> str:
        lines = [f"  {m.signature!r}" for m in self._methods.values()]
        return "\n".join([f"<rushlight.Module {self._where}", *lines]) + ">"

    def _no_forward(self, args: Any, kwargs: Any) -> Any:
        have = ", ".join(self._methods) or "none"
        raise RunError(
            f"the program has no method 'forward'; call one of its methods by name: {have}",
            code=Code.NOT_FOUND,
            where=self._where,
        )

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the loaded methods, in the order of the program."""
        return tuple(self._methods)

    def signature(self, method: str = "forward") -> Signature:
        """What the method of the name `method` takes and returns: names, dtypes, and sizes with
        their ranges; RunError if it is not loaded."""
        return self[method].signature

    @property
    def memory(self) -> Memory:
        """The memory that the module takes, in bytes, by what it is for."""
        try:
            uses = {name: self._core.memory_use(plan) for name, plan in self._plans}
            metas = {name: self._core.meta(plan) for name, plan in self._plans}
            sizes = self._core.sizes()
            peak = self._core.memory_in_use()
            resident = self._core.memory_resident()
        except _core.Failure as failure:
            raise run_error(failure, self._core) from None
        return Memory(
            arenas={name: tuple(meta["arenas"]) for name, meta in metas.items()},
            structures={name: use["structures"] for name, use in uses.items()},
            scratch={name: use["scratch"] for name, use in uses.items()},
            constants=sizes["constants"],
            file=sizes["file"],
            peak=peak,
            resident=resident,
        )

    @property
    def state(self) -> State:
        """The buffers that methods keep from one call to the next, by their names in the model."""
        return self._state

    def execute_into(
        self, outputs: Any, *args: Any, method: str = "forward", **kwargs: Any
    ) -> None:
        """Run a method and write its results into arrays of yours, which saves making new ones.

        Args:
            outputs: writable NumPy arrays or CPU tensors of the results' dtypes and shapes, in the
                structure that the method returns, or a flat list of them; None for a result that
                is not wanted. They share no memory with each other or with the inputs.
            args, kwargs: the inputs.
            method: which method.

        Raises:
            RunError: as a call does, and if an array does not fit: none is written then. Only if a
                varying size of the result is another than the array's has the method run.
        """
        self[method].call_into(outputs, args, kwargs)

    @property
    def trace(self) -> Trace:
        """What was recorded of the module's runs, if it was loaded with `trace`."""
        return Trace(self._core)

    def manual_seed(self, seed: int) -> None:
        """Start random operators anew: they draw what eager draws after `torch.manual_seed(seed)`.

        A module that was loaded or cloned starts from 67280421310721, torch's default seed, so a
        program gives the same results after every load. All methods draw from one generator.

        Args:
            seed: from -2**63 to 2**64 - 1, as torch takes it.

        Raises:
            RunError: the seed is not an integer or out of range, or the module is closed.
        """
        if not isinstance(seed, int) or not -(2**63) <= seed < 2**64:
            raise RunError(
                f"seed is {seed!r}, but must be from -2**63 to 2**64 - 1, an integer",
                code=Code.INVALID_ARGUMENT,
                where=self._where,
            )
        try:
            self._core.manual_seed(seed % 2**64)
        except _core.Failure as failure:
            raise run_error(failure, self._core) from None

    def clone(self) -> Module:
        """A module on the same program with arenas and state of its own, as after loading.

        Raises:
            RunError: there is no memory for it, or this module is closed.
        """
        try:
            core = self._core.clone()
        except _core.Failure as failure:
            raise run_error(failure, self._core) from None
        return self._copy(core)

    def fork(self) -> Module:
        """A module on the same program with arenas of its own and a copy of the state as it is.

        It also draws the random numbers that this module would have drawn next.

        Raises:
            LoadError: if a method of the copy cannot be loaded, as when a backend refuses it.
            RunError: while a method runs one instruction at a time.
        """
        try:
            core = self._core.fork()
        except _core.Failure as failure:
            if is_missing(failure):
                raise missing_error([failure], self._core, self._where, {}) from None
            if failure.args[2]:  # a method: it was being loaded
                raise load_error(failure, self._where, self._core) from failure.__cause__
            raise run_error(failure, self._core) from None
        return self._copy(core)

    def _copy(self, core: _core.Program) -> Module:
        copied = Module(core, self._contracts, self._plans, self._where)
        copied.forms = self.forms
        return copied

    def close(self) -> None:
        """Free the module's memory, once a call that is running is done; later calls fail."""
        self._core.close()

    def __enter__(self) -> Module:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _load(
    core: _core.Program, plans: Sequence[tuple[str, str]], where: str
) -> list[tuple[str, _core.Method]]:
    """Load methods, or raise one LoadError that lists everything missing."""
    loaded: list[tuple[str, _core.Method]] = []
    missing: list[_core.Failure] = []
    problems = find_backends(core, [plan for _, plan in plans])
    for name, plan in plans:
        try:
            loaded.append((name, core.method(plan)))
        except _core.Failure as failure:
            if not is_missing(failure):
                raise load_error(failure, where, core) from failure.__cause__
            # Drop the traceback: its frames hold this list, which would be a reference cycle.
            missing.append(failure.with_traceback(None))
    if missing:
        raise missing_error(missing, core, where, problems)
    return loaded
