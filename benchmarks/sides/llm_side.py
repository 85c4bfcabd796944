"""Runs a language model in one runtime, in that runtime's environment; see `benchmarks/llm`.

It needs NumPy and the runtime, and imports nothing of Rushlight but `side.py` (and the package
itself, for our own programs). A process has one model open at a time, with one text in its cache.

Commands: `open`, `prefill`, `decode`, `peaks`, `memory`.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "rushlight" / "peers"))

import side

_SALT = 7919  # texts of fresh tokens differ by it, so that nobody finds them in a cache


class Model(ABC):
    """An open model. Its cache has a text whose first tokens are always the same.

    Attributes:
        modules: what is imported before a model is opened, which is no part of a load.
    """

    modules: tuple[str, ...] = ()

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary
        self._fresh = 0

    def known(self, count: int) -> list[int]:
        """The tokens that every text begins with."""
        return [(11 + 31 * i) % (self.vocabulary - 2) + 2 for i in range(count)]

    def fresh(self, count: int) -> list[int]:
        """Tokens that were not there before."""
        self._fresh += 1
        stride = 2 * self._fresh + 1
        return [
            (_SALT * self._fresh + stride * i) % (self.vocabulary - 2) + 2 for i in range(count)
        ]

    @abstractmethod
    def reach(self, context: int) -> None:
        """Leave the first tokens of the known text, `context` of them, in the cache."""

    @abstractmethod
    def prefill(self, context: int, length: int) -> float:
        """Seconds from `length` fresh tokens after the `context` of `reach` to the next token."""

    @abstractmethod
    def decode(self, context: int, count: int) -> float:
        """Seconds for one of `count` tokens, which follow a first one after those of `reach`."""


class Stepper(Model):
    """A runtime that is called for some tokens at a time."""

    length = 0  # tokens in the cache

    @abstractmethod
    def cut(self, length: int) -> None:
        """Keep so many tokens in the cache."""

    @abstractmethod
    def run(self, tokens: list[int]) -> int:
        """Compute tokens, which are added to the cache; returns the most probable next one."""

    def reach(self, context: int) -> None:
        self.cut(min(context, self.length))
        tokens = self.known(context)
        while self.length < context:
            self.run(tokens[self.length : self.length + 512])

    def prefill(self, context: int, length: int) -> float:
        tokens = self.fresh(length)
        begin = time.perf_counter()
        self.run(tokens)
        return time.perf_counter() - begin

    def decode(self, context: int, count: int) -> float:
        token = self.run(self.fresh(1))
        begin = time.perf_counter()
        for _ in range(count):
            token = self.run([token])
        return (time.perf_counter() - begin) / count


class Rushlight(Model):
    """By the runner, which has one session for the text."""

    modules = ("rushlight.llm.loading",)

    def __init__(self, file: str, threads: int, context: int, kv: str = "auto") -> None:
        from rushlight.llm.loading import load

        self.runner = load(file, threads=threads, kv=kv, texts=2)
        super().__init__(self.runner.vocabulary_size)
        self.session = self.runner.session()

    def _generate(self, tokens: list[int], count: int) -> Any:
        options = {"temperature": 0.0, "ignore_eos": True, "guesses": 0}
        return self.session.generate(tokens, max_tokens=count, **options).statistics

    def reach(self, context: int) -> None:
        self.session.tokens = self.known(context)
        if self.session.cached < context:
            self._generate([], 1)
            self.session.tokens = self.known(context)

    def prefill(self, context: int, length: int) -> float:
        figures = self._generate(self.fresh(length), 1)
        assert figures.reused_tokens == context, figures
        return float(figures.first_token)

    def decode(self, context: int, count: int) -> float:
        figures = self._generate(self.fresh(1), count + 1)
        assert figures.output_tokens == count + 1, figures
        return 1 / float(figures.decode_rate)


class LlamaCpp(Stepper):
    """By the functions of llama.h, with its defaults."""

    modules = ("llama_cpp", "numpy")

    def __init__(self, file: str, threads: int, context: int) -> None:
        import llama_cpp as api
        import numpy

        self._api, self._numpy = api, numpy
        self._quiet = api.llama_log_callback(lambda level, text, data: None)
        api.llama_log_set(self._quiet, ctypes.c_void_p(0))
        api.llama_backend_init()
        model = api.llama_model_load_from_file(file.encode(), api.llama_model_default_params())
        if not model:
            raise RuntimeError(f"llama.cpp cannot load {file}")
        parameters = api.llama_context_default_params()
        parameters.n_ctx = context
        parameters.n_batch = 2048
        parameters.n_threads = parameters.n_threads_batch = threads
        self._context = api.llama_init_from_model(model, parameters)
        self._memory = api.llama_get_memory(self._context)
        self._batch = api.llama_batch_init(2048, 0, 1)
        super().__init__(api.llama_vocab_n_tokens(api.llama_model_get_vocab(model)))

    def cut(self, length: int) -> None:
        self._api.llama_memory_seq_rm(self._memory, 0, length, -1)
        self.length = length

    def run(self, tokens: list[int]) -> int:
        batch = self._batch
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i] = token
            batch.pos[i] = self.length + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = i + 1 == len(tokens)
        status = self._api.llama_decode(self._context, batch)
        if status:
            raise RuntimeError(f"llama_decode returns {status}")
        self.length += len(tokens)
        logits = self._api.llama_get_logits_ith(self._context, len(tokens) - 1)
        array = self._numpy.ctypeslib.as_array(logits, shape=(self.vocabulary,))
        return int(array.argmax())


class ExecuTorch(Stepper):
    """By the method that its export of language models writes, as its own runner in Python."""

    modules = (
        "torch",
        "executorch.extension.pybindings.portable_lib",
        "executorch.kernels.quantized",
        "executorch.extension.llm.custom_ops.custom_ops",
    )

    def __init__(self, file: str, threads: int, context: int) -> None:
        import torch
        from executorch.extension.pybindings import portable_lib

        torch.set_num_threads(1)
        portable_lib._unsafe_reset_threadpool(threads)
        self._torch = torch
        self._module = portable_lib._load_for_executorch(file)
        self._rows = self._module.run_method("get_max_seq_len", ())[0] - 1
        (vocabulary,) = self._module.run_method("get_vocab_size", ())
        super().__init__(vocabulary)

    def cut(self, length: int) -> None:
        self.length = length

    def run(self, tokens: list[int]) -> int:
        for begin in range(0, len(tokens), self._rows):
            part = self._torch.tensor([tokens[begin : begin + self._rows]])
            position = self._torch.tensor([self.length])
            (logits,) = self._module.forward((part, position))
            self.length += part.shape[1]
        return int(logits.argmax())


class OpenVino(Model):
    """By the pipeline of OpenVINO GenAI, with its cache of prefixes."""

    modules = ("numpy", "openvino", "openvino_genai")

    def __init__(self, file: str, threads: int, context: int) -> None:
        import numpy
        import openvino
        import openvino_genai as api

        self._api, self._numpy, self._openvino = api, numpy, openvino
        scheduler = api.SchedulerConfig()
        scheduler.enable_prefix_caching = True
        scheduler.max_num_batched_tokens = 2048
        scheduler.cache_size = 1
        self._pipeline = api.LLMPipeline(
            file, "CPU", scheduler_config=scheduler, INFERENCE_NUM_THREADS=threads
        )
        self._reached: set[int] = set()
        source = Path(file).with_name("shape.json")
        super().__init__(json.loads(source.read_text())["vocab_size"])

    def _generate(self, tokens: list[int], count: int) -> Any:
        array = self._numpy.array([tokens], self._numpy.int64)
        inputs = self._api.TokenizedInputs(
            self._openvino.Tensor(array), self._openvino.Tensor(self._numpy.ones_like(array))
        )
        config = self._api.GenerationConfig(max_new_tokens=count, ignore_eos=True, do_sample=False)
        return self._pipeline.generate(inputs, config).perf_metrics

    def reach(self, context: int) -> None:
        if context and context not in self._reached:
            self._generate(self.known(context), 1)
            self._reached.add(context)

    def prefill(self, context: int, length: int) -> float:
        metrics = self._generate(self.known(context) + self.fresh(length), 1)
        return float(metrics.get_ttft().mean) / 1e3

    def decode(self, context: int, count: int) -> float:
        metrics = self._generate(self.known(context) + self.fresh(1), count + 1)
        return float(metrics.get_tpot().mean) / 1e3


class OnnxRuntime(Model):
    """By the generator of ONNX Runtime GenAI."""

    modules = ("numpy", "onnxruntime_genai")

    def __init__(self, file: str, threads: int, context: int) -> None:
        import numpy
        import onnxruntime_genai as api

        self._numpy = numpy
        config = api.Config(file)
        options = {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
        self._model = api.Model(config)
        parameters = api.GeneratorParams(self._model)
        parameters.set_search_options(max_length=context, do_sample=False)
        self._generator = api.Generator(self._model, parameters)
        about = json.loads(Path(file, "genai_config.json").read_text())
        super().__init__(about["model"]["vocab_size"])

    def reach(self, context: int) -> None:
        length = min(context, int(self._generator.token_count()))
        self._generator.rewind_to(length)
        tokens = self.known(context)
        for begin in range(length, context, 512):
            self._append(tokens[begin : begin + 512])

    def _append(self, tokens: list[int]) -> None:
        self._generator.append_tokens(self._numpy.array(tokens, self._numpy.int32))

    def prefill(self, context: int, length: int) -> float:
        tokens = self.fresh(length)
        begin = time.perf_counter()
        self._append(tokens)
        self._generator.generate_next_token()
        return time.perf_counter() - begin

    def decode(self, context: int, count: int) -> float:
        self._append(self.fresh(1))
        self._generator.generate_next_token()
        begin = time.perf_counter()
        for _ in range(count):
            self._generator.generate_next_token()
        return (time.perf_counter() - begin) / count


RUNTIMES: dict[str, type[Model]] = {
    "rushlight": Rushlight,
    "llamacpp": LlamaCpp,
    "executorch": ExecuTorch,
    "openvino": OpenVino,
    "onnxruntime": OnnxRuntime,
}
_open: Model | None = None


def _current() -> Model:
    assert _open is not None, "nothing is open"
    return _open


def open_model(
    runtime: str, file: str, threads: int, context: int, **options: Any
) -> dict[str, float]:
    """Load a model, and generate a token with it; what `side.measure_load` finds."""
    kind: Any = RUNTIMES[runtime]
    for module in kind.modules:
        importlib.import_module(module)

    def load() -> side.Call:
        global _open
        _open = kind(file, threads, context, **options)
        return lambda: _current().decode(0, 1)

    return dict(side.measure_load(load))


def prefill(context: int, length: int) -> list[float]:
    """Seconds of the wall and of the CPU from a prompt to the next token."""
    model = _current()
    model.reach(context)
    cpu = time.process_time()
    return [model.prefill(context, length), time.process_time() - cpu]


def decode(context: int, count: int) -> list[float]:
    """Seconds of the wall and of the CPU for a token."""
    model = _current()
    model.reach(context)
    cpu = time.process_time()
    wall = model.decode(context, count)
    return [wall, (time.process_time() - cpu) / (count + 1)]


def memory() -> dict[str, int]:
    """Resident bytes of the process: in all, and those without a file."""
    return {"resident": side.status_bytes("VmRSS"), "anonymous": side.status_bytes("RssAnon")}


def peaks(threads: int) -> dict[str, float]:
    """The machine's peaks, measured by our runtime: see `rushlight.runtime.peaks`."""
    from rushlight.runtime.peaks import measure_peaks

    return dict(measure_peaks(threads)._asdict())


COMMANDS: dict[str, side.Command] = {
    "open": open_model,
    "prefill": prefill,
    "decode": decode,
    "memory": memory,
    "peaks": peaks,
}

if __name__ == "__main__":
    side.main(COMMANDS, __doc__)
