"""The state of a module: the buffers that its methods keep from one call to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rushlight import _core
from rushlight.errors import Code, RunError
from rushlight.runtime.copies import NotCopied
from rushlight.runtime.failures import Errors, python_lines


@dataclass(frozen=True)
class Snapshot:
    """All state of a module at one moment, its random generator's too; it may be pickled.

    Attributes:
        data: the bytes, which only modules of the same program can restore.
    """

    data: bytes = field(repr=False)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return len(self.data)


class State(NotCopied, Mapping[str, Any]):
    """The buffers that the methods of a module write, by name. `Module.state` gives it.

        state = module.state
        cache = state["layers.0.k_cache"]      # a copy, as a NumPy array
        state["layers.0.k_cache"] = cache * 0  # of the same dtype and shape
        before = state.snapshot()
        state.restore(before)

    Names are those of the model's buffers; if methods have buffers of one name that they do not
    share, the name of the method and a colon come first. A buffer that no method writes is a
    constant, and one that none uses is not in the program: neither is here. Reading and writing
    wait for a call that is running.
    """

    def __init__(self, core: _core.Program) -> None:
        self._core = core
        self._entries: dict[str, tuple[int, str, tuple[int, ...]]] | None = None

    def __getitem__(self, name: str) -> Any:
        """A copy of a buffer, as a NumPy array; KeyError if there is none of that name."""
        return self.read(name)

    def __setitem__(self, name: str, value: Any) -> None:
        """Write a buffer.

        Args:
            name: the buffer's name; KeyError if there is none of that name.
            value: an array or tensor of its dtype and shape; it is copied.

        Raises:
            RunError: if the value does not fit; nothing is changed then.
        """
        index, dtype, shape = self._entry(name)
        try:
            self._core.write_state(index, value)
        except _core.Failure as failure:
            wanted = f"{dtype}{list(shape)}"
            got = _core.describe_array(value)
            came = f"{got[0]}{list(got[1])}" if isinstance(got, tuple) else type(value).__name__
            raise RunError(
                f"state {name!r} is {wanted}, got {came}: {failure.args[1]}",
                code=Code(failure.args[0]),
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        lines = [f"  {n}: {d}{list(s)}" for n, (_, d, s) in self._all().items()]
        return "\n".join(["<rushlight state", *lines]) + ">"

    def read(self, name: str, *, as_torch: bool = False) -> Any:
        """A copy of a buffer.

        Args:
            name: the buffer's name; KeyError if there is none of that name.
            as_torch: return a torch tensor instead of a NumPy array.
        """
        with Errors(self._core):
            return self._core.read_state(self._entry(name)[0], as_torch)

    def snapshot(self) -> Snapshot:
        """A copy of all state as it is now, with that of the random generator."""
        with Errors(self._core):
            return Snapshot(self._core.snapshot())

    def restore(self, snapshot: Snapshot) -> None:
        """Make all state what it was when the snapshot was taken.

        Args:
            snapshot: a snapshot of this module, or of another module of the same program with the
                same methods loaded (a fork, or one in another process).

        Raises:
            RunError: if the snapshot is of another program; nothing is changed then.
        """
        if not isinstance(snapshot, Snapshot):
            raise RunError(
                f"restore() takes what snapshot() gave, not {type(snapshot).__name__}",
                code=Code.INVALID_TYPE,
            )
        with Errors(self._core):
            self._core.restore(snapshot.data)

    def reset(self) -> None:
        """Give all state the values that it had at export; the random generator goes on."""
        with Errors(self._core):
            self._core.reset_state()

    def _entry(self, name: str) -> tuple[int, str, tuple[int, ...]]:
        entries = self._all()
        if name not in entries:
            have = ", ".join(map(repr, entries)) or "none: the program keeps nothing between calls"
            raise KeyError(f"no state {name!r}; there is {have}")
        return entries[name]

    def _all(self) -> dict[str, tuple[int, str, tuple[int, ...]]]:
        """{name: (index, dtype, shape)}."""
        if self._entries is None:
            with Errors(self._core):
                rows = self._core.state()
            lines = python_lines(self._core)
            named = [(name or lines.value(m, v) or f"value {v}", m) for name, m, v, _, _ in rows]
            count = Counter(name for name, _ in named)
            self._entries = {
                (name if count[name] == 1 else f"{method}:{name}"): (i, row[3], tuple(row[4]))
                for i, ((name, method), row) in enumerate(zip(named, rows, strict=True))
            }
        return self._entries
