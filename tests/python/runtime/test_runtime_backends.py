"""Backends that are written in Python: their arguments, and how their errors are reported."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backend_doubles import DEMO, Recorder, registered
from runtime_programs import MethodBuilder, binary, delegated, program

import rushlight as rl
from rushlight import runtime
from rushlight.errors import Code
from rushlight.schema import program as fb

ONES = np.ones(2, np.float32)


def _load(backend: Any, method: MethodBuilder | None = None, **options: Any) -> rl.Module:
    """Load a program with one delegate of `backend`, which is registered only during the load."""
    with registered("Test", backend):
        data = program(method or delegated("Test", 2), blobs=[b"payload"])
        return rl.load(data, **options)


def test_runs_and_is_destroyed() -> None:
    backend = Recorder()
    module = _load(backend)
    assert module(ONES).tolist() == [2, 2]
    assert module(ONES * 3).tolist() == [4, 4]
    assert backend.handles == ["handle", "handle"] and not backend.destroyed
    module.close()
    assert backend.destroyed == ["handle"]
    with pytest.raises(rl.RunError, match="the delegate is gone"):
        backend.contexts[0].named_data("x")


def test_only_init_and_execute_are_needed() -> None:
    class Least:
        def init(self, context: Any) -> None: ...

        def execute(self, context: Any, handle: Any, args: Any) -> None:
            assert handle is None
            args[1][:] = args[0] * 2

    assert _load(Least)(ONES).tolist() == [2, 2]  # a class is called


def test_what_init_is_told(tmp_path: Path) -> None:
    method = MethodBuilder(name="encode")
    x, y = method.tensor(2), method.tensor(2)
    method.delegate("Test", x, y, specs={"mode": b"\x01\x02", "empty": b""})
    method.inputs, method.outputs = [x], [y]
    path = tmp_path / "model.pte"
    path.write_bytes(program(method, blobs=[b"payload"], named_data={"weights": b"wwww"}))
    backend = Recorder()
    with registered("Test", backend):
        module = rl.load(path, backend_options={"Test": {"a": 1}, ("encode", "Test"): {"a": True}})
    (context,) = backend.contexts
    assert context.method == "encode"
    assert context.compile_specs == {"mode": b"\x01\x02", "empty": b""}
    assert context.options == {"a": True} and context.options["a"] is True
    assert bytes(context.payload) == b"payload" and context.payload.readonly
    assert bytes(context.named_data("weights")) == b"wwww"
    assert context.named_data("bias") is None
    # The payload lies where the file is mapped, and not in memory of its own.
    address = np.frombuffer(context.payload, np.uint8).__array_interface__["data"][0]
    maps = Path("/proc/self/maps").read_text().splitlines()
    ranges = [line.split()[0].split("-") for line in maps if line.endswith("model.pte")]
    assert any(int(a, 16) <= address < int(b, 16) for a, b in ranges)
    module.close()


def test_arguments_are_views() -> None:
    seen: dict[str, Any] = {}

    def execute(context: Any, args: Any) -> None:
        seen["args"] = [(a.dtype.name, a.shape, a.flags.writeable) for a in args[:2]]
        seen["scalars"] = args[2:6]
        seen["owns"] = [a.flags.owndata for a in (args[0], args[1], args[-1])]
        seen["strides"] = args[1].strides
        args[-1][...] = args[0].sum() + args[1][0, 1, 0, 0]

    method = MethodBuilder()
    x = method.tensor(2, 3, dtype="int64")
    last = method.tensor(1, 2, 3, 4, dtype="float32", dim_order=[0, 2, 3, 1])
    scalars = [method.value(v) for v in (fb.Int(5), fb.Double(0.5), fb.Bool(True), fb.Null())]
    out = method.tensor(1)
    method.delegate("Test", x, last, *scalars, out)
    method.inputs, method.outputs = [x, last], [out]
    module = _load(Recorder(execute=execute), method)
    image = np.zeros((1, 2, 3, 4), np.float32)
    image[0, 1, 0, 0] = 10
    assert module(np.arange(6).reshape(2, 3), image).tolist() == [25]
    assert seen["args"] == [("int64", (2, 3), False), ("float32", (1, 2, 3, 4), False)]
    assert seen["scalars"] == (5, 0.5, True, None)
    assert seen["owns"] == [False, False, False]
    assert seen["strides"] == (96, 4, 32, 8)


@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "bfloat16", "int32", "int16", "int8", "uint8", "bool"]
)
def test_dtypes(dtype: str) -> None:
    def execute(context: Any, args: Any) -> None:
        assert args[0].dtype == args[1].dtype and args[0].dtype.name == dtype
        args[1][...] = args[0]

    kind: Any = dtype
    if dtype == "bfloat16":
        kind = pytest.importorskip("ml_dtypes").bfloat16
    module = _load(Recorder(execute=execute), delegated("Test", 3, dtype=dtype))
    x = np.array([0, 1, 1]).astype(kind)
    assert module(x).tolist() == x.tolist()


def test_empty_and_zero_dim_arguments() -> None:
    module = _load(Recorder(), delegated("Test"))
    assert module(np.float32(2)).tolist() == 3
    assert _load(Recorder(), delegated("Test", 0, 2))(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_outputs_of_other_sizes() -> None:
    def execute(context: Any, args: Any) -> None:
        out = context.resize(1, (len(args[0]) - 1,))
        assert out.shape == (len(args[0]) - 1,) and out.flags.writeable
        out[:] = args[0][1:]

    module = _load(Recorder(execute=execute), delegated("Test", 4, dynamic=True))
    assert module(np.arange(3, dtype=np.float32)).tolist() == [1, 2]
    assert module(np.arange(4, dtype=np.float32)).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, (9,)), "a result has sizes (9,)"),
        ((1, (1, 1)), "a result has sizes (1, 1), but its output has (4,) and that rank"),
        ((0, (1,)), "resize(0): the outputs are arguments 1 to 2"),
        ((7, (1,)), "resize(7): the outputs are arguments 1 to 2"),
        ((1, (2**40,)), "a shape is a sequence of numbers of 32 bits, not (1099511627776,)"),
        ((1, (2.0,)), "a shape is a sequence of numbers of 32 bits, not (2.0,)"),
        ((1, 4), "a shape is a sequence of numbers of 32 bits, not 4"),
        ((1, (1,) * 99), "a result has sizes (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"),
    ],
)
def test_resizes_that_are_refused(arguments: Any, message: str) -> None:
    backend = Recorder(execute=lambda context, args: context.resize(*arguments) and None)
    module = _load(backend, delegated("Test", 4, dynamic=True))
    with pytest.raises(rl.RunError, match=re.escape(f"RunError: {message}")):
        module(np.ones(4, np.float32))
    with pytest.raises(rl.RunError, match=r"resize\(\) is for execute\(\)"):
        backend.contexts[0].resize(1, (1,))


class SpecialError(Exception):
    """An exception type that a backend defines."""


def test_exceptions_keep_their_text_and_type() -> None:
    text = "it is too warm; " * 200  # longer than any buffer of the runtime's

    def raises(context: Any, *args: Any) -> None:
        raise SpecialError(text)

    with pytest.raises(rl.LoadError) as load:
        _load(Recorder(init=raises))
    assert isinstance(load.value.__cause__, SpecialError)
    assert str(load.value) == (
        f"program in memory: forward: delegate 0 (Test): SpecialError: {text}"
    )
    module = _load(Recorder(execute=raises))
    for call in (module, lambda x: module.execute_into(np.ones(2, np.float32), x)):
        with pytest.raises(rl.RunError) as run:
            call(ONES)
        assert isinstance(run.value.__cause__, SpecialError)
        assert str(run.value) == f"forward: instruction 0 (Test): SpecialError: {text}"
        frames = [entry.name for entry in run.traceback] + _frames(run.value.__cause__)
        assert "raises" in frames  # where it was raised is told


def test_what_an_exception_leaves_shows_no_memory_of_the_call() -> None:
    def raises(context: Any, args: tuple[Any, ...]) -> None:
        seen = args[0]
        try:
            seen[0] = 1  # inputs are read-only
        except ValueError as error:
            raise SpecialError("first") from error

    module = _load(Recorder(execute=raises))
    with pytest.raises(rl.RunError) as run:
        module(ONES)
    error: BaseException | None = run.value.__cause__
    assert isinstance(error, SpecialError) and isinstance(error.__cause__, ValueError)
    while error is not None:
        traceback = error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code is raises.__code__:
                assert "seen" not in traceback.tb_frame.f_locals
            traceback = traceback.tb_next
        error = error.__cause__


def _frames(error: BaseException) -> list[str]:
    import traceback

    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (rl.RunError("x", code=Code.OUT_OF_RESOURCES), Code.OUT_OF_RESOURCES),
        (MemoryError(), Code.DELEGATE_MEMORY_ALLOCATION_FAILED),
        (NotImplementedError("x"), Code.NOT_SUPPORTED),
        (ValueError("x"), Code.INTERNAL),
        (rl.RunError("x", code=Code.END_OF_METHOD), Code.INTERNAL),
    ],
)
def test_codes(error: Exception, code: Code) -> None:
    def raises(context: Any, args: Any) -> None:
        raise error

    module = _load(Recorder(execute=raises))
    with pytest.raises(rl.RunError) as caught:
        module(ONES)
    assert caught.value.code == code and caught.value.__cause__ is error


def test_an_interrupt_stays_one() -> None:
    def raises(context: Any, args: Any) -> None:
        raise KeyboardInterrupt

    module = _load(Recorder(execute=raises))
    with pytest.raises(KeyboardInterrupt):
        module(ONES)


def test_a_payload_that_is_cut() -> None:
    def init(context: Any) -> None:
        if bytes(context.payload) != b"payload, whole":
            raise rl.LoadError("cut", code=Code.DELEGATE_INVALID_COMPATIBILITY)

    with pytest.raises(rl.LoadError, match=r"\(Test\): LoadError: cut\. The payload was"):
        _load(Recorder(init=init))


def test_unlawful_results() -> None:
    module = _load(Recorder(execute=lambda context, args: args[0] + 1))
    with pytest.raises(rl.RunError, match="must write its results into the last arguments"):
        module(ONES)

    def writes_input(context: Any, args: Any) -> None:
        args[0][0] = 1

    with pytest.raises(rl.RunError, match="ValueError: assignment destination is read-only"):
        _load(Recorder(execute=writes_input))(ONES)


def test_writes_past_its_output() -> None:
    def execute(context: Any, args: Any) -> None:
        np.lib.stride_tricks.as_strided(args[1], (5,))[...] = 7

    method = delegated("Test", 2)
    method.tensor(4)  # what lies behind the output
    _load(Recorder(execute=execute), method, check_backends=False)(ONES)
    module = _load(Recorder(execute=execute), method, check_backends=True)
    message = r"instruction 0 \(Test\): the backend wrote past the end of output 0: 2 bytes behind"
    with pytest.raises(rl.RunError, match=message):
        module(ONES)


DEBUG = {
    "version": 1,
    "files": ["model.py"],
    "methods": {"forward": [["call", "Test", 0, 3, "forward", "return self.inner(x)", ""]]},
    "delegates": {
        "forward": [
            {
                "mul": [["mul", "aten.mul.Tensor", 0, 11, "forward", "x * y", "inner"]],
                "12": [
                    ["add", "aten.add.Tensor", 0, 12, "forward", "x + y", "inner"],
                    ["sub", "aten.sub.Tensor", 0, 13, "forward", "x - y", "inner"],
                ],
            }
        ]
    },
}


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("mul", "at mul inside, model.py:11 in forward: `x * y`"),
        (12, "at 12 inside, model.py:12 in forward: `x + y`, model.py:13 in forward: `x - y`"),
        ("elsewhere", "at elsewhere inside, model.py:3 in forward: `return self.inner(x)`"),
        (None, "model.py:3 in forward: `return self.inner(x)`"),
    ],
)
def test_failures_lead_to_python_lines(place: Any, lines: str) -> None:
    def raises(context: Any, *args: Any) -> None:
        if place is not None:
            context.fail_at(place)
        raise ValueError("negative")

    data = program(delegated("Test", 2), blobs=[b""], debug=DEBUG)
    with registered("Test", Recorder(execute=raises)):
        module = rl.load(data)
        stepper = runtime.Stepper(data, "forward", [ONES])
        method = runtime.Runtime.get().load_program(data).load_method("forward")
    wanted = f"forward: instruction 0 (Test), {lines}: ValueError: negative"
    for call in (lambda: module(ONES), stepper.step, lambda: method.execute([ONES])):
        with pytest.raises(rl.RunError) as run:
            call()
        assert str(run.value) == wanted
    with (
        registered("Test", Recorder(init=raises)),
        pytest.raises(rl.LoadError) as load,
    ):
        rl.load(data)
    if place is not None and place != "elsewhere":  # nothing was called yet
        wanted = f"program in memory: forward: delegate 0 (Test), {lines}: ValueError: negative"
        assert str(load.value) == wanted


@pytest.mark.parametrize("delegates", [None, [], {"forward": 3}, {"forward": [{"mul": [[1]]}]}])
def test_a_map_without_its_delegates(delegates: Any) -> None:
    def raises(context: Any, args: Any) -> None:
        context.fail_at("mul")
        raise ValueError("negative")

    data = program(delegated("Test", 2), blobs=[b""], debug={**DEBUG, "delegates": delegates})
    with registered("Test", Recorder(execute=raises)):
        module = rl.load(data)
    with pytest.raises(rl.RunError, match=r"\(Test\), at mul inside, model.py:3 in forward"):
        module(ONES)


def test_events_inside_a_delegate() -> None:
    def execute(context: Any, args: Any) -> None:
        assert context.is_traced
        context.event("mul", 100, 250)
        context.event(12, 300, 301)
        args[1][...] = args[0]

    backend = Recorder(execute=execute)
    with registered("Test", backend):
        module = rl.load(program(delegated("Test", 2), blobs=[b""], debug=DEBUG), trace=True)
    module(ONES)
    whole, *inside = module.trace.events()
    assert (whole.kind, whole.name, whole.inside) == ("delegate", "Test", "")
    assert [(e.inside, e.ns, e.line) for e in inside] == [
        ("mul", 150, "model.py:11 in forward: `x * y`"),
        ("12", 1, "model.py:12 in forward: `x + y`"),
    ]
    assert not backend.contexts[0].is_traced  # between calls


def test_released_payloads_give_memory_back(tmp_path: Path) -> None:
    size = 16 << 20

    def resident() -> int:
        fields = dict(
            line.split(":") for line in Path("/proc/self/status").read_text().splitlines()
        )
        return int(fields["RssFile"].split()[0]) * 1024

    grown = {}
    for release in (False, True):

        def init(context: Any, release: bool = release) -> None:
            assert int(np.frombuffer(context.payload, np.uint8).sum()) == size
            if release:
                context.release_payload()

        path = tmp_path / f"{release}.pte"
        path.write_bytes(program(delegated("Test", 2), blobs=[b"\x01" * size]))
        backend = Recorder(init=init)
        before = resident()
        with registered("Test", backend):
            module = rl.load(path)
        grown[release] = resident() - before
        assert bytes(backend.contexts[0].payload[-4:]) == b"\x01" * 4  # still readable
        module.close()
    assert grown[False] > 0.9 * size and grown[True] < 0.25 * size


def test_several_methods_and_clones_have_handles_of_their_own() -> None:
    first, second = delegated("Test", 2), delegated("Test", 2)
    second.name = "second"
    counter = iter(range(10))
    backend = Recorder(init=lambda context: (context.method, next(counter)))
    with registered("Test", backend):
        module = rl.load(program(first, second, blobs=[b""]))
        clone = module.clone()
        assert clone(ONES).tolist() == [2, 2] and module.second(ONES).tolist() == [2, 2]
    assert sorted(set(backend.handles)) == [("forward", 2), ("second", 1)]
    clone.close()
    assert len(backend.destroyed) == 2
    module.close()
    assert len(backend.destroyed) == 4


def test_a_call_from_within_is_refused() -> None:
    backend = Recorder()
    module = _load(backend)
    backend.on_execute = lambda context, args: module(ONES) and None
    with pytest.raises(rl.RunError, match="called from within one of its own calls"):
        module(ONES)


def test_a_backend_goes_with_its_last_delegate() -> None:
    backend = Recorder()
    gone = weakref.ref(backend)
    module = _load(backend)
    backend.contexts.clear()
    del backend
    gc.collect()
    assert gone() is not None
    module.close()
    gc.collect()
    assert gone() is None


def test_unavailable() -> None:
    class Unavailable(Recorder):
        def is_available(self) -> bool:
            return False

    with registered("Test", Unavailable()):
        names = runtime.backend_registry.registered_backend_names
        assert DEMO in names and names[-1] == "Test"
        assert not runtime.backend_registry.is_available("Test")
        with pytest.raises(rl.LoadError, match="Test: it is registered, but says that it cannot"):
            rl.load(program(delegated("Test", 2), blobs=[b""]))
    assert not runtime.backend_registry.is_available("Test")


def test_missing_backends_are_listed_with_their_nodes() -> None:
    method = delegated("Test", 2)
    with pytest.raises(rl.LoadError) as caught:
        rl.load(program(method, blobs=[b""], debug=DEBUG))
    assert caught.value.code == Code.NOT_FOUND
    text = str(caught.value)
    assert "  Test\n    for forward: delegate 0, to run mul (aten.mul.Tensor), add" in text
    assert "register_backend, or export with backend='portable'" in text
    method = binary("aten::add.out", 2, 2)
    method.delegate("Other", *method.inputs, *method.outputs)
    for load in (
        rl.load,
        lambda data: runtime.Runtime.get().load_program(data).load_method("forward"),
        lambda data: runtime.Stepper(data, "forward", [ONES, ONES]),
    ):
        with pytest.raises(rl.LoadError, match=r"Other\n    for forward: delegate 0\n"):
            load(program(method, blobs=[b""]))


def test_registering() -> None:
    backend = Recorder()
    with registered("Test", backend):
        with pytest.raises(rl.LoadError, match="a backend 'Test' already; pass replace=True"):
            runtime.register_backend("Test", backend)
        other = Recorder(execute=lambda context, args: args[1].fill(9))
        runtime.register_backend("Test", other, replace=True)
        assert rl.load(program(delegated("Test", 2), blobs=[b""]))(ONES).tolist() == [9, 9]
    with pytest.raises(
        rl.LoadError, match=f"no backend 'Test' is registered; registered: .*{DEMO}"
    ):
        runtime.unregister_backend("Test")
    with pytest.raises(TypeError, match="int is not a backend: it has no init and no execute"):
        runtime.register_backend("Test", 3)
    for id in ("", "x" * 64, 3, "a\0b"):
        with pytest.raises(rl.LoadError, match="a text of 1 to 63 bytes"):
            runtime.register_backend(id, backend)  # type: ignore[arg-type]
    room = 16 - len(runtime.backend_registry.registered_backend_names)
    many = [f"Test{i}" for i in range(room + 1)]  # one more than there is room for
    with pytest.raises(rl.LoadError, match="full: it has room for 16"):
        for id in many:
            runtime.register_backend(id, backend)
    for id in many[:-1]:
        runtime.unregister_backend(id)
