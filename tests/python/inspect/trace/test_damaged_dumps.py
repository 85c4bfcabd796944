"""Traces that are cut, changed or not those of their buffer: they are refused by an error."""

from __future__ import annotations

import contextlib
import random

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.errors import LoadError, RunError
from rushlight.inspect import Inspector
from rushlight.runtime import TraceOptions


@pytest.fixture(scope="module")
def dump() -> tuple[bytes, bytes]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    x = torch.randn(2, 4)
    module = rl.load(rl.export(model, (x,)).buffer, trace=TraceOptions(values="all"))
    for _ in range(2):
        module(x.numpy())
    return module.trace.to_bytes()


def read(content: bytes, values: bytes) -> None:
    """Read all that an Inspector shows; a damaged trace is refused or shows other numbers."""
    inspector = Inspector(etdump_data=content, debug_buffer=values)
    assert inspector.dropped is not None
    inspector.find_total_for_module("0")
    for block in inspector.event_blocks:
        inspector.get_op_list(block.name)


@pytest.mark.filterwarnings("ignore:the trace is cut")
def test_cut_traces(dump: tuple[bytes, bytes]) -> None:
    content, values = dump
    for size in range(12):
        with pytest.raises(LoadError, match="no ETDump"):
            read(content[:size], values)
    shown = 0
    for size in range(12, len(content), 7):
        try:
            read(content[:size], values)
            shown += 1
        except LoadError as error:
            wanted = f"cut: {size - 4:,} of {len(content) - 4:,} bytes are there, too few"
            assert wanted in str(error)
    assert shown > len(content) // 7 // 2
    with pytest.raises(LoadError, match="the debug buffer is not that of this trace"):
        read(content, values[:40])


@pytest.mark.filterwarnings("ignore:the trace is cut")
@pytest.mark.parametrize("seed", range(2))
def test_changed_traces_that_are_cut(dump: tuple[bytes, bytes], seed: int) -> None:
    content, values = dump
    chance = random.Random(seed)
    shown = 0
    for _ in range(200):
        mutant = bytearray(content[: chance.randrange(len(content) // 2, len(content))])
        for _ in range(chance.choice((1, 2, 8))):
            place = chance.randrange(4, len(mutant))
            mutant[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        with contextlib.suppress(LoadError):
            read(bytes(mutant), values)
            shown += 1
    assert shown > 10


@pytest.mark.parametrize("seed", range(4))
def test_changed_traces(dump: tuple[bytes, bytes], seed: int) -> None:
    content, values = dump
    chance = random.Random(seed)
    refused = 0
    for _ in range(250):
        mutant = bytearray(content)
        for _ in range(chance.choice((1, 1, 2, 8))):
            place = chance.randrange(4, len(mutant))
            mutant[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        try:
            read(bytes(mutant), values)
        except LoadError:
            refused += 1
    assert refused > 10


def test_what_is_asked_for_wrongly(dump: tuple[bytes, bytes]) -> None:
    content, _ = dump
    with pytest.raises(RunError, match="give etdump_path or etdump_data, one of them"):
        Inspector()
    with pytest.raises(RunError, match="give etrecord or program"):
        Inspector(etdump_data=content, etrecord="m.etrecord", program="m.pte")
    with pytest.raises(LoadError, match="the trace cannot be read: No such file"):
        Inspector("missing.etdp")
    with pytest.raises(LoadError, match="no ETDump: its identifier is missing"):
        Inspector(etdump_data=b"\0" * 64)
    assert Inspector(etdump_data=content[4:]).event_blocks  # without its size in front


def test_what_was_dropped_is_told() -> None:
    model, x = nn.Linear(4, 2).eval(), torch.ones(1, 4)
    pte = rl.export(model, (x,)).buffer
    module = rl.load(pte, trace=TraceOptions(values="all", bytes=4096, value_bytes=64))
    for _ in range(30):
        module(x.numpy())
    events, values = module.trace.dropped
    assert events > 0 and values > 0
    content, buffer = module.trace.to_bytes()
    assert Inspector(etdump_data=content, debug_buffer=buffer).dropped == (events, values)
