"""librushlight through ctypes: types and functions are those of its header."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from codegen.c_header import ROOT, Function, Header, read_headers

PATH = ROOT / "build" / "dev" / "librushlight.so"
_SCALARS = {
    "void": None,
    "char": ctypes.c_char,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    **{
        f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
DTYPES = {
    "uint8": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "bool": 11,
}
NAMES = {number: name for name, number in DTYPES.items()}


class CError(Exception):
    """What a function of the library failed with."""

    def __init__(self, code: int, text: str, instruction: int, delegate: int) -> None:
        super().__init__(text)
        self.code, self.instruction, self.delegate = code, instruction, delegate


class Library:
    """One copy of the library.

    Args:
        path: the shared library.
    """

    def __init__(self, path: Path = PATH) -> None:
        self.header = read_headers()
        self.dll = ctypes.CDLL(str(path))
        self.types: dict[str, Any] = dict(_SCALARS)
        self._make_types(self.header)
        for name, function in self.header.functions.items():
            bound = getattr(self.dll, name)
            bound.restype = self._type(function.result)
            bound.argtypes = [self._type(a) for a in function.arguments]

    def _make_types(self, header: Header) -> None:
        for name in header.opaque:
            self.types[name] = ctypes.c_char
        for name in header.structs:
            self.types[name] = type(name, (ctypes.Structure,), {})
        for name, known in header.aliases.items():
            self.types[name] = self._type(known)
        for name, fields in header.structs.items():
            listed = []
            for f in fields:
                made = self._type(f.type)
                count = header.constants.get(f.count, 0)
                listed.append((f.name, made * count if count else made))
            self.types[name]._fields_ = listed

    def _type(self, text: str | Function) -> Any:
        if isinstance(text, Function):
            return ctypes.CFUNCTYPE(
                self._type(text.result), *(self._type(a) for a in text.arguments)
            )
        text = text.replace("const ", "").replace(" const", "").replace("struct ", "")
        if not text.endswith("*"):
            return self.types[text]
        inner = text[:-1].strip()
        if inner in ("void", *self.header.opaque):
            return ctypes.c_void_p
        if inner == "char":
            return ctypes.c_char_p
        return ctypes.POINTER(self._type(inner))

    def make(self, name: str, **fields: Any) -> Any:
        """A struct with its size set."""
        made = self.types[name](**fields)
        made.size = ctypes.sizeof(made)
        return made

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function whose last argument is an rl_error, which becomes an exception."""
        error = self.make("rl_error")
        code = getattr(self.dll, name)(*arguments, ctypes.byref(error))
        if code != 0:
            raise CError(code, error.text.decode(), error.instruction, error.delegate)
        assert error.text == b""

    def handle(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Calls a function whose last argument but one becomes a handle."""
        made = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(made))
        return made

    def text(self, text: str | bytes) -> Any:
        """An rl_text_v1, which keeps its bytes."""
        data = text.encode() if isinstance(text, str) else text
        made = self.types["rl_text_v1"](data, len(data))
        made.kept = data
        return made

    def open(self, path: Path | str, **options: Any) -> CModule:
        """A module from a file; `options` are fields of rl_module_options."""
        made = self.make("rl_module_options", **options)
        return CModule(self, self.handle("rl_module_open", str(path).encode(), ctypes.byref(made)))

    def value(self, value: Any) -> Any:
        """An rl_value_v1, which keeps what it refers to."""
        made = self.make("rl_value_v1")
        if value is None:
            made.kind = 0
        elif isinstance(value, bool):
            made.kind, made.i = 5, value
        elif isinstance(value, int):
            made.kind, made.i = 4, value
        elif isinstance(value, float):
            made.kind, made.d = 3, value
        elif isinstance(value, str):
            made.kind, made.text = 2, self.text(value)
        else:
            array = np.asarray(value)
            made.kind, made.rank, made.dtype = 1, array.ndim, DTYPES[array.dtype.name]
            made.data = array.ctypes.data
            sizes = (ctypes.c_int32 * array.ndim)(*array.shape)
            strides = (ctypes.c_int32 * array.ndim)(*(s // array.itemsize for s in array.strides))
            made.sizes, made.strides = sizes, strides
            made.kept = (array, sizes, strides)
        return made


def array_of(value: Any) -> Any:
    """An output as NumPy has it: a copy of a tensor, or a scalar."""
    if value.kind != 1:
        return {0: None, 3: value.d, 4: value.i, 5: bool(value.i)}[value.kind]
    dtype = np.dtype(NAMES[value.dtype])
    shape = tuple(value.sizes[k] for k in range(value.rank))
    strides = tuple(value.strides[k] * dtype.itemsize for k in range(value.rank))
    data = ctypes.string_at(value.data, value.nbytes)
    return np.ndarray(shape, dtype, data, strides=strides).copy()


class CModule:
    """A module of a library."""

    def __init__(self, library: Library, handle: ctypes.c_void_p) -> None:
        self.library, self.handle = library, handle

    def call(self, name: str, *arguments: Any) -> None:
        """Calls ``rl_module_<name>`` with the handle."""
        self.library.call(f"rl_module_{name}", self.handle, *arguments)

    def run(self, *values: Any, method: str = "forward") -> list[Any]:
        """The outputs of a run."""
        info = self.library.make("rl_method_info")
        self.call("describe_method", method.encode(), ctypes.byref(info))
        kind = self.library.types["rl_value_v1"]
        kept = [self.library.value(v) for v in values]
        inputs = (kind * len(kept))(*kept)
        outputs = (kind * info.n_outputs)(
            *(self.library.make("rl_value_v1") for _ in range(info.n_outputs))
        )
        self.call("run", method.encode(), inputs, len(kept), outputs, info.n_outputs)
        return [array_of(o) for o in outputs]

    def inputs(self, method: str = "forward") -> list[Any]:
        """What rl_module_describe_input() says."""
        return self._described("input", method)

    def outputs(self, method: str = "forward") -> list[Any]:
        """What rl_module_describe_output() says."""
        return self._described("output", method)

    def _described(self, what: str, method: str) -> list[Any]:
        known = self.library.make("rl_method_info")
        self.call("describe_method", method.encode(), ctypes.byref(known))
        infos = []
        for i in range(getattr(known, f"n_{what}s")):
            info = self.library.make("rl_value_info")
            self.call(f"describe_{what}", method.encode(), i, ctypes.byref(info))
            infos.append(info)
        return infos

    def copy(self, how: str) -> CModule:
        """A clone, or a fork."""
        return CModule(self.library, self.library.handle(f"rl_module_{how}", self.handle))

    def close(self) -> None:
        """Closes it."""
        self.call("close")


def text_of(text: Any) -> str:
    """An rl_text_v1 as a string."""
    return ctypes.string_at(text.data, text.size).decode() if text.size else ""
