"""Integers of variable length (LEB128) for the debug map; the reader checks all bounds."""

from __future__ import annotations


class Writer:
    """Appends to `data`."""

    def __init__(self) -> None:
        self.data = bytearray()

    def number(self, value: int) -> None:
        """A number from 0: 7 bits a byte, the lowest first; the high bit marks all but the last."""
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def signed(self, value: int) -> None:
        """Any number: 0, -1, 1, -2, … are written as 0, 1, 2, 3, …"""
        self.number(value << 1 if value >= 0 else (-value << 1) - 1)

    def sized(self, data: bytes | bytearray) -> None:
        """The number of bytes, then the bytes."""
        self.number(len(data))
        self.data += data


class Reader:
    """Reads what `Writer` wrote.

    Raises:
        ValueError: by every method, if the data end before.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    @property
    def position(self) -> int:
        """The number of bytes that were read."""
        return self._at

    def number(self) -> int:
        """A number from 0 to 2^63 - 1."""
        value = 0
        for shift in range(0, 63, 7):
            if self._at >= len(self._data):
                break
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number without an end")

    def signed(self) -> int:
        """A number of either sign."""
        value = self.number()
        return -(value + 1 >> 1) if value & 1 else value >> 1

    def take(self, size: int) -> memoryview:
        """The next `size` bytes."""
        if size > len(self._data) - self._at:
            raise ValueError("more bytes than there are")
        self._at += size
        return self._data[self._at - size : self._at]

    def sized(self) -> Reader:
        """A reader of bytes that `Writer.sized` wrote."""
        return Reader(self.take(self.number()))
