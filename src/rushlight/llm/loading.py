"""Opening language models: `load`."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from typing import Any

from rushlight import _core
from rushlight.errors import Code, ExportError, LoadError
from rushlight.files import AnyPath
from rushlight.llm.runner import Runner, Session
from rushlight.runtime.failures import load_error
from rushlight.runtime.load import load as load_module
from rushlight.runtime.registries import library_paths
from rushlight.runtime.source import Source, describe_source, read_source
from rushlight.runtime.trace import TraceOptions, core_options

_CACHE_TYPES = ("auto", "float32", "float16", "int8")


def load(
    program: Source,
    *,
    threads: int | None = None,
    kv: str = "auto",
    cache_limit: int | None = None,
    texts: int | None = None,
    prefill_rows: int | None = None,
    tokenizer: Any = None,
    chat_template: str | None = None,
    map: bool = True,
    guard: bool = False,
    failure_report: AnyPath | None = None,
    trace: bool | TraceOptions = False,
    kernels: Sequence[AnyPath] | None = None,
) -> Runner:
    """Load a language model. Needs no torch.

    The program is one that `rushlight.llm.export` made, or of the form that ExecuTorch's runner for
    language models takes.

    Args:
        program: as for `rushlight.load`.
        threads: how many threads kernels may use; None: as many as there are physical cores.
        kv: what keys and values are stored in: "float32", "float16" or "int8"; "auto" is int8.
        cache_limit: the most bytes that keys and values of all texts take; None: those of four
            texts as long as the model's context.
        texts: how many texts are computed at once at most; others wait. None: 32, or as many as
            a step of the program has; more than that are refused.
        prefill_rows: how many tokens of prompts a step reads in while other texts go on; None: 128.
        tokenizer: for a program without one, or in place of its own: what
            `rushlight.llm.tokenizer.compile` takes, or the bytes that it returned.
        chat_template: a Jinja template, for a program without one or in place of its own.
        map, guard: as for `rushlight.load`.
        failure_report: a file that is written when a method of the model fails, for
            `rushlight explain`.
        trace: whether to record every step in `Runner.trace`, and what.
        kernels: shared libraries of kernels for operators of your own, as for `rushlight.load`.

    Raises:
        LoadError: the program cannot be loaded, or is no language model.
    """
    where = describe_source(program)
    _check_count("threads", threads)
    _check_count("cache_limit", cache_limit)
    _check_count("texts", texts)
    _check_count("prefill_rows", prefill_rows)
    if kv not in _CACHE_TYPES:
        raise LoadError(
            f"kv={kv!r}: give one of {_CACHE_TYPES}",
            code=Code.INVALID_ARGUMENT,
        )
    if not isinstance(chat_template, str | None):
        raise LoadError(
            f"chat_template={chat_template!r}: give the text of a Jinja template",
            code=Code.INVALID_ARGUMENT,
        )
    table = _table(tokenizer)
    libraries = library_paths(kernels)
    begin = time.perf_counter()
    path, image = read_source(program, "a program")
    try:
        core = _core.LlmRunner.open(
            path,
            image,
            threads or 0,
            bool(map),
            bool(guard),
            kv,
            cache_limit or 0,
            texts or 0,
            prefill_rows or 0,
            table,
            chat_template or "",
            b"" if failure_report is None else os.path.abspath(os.fsencode(failure_report)),
            core_options(trace),
            libraries,
        )
    except _core.Failure as failure:
        if failure.args[0] == Code.OPERATOR_MISSING:  # as a module it is refused with its lines
            load_module(os.fsdecode(path) if path is not None else image or b"", kernels=kernels)
        raise load_error(failure, where) from None
    finally:
        for line in _core.take_log():
            warnings.warn(line, RuntimeWarning, stacklevel=2)
    return Runner(core, time.perf_counter() - begin)


def restore(
    path: str | os.PathLike[str], runner: Runner, *, adapter: _core.LlmAdapter | None = None
) -> Session:
    """A session that `Session.save` wrote.

    Args:
        path: the file.
        runner: the model that it was saved with.
        adapter: what the session was computed with; None for the model alone.

    Raises:
        RunError: the file cannot be read, is damaged, or is of another model, adapter or cache.
    """
    return runner.restore(path, adapter=adapter)


def _table(tokenizer: Any) -> bytes | None:
    """The table of a tokenizer that a caller gave."""
    if tokenizer is None or isinstance(tokenizer, bytes):
        return tokenizer
    from rushlight.llm.tokenizer import compile

    try:
        return compile(tokenizer)
    except ExportError as error:
        raise LoadError(f"tokenizer=: {error}", code=error.code) from error


def _check_count(name: str, value: int | None) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 63:
        raise LoadError(f"{name}={value!r}: give a positive integer", code=Code.INVALID_ARGUMENT)
