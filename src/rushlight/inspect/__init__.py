"""What a program is made of: reports in the terminal, as JSON and as a page to explore."""

from rushlight.inspect.model import ProgramReport
from rushlight.inspect.program import memory_of, report_of

__all__ = ["ProgramReport", "memory_of", "report_of"]
