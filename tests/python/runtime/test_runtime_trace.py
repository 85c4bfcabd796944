"""`Module.trace`: events and values of runs, and the file that holds them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from backend_doubles import Recorder, registered
from runtime_programs import MethodBuilder, add, delegated, program

import rushlight as rl
from rushlight.errors import Code
from rushlight.inspect import Inspector, memory_of
from rushlight.runtime import TraceOptions
from rushlight.schema import etdump

X = np.array([1, -2], np.float32)
HUGE = torch.ones(1, 1, dtype=torch.float64).expand(2**31 - 1, 1)  # takes 8 bytes of memory
GOLDEN = Path(__file__).resolve().parents[2] / "golden"


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
    module = rl.load(GOLDEN / "topk.pte", trace=True)
    [x] = module["forward"].contract.inputs
    module(np.ones([dim.max for dim in x.shape], np.float32))
    run = Inspector(etdump_data=module.trace.to_bytes()[0]).event_blocks[-1]
    assert list(run.memory) == ["scratch"] and 0 < run.memory["scratch"] < 1 << 20


def test_metadata_of_events() -> None:
    """Bytes of the backend's own reach the parser of the Inspector, by either kind of id."""
    calls = iter(range(1, 10))

    def execute(context: Any, args: Any) -> None:
        told = f"cycles {next(calls)}".encode()
        context.event("mul", 100, 250, told)
        context.event(12, 300, 301, metadata=b"\0\xff")
        context.event(13, 301, 302)
        args[1][...] = args[0]

    with registered("Test", Recorder(execute=execute)):
        module = rl.load(program(delegated("Test", 2), blobs=[b""]), trace=True)
    module(X)
    module(X)
    dump = module.trace.to_bytes()[0]

    def parser(told: list[bytes]) -> dict[str, Any]:
        return {"last": told[-1], "runs": len(told)}

    def told(**options: Any) -> dict[Any, Any]:
        events = Inspector(etdump_data=dump, **options).event_blocks[-1].events
        return {e.delegate_debug_identifier: e.delegate_debug_metadatas for e in events}

    assert {**told(), None: []} == {
        "mul": [b"cycles 1", b"cycles 2"], 12: [b"\0\xff"] * 2, 13: [], None: []
    }  # fmt: skip
    parsed = told(delegate_metadata_parser=parser)
    assert parsed["mul"] == {"last": b"cycles 2", "runs": 2} and parsed[13] == []


def test_values_of_backends() -> None:
    """What a backend in Python tells of its places is shown at their events, in the same order."""
    grid = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    read_only = np.broadcast_to(np.float32(3), (2, 2))
    told: list[tuple[int | str, Any, Any]] = [
        ("mul", X, X),
        ("mul", X[:0], X[:0]),
        (12, grid.T[::-1, 1:], grid.T[::-1, 1:]),
        (1 << 40, np.float64(2.5), np.float64(2.5)),
        ("wide", torch.tensor([1.5, -2], dtype=torch.bfloat16), np.array([1.5, -2], np.float32)),
        ("wide", read_only, read_only),
        ("flags", np.array([True, False]), np.array([True, False])),
        ("complex", np.array([1 + 2j]), np.array([1 + 2j])),
    ]
    wanted = []

    def execute(context: Any, args: Any) -> None:
        wanted.append([context.wants_value(id) for id, _, _ in told])
        context.event(12, 300, 301)
        for id, value, _ in told:
            context.value(id, value)
        context.value("input", args[0])  # lent for the call alone
        args[1][...] = args[0]

    def recorded(trace: Any) -> dict[Any, list[Any]]:
        with registered("Test", Recorder(execute=execute)):
            module = rl.load(program(delegated("Test", 2), blobs=[b""]), trace=trace)
        for _ in range(2):
            assert (module(X) == X).all()
        if not trace:
            return {}
        dump, values = module.trace.to_bytes()
        block = Inspector(etdump_data=dump, debug_buffer=values).event_blocks[-1]
        return {
            e.delegate_debug_identifier: e.debug_data
            for e in block.events
            if e.is_delegated_op and e.debug_data
        }

    values = recorded(TraceOptions(values="all"))
    assert values.pop("input")[0].tolist() == X.tolist() and all(map(all, wanted))
    expected: dict[Any, list[Any]] = {}
    for id, _, array in told:
        expected.setdefault(id if id != 1 << 40 else str(id), []).append(array)
    assert values.keys() == expected.keys()
    for id, arrays in expected.items():
        assert [a.dtype for a in values[id]] == [a.dtype for a in arrays]
        for shown, array in zip(values[id], arrays, strict=True):
            np.testing.assert_array_equal(shown, array, strict=True)
    wanted.clear()
    assert recorded(TraceOptions(values=["0/12"])).keys() == {12}
    assert [sum(flags) for flags in wanted] == [1, 1]
    wanted.clear()
    for trace in (False, True, TraceOptions(values="outputs")):
        assert recorded(trace) == {}
    assert not any(map(any, wanted))


@pytest.mark.parametrize(
    ("id", "value", "says"),
    [
        ("mul", [1.0], "the value of 'mul': an array is expected, not list"),
        ("mul", np.array(["a"]), "the value of 'mul': an array of dtype <U1 cannot be passed"),
        (3, np.zeros(2, ">f4"), "the value of 3: an array of dtype >f4 cannot be passed"),
        (3, HUGE.expand(-1, 2**31 - 1), "the value of 3 has more elements than memory can hold"),
        (3, HUGE[:0, None].expand(0, 2**31 - 1, 2**31 - 1), "the value of 3 has more elements"),
        (1.5, X, "is a text or a number of 64 bits, not 1.5"),
        ("", X, "is a text or a number of 64 bits, not ''"),
        (1 << 64, X, "is a text or a number of 64 bits, not 18446744073709551616"),
    ],
)  # fmt: skip
def test_values_that_are_refused(id: Any, value: Any, says: str) -> None:
    with registered("Test", Recorder(execute=lambda context, args: context.value(id, value))):
        options = TraceOptions(values="all")
        module = rl.load(program(delegated("Test", 2), blobs=[b""]), trace=options)
    with pytest.raises(rl.RunError, match=re.escape(says)) as caught:
        module(X)
    assert caught.value.code == Code.INVALID_ARGUMENT


def test_values_outside_of_runs() -> None:
    backend = Recorder(init=lambda context: context.value(3, X))
    refused = pytest.raises(rl.LoadError, match=r"value\(\) is for execute\(\)")
    with registered("Test", backend), refused:
        rl.load(program(delegated("Test", 2), blobs=[b""]))


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
