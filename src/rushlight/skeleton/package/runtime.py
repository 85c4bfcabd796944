"""The runtime half, in Python. `preprocess` says what the payload is. No PyTorch here."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rushlight.runtime import BackendContext

MAGIC, VERSION, HEAD = 0x4C454B53, 1, 6
FUNCTIONS = (np.add, np.multiply)
Floats = npt.NDArray[np.float32]


@dataclass
class Program:
    """A payload, read and checked.

    Attributes:
        n_inputs: how many arguments are inputs.
        constants: the values after the inputs.
        code: opcode, left and right of each instruction.
        outputs: the values that are returned.
    """

    n_inputs: int
    constants: list[Floats]
    code: list[tuple[int, int, int]]
    outputs: list[int]


class SkeletonRuntime:
    """Runs payloads. One object serves all programs; what belongs to one is its handle."""

    def init(self, context: BackendContext) -> Program:
        """Read a payload.

        Raises:
            ValueError: if it is damaged, or of another version.
        """
        payload = context.payload
        head = np.frombuffer(payload[: 4 * HEAD], "<u4").tolist() if len(payload) >= 24 else []
        if head[:2] != [MAGIC, VERSION]:
            raise ValueError(f"the payload is not of version {VERSION}: export the program again")
        n_inputs, n_keys, n_code, n_outputs = head[2:]
        n_words = HEAD + n_keys + 4 * n_code + n_outputs
        if 4 * n_words > len(payload):
            raise ValueError(
                f"the payload is cut: it has {len(payload)} bytes and needs {4 * n_words}"
            )
        words = np.frombuffer(payload[: 4 * n_words], "<u4").tolist()
        lengths, words = words[HEAD : HEAD + n_keys], words[HEAD + n_keys :]
        constants, at = [], 4 * n_words
        for length in lengths:
            constants.append(_constant(context, bytes(payload[at : at + length])))
            at += length
        code = [tuple(words[i : i + 3]) for i in range(0, 4 * n_code, 4)]
        outputs = words[4 * n_code :]
        first = n_inputs + n_keys
        if at != len(payload) or any(
            op >= len(FUNCTIONS) or max(operands) >= first + i
            for i, (op, *operands) in enumerate(code)
        ):
            raise ValueError("the payload is damaged: an instruction names what is not there")
        if any(value >= first + n_code for value in outputs):
            raise ValueError("the payload is damaged: an output is a value that is not there")
        return Program(n_inputs, constants, code, outputs)

    def execute(self, context: BackendContext, program: Program, args: tuple[Any, ...]) -> None:
        """Run once: read the inputs, write the outputs, both where they lie."""
        n = program.n_inputs
        if len(args) != n + len(program.outputs):
            raise ValueError(
                f"it is called with {len(args)} arguments, and has {n + len(program.outputs)}"
            )
        values: list[Floats] = [*args[:n], *program.constants]
        is_constant = [False] * n + [True] * len(program.constants)
        for i, (op, left, right) in enumerate(program.code):
            shape = values[right if is_constant[left] else left].shape
            try:
                made = FUNCTIONS[op](values[left].reshape(shape), values[right].reshape(shape))
            except ValueError:
                context.fail_at(i)  # leads to the lines of Python that it comes from
                raise
            values.append(made)
            is_constant.append(False)
        for i, value in enumerate(program.outputs, n):
            out = args[i]
            if out.shape != values[value].shape:
                out = context.resize(i, values[value].shape)
            out[...] = values[value]


def _constant(context: BackendContext, key: bytes) -> Floats:
    data = context.named_data(key.decode())
    if data is None:
        raise ValueError(f"the program lacks the data {key.decode()!r}")
    return np.frombuffer(data, np.float32)
