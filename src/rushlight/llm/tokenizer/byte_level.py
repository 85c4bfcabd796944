"""The characters that stand for bytes in the vocabularies of byte-level BPE."""

from __future__ import annotations


def _characters() -> list[str]:
    """For each byte its character in GPT-2's vocabulary: printable ones are their own."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


CHARACTERS = _characters()
BYTE_OF = {character: byte for byte, character in enumerate(CHARACTERS)}


def to_bytes(token: str) -> bytes:
    """The bytes of a token; a token with other characters is text."""
    if all(character in BYTE_OF for character in token):
        return bytes(BYTE_OF[character] for character in token)
    return token.encode()
