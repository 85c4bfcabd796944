"""The scratch memory that delegates need, as far as their payloads say it."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.errors import LoadError
from rushlight.schema import cpu_engine
from rushlight.schema.codec import Buffer

_SCRATCH: dict[str, Callable[[Buffer], int]] = {
    "CpuBackend": lambda payload: int(cpu_engine.unpack(payload).scratch_size),
}


def scratch_of(backend: str, payload: Buffer) -> int:
    """The bytes that a delegate needs for values between its nodes.

    Args:
        backend: the backend's id.
        payload: the payload's bytes.

    Returns:
        The bytes; 0 if the payload does not say it or is damaged.
    """
    read = _SCRATCH.get(backend)
    try:
        return 0 if read is None else read(payload)
    except LoadError:
        return 0
