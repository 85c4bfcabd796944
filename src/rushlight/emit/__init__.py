"""Out graphs → the dataclasses of the program schema."""

from rushlight.emit.emit import EmittedProgram, emit

__all__ = ["EmittedProgram", "emit"]
