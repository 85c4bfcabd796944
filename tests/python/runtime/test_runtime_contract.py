"""A call is compared with the contract before anything runs, and refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_programs import (
    LEAF,
    MethodBuilder,
    add,
    binary,
    call_spec,
    contract,
    program,
    tensor_value,
)

import rushlight as rl
from rushlight.errors import Code
from rushlight.schema import program as fb


def ones(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.ones(shape, dtype)


ROWS = {"min": 2, "max": 8, "sym": "s0"}
DYNAMIC = contract(
    [tensor_value(ROWS, 4, name="x"), tensor_value(ROWS, 4, name="y")],
    [tensor_value(ROWS, 4)],
)


def dynamic_module(**changes: Any) -> rl.Module:
    method = binary("aten::add.out", 8, 4, dynamic=True)
    return rl.load(program(method, contract={"forward": {**DYNAMIC, **changes}}))


def refused(module: Any, *args: Any, **kwargs: Any) -> rl.RunError:
    with pytest.raises(rl.RunError) as caught:
        module(*args, **kwargs)
    assert caught.value.where.startswith("forward")
    return caught.value


def test_signature() -> None:
    module = dynamic_module()
    assert repr(module.signature()) == (
        "forward(x: float32[2..8, 4], y: float32[2..8, 4]) -> float32[2..8, 4]"
        "  where size 0 of y == size 0 of x"
    )
    signature = module.signature("forward")
    assert [v.name for v in signature.inputs] == ["x", "y"]
    assert (signature.inputs[0].shape[0].min, signature.inputs[0].shape[0].max) == (2, 8)
    assert signature.parameters == ("x", "y") and not signature.weak


def test_every_size_in_range() -> None:
    module = dynamic_module()
    for n in (2, 8, 5, 3):
        np.testing.assert_array_equal(module(ones(n, 4), y=ones(n, 4)), 2 * ones(n, 4))


X34 = ones(3, 4)


@pytest.mark.parametrize(
    ("x", "y", "code", "message"),
    [
        (ones(9, 4), X34, Code.NOT_SUPPORTED, "input 'x': size 0 is 9, allowed 2..8"),
        (ones(1, 4), X34, Code.NOT_SUPPORTED, "input 'x': size 0 is 1, allowed 2..8"),
        (ones(4, 5), X34, Code.NOT_SUPPORTED, "input 'x': size 1 is 5, allowed 4"),
        (
            X34,
            ones(4, 4),
            Code.NOT_SUPPORTED,
            "size 0 of input 'y' is 4, but size 0 of input 'x' is 3",
        ),
        (ones(4), X34, Code.NOT_SUPPORTED, "has 1 dimensions, [4], the program takes 2"),
        (
            X34,
            ones(3, 4, dtype="float64"),
            Code.INVALID_ARGUMENT,
            "input 'y': dtype is float64, the program takes float32: convert it with",
        ),
        (3, X34, Code.INVALID_TYPE, "input 'x': got an int (3), expected a tensor"),
        (None, X34, Code.INVALID_TYPE, "input 'x': got None, expected a tensor"),
        ([1.0], X34, Code.INVALID_TYPE, "input 'x': got a list, expected a tensor"),
        (np.array(["a"]), X34, Code.NOT_SUPPORTED, "dtype <U1 cannot be passed"),
        (X34.astype(">f4"), X34, Code.NOT_SUPPORTED, "dtype >f4 cannot be passed"),
    ],
)
def test_refused(x: Any, y: Any, code: Code, message: str) -> None:
    error = refused(dynamic_module(), x, y)
    assert message in str(error)
    assert error.code == code


def test_wrong_counts() -> None:
    module = dynamic_module()
    for args, message in (
        ((X34,), "'y' missing; it takes x, y"),
        ((), "'x', 'y' missing"),
        ((X34,) * 3, "got 3 positional arguments; it takes x, y"),
    ):
        error = refused(module, *args)
        assert message in str(error) and error.code == Code.INVALID_ARGUMENT


def test_keywords_that_do_not_fit() -> None:
    module = dynamic_module()
    x = ones(2, 4)
    assert "unexpected keyword argument 'z'" in str(refused(module, x, x, z=x))
    assert "two values for 'x'" in str(refused(module, x, x=x))


def test_a_refusal_changes_nothing() -> None:
    method = MethodBuilder()
    x, y, state = method.tensor(2), method.tensor(2), method.tensor(2)
    method.binary("aten::add.out", state, x, state)
    method.binary("aten::add.out", state, y, state)
    method.inputs, method.outputs = [x, y], [state]
    module = rl.load(program(method))
    one = ones(2)
    np.testing.assert_array_equal(module(one, one), [2, 2])
    for bad in (ones(3), ones(2, dtype="int64"), None, "no"):
        refused(module, one, bad)
        refused(module, bad, one)
    np.testing.assert_array_equal(module(one, one), [4, 4])


def test_relations() -> None:
    module = dynamic_module(
        inputs=[tensor_value(ROWS, 4, name="x"), tensor_value(ROWS, 4, name="y")],
        relations=[{"expr": "s0 % 2 == 0", "text": "size 0 of x % 2 == 0"}],
    )
    np.testing.assert_array_equal(module(ones(6, 4), ones(6, 4)), 2 * ones(6, 4))
    error = refused(module, ones(5, 4), ones(5, 4))
    assert "only inputs with size 0 of x % 2 == 0; here size 0 of input 'x' is 5" in str(error)
    assert repr(module.signature()).endswith(
        "where size 0 of y == size 0 of x and size 0 of x % 2 == 0"
    )
    # A relation about a size that no input tells cannot be tested.
    other = dynamic_module(relations=[{"expr": "s9 == 3", "text": "?"}])
    np.testing.assert_array_equal(other(ones(5, 4), ones(5, 4)), 2 * ones(5, 4))


def test_derived_sizes() -> None:
    double = {"min": 2, "max": 8, "expr": "2*s0"}
    base = {"min": 1, "max": 4, "sym": "s0"}
    method = MethodBuilder()
    x, y, out = (method.tensor(n, 4, dynamic=True) for n in (4, 8, 4))
    method.call("aten::abs.out", x, out, out)
    method.inputs, method.outputs = [x, y], [out]
    inputs = [tensor_value(base, 4, name="x"), tensor_value(double, 4, name="y")]
    both = contract(inputs, [tensor_value(base, 4)])
    module = rl.load(program(method, contract={"forward": both}))
    assert module(ones(3, 4), ones(6, 4)).shape == (3, 4)
    error = refused(module, ones(3, 4), ones(4, 4))
    assert "size 0 of input 'y' is 4, but must be 2*s0 = 6" in str(error)
    assert "where size 0 of y == 2*(size 0 of x)" in repr(module.signature())


def test_a_derived_size_alone_is_solved() -> None:
    double = {"min": 2, "max": 8, "expr": "2*s0"}
    inputs = [tensor_value(double, 4, name="x"), tensor_value(double, 4, name="y")]
    module = dynamic_module(inputs=inputs)
    assert module(ones(6, 4), ones(6, 4)).shape == (6, 4)
    error = refused(module, ones(5, 4), ones(5, 4))
    assert "size 0 of input 'x' is 5, which is not 2*s0 for any whole number" in str(error)
    assert "is 4, but must be 2*s0 = 6" in str(refused(module, ones(6, 4), ones(4, 4)))


def scalar_module(kind: str, value: Any, entry: dict[str, Any]) -> rl.Module:
    method = MethodBuilder()
    x, out = method.tensor(2), method.tensor(2)
    number = method.value({"int": fb.Int, "float": fb.Double, "bool": fb.Bool}[kind](value))
    # add.out's alpha is the scalar: out = x + alpha * x
    method.call("aten::add.out", x, x, number, out, out)
    method.inputs, method.outputs = [x, number], [out]
    one = contract(
        [tensor_value(2, name="x"), {"name": "k", "kind": kind, **entry}], [tensor_value(2)]
    )
    return rl.load(program(method, contract={"forward": one}))


def test_signatures_show_structures() -> None:
    """Keys of dicts, fields of outputs, and what holds nothing."""
    method = MethodBuilder()
    tensors = [method.tensor(2) for _ in range(3)]
    number, nothing = method.value(fb.Int(3)), method.value(fb.Null())
    outs = [method.tensor(2) for _ in range(5)]
    for out in outs:
        method.call("aten::abs.out", tensors[0], out, out)
    method.inputs, method.outputs = [*tensors, number, nothing], outs
    options = {"t": "dict", "k": ["a", 2], "c": [{"t": "list", "c": [LEAF]}, LEAF]}
    pair = {"t": "namedtuple", "name": "Pair", "k": ["left", "right"], "c": [LEAF, LEAF]}
    inner = {"t": "tuple", "c": [LEAF]}
    output = {
        "t": "object",
        "name": "ModelOutput",
        "k": ["logits", "past", "rest"],
        "c": [LEAF, pair, {"t": "dict", "k": ["x"], "c": [{"t": "list", "c": [LEAF, inner]}]}],
    }
    entries = [tensor_value(2, name=n) for n in ("x", "options['a'][0]", "options[2]")]
    entries += [{"name": "k", "kind": "int", "value": 3}, {"name": "mask", "kind": "none"}]
    one = contract(
        entries,
        [tensor_value(2)] * 5,
        in_spec=call_spec([LEAF, options], {"k": LEAF, "mask": LEAF, "empty": {"t": "dict"}}),
        out_spec=output,
    )
    one["parameters"] = ["x", "options", "k", "mask", "empty"]
    f = "float32[2]"
    assert repr(rl.load(program(method, contract={"forward": one})).signature()) == (
        f'forward(x: {f}, options: {{"a": [{f}], 2: {f}}}, k: int = 3, mask: None, empty: {{}}) -> '
        f'ModelOutput(logits={f}, past=Pair(left={f}, right={f}), rest={{"x": [{f}, ({f},)]}})'
    )


def test_scalars_are_fixed_unless_the_contract_frees_them() -> None:
    module = scalar_module("int", 3, {"value": 3})
    np.testing.assert_array_equal(module(ones(2), 3), [4, 4])
    np.testing.assert_array_equal(module(ones(2), np.int64(3)), [4, 4])
    error = refused(module, ones(2), 4)
    assert "input 'k': is 4, but the program was exported with 3" in str(error)
    assert error.code == Code.INVALID_ARGUMENT
    assert "got a float (3.0), expected an int" in str(refused(module, ones(2), 3.0))
    assert "got a bool (True), expected an int" in str(refused(module, ones(2), True))
    assert repr(module.signature()) == "forward(x: float32[2], k: int = 3) -> float32[2]"

    free = scalar_module("int", 3, {"range": {"min": 1, "max": 9, "sym": "s5"}})
    for k in (1, 9, 4):
        np.testing.assert_array_equal(free(ones(2), k), [1 + k] * 2)
    assert "k: int in 1..9" in repr(free.signature())
    assert "input 'k': is 10, allowed 1..9" in str(refused(free, ones(2), 10))
    assert "input 'k': is" in str(refused(free, ones(2), 2**70))


def test_floats_are_compared_with_room() -> None:
    module = scalar_module("float", 0.5, {"value": 0.5})
    np.testing.assert_array_equal(module(ones(2), 0.5 + 1e-9), [1.5, 1.5])
    assert "exported with 0.5" in str(refused(module, ones(2), 0.7))
    free = scalar_module("float", 0.5, {})
    np.testing.assert_array_equal(free(ones(2), 2.0), [3, 3])
    np.testing.assert_array_equal(free(ones(2), 2), [3, 3])


def test_bools() -> None:
    method = MethodBuilder()
    x, flag, out = method.tensor(2), method.value(fb.Bool(True)), method.tensor(2)
    method.call("aten::abs.out", x, out, out)
    method.inputs, method.outputs = [x, flag], [out, flag]
    module = rl.load(program(method))
    result, value = module(ones(2), True)
    assert value is True
    np.testing.assert_array_equal(result, [1, 1])
    assert "input 1: is False, but the program was exported with True" in str(
        refused(module, ones(2), False)
    )
    assert "got an int (1), expected a bool" in str(refused(module, ones(2), 1))


def test_scalars_of_numpy() -> None:
    flag = scalar_module("bool", True, {"value": True})
    np.testing.assert_array_equal(flag(ones(2), np.bool_(True)), [2, 2])
    assert "False_, but the program" in str(refused(flag, ones(2), np.bool_(False)))
    assert "got a numpy.int64 (1), expected a bool" in str(refused(flag, ones(2), np.int64(1)))
    free = scalar_module("bool", True, {})
    np.testing.assert_array_equal(free(ones(2), np.bool_(False)), [1, 1])
    whole = scalar_module("int", 3, {"value": 3})
    text = str(refused(whole, ones(2), np.bool_(True)))
    assert f"got a numpy.{np.bool_.__name__} (True), expected an int" in text
    number = scalar_module("float", 0.5, {})
    for value in (np.float32(2), np.float16(2), np.float64(2), np.int8(2)):
        np.testing.assert_array_equal(number(ones(2), value), [3, 3])
    for other in (np.bool_(True), np.complex64(2), np.str_("2")):
        assert "expected a float" in str(refused(number, ones(2), other))


def test_none_and_text() -> None:
    method = MethodBuilder()
    x, out = method.tensor(2), method.tensor(2)
    nothing, mode = method.value(fb.Null()), method.value(fb.Null())
    method.call("aten::abs.out", x, out, out)
    method.inputs, method.outputs = [x, nothing, mode], [out]
    inputs = [
        tensor_value(2, name="x"),
        {"name": "mask", "kind": "none"},
        {"name": "mode", "kind": "str", "value": "fast"},
    ]
    module = rl.load(program(method, contract={"forward": contract(inputs, [tensor_value(2)])}))
    np.testing.assert_array_equal(module(ones(2), None, "fast"), [1, 1])
    np.testing.assert_array_equal(module(ones(2), mode="fast"), [1, 1])  # None may be left out
    assert "only None is allowed" in str(refused(module, ones(2), ones(2), "fast"))
    assert "exported with 'fast'" in str(refused(module, ones(2), None, "slow"))
    assert "'mode' missing" in str(refused(module, ones(2)))


def test_keywords_in_any_order() -> None:
    method = MethodBuilder()
    x, y, z, out = (method.tensor(2) for _ in range(4))
    method.binary("aten::sub.out", x, y, out)
    method.binary("aten::mul.out", out, z, out)
    method.inputs, method.outputs = [x, y, z], [out]
    one = contract(
        [tensor_value(2, name=n) for n in "xyz"],
        [tensor_value(2)],
        in_spec=call_spec([LEAF], {"y": LEAF, "z": LEAF}),
    )
    module = rl.load(program(method, contract={"forward": one}))
    a, b, c = 7 * ones(2), 4 * ones(2), 2 * ones(2)
    for args, kwargs in (
        ((a,), {"z": c, "y": b}),
        ((), {"z": c, "x": a, "y": b}),
        ((a, b), {"z": c}),
        ((a, b, c), {}),
    ):
        np.testing.assert_array_equal(module(*args, **kwargs), [6, 6])
        out_array = np.zeros(2, np.float32)
        module.execute_into(out_array, *args, **kwargs)
        np.testing.assert_array_equal(out_array, [6, 6])
    assert "two values for 'y'" in str(refused(module, a, b, y=c))
    assert "'y' missing" in str(refused(module, a, z=c))
    assert "unexpected keyword argument 'w'" in str(refused(module, a, b, w=c))
    assert "input 'z': size 0 is 3" in str(refused(module, a, b, z=ones(3)))


def test_empty_containers_may_be_left_out() -> None:
    method = MethodBuilder()
    x, out = method.tensor(2), method.tensor(2)
    method.call("aten::abs.out", x, out, out)
    method.inputs, method.outputs = [x], [out]
    one = contract(
        [tensor_value(2, name="x")],
        [tensor_value(2)],
        in_spec=call_spec([LEAF], {"past": {"t": "tuple", "c": []}}),
        parameters=["x", "past"],
    )
    module = rl.load(program(method, contract={"forward": one}))
    for kwargs in ({}, {"past": ()}, {"past": None}):
        np.testing.assert_array_equal(module(ones(2), **kwargs), [1, 1])
    assert "input 'past': expected a tuple of 0 values" in str(refused(module, ones(2), past=3))


def test_nested_inputs_are_named_by_their_path() -> None:
    method = MethodBuilder()
    a, b, out = method.tensor(2), method.tensor(2), method.tensor(2)
    method.binary("aten::sub.out", a, b, out)
    method.inputs, method.outputs = [a, b], [out]
    batch = {"t": "dict", "k": ["a", "b"], "c": [LEAF, {"t": "list", "c": [LEAF]}]}
    one = contract(
        [tensor_value(2, name="batch['a']"), tensor_value(2, name="batch['b'][0]")],
        [tensor_value(2)],
        in_spec=call_spec([], {"batch": batch}),
        parameters=["batch"],
    )
    module = rl.load(program(method, contract={"forward": one}))
    value = {"b": [ones(2)], "a": 3 * ones(2)}
    np.testing.assert_array_equal(module(batch=value), [2, 2])
    np.testing.assert_array_equal(module(value), [2, 2])
    assert "input \"batch['b'][0]\": size 0 is 3" in str(
        refused(module, {"a": ones(2), "b": [ones(3)]})
    )
    error = refused(module, {"a": ones(2), "b": []})
    assert "input \"batch['b']\": expected a list of 1 value, got a list of 0" in str(error)
    assert error.code == Code.INVALID_TYPE


def test_the_weak_contract_of_a_program_from_elsewhere() -> None:
    module = rl.load(add(3, 4, dynamic=True))
    assert module.signature().weak
    assert repr(module.signature()) == (
        "forward(input 0: float32[0..3, 0..4], input 1: float32[0..3, 0..4]) -> float32[0..3, 0..4]"
    )
    np.testing.assert_array_equal(module(ones(2, 4), ones(2, 4)), 2 * ones(2, 4))
    assert "input 1: size 0 is 4, allowed 0..3" in str(refused(module, ones(2, 4), ones(4, 4)))


def test_a_failing_kernel_names_operator_and_line() -> None:
    lines = [["add", "aten.add", 0, 12, "forward", "  return x + y", ""]]
    debug = {"version": 1, "files": ["model.py"], "methods": {"forward": lines}}
    method = binary("aten::add.out", 3, 4, dynamic=True)
    module = rl.load(program(method, debug=debug))
    with pytest.raises(rl.RunError) as caught:
        module(ones(2, 4), ones(3, 4))
    assert caught.value.where == (
        "forward: instruction 0 (aten::add.out), model.py:12 in forward: `return x + y`"
    )
    assert str(caught.value).count("instruction 0") == 1
    np.testing.assert_array_equal(module(ones(2, 4), ones(2, 4)), 2 * ones(2, 4))
