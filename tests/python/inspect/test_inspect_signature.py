"""Signatures in reports: the structures that the contract tells of."""

from __future__ import annotations

from runtime_programs import binary, program

from rushlight.inspect import report_of


def test_signature_shows_the_structures() -> None:
    entry = {
        "inputs": [{"name": n, "kind": "tensor", "dtype": "float32", "shape": [2]} for n in "xa"],
        "outputs": [{"name": "", "kind": "tensor", "dtype": "float32", "shape": [2]}],
        "parameters": ["x", "more"],
        "relations": [],
    }
    leaf = {"t": "leaf"}
    args = {"t": "tuple", "c": [leaf, {"t": "dict", "k": ["a"], "c": [leaf]}]}
    entry["in_spec"] = {"t": "tuple", "c": [args, {"t": "dict"}]}
    entry["out_spec"] = {"t": "dict", "k": ["y"], "c": [leaf]}
    shown = report_of(program(binary("aten::add.out", 2), contract={"forward": entry})).methods[0]
    f = "float32[2]"
    assert shown.signature == f'forward(x: {f}, more: {{"a": {f}}}) -> {{"y": {f}}}'
    entry["out_spec"] = {"t": "tuple", "c": [leaf, leaf]}  # which are not there
    shown = report_of(program(binary("aten::add.out", 2), contract={"forward": entry})).methods[0]
    assert shown.signature == f"forward(x: {f}, a: {f}) -> {f}"
