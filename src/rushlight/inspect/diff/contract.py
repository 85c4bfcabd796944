"""What a caller sees of two methods: inputs, outputs, sizes and state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from rushlight.inspect.diff.model import Text
from rushlight.inspect.model import Method, Slot

_SIZES = re.compile(r"(?<=\w)\[[^\[\]]*\]")  # of a tensor, behind its dtype
_SYMBOL = re.compile(r"[A-Za-z_]\w*")


def contract_changes(before: Method, after: Method) -> list[Text]:
    """What differs between the contracts of two methods.

    Symbols count by where they stand, not by their names. If one of the programs has no contract,
    the dtypes and bounds of tensors are compared.

    Args:
        before, after: the methods.
    """
    weak = before.weak or after.weak
    changes = []
    for what in ("input", "output"):
        sides = [_slots(method, what, weak) for method in (before, after)]
        changes += _by_position(what, *sides)
    changes += _texts("state", _states(before), _states(after))
    if weak:
        return changes
    one, other = (_relations(method) for method in (before, after))
    changes += [Text("condition", text, "") for text in one if text not in other]
    changes += [Text("condition", "", text) for text in other if text not in one]
    signatures = [_Symbols().renamed(_arguments(method)) for method in (before, after)]
    if not changes and signatures[0] != signatures[1]:  # names, structures, fixed values
        changes.append(Text("signature", before.signature, after.signature))
    return changes


def _by_position(what: str, before: Sequence[str], after: Sequence[str]) -> list[Text]:
    names = [_Symbols(), _Symbols()]
    changes = []
    for i, (one, other) in enumerate(zip_longest(before, after, fillvalue="")):
        if names[0].renamed(one) != names[1].renamed(other):
            changes.append(Text(f"{what} {i}", one, other))
    return changes


def _texts(what: str, before: dict[str, str], after: dict[str, str]) -> list[Text]:
    names = dict.fromkeys([*before, *after])
    sides = ((n, before.get(n, ""), after.get(n, "")) for n in names)
    return [Text(f"{what} {name}", one, other) for name, one, other in sides if one != other]


def _slots(method: Method, what: str, weak: bool) -> list[str]:
    slots: list[Slot] = method.inputs if what == "input" else method.outputs
    if weak:
        return [method.values[slot.value].text for slot in slots]
    return [f"{slot.name}: {slot.text}" if what == "input" else slot.text for slot in slots]


def _states(method: Method) -> dict[str, str]:
    return {value.name: value.text for value in method.values if value.role == "state"}


def _arguments(method: Method) -> str:
    return method.signature.removeprefix(method.name)


def _relations(method: Method) -> list[str]:
    symbols = _Symbols()
    symbols.renamed(_arguments(method))
    return sorted(symbols.applied(text) for text in method.relations)


class _Symbols:
    """Names symbols by the order in which they stand in a text."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def renamed(self, text: str) -> str:
        """A text with the symbols in its shapes renamed."""
        return _SIZES.sub(lambda sizes: _SYMBOL.sub(self._name, sizes[0]), text)

    def applied(self, text: str) -> str:
        """A text with the symbols renamed that are known."""
        return _SYMBOL.sub(lambda name: self._names.get(name[0], name[0]), text)

    def _name(self, symbol: re.Match[str]) -> str:
        return self._names.setdefault(symbol[0], f"s{len(self._names)}")
