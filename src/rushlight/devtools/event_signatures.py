"""The raw events of a run in a trace, put together by the instruction that they are of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rushlight.devtools.values import find_populated_event
from rushlight.schema import etdump as fb


@dataclass(frozen=True, order=True)
class InstructionEventSignature:
    """An instruction, or a place inside the delegate that it calls.

    Attributes:
        instruction_id, chain_index: the instruction.
        delegate_id, delegate_id_str: the delegate's id for the place, as the trace has it.
    """

    instruction_id: int
    chain_index: int
    delegate_id: int | None = None
    delegate_id_str: str | None = None


@dataclass
class InstructionEvent:
    """The events of one instruction in a run.

    Attributes:
        signature: the instruction.
        profile_events: its times; None if it has none.
        debug_events: its values; None if it has none.
    """

    signature: InstructionEventSignature
    profile_events: list[fb.ProfileEvent] | None = None
    debug_events: list[fb.DebugEvent] | None = None

    @staticmethod
    def gen_from_events(run_events: Iterable[fb.Event]) -> list[InstructionEvent]:
        """The events of a run, without the values of its outputs, in the order of the first ones.

        Args:
            run_events: times and values.

        Raises:
            UnfitError: one of them is neither.
        """
        found: dict[InstructionEventSignature, InstructionEvent] = {}
        for event in map(find_populated_event, run_events):
            signature = InstructionEventSignature(
                *(event.instruction_id, event.chain_index),
                *(event.delegate_debug_id_int, event.delegate_debug_id_str),
            )
            one = found.setdefault(signature, InstructionEvent(signature))
            if isinstance(event, fb.ProfileEvent):
                one.profile_events = [*(one.profile_events or ()), event]
            elif not is_debug_output(event.debug_entry):
                one.debug_events = [*(one.debug_events or ()), event]
        return list(found.values())


def is_debug_output(value: fb.Value | None) -> bool:
    """Whether a value of a trace is an output of the method."""
    return value is not None and value.output is not None and bool(value.output.bool_val)


@dataclass(frozen=True, order=True)
class _NamedSignature:
    """An event by its name and its place; None for what it does not tell.

    Attributes:
        name: the event's, "" without one.
        instruction_id: the instruction's; None for an event of a whole run.
        delegate_id, delegate_id_str: the delegate's id for the place.
    """

    name: str = ""
    instruction_id: int | None = None
    delegate_id: int | None = None
    delegate_id_str: str | None = None


class ProfileEventSignature(_NamedSignature):
    """A time by its name and its place."""

    @staticmethod
    def _gen_from_event(event: fb.ProfileEvent) -> ProfileEventSignature:
        return ProfileEventSignature(*_told(event))


class DebugEventSignature(_NamedSignature):
    """A value by its name and its place."""

    @staticmethod
    def _gen_from_event(event: fb.DebugEvent) -> DebugEventSignature:
        return DebugEventSignature(*_told(event))


def _told(
    event: fb.ProfileEvent | fb.DebugEvent,
) -> tuple[str, int | None, int | None, str | None]:
    """The fields of a signature; -1 and "" stand for None in traces."""
    numbers = (event.instruction_id, event.delegate_debug_id_int)
    instruction, place = (None if number == -1 else number for number in numbers)
    return event.name or "", instruction, place, event.delegate_debug_id_str or None


@dataclass(frozen=True, order=True)
class EventSignature:
    """An event of one kind of run.

    Attributes:
        instruction_id: the instruction's.
        profile_event_signature: of its time; None without one.
        debug_event_signature: of its values; None without any.
    """

    instruction_id: int
    profile_event_signature: ProfileEventSignature | None = None
    debug_event_signature: DebugEventSignature | None = None

    @staticmethod
    def gen_from_instruction_event(
        instruction_event: InstructionEvent,
    ) -> list[tuple[EventSignature, InstructionEvent]]:
        """One for each time of an instruction, with the events that it is of; one if it has only
        values."""
        number = instruction_event.signature.instruction_id
        values = instruction_event.debug_events
        debug = DebugEventSignature._gen_from_event(values[0]) if values else None
        if instruction_event.profile_events is None:
            return [(EventSignature(number, None, debug), instruction_event)]
        return [
            (
                EventSignature(number, ProfileEventSignature._gen_from_event(time), debug),
                replace(instruction_event, profile_events=[time]),
            )
            for time in instruction_event.profile_events
        ]
