"""What delegates allocate beside their payloads, as far as payloads say it."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.errors import LoadError
from rushlight.schema import cpu_engine
from rushlight.schema.codec import Buffer

_SCRATCH: dict[str, Callable[[Buffer], int]] = {
    "CpuBackend": lambda payload: int(cpu_engine.unpack(payload).scratch_size),
}


def scratch_of(backend: str, payload: Buffer) -> int:
    """Bytes that a delegate needs for what lies between its steps.

    Args:
        backend: its id.
        payload: its bytes; of a damaged one nothing is known.

    Returns:
        the bytes; 0 if the backend's payloads do not say it.
    """
    read = _SCRATCH.get(backend)
    try:
        return 0 if read is None else read(payload)
    except LoadError:
        return 0
