"""The values that each instruction of a method reads and writes, by the calling convention.

The last argument of a kernel call is its result: the out tensor once more, a list of the out
tensors, a computed number, or `self` if the operator works in place. So no schemas are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rushlight.errors import Code, LoadError
from rushlight.schema import program as fb

# The most items of lists that all calls together may name. Real programs have a few per call; a
# damaged file, with a million calls that name a list of a million items, would take forever.
_MAX_LIST_ITEMS = 10_000_000
_COPY_INDEX, _VIEW = "executorch_prim::et_copy_index.tensor", "executorch_prim::et_view.default"
_LISTS = fb.TensorList | fb.OptionalTensorList | fb.IntList


@dataclass(slots=True)
class Effect:
    """The reads and writes of one instruction.

    Attributes:
        reads, writes: tensors and computed numbers, each once, in the order of the arguments.
        shares: (value, base) if the value shows the base's bytes from here on.
    """

    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    shares: tuple[int, int] | None = None


def operator_name(operator: fb.Operator) -> str:
    """The name under which a kernel is registered: "aten::add.out"."""
    return f"{operator.name}.{operator.overload}" if operator.overload else operator.name


def effects_of(plan: fb.ExecutionPlan) -> list[Effect]:
    """The effects of the instructions of a method's only chain, in order.

    Raises:
        LoadError: an instruction refers to a value, operator or delegate that does not exist.
    """
    return _Effects(plan).run()


def check_index(index: int, count: int, where: str, what: str) -> int:
    """`index`, if it is one of `count`.

    Raises:
        LoadError: it is not; `where` and `what` name the place and kind of the index.
    """
    if not 0 <= index < count:
        raise LoadError(
            f"it refers to {what} {index}, but there are {count}; the file is damaged, "
            f"export it again",
            code=Code.INVALID_PROGRAM,
            where=where,
        )
    return index


class _Effects:
    def __init__(self, plan: fb.ExecutionPlan) -> None:
        self._plan = plan
        self._values = [value.val for value in plan.values]
        self._computed: set[int] = set()
        self._items_left = _MAX_LIST_ITEMS
        self._defined = set(plan.inputs)
        self._where = plan.name

    def run(self) -> list[Effect]:
        instructions = self._plan.chains[0].instructions if self._plan.chains else []
        calls = [instruction.instr_args for instruction in instructions]
        for i, call in enumerate(calls):
            self._check(i, call, len(calls))
        effects = []
        for call in calls:
            effect = self._effect(call)
            self._defined.update(effect.writes)
            effects.append(effect)
        return effects

    def _check(self, i: int, call: fb.InstructionArguments, n_calls: int) -> None:
        """Tests the indices of one instruction and notes the number that it computes."""
        where = f"{self._plan.name}: instruction {i}"
        args: Sequence[int] = ()
        if isinstance(call, fb.KernelCall):
            check_index(call.op_index, len(self._plan.operators), where, "operator")
            args = call.args
        elif isinstance(call, fb.DelegateCall):
            check_index(call.delegate_index, len(self._plan.delegates), where, "delegate")
            args = call.args
        elif isinstance(call, fb.MoveCall):
            args = (call.move_from, call.move_to)
        elif isinstance(call, fb.JumpFalseCall):
            args = (call.cond_value_index,)
            check_index(call.destination_instruction, n_calls + 1, where, "instruction")
        elif isinstance(call, fb.FreeCall):
            args = (call.value_index,)
        for arg in args:
            check_index(arg, len(self._values), where, "value")
            self._items(arg, where)
        returns = args[-1] if isinstance(call, fb.KernelCall) and args else -1
        if returns >= 0 and isinstance(self._values[returns], fb.Int | fb.Bool | fb.Double):
            self._computed.add(returns)

    def _items(self, index: int, where: str) -> list[int]:
        """The values that an argument refers to: itself, or a list's items without its "none"s."""
        value = self._values[index]
        if not isinstance(value, _LISTS):
            return [index]
        self._items_left -= len(value.items)
        if self._items_left < 0:
            raise LoadError(
                f"its lists name more than {_MAX_LIST_ITEMS} values; the file is damaged",
                code=Code.INVALID_PROGRAM,
                where=where,
            )
        optional = isinstance(value, fb.OptionalTensorList)
        items = [item for item in value.items if not (optional and item == -1)]
        for item in items:
            check_index(item, len(self._values), f"{where}: list {index}", "value")
        return items

    def _carriers(self, indices: Sequence[int]) -> list[int]:
        """The tensors and computed numbers among `indices` and the items of lists, each once."""
        carriers: dict[int, None] = {}
        for index in indices:
            for item in self._items(index, self._where):
                if isinstance(self._values[item], fb.Tensor) or item in self._computed:
                    carriers[item] = None
        return list(carriers)

    def _effect(self, call: fb.InstructionArguments) -> Effect:
        if isinstance(call, fb.KernelCall):
            return self._kernel(operator_name(self._plan.operators[call.op_index]), call.args)
        if isinstance(call, fb.DelegateCall):
            return self._delegate(call.args)
        if isinstance(call, fb.MoveCall):
            shares = (call.move_to, call.move_from)
            return Effect(self._carriers([call.move_from]), [call.move_to], shares)
        if isinstance(call, fb.JumpFalseCall):
            return Effect(self._carriers([call.cond_value_index]))
        return Effect(self._carriers([call.value_index]))

    def _kernel(self, op: str, args: list[int]) -> Effect:
        if not args:
            return Effect()
        if op == _COPY_INDEX:
            return Effect(self._carriers(args), self._carriers(args[:1]))
        if op == _VIEW and len(args) == 3:
            return Effect(self._carriers(args[:2]), [args[2]], (args[2], args[0]))
        writes = self._carriers(args[-1:])
        rest = args[:-1]
        name = op.partition("::")[2].partition(".")[0]
        if not name.endswith("_") or name.startswith("__"):
            rest = self._without_outs(rest, args[-1], writes)
        return Effect(self._carriers(rest), writes)

    def _without_outs(self, rest: list[int], returned: int, writes: list[int]) -> list[int]:
        """`rest` without the out arguments at its end, which are `returned` or its items."""
        if not rest or not writes:
            return rest
        if rest[-1] == returned or self._items(rest[-1], self._where) == writes:
            return rest[:-1]
        if rest[-len(writes) :] == writes:
            return rest[: -len(writes)]
        return rest

    def _delegate(self, args: list[int]) -> Effect:
        """Inputs come first, then outputs, which are values that no instruction has written yet."""
        split = len(args)
        while split > 0 and self._is_fresh(args[split - 1]):
            split -= 1
        return Effect(self._carriers(args[:split]), self._carriers(args[split:]))

    def _is_fresh(self, index: int) -> bool:
        value = self._values[index]
        if not isinstance(value, fb.Tensor):
            return False
        return index not in self._defined and value.data_buffer_idx == 0 and not is_named(value)


def is_named(tensor: fb.Tensor) -> bool:
    """Whether a tensor has a name of its own: an external constant, or a mutable buffer."""
    extra = tensor.extra_tensor_info
    return extra is not None and bool(extra.fully_qualified_name)


def is_external(tensor: fb.Tensor) -> bool:
    """Whether a tensor's content is in a data file beside the program."""
    extra = tensor.extra_tensor_info
    return extra is not None and extra.location is fb.TensorDataLocation.EXTERNAL
