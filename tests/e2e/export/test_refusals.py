"""What cannot be exported is refused with the line of Python, what to do, and a page that shows it.

Each model has the comment `# here` on the line that must be named.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._higher_order_ops import scan
from torch.export import Dim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import rushlight as rl
from rushlight.doctor import examine

ROOT = Path(__file__).resolve().parents[3]
LOG = logging.getLogger(__name__)


def text_of_a_value(x: torch.Tensor) -> torch.Tensor:
    return x * len(f"{x.mean():.3f}")  # here


def decided_by_item(x: torch.Tensor) -> torch.Tensor:
    n = x.sum().item()
    if n > 5:  # here
        return x
    return -x


def looped_while(x: torch.Tensor) -> torch.Tensor:
    while x.sum() < 10:  # here
        x = x + 1
    return x


def looped_for(x: torch.Tensor) -> torch.Tensor:
    for _ in range(int(x.sum())):  # here
        x = x + 1
    return x


def asserted(x: torch.Tensor) -> torch.Tensor:
    assert x.min() >= 0  # here
    return x


def compared(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if torch.equal(x, x * 2) else x  # here


def of_numpy(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.sin(x.numpy()))  # here


def sorted_by_python(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(sorted(x.flatten().tolist()))  # here


def by_builtin(x: torch.Tensor) -> torch.Tensor:
    return x * max(x.flatten())  # here


def kept_in_a_dict(x: torch.Tensor) -> torch.Tensor:
    table = {k.item(): v for k, v in zip(x[:, 0], x, strict=True)}  # here
    return table[1.0]


def chosen_from_a_list(x: torch.Tensor) -> torch.Tensor:
    return [x, x + 1, x + 2][x.argmax()]  # here


def classes_of_values(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.one_hot(x.long())  # here


def compiled_elsewhere(x: torch.Tensor) -> torch.Tensor:
    traced = torch.jit.trace(lambda v: v + 1, x)  # here
    return traced(x)


def nested(x: torch.Tensor) -> torch.Tensor:
    return torch.nested.nested_tensor([x, x])  # here


def printed_in_a_branch(x: torch.Tensor) -> torch.Tensor:
    def on_true(x: torch.Tensor) -> torch.Tensor:
        print(x.sum().item())  # here
        return x + 1

    return torch.cond(x.sum() > 0, on_true, torch.sin, (x,))


def decided_in_a_branch(x: torch.Tensor) -> torch.Tensor:
    def on_true(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 3:  # here
            return x + 1
        return x * 3

    return torch.cond(x.sum() > 0, on_true, torch.sin, (x,))


def branches_of_other_dtypes(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: x.double(), lambda x: x * 2, (x,))  # here


def written_through_views(x: torch.Tensor) -> torch.Tensor:
    x.view(-1)[2:].t()[0] = 4  # here
    return x * 2


def written_through_a_chunk(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, 1)
    first.mul_(3)  # here
    return first + second


def repeated(x: torch.Tensor) -> torch.Tensor:
    return torch.repeat_interleave(x, x[:, 0].long(), 0)  # here


def sized_by_a_value(x: torch.Tensor) -> torch.Tensor:
    n = x.sum().long().item()  # here
    return torch.zeros(n)


def of_an_unknown_dtype(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x.double(), x.double()).abs()  # here


def without_a_kernel(x: torch.Tensor) -> torch.Tensor:
    return torch.nonzero_static(x, size=3)  # here


def attended(x: torch.Tensor) -> torch.Tensor:
    from torch.nn.attention.flex_attention import flex_attention

    q = x[None, None]
    return flex_attention(q, q, q)  # here


# The kind of finding, and a piece of what to do.
REFUSED: dict[Callable[..., Any], tuple[str, str]] = {
    text_of_a_value: ("graph-break", "Leave the text out"),
    decided_by_item: ("data-dependent-branch", "torch.where"),
    looped_while: ("data-dependent-branch", "torch.while_loop"),
    looped_for: ("tensor-to-python", "torch.while_loop"),
    asserted: ("data-dependent-branch", "torch._assert_async"),
    compared: ("graph-break", "(a == b).all()"),
    of_numpy: ("leaves-pytorch", "torch.sin for np.sin"),
    sorted_by_python: ("data-dependent-branch", "torch.sort"),
    by_builtin: ("graph-break", "torch.max"),
    kept_in_a_dict: ("tensor-to-python", "torch.where or an index"),
    chosen_from_a_list: ("tensor-to-python", "torch.stack(items)[i]"),
    classes_of_values: ("tensor-to-python", "num_classes"),
    compiled_elsewhere: ("graph-break", "without torch.jit.trace"),
    nested: ("graph-break", "padded tensor"),
    printed_in_a_branch: ("graph-break", "Leave the text out"),
    decided_in_a_branch: ("graph-break", "torch.where"),
    branches_of_other_dtypes: ("graph-break", "convert with .to()"),
    written_through_views: ("mutated-input", "x = x.clone()"),
    written_through_a_chunk: ("mutated-input", "x = x.clone()"),
    repeated: ("data-dependent-size", "output_size"),
    sized_by_a_value: ("data-dependent-size", "torch._check(n <= 64)"),
    of_an_unknown_dtype: ("unsupported-dtype", "float32"),
    without_a_kernel: ("unsupported-operator", "rushlight ops"),
    attended: ("unsupported-operator", "torch.cond, while_loop, map or scan"),
}


def model_of(function: Callable[..., Any]) -> torch.nn.Module:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    return Model()


def line_in(function: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if line.rstrip().endswith("# here"))


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_a_refusal_has_line_advice_and_page(function: Callable[..., Any]) -> None:
    kind, advice = REFUSED[function]
    x = torch.ones(4, 4)
    with pytest.raises(rl.ExportError) as caught:
        rl.export(model_of(function), (x,))
    text = str(caught.value)
    assert f"{Path(__file__).name}:{line_in(function)} in " in text
    assert advice in text
    assert f"[docs/gallery/{kind}.md]" in text and (ROOT / f"docs/gallery/{kind}.md").is_file()
    assert kind in [finding.kind for finding in caught.value.findings]
    assert not any(word in text for word in ("u0", "zuf0", "s77")), "torch's own symbols"


@pytest.mark.parametrize("function", [compared, repeated, without_a_kernel, sized_by_a_value])
def test_the_doctor_says_the_same(function: Callable[..., Any]) -> None:
    kind, advice = REFUSED[function]
    [finding] = examine(model_of(function), (torch.ones(4, 4),)).blockers
    assert finding.kind == kind and advice in finding.advice
    assert finding.source.line == line_in(function)


def test_a_write_is_found_in_a_program_that_was_captured_before() -> None:
    program = torch.export.export(model_of(written_through_a_chunk), (torch.ones(4, 4),))
    with pytest.raises(rl.ExportError, match=r"writes its input 'x'.*\.py:\d+ in forward"):
        rl.export(program)


class Counts(torch.nn.Module):
    """Writes its state in a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def on_true(x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return x + 1

        return torch.cond(x.sum() > 0, on_true, lambda x: x * 2, (x,))


def written_by_a_function_of_scan(x: torch.Tensor) -> torch.Tensor:
    def body(carried: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        row[0] = 1
        return carried + row, carried * 2

    return scan(body, torch.zeros(4), x)[1]


@pytest.mark.parametrize(
    ("model", "x", "problem"),
    [
        (Counts(), torch.ones(4), "given to cond writes 'total' in place"),
        (model_of(written_by_a_function_of_scan), torch.ones(4, 4), "writes what it is given in"),
    ],
    ids=["cond", "scan"],
)
def test_writes_inside_control_flow_are_refused(
    model: torch.nn.Module, x: torch.Tensor, problem: str
) -> None:
    with pytest.raises(rl.ExportError, match=rf"{problem}.*\.py:\d+ in .*after the call"):
        rl.export(model, (x,))
    [finding] = examine(model, (x,)).blockers
    assert problem in finding.problem and finding.source.line


PACKED = pack_padded_sequence(torch.ones(2, 3, 4), torch.tensor([3, 2]), batch_first=True)


def packs(x: torch.Tensor) -> Any:
    return pack_padded_sequence(x, [3, 2], batch_first=True)


class ReadsPacked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return pad_packed_sequence(self.layer(packs(x))[0], batch_first=True)[0]


@pytest.mark.parametrize(
    ("model", "x", "what"),
    [
        (torch.nn.GRU(4, 4), PACKED, "an input is"),
        (ReadsPacked(), torch.ones(2, 3, 4), "a recurrent layer is given"),
        (model_of(packs), torch.ones(2, 3, 4), "a result is"),
    ],
    ids=["input", "inside", "result"],
)
def test_packed_sequences_are_refused(
    model: torch.nn.Module, x: Any, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(rl.ExportError, match=rf"{what} a PackedSequence.*Use the padded tensor"):
        rl.export(model, (x,))
    assert capfd.readouterr() == ("", "")  # torch prints the graph that it had


class Nested(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + 1


def nested(depth: int) -> torch.nn.Module:
    model: torch.nn.Module = torch.nn.Linear(4, 4)
    for _ in range(depth):
        model = Nested(model)
    return model


def test_what_eager_runs_is_not_nested_too_deeply() -> None:
    limit, x = sys.getrecursionlimit(), torch.ones(2, 4)
    model = nested(160)
    torch.testing.assert_close(rl.load(rl.export(model, (x,)).buffer)(x), model(x))
    assert sys.getrecursionlimit() == limit


def test_calls_that_python_nests_too_deeply_are_refused_in_words() -> None:
    with pytest.raises(rl.ExportError, match=r"nested more deeply than Python.*setrecursionlimit"):
        rl.export(nested(600), (torch.ones(2, 4),))


def test_parameters_in_too_many_numbered_modules_are_refused_in_words() -> None:
    model: torch.nn.Module = torch.nn.Linear(2, 2)
    for _ in range(210):
        model = torch.nn.Sequential(model)
    with pytest.raises(rl.ExportError, match=r"stands in 210 modules.*at most 200.*Nest fewer mod"):
        rl.export(model, (torch.ones(1, 2),))


def test_examples_that_the_model_fails_on_are_refused_in_words() -> None:
    model, singular = model_of(torch.linalg.inv), torch.ones(3, 3)
    with pytest.raises(rl.ExportError, match=r"fails on the example inputs: .*singular.*Give exam"):
        rl.export(model, (singular,))
    [finding] = examine(model, (singular,)).blockers
    assert finding.kind == "model-fails"


def test_a_loop_over_a_size_that_varies_says_how_to_write_it() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return sum([x[i] * i for i in range(x.shape[0])])  # type: ignore[return-value]

    with pytest.raises(rl.ExportError, match=r"unrolled.*torch\.while_loop"):
        rl.export(model_of(model), (torch.ones(4, 4),), dynamic_shapes=({0: Dim("n", max=8)},))


def test_a_size_beyond_what_a_program_can_hold_is_no_missing_bound() -> None:
    wide = Dim("wide", max=2**20)
    with pytest.raises(rl.ExportError, match=r"as large as 1099511627776.*Lower the max"):
        rl.export(
            model_of(lambda x: (x[:, None] * x[None]).reshape(-1)),
            (torch.ones(4),),
            dynamic_shapes=({0: wide},),
        )


class Asserting(torch.nn.Module):
    def forward(self, x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        n = k.item()
        torch._check(n >= 0)
        torch._check(n <= 6)
        torch._check(n != x.shape[0])
        places = x.nonzero()
        torch._check(places.shape[0] > 2)
        return x[:, :n]


def test_assertions_speak_of_the_users_names() -> None:
    args = (torch.ones(4, 6), torch.tensor(3))
    shapes = ({0: Dim("rows", max=9)}, None)
    module = rl.load(rl.export(Asserting(), args, dynamic_shapes=shapes).buffer)
    name = Path(__file__).name
    for x, k, text in (
        (args[0], 9, rf"the value of `k\.item\(\)` \({name}:\d+\) <= 6"),
        (args[0], 4, rf"the value of `k\.item\(\)` \({name}:\d+\) != size 0 of x"),
        (args[0] * 0, 3, rf"size 0 of places \({name}:\d+\) >= 3"),
    ):
        with pytest.raises(rl.RunError, match=f"an assertion of the model failed: {text}"):
            module(x, torch.tensor(k))


class Keeping(torch.nn.Module):
    """Returns a view of the buffer that it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(8, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept[: x.shape[0]] = x
        return self.kept[: x.shape[0]]


def test_a_returned_view_of_a_written_buffer_is_compared_as_it_was_returned() -> None:
    x = torch.ones(3, 2)
    assert torch.equal(rl.load(rl.export(Keeping(), (x,)).buffer)(x), x)
