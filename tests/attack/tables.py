"""Changes to the tables of a flatbuffer: indices, sizes, offsets, arguments and instructions take
each other's values, or those at the limits, so that more of them pass the verifier than after
damage to bytes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from enum import Enum
from typing import Any

LIMITS = (0, 1, -1, 2, 3, 127, 255, 1 << 15, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63))
# What a file says of itself for tools; the runtime does not read it.
NOT_RUN = ("stacktrace", "container_meta_type")


def tables_of(table: Any) -> Iterator[Any]:
    """A table and all under it that is run."""
    yield table
    for field in dataclasses.fields(table):
        value = getattr(table, field.name)
        if field.name in NOT_RUN:
            continue
        for item in value if isinstance(value, list) else [value]:
            if dataclasses.is_dataclass(item):
                yield from tables_of(item)


def places_of(tables: list[Any]) -> list[tuple[Any, Any, str]]:
    """What can be changed: an object, its field or index, and the kind of number that it is."""
    places: list[tuple[Any, Any, str]] = []
    for root in tables:
        for table in tables_of(root):
            for field in dataclasses.fields(table):
                value = getattr(table, field.name)
                kind = f"{type(table).__name__}.{field.name}"
                is_union = dataclasses.is_dataclass(value)
                if isinstance(value, (int, float)) or is_union:
                    places.append((table, field.name, kind))
                elif isinstance(value, list) and field.name not in NOT_RUN:
                    places += [(value, i, kind) for i in range(len(value))]
    return places


def mutate(tables: list[Any], chance: random.Random) -> None:
    """One to four changes to the tables of a file that was read."""
    for _ in range(chance.randint(1, 4)):
        places = places_of(tables)
        if not places:
            return
        place, key, kind = chance.choice(places)
        old = _read(place, key)
        alike = [_read(p, k) for p, k, other in places if other == kind]
        way = chance.randrange(6)
        if isinstance(place, list) and way == 0:
            place.insert(key, chance.choice(alike))
        elif isinstance(place, list) and way == 1:
            del place[key]
        elif isinstance(old, (int, float)) and not isinstance(old, Enum) and way in (2, 3):
            new = chance.choice(LIMITS) if way == 2 else old + chance.choice((-1, 1, 4))
            _set(place, key, new)
        else:
            _set(place, key, chance.choice(alike))


def _read(place: Any, key: Any) -> Any:
    return place[key] if isinstance(place, list) else getattr(place, key)


def _set(place: Any, key: Any, value: Any) -> None:
    if isinstance(place, list):
        place[key] = value
    else:
        setattr(place, key, value)
