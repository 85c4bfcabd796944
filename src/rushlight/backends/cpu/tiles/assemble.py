"""Assembles tile programs: orders terms, assigns registers, and splits what exceeds a program.

Values that pass from one program to the next go through memory, which fusion is meant to avoid. So
a split is made where the fewest values pass, in the second half of what fits into a program.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rushlight.backends.cpu.tiles.terms import LEAVES, Term
from rushlight.schema.cpu_engine import TileLimit, TileOp

_WORDS = 3  # of an instruction


class TooLongError(Exception):
    """A program needs more registers, operands, instructions or dimensions than there are."""


class _NoRegisterError(TooLongError):
    """No register is left for a value that the action `at` computes or loads.

    Args:
        at: the number of the first action that does not fit into the program.
    """

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at


@dataclass
class Assembled:
    """A tile program.

    Attributes:
        code: three words for each instruction.
        sources: the tensors of the operands, by number.
        terms: what it computes and stores.
    """

    code: list[int]
    sources: list[Any]
    terms: list[Term]


class _Action(NamedTuple):
    """A term is computed, or stored if there is a target."""

    term: Term
    target: Any = None

    @property
    def reads(self) -> tuple[Term, ...]:
        """The terms whose registers it reads."""
        return self.term.inputs if self.target is None else (self.term,)


def assemble(results: Sequence[Term], store_to: Sequence[Any]) -> Assembled:
    """One program that computes terms.

    Args:
        results: terms to store.
        store_to: where each goes; the same source as a load if it is computed in place.

    Raises:
        TooLongError: if it is more than one program holds.
    """
    program = _Encoder(_scheduled(results, store_to), {}, {}).program
    fits = len(program.code) <= _WORDS * TileLimit.INSTRUCTIONS
    if not fits or len(program.sources) > TileLimit.OPERANDS:
        raise TooLongError
    return program


def programs(
    results: Sequence[Term], store_to: Sequence[Any], memory: Callable[[], Any]
) -> Iterator[Assembled]:
    """As many programs as are needed to compute terms, in the order in which they run.

    Args:
        results: terms to store.
        store_to: where each goes; nothing that is loaded.
        memory: gives a place for a value that one program computes and another one reads.
    """
    actions = _scheduled(results, store_to)
    last = {term: at for at, action in enumerate(actions) for term in action.reads}
    places: dict[Term, Any] = {}
    start = 0
    while start < len(actions):
        ends = _ends(actions, start, last, places)
        while True:
            end = _best(ends, start, len(actions))
            own = actions[start:end]
            passed = {term: memory() for term in _passed(own, last, end)}
            try:
                yield _Encoder(own, places, passed).program
                break
            except _NoRegisterError as full:
                most = max(start + 1, min(start + full.at, end - 1))
                ends = {at: cost for at, cost in ends.items() if at <= most}
        places.update(passed)
        places.update({term: target for term, target in own if target is not None})
        start = end


def _scheduled(results: Sequence[Term], store_to: Sequence[Any]) -> list[_Action]:
    """The actions in order: each term is computed once, after its inputs."""
    actions: list[_Action] = []
    done: set[Term] = set()
    for term, target in zip(results, store_to, strict=True):
        stack = [(term, iter(term.inputs))] if _is_open(term, done) else []
        while stack:
            top, inputs = stack[-1]
            below = next((one for one in inputs if _is_open(one, done)), None)
            if below is not None:
                stack.append((below, iter(below.inputs)))
                continue
            stack.pop()
            done.add(top)
            actions.append(_Action(top))
        actions.append(_Action(term, target))
    return actions


def _is_open(term: Term, done: set[Term]) -> bool:
    return term not in done and term.op not in LEAVES


def _ends(
    actions: Sequence[_Action], start: int, last: dict[Term, int], places: dict[Term, Any]
) -> dict[int, int]:
    """Where a program that begins at `start` may end, by its limits on instructions and operands:
    {the first action after it: the number of values that it stores for later programs}."""
    ends: dict[int, int] = {}
    computed: set[Term] = set()
    passed: set[Term] = set()  # if it ended here
    leaves: set[tuple[bool, int]] = set()
    loads = stores = 0
    for at in range(start, len(actions)):
        term, target = actions[at]
        for one in actions[at].reads:
            if one not in computed and (key := _key(one, places)) not in leaves:
                leaves.add(key)
                loads += key[0]
            if last[one] == at:
                passed.discard(one)
        if target is None:
            computed.add(term)
            passed.add(term)  # something reads it, or it would not be there
        else:
            passed.discard(term)
            stores += 1
        operands, instructions = loads + stores, len(computed) + len(leaves) + stores
        if operands > TileLimit.OPERANDS or instructions > TileLimit.INSTRUCTIONS:
            break
        more = len(passed)
        if operands + more <= TileLimit.OPERANDS and instructions + more <= TileLimit.INSTRUCTIONS:
            ends[at + 1] = more
    return ends


def _best(ends: dict[int, int], start: int, count: int) -> int:
    """The end of a program with the fewest stored values in the second half of those allowed; the
    end of all actions if that is allowed."""
    longest = max(ends)
    if longest == count:
        return longest
    late = [end for end in ends if end - start >= (longest - start) / 2]
    return min(late, key=lambda end: (ends[end], -end))


def _passed(own: Sequence[_Action], last: dict[Term, int], end: int) -> list[Term]:
    """The terms that a program computes, does not store as results, and later programs read."""
    stored = {term for term, target in own if target is not None}
    return [t for t, target in own if target is None and last[t] >= end and t not in stored]


def _key(term: Term, places: dict[Term, Any]) -> tuple[bool, int]:
    """A key that leaves share which one register can hold, and whether they are loaded."""
    if term.op is TileOp.CONSTANT:
        return False, _bits(term.value)
    return True, id(term.source if term.op is TileOp.LOAD else places[term])


class _Encoder:
    """Writes a program: assigns registers and numbers operands.

    Args:
        actions: in order.
        places: the memory of values that earlier programs have computed.
        passed: the memory for values that later programs read.

    Raises:
        _NoRegisterError: if there are not enough registers.
    """

    def __init__(
        self, actions: Sequence[_Action], places: dict[Term, Any], passed: dict[Term, Any]
    ) -> None:
        self.program = Assembled([], [], list(dict.fromkeys(a.term for a in actions)))
        self._places = places
        self._computed = {term for term, target in actions if target is None}
        self._numbers: dict[int, int] = {}  # of operands
        self._registers: dict[Any, int] = {}
        self._free = list(range(TileLimit.REGISTERS - 1, -1, -1))
        last = {self._held(one): at for at, action in enumerate(actions) for one in action.reads}
        for at, (term, target) in enumerate(actions):
            reads = actions[at].reads
            for one in reads:
                self._load(one, at)
            used = [self._registers[self._held(one)] for one in reads]
            for key in dict.fromkeys(map(self._held, reads)):
                if last[key] == at:
                    self._free.append(self._registers.pop(key))
            if target is not None:
                self._emit(TileOp.STORE, self._operand(target), used)
                continue
            register = self._take(at)
            self._emit(term.op, register, used, term.value)
            if term in passed:
                self._emit(TileOp.STORE, self._operand(passed[term]), (register,))
            if term in last:
                self._registers[term] = register
            else:
                self._free.append(register)

    def _held(self, term: Term) -> Any:
        """The key of the register that holds a value."""
        return term if term in self._computed else _key(term, self._places)

    def _load(self, term: Term, at: int) -> None:
        """Load a value that is not computed in this program into a register."""
        key = self._held(term)
        if key in self._registers or key is term:
            return
        self._registers[key] = register = self._take(at)
        if term.op is TileOp.CONSTANT:
            self._emit(TileOp.CONSTANT, register, (), term.value)
        else:
            source = term.source if term.op is TileOp.LOAD else self._places[term]
            self._emit(TileOp.LOAD, register, (self._operand(source),))

    def _take(self, at: int) -> int:
        if not self._free:
            raise _NoRegisterError(at)
        return self._free.pop()

    def _operand(self, source: Any) -> int:
        if id(source) not in self._numbers:
            self._numbers[id(source)] = len(self.program.sources)
            self.program.sources.append(source)
        return self._numbers[id(source)]

    def _emit(self, op: TileOp, out: int, inputs: Sequence[int], value: float = 0.0) -> None:
        a, b, c = (*inputs, 0, 0, 0)[:3]
        self.program.code += [op | out << 8 | a << 16 | b << 24, c, _bits(value)]


def _bits(value: float) -> int:
    """A float32 as it is written."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits
