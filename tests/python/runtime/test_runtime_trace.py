"""`Module.trace`: events and values of runs, and the file that holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runtime_programs import MethodBuilder, add, program

import rushlight as rl
from rushlight.errors import Code
from rushlight.inspect import Inspector, memory_of
from rushlight.runtime import TraceOptions
from rushlight.schema import etdump

X = np.array([1, -2], np.float32)


def two_methods() -> bytes:
    """`double` returns x + x; `both` returns x + x and its absolute values."""
    methods = {}
    for name in ("double", "both"):
        method = MethodBuilder(name)
        x, a, b = method.tensor(2), method.tensor(2), method.tensor(2)
        method.binary("aten::add.out", x, x, a)
        if name == "both":
            method.call("aten::abs.out", a, b, b)
        method.inputs, method.outputs = [x], [a, b] if name == "both" else [a]
        methods[name] = method
    return program(*methods.values())


def runs(module: rl.Module) -> list[etdump.RunData]:
    content, _ = module.trace.to_bytes()
    assert int.from_bytes(content[:4], "little") == len(content) - 4
    return etdump.unpack(content[4:]).run_data


def names(run: etdump.RunData) -> list[str]:
    return [e.profile_event.name or "" for e in run.events if e.profile_event is not None]


def test_all_runs_are_kept() -> None:
    module = rl.load(two_methods(), trace=True)
    for method in ("double", "both", "double"):
        module[method](X)
    add_events = ["native_call_add.out", "OPERATOR_CALL"]
    abs_events = ["native_call_abs.out", "OPERATOR_CALL"]
    blocks = [(run.name, names(run)) for run in runs(module)]
    assert blocks == [
        *[("Default", ["planned memory 1", "structures", "Method::init"])] * 2,
        ("Execute", [*add_events, "Method::execute"]),
        ("Execute", [*add_events, *abs_events, "Method::execute"]),
        ("Execute", [*add_events, "Method::execute"]),
    ]
    whole = [run.events[-1].profile_event for run in runs(module)]
    assert [bytes(e.delegate_debug_metadata or b"") for e in whole if e] == [
        *(b"double", b"both", b"double", b"both", b"double"),
    ]
    for run in runs(module):
        for event in run.events:
            profile = event.profile_event
            assert profile is not None and profile.start_time <= profile.end_time
    module.trace.clear()
    assert module.trace.events() == [] and runs(module) == []


def test_memory() -> None:
    """What loads keep, by memory id, and the scratch of runs; the reports say the same."""
    data = two_methods()
    module = rl.load(data, trace=True)
    for method in ("double", "both", "both"):
        module[method](X)
    blocks = Inspector(etdump_data=module.trace.to_bytes()[0]).event_blocks
    arenas = {name: parts["arenas"] for name, parts in memory_of(data).items()}
    loads = {block.method: block.memory for block in blocks if block.name == "Default"}
    assert {name: taken["planned memory 1"] for name, taken in loads.items()} == arenas
    assert all(set(taken) == {"planned memory 1", "structures"} for taken in loads.values())
    assert 0 < sum(taken["structures"] for taken in loads.values()) <= module.memory.peak
    assert [b.memory for b in blocks if b.name == "Execute"] == [{}] * 2


def test_values() -> None:
    for level, shown in (
        ("none", []),
        ("outputs", [True, True]),
        ("all", [False, False, True, True]),
    ):
        module = rl.load(two_methods(), methods=["both"], trace=TraceOptions(values=level))
        module["both"](X)
        content, values = module.trace.to_bytes()
        debug = [e.debug_event for e in etdump.unpack(content[4:]).run_data[-1].events]
        entries = [d.debug_entry for d in debug if d is not None and d.debug_entry is not None]
        assert [entry.output is not None for entry in entries] == shown
        arrays = [
            np.frombuffer(values, np.float32, 2, entry.tensor.offset)
            for entry in entries
            if entry.tensor is not None
        ]
        for array, expected in zip(arrays, (2 * X, abs(2 * X)) * 2, strict=False):
            assert (array == expected).all()


def test_no_room() -> None:
    options = TraceOptions(values="outputs", bytes=4096, value_bytes=100)
    module = rl.load(add(2), trace=options)
    for _ in range(100):
        module(X, X)
    events, values = module.trace.dropped
    assert events > 200 and values == 98
    last = runs(module)[-1]
    assert last.name == "Dropped"
    counts = {
        e.profile_event.name: e.profile_event.end_time for e in last.events if e.profile_event
    }
    assert counts == {"rushlight::events": events, "rushlight::values": values}
    module.trace.clear()
    assert module.trace.dropped == (0, 0)


def test_save(tmp_path: Path) -> None:
    module = rl.load(add(2), trace=TraceOptions(values="outputs"))
    module(X, X)
    module.trace.save(tmp_path / "a.etdp")
    module.trace.save(tmp_path / "b.etdp", tmp_path / "b.bin")
    content, values = module.trace.to_bytes()
    for path, expected in (("a.etdp", content), ("a.etdp.values", values), ("b.bin", values)):
        assert (tmp_path / path).read_bytes() == expected
    plain = rl.load(add(2), trace=True)
    plain(X, X)
    plain.trace.save(tmp_path / "c.etdp")
    assert not (tmp_path / "c.etdp.values").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"values": "some"}, "values='some': choose one of 'none', 'outputs', 'all'"),
        ({"bytes": 100}, "bytes=100: give 4096 at least"),
        ({"bytes": 1 << 31}, "less than 2 GiB"),
        ({"value_bytes": -1}, "value_bytes=-1"),
    ],
)
def test_options_that_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(rl.RunError, match=says) as caught:
        TraceOptions(**options)  # type: ignore[arg-type]
    assert caught.value.code == Code.INVALID_ARGUMENT
