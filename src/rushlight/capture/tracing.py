"""The state that torch captures a model in, the same wherever that is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch._dynamo

from rushlight.capture.recurrent import scanned_recurrence


@contextmanager
def tracing() -> Iterator[None]:
    """While active, `torch.export` captures without gradients, recurrent layers as scans.

    Dynamo, which captures the bodies of control flow, would take sizes that it saw in an earlier
    capture for conditions on the sizes of this one, so what it remembers is dropped first;
    functions that `torch.compile` made are compiled anew at their next call.
    """
    torch._dynamo.reset()
    with torch.no_grad(), scanned_recurrence():
        yield
