"""Objects that use the memory of a loaded program and so cannot be copied or pickled."""

from __future__ import annotations

from typing import NoReturn


class NotCopied:
    """A base class whose error says what to do instead of pickling or copying."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} of a loaded program cannot be pickled or copied: load the "
            f"program in the other process, or take module.clone(), or module.fork() with the "
            f"state as it is; state.snapshot() can be pickled"
        )
