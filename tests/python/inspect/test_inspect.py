"""`rushlight.inspect` reports the contents of a file correctly; needs no torch."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from runtime_programs import MethodBuilder, add, binary, counter, program

from rushlight.errors import LoadError
from rushlight.inspect import ProgramReport, memory_of, report_of
from rushlight.inspect.model import Arena, Block
from rushlight.inspect.terminal import details
from rushlight.schema import program as fb
from rushlight.serialize.file import PTEFile
from rushlight.serialize.pte import read_pte, write_pte

GOLDEN = sorted((Path(__file__).resolve().parents[2] / "golden").glob("*.pte"))
ONLY_HERE = ("unbounded", "cpu_engine")  # ExecuTorch runs neither


def _golden(name: str) -> ProgramReport:
    return report_of(next(path for path in GOLDEN if path.stem == name))


def _blocks(report: ProgramReport, method: int = 0) -> dict[str, Block]:
    return {b.name: b for arena in report.methods[method].arenas for b in arena.blocks}


def _one_arena(method: MethodBuilder, **parts: Any) -> Arena:
    (arena,) = report_of(program(method, **parts)).methods[0].arenas
    return arena


# --- real files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_arithmetic_of_golden_files(path: Path) -> None:
    report = report_of(path)
    assert report.name == path.name and report.bytes == path.stat().st_size
    assert sum(report.by_kind.values()) == report.bytes
    assert len(report.executorch) == path.stem.startswith(ONLY_HERE)
    for method in report.methods:
        end = len(method.instructions)
        for arena in method.arenas:
            assert arena.overlap == [] and arena.lower_bound <= arena.bytes
            assert arena.lower_bound >= max(block.bytes for block in arena.blocks)
            assert arena.live[-1][1] == 0
            for block in arena.blocks:
                assert 0 <= block.first <= block.last < end
                assert 0 <= block.offset <= block.offset + block.bytes <= arena.bytes


def test_golden_files_are_there() -> None:
    assert len(GOLDEN) >= 8


def test_lifetimes_of_a_chain() -> None:
    blocks = _blocks(_golden("linear"))
    assert {n: (b.role, b.offset, b.bytes, b.first, b.last) for n, b in blocks.items()} == {
        "input_0": ("input", 48, 12, 0, 1),
        "permute_copy_0": ("temporary", 0, 24, 0, 1),
        "addmm_1": ("output", 32, 8, 1, 1),
    }


def test_state_lives_all_the_time() -> None:
    report = _golden("counter")
    (state,) = (b for b in _blocks(report).values() if b.role == "state")
    assert (state.first, state.last, state.writer) == (
        0,
        len(report.methods[0].instructions) - 1,
        -1,
    )
    assert report.methods[0].values[state.value].role == "state"


def test_view_keeps_its_base_alive() -> None:
    report = _golden("dynamic_view")
    calls = report.methods[0].instructions
    (view_at,) = (i for i, s in enumerate(calls) if s.op == "executorch_prim::et_view.default")
    base = next(b for b in _blocks(report).values() if b.views)
    (view,) = base.views
    assert view in calls[view_at].writes and report.methods[0].values[view].base == base.value
    assert base.last == max(i for i, call in enumerate(calls) if view in call.reads) > view_at
    sizes = [i for i, s in enumerate(calls) if s.op == "aten::sym_size.int"]
    assert calls[view_at].source is None and sizes == [0]
    computed = calls[0].writes[0]
    assert any(computed in call.reads for call in calls[1:]), "a computed size is followed"


def test_branches_may_share_bytes() -> None:
    report = _golden("cond")
    blocks = _blocks(report)
    assert blocks["add_4"].offset == blocks["sub_8"].offset
    jumps = [s for s in report.methods[0].instructions if s.kind == "jump"]
    assert [jump.target for jump in jumps] == [7, 10]


def test_operator_with_two_results() -> None:
    report = _golden("topk")
    (call,) = (s for s in report.methods[0].instructions if s.op == "aten::topk.values")
    names = [report.methods[0].values[i].name for i in call.writes]
    assert names == ["topk_2[0]", "topk_2[1]"] and not set(call.writes) & set(call.reads)
    assert [slot.text for slot in report.methods[0].outputs] == [
        "float32[2]",
        "int64[2]",
        "double = 3.5",
    ]


def test_memory_that_the_caller_gives() -> None:
    method = _golden("unplanned").methods[0]
    assert method.caller_bytes == 12 + 8
    assert {method.values[slot.value].role for slot in method.inputs + method.outputs} == {"caller"}


def test_methods_and_shared_constants() -> None:
    report = _golden("methods")
    signatures = [method.signature for method in report.methods]
    assert "get_name() -> string = 'golden'" in signatures and "get_size() -> int = 7" in signatures
    scale = next(method for method in report.methods if method.name == "scale")
    memory = report.memory()["scale"]
    assert memory["arenas"] == 64 and memory["constants"] == scale.constant_bytes == 32
    assert memory["peak"] == sum(size for part, size in memory.items() if part != "peak")
    assert memory_of(GOLDEN[0].parent / "methods.pte") == report.memory()


def test_report_is_the_same_from_path_and_bytes() -> None:
    path = GOLDEN[0]
    from_bytes = report_of(path.read_bytes())
    from_bytes.name = path.name
    assert from_bytes.to_json() == report_of(str(path)).to_json()
    assert json.loads(json.dumps(from_bytes.to_json()))["bytes"] == path.stat().st_size


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_terminal_shows_everything(path: Path) -> None:
    from rich.console import Console

    report = report_of(path)
    console = Console(width=320, no_color=True)  # so that no signature is broken
    with console.capture() as captured:
        for part in details(report):
            console.print(part)
    text = captured.get()
    for operator in report.operators:
        assert operator.name in text
    for method in report.methods:
        assert method.signature in text
    runs = "does not run" if path.stem.startswith(ONLY_HERE) else "runs"
    assert f"{report.bytes:,} bytes" in text and f"ExecuTorch 1.4.1: {runs}" in str(report)


# --- small programs written by hand ---------------------------------------------------------------


def test_lower_bound_counts_what_is_live_at_once() -> None:
    method = MethodBuilder()
    x, a, b, y = (method.tensor(8) for _ in range(4))
    method.call("aten::neg.out", x, a, a)
    method.call("aten::neg.out", a, b, b)
    method.call("aten::neg.out", b, y, y)
    method.inputs, method.outputs = [x], [y]
    arena = _one_arena(method)
    assert (arena.bytes, arena.lower_bound, arena.peak_at) == (128, 64, 0)
    assert arena.live == [(0, 64), (1, 64), (2, 64), (3, 0)]


def test_unsound_plan_is_told() -> None:
    method = binary("aten::add.out", 8)
    out = method.values[2].val
    out.allocation_info = method.values[0].val.allocation_info
    arena = _one_arena(method)
    assert sorted(arena.overlap) == [0, 2]
    assert "share bytes while both live" in _details(report_of(program(method)))


def _details(report: ProgramReport) -> str:
    from rich.console import Console

    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        for part in details(report):
            console.print(part)
    return captured.get()


def test_static_view_has_no_block() -> None:
    method = MethodBuilder()
    x, a = method.tensor(2, 4), method.tensor(2, 4)
    view = method.tensor(8, planned=False)
    method.values[view].val.allocation_info = method.values[a].val.allocation_info
    y = method.tensor(8)
    method.call("aten::neg.out", x, a, a)
    method.call("aten::neg.out", view, y, y)
    method.inputs, method.outputs = [x], [y]
    report = report_of(program(method))
    (block,) = (b for b in report.methods[0].arenas[0].blocks if b.views)
    assert (block.value, block.views, block.first, block.last) == (a, [view], 0, 1)
    assert report.methods[0].values[view].name == "neg_0 (view)"
    assert len(report.methods[0].arenas[0].blocks) == 3


def test_view_of_an_input_that_is_used_first() -> None:
    method = MethodBuilder()
    x, y = method.tensor(2, 4), method.tensor(8)
    view = method.tensor(8, planned=False)
    method.values[view].val.allocation_info = method.values[x].val.allocation_info
    method.call("aten::neg.out", view, y, y)
    method.inputs, method.outputs = [x], [y]
    arena = _one_arena(method)
    assert [(b.value, b.role, b.views) for b in arena.blocks] == [
        (x, "input", [view]),
        (y, "output", []),
    ]


def test_operator_in_place_reads_what_it_writes() -> None:
    method = MethodBuilder()
    x, a, y = (method.tensor(4) for _ in range(3))
    method.call("aten::neg.out", x, a, a)
    method.call("aten::relu_", a, a)
    method.call("aten::neg.out", a, y, y)
    method.inputs, method.outputs = [x], [y]
    calls = report_of(program(method)).methods[0].instructions
    assert [(call.reads, call.writes) for call in calls] == [([x], [a]), ([a], [a]), ([a], [y])]


def test_loop_keeps_what_it_uses() -> None:
    method = MethodBuilder()
    x, total, negated = (method.tensor(4) for _ in range(3))
    flag = method.value(fb.Bool(False))
    method.call("aten::neg.out", x, negated, negated)  # 0: needed by every iteration
    method.binary("aten::add.out", x, negated, total)  # 1: the loop begins
    method.call("aten::neg.out", total, total, total)  # 2
    method.instructions.append(fb.Instruction(fb.JumpFalseCall(flag, 1)))  # 3: and ends
    method.call("aten::neg.out", total, total, total)  # 4
    method.inputs, method.outputs = [x], [total]
    blocks = {b.value: (b.first, b.last) for b in _one_arena(method).blocks}
    assert blocks == {x: (0, 3), negated: (0, 3), total: (1, 4)}


def test_delegate_inputs_and_outputs_are_told_apart() -> None:
    method = MethodBuilder()
    x, a, b = (method.tensor(4) for _ in range(3))
    method.delegates.append(
        fb.BackendDelegate(
            id="TestBackend",
            processed=fb.BackendDelegateDataReference(fb.DataLocation.SEGMENT, 0),
            compile_specs=[fb.CompileSpec("key", b"value")],
        )
    )
    method.instructions.append(fb.Instruction(fb.DelegateCall(0, [x, a, b])))
    method.inputs, method.outputs = [x], [a, b]
    report = report_of(program(method, blobs=[b"payload"]))
    (call,) = report.methods[0].instructions
    assert (call.kind, call.op, call.reads, call.writes) == ("delegate", "TestBackend", [x], [a, b])
    (delegate,) = report.methods[0].delegates
    assert (delegate.bytes, delegate.calls, delegate.specs) == (7, [0], [("key", 5)])
    assert report.by_kind["delegates"] == 7
    assert report.executorch == ["it has no backend TestBackend (used once)"]


def test_payload_inside_the_flatbuffer_is_counted_once() -> None:
    method = binary()
    method.delegates.append(fb.BackendDelegate(id="TestBackend"))
    data = program(method, blobs=[b"x" * 1000])
    report = report_of(data)
    assert report.by_kind == {"program": len(data) - 1000, "delegates": 1000}


def test_equal_named_data_is_counted_once() -> None:
    pte = read_pte(add(2))
    pte.named_data = {"a": b"z" * 500, "b": b"z" * 500, "c": b"y" * 10}
    report = report_of(write_pte(pte))
    assert report.by_kind["named data"] == 510
    assert [entry.shared for entry in report.named_data] == [True, True, False]


def test_initial_state_and_external_tensors() -> None:
    method = counter()
    count = method.values[1].val
    count.data_buffer_idx = 1
    weight = method.values[method.tensor(3, planned=False)].val
    weight.extra_tensor_info = fb.ExtraTensorInfo(
        fully_qualified_name="weight", location=fb.TensorDataLocation.EXTERNAL
    )
    file = PTEFile(
        fb.Program(execution_plan=[method.plan()]),
        constants=[b"", bytes(4)],
        mutable_data=[b"", b"\1" * 8],
    )
    report = report_of(write_pte(file))
    kinds = {(c.kind, c.name, c.bytes) for c in report.constants}
    assert ("external", "weight", 12) in kinds and ("initial state", "state 1", 8) in kinds
    assert report.by_kind["initial state"] == 8
    assert "the data file (.ptd) with the external tensors" in report.executorch_needs


# --- what the file says about its origin ----------------------------------------------------------

_ENTRY = {
    "inputs": [
        {
            "name": "x",
            "kind": "tensor",
            "dtype": "float32",
            "shape": [{"min": 2, "max": 8, "sym": "s0"}],
        },
        {"name": "scale", "kind": "float"},
        {"name": "n", "kind": "int", "range": {"min": 0, "max": 9}},
        {"name": "flag", "kind": "bool", "value": True},
    ],
    "outputs": [
        {
            "kind": "tensor",
            "dtype": "float32",
            "shape": [{"min": 4, "max": 16, "expr": "2*s0"}],
        }
    ],
    "relations": [{"expr": "s0 % 2 == 0", "text": "size 0 of x is even"}],
}


def test_contract_makes_the_signature() -> None:
    method = MethodBuilder()
    x, y = method.tensor(8, dynamic=True), method.tensor(16, dynamic=True)
    scale, n = method.value(fb.Double(2.0)), method.value(fb.Int(3))
    flag = method.value(fb.Bool(True))
    method.call("aten::neg.out", x, y, y)
    method.inputs, method.outputs = [x, scale, n, flag], [y]
    report = report_of(program(method, contract={"forward": _ENTRY}))
    shown = report.methods[0]
    assert not shown.weak and shown.relations == ["size 0 of x is even"]
    assert shown.signature == (
        "forward(x: float32[s0=2..8], scale: float, n: int in 0..9, flag: bool = True)"
        " -> float32[2*s0=4..16]"
    )
    assert shown.values[x].name == "x" and shown.values[y].text == "float32[≤16]"
    assert [reason.split(" is a number")[0] for reason in report.executorch] == [
        "forward: input scale",
        "forward: input n",
    ]


def test_debug_map_gives_names_and_lines() -> None:
    row = ["total", "aten::add.out", 0, 7, "forward", "return x + y", "block.add"]
    debug = {
        "version": 1,
        "files": ["model.py"],
        "methods": {"forward": [row]},
        "values": {"forward": {"1": "block.weight"}},
    }
    method = binary()
    method.inputs = [0]
    shown = report_of(program(method, debug=debug)).methods[0]
    assert shown.values[2].name == "total" and shown.values[1].name == "block.weight"
    source = shown.instructions[0].source
    assert source is not None and str(source) == "model.py:7 in forward: `return x + y`"
    assert source.module == "block.add" and source.function == "forward"
    assert "model.py:7" in _details(report_of(program(method, debug=debug)))


@pytest.mark.parametrize(
    "debug",
    [
        {},
        {"files": 3, "methods": {"forward": [[]]}},
        {"files": [], "methods": {"forward": [["a", "b", 5, 1, "f", "t", "m"]]}},
        {"files": [], "methods": {"forward": 7}, "values": {"forward": [1]}},
        {"files": [], "methods": {"forward": []}, "values": {"forward": {"x": 1}}},
    ],
)
def test_damaged_debug_map_only_costs_the_lines(debug: dict[str, Any]) -> None:
    shown = report_of(program(binary(), debug=debug)).methods[0]
    assert shown.instructions[0].source is None and shown.values[2].name == "add_0"


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000, b'{"methods": 3}'])
def test_damaged_contract_leaves_the_tensors(raw: bytes) -> None:
    pte = read_pte(add(2, 3))
    pte.named_data = {"rushlight/contract": raw, "rushlight/debug": raw}
    method = report_of(write_pte(pte)).methods[0]
    assert method.weak
    assert method.signature == (
        "forward(input_0: float32[2, 3], input_1: float32[2, 3]) -> float32[2, 3]"
    )


# --- what real ExecuTorch runs --------------------------------------------------------------------


def test_operator_that_executorch_lacks() -> None:
    report = report_of(program(binary("aten::median.out", 2)))
    assert report.executorch == ["it has no kernel aten::median.out (used once)"]
    assert [operator.executorch for operator in report.operators] == [False]
    assert "does not run" in str(report) and "aten::median.out" in str(report)


def test_unbound_sizes_are_a_reason() -> None:
    method = binary()
    method.values[2].val.shape_dynamism = fb.TensorShapeDynamism.DYNAMIC_UNBOUND
    (reason,) = report_of(program(method)).executorch
    assert reason == "forward: 1 tensors have no bound on their sizes"


def test_quantised_kernels_are_a_need() -> None:
    report = report_of(program(binary("quantized_decomposed::add.out", 2)))
    assert report.executorch == [] and "quantised" in report.executorch_needs[0]


# --- damage ---------------------------------------------------------------------------------------


def _break(name: str, **fields: Any) -> bytes:
    """The bytes of a program with one number changed after the writer's checks."""
    method = binary("aten::add.out", 4)
    plan = method.plan()
    target = {
        "plan": plan,
        "call": plan.chains[0].instructions[0].instr_args,
        "tensor": plan.values[0].val,
        "place": plan.values[0].val.allocation_info,
    }[name]
    for key, value in fields.items():
        setattr(target, key, value)
    packed = fb.pack(
        fb.Program(execution_plan=[plan], constant_segment=fb.SubsegmentOffsets(0, [0]))
    )
    return packed.ljust(64, b"\0")


@pytest.mark.parametrize(
    ("name", "fields", "where"),
    [
        ("call", {"args": [0, 1, 99, 2]}, "forward: instruction 0: it refers to value 99"),
        ("call", {"args": [-1]}, "forward: instruction 0: it refers to value -1"),
        ("call", {"op_index": 1}, "forward: instruction 0: it refers to operator 1"),
        ("plan", {"inputs": [7]}, "forward: inputs: it refers to value 7"),
        ("plan", {"outputs": [-2]}, "forward: outputs: it refers to value -2"),
        ("plan", {"non_const_buffer_sizes": [0, 8]}, "forward: value 0: it ends at byte 16"),
        ("plan", {"non_const_buffer_sizes": [0, -8]}, "forward: it has a memory of -8 bytes"),
        ("place", {"memory_id": 2}, "forward: value 0: it is in memory 2, there are 1"),
        ("place", {"memory_id": 0}, "forward: value 0: it is in memory 0"),
        ("place", {"memory_offset_high": 1}, "forward: value 0: it ends at byte 4294967312"),
        ("tensor", {"sizes": [-4]}, "forward: value 0: size -4 is negative"),
        ("plan", {"chains": [fb.Chain(), fb.Chain()]}, "forward: it has 2 chains"),
    ],
)
def test_what_is_out_of_range_is_named(name: str, fields: dict[str, Any], where: str) -> None:
    with pytest.raises(LoadError) as caught:
        report_of(_break(name, **fields))
    assert str(caught.value).startswith(where) and "export it again" in str(caught.value)


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"cannot read .*nothing\.pte'.*check the path"):
        report_of(tmp_path / "nothing.pte")
    with pytest.raises(LoadError, match="cannot read"):
        report_of(tmp_path)
    (tmp_path / "empty.pte").write_bytes(b"")
    with pytest.raises(LoadError, match="0 bytes"):
        report_of(tmp_path / "empty.pte")


def test_lists_that_are_named_too_often_do_not_hang() -> None:
    method = MethodBuilder()
    x, y = method.tensor(1), method.tensor(1)
    many = method.value(fb.TensorList([x] * 5000))
    for _ in range(5000):
        method.call("aten::cat.out", many, y, y)
    method.inputs, method.outputs = [x], [y]
    with pytest.raises(LoadError, match="its lists name more than"):
        report_of(program(method))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_damaged_files_give_a_report_or_a_load_error(path: Path) -> None:
    good = path.read_bytes()
    rng = random.Random(path.stem)
    reports = 0
    for _ in range(150):
        data = bytearray(good)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        for _ in range(rng.choice((1, 2, 8)) if data else 0):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 255, rng.randrange(256)))
        try:
            report = report_of(bytes(data))
        except LoadError:
            continue
        reports += 1
        assert sum(report.by_kind.values()) == len(data)
        assert str(report)
    assert reports > 0
