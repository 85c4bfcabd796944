"""The extension module: the C++ runtime, with nothing added. Use `rushlight.runtime` instead.

Built from `bindings/`. What fails raises `Failure`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

class Failure(Exception):  # noqa: N818
    """`args` is (code, message, method, instruction, name, missing, delegate, place, report):
    ExecuTorch's number of the error, its text, the method, the index of the instruction that failed
    (-1 if none did), the name of its operator or backend, what could not be found, the index of the
    delegate that failed (-1 if none did), its backend's own id for the place inside it, and the
    path and content of the report of the failure (None if the program reports none).

    What could not be found: (method, instruction or -1, name of the operator or backend, is_there,
    delegate or -1); `is_there`: the operator is, but not for these dtypes; the backend is, but
    cannot work here.

    `__cause__` is the exception of a backend that is written in Python."""

    args: tuple[
        int,
        str,
        str,
        int,
        str,
        list[tuple[str, int, str, bool, int]],
        int,
        str,
        tuple[bytes, bytes] | None,
    ]

def install_crash_report(path: bytes) -> None:
    """Write the report of a method that crashes to `path`; see rushlight.runtime."""

class Method:
    """One loaded method. Sequences of values are tuples or lists, flattened."""

    def call(self, values: tuple[Any, ...] | list[Any]) -> Any:
        """Run, and return new results in the form that was set; NotImplemented if the values are
        not what the method takes, and then nothing was changed."""

    def call_into(self, values: list[Any], outputs: list[Any]) -> bool:
        """Run, and write results into writable arrays (None: not wanted); False if the values are
        not what the method takes."""

    def set_structure(self, structure: str) -> None:
        """What `call` returns: "single" (of one output), "tuple" or "list"."""

    def narrow(self, specs: list[Any], n_symbols: int) -> None:
        """Expect less than the program allows. Per input: a list of (min, max, symbol number or -1)
        for a tensor; one such tuple for an int that may vary; True for another scalar that may
        vary; None for what stays as it is."""

    def describe(self, inputs: list[str], outputs: list[str], specs: list[str]) -> None:
        """The names of inputs and outputs in messages, and each output's dtype and shape."""

    def set_inputs(self, values: list[Any]) -> bool:
        """Set inputs for `execute` and `step`, and keep them; False if they do not fit."""

    def set_kv_cache(self, cache: KvCache | None) -> None:
        """The key-value cache of all later runs of a language model's step."""

    def report_refusal(self, code: int, text: str) -> tuple[bytes, bytes] | None:
        """The path and content of a report of a call that was refused before it came here; None if
        the program reports no failures."""

    def execute(self) -> None: ...
    def step(self) -> int:
        """Run one instruction and return its index; -1 if none was left."""

    def outputs(self) -> Any:
        """The outputs as they are now, in the form that was set."""

    def value(self, index: int) -> Any:
        """A copy of a value as it is now; None for a tensor without memory."""

    def verify(
        self, name: str, index: int, rtol: float, atol: float
    ) -> tuple[
        tuple[bool, bool, str],
        tuple[float, float],
        tuple[int, int, int],
        tuple[int, tuple[int, ...], float, float],
    ]:
        """Run test case `index` of the method `name`; negative tolerances: the file's. ((passed,
        compared, why it failed), (greatest absolute error, relative), (elements, wrong ones, NaN),
        (output, index, got, expected))."""

    def instruction_name(self, index: int) -> str: ...
    @property
    def n_values(self) -> int: ...
    @property
    def n_instructions(self) -> int: ...

class KvCache:
    """A key-value cache of fixed size with pages of its own, all zeros, for checking programs
    without a runner. `dtype`: float32, float16 or int8."""

    def __init__(
        self,
        dtype: str,
        layers: int,
        heads: int,
        width: int,
        value_width: int,
        sequences: int,
        positions: int,
    ) -> None: ...
    @property
    def nbytes(self) -> int: ...

class Program:
    """An opened program. Objects made from it share its lock and its lifetime."""

    @staticmethod
    def open(
        path: bytes | None,
        data: bytes | None,
        external_path: bytes | None,
        external_data: bytes | None,
        memory_limit: int,
        trace: tuple[int, int, int, list[str]],
        threads: int,
        check_backends: bool | None,
        map: bool,
        guard: bool,
        failure_report: bytes,
        kernels: list[bytes],
    ) -> Program:
        """`trace`: bytes for events (0: nothing is traced), bytes for values, and which values.
        `check_backends` None: as the extension was built. `failure_report`: the path that
        `Failure` names; empty: failures are not reported. `kernels`: paths of libraries of
        kernels."""

    def identity(self) -> int:
        """The number by which a report of a failure names this program."""

    def set_backend_options(
        self, options: list[tuple[str, str, list[tuple[str, bool | int | str]]]]
    ) -> None:
        """For methods that are loaded from now on: (backend, method or "" for all, pairs)."""

    def threads(self) -> int:
        """How many threads kernels may use."""

    def clone(self) -> Program: ...
    def manual_seed(self, seed: int) -> None:
        """Random operators draw as after `torch.manual_seed(seed)`; 0 <= seed < 2**64."""

    def fork(self) -> Program: ...
    def state(self) -> list[tuple[str, str, int, str, list[int]]]:
        """(name, method, index of the value, dtype, sizes) of all state of the loaded methods."""

    def read_state(self, index: int, as_torch: bool) -> Any: ...
    def write_state(self, index: int, array: Any) -> None: ...
    def snapshot(self) -> bytes: ...
    def restore(self, data: bytes) -> None: ...
    def reset_state(self) -> None: ...
    def close(self) -> None: ...
    def method_names(self) -> list[str]: ...
    def method(self, name: str) -> Method:
        """The method, loaded if it was not."""

    def named_data(self, key: str) -> bytes | None: ...
    def named_data_keys(self) -> list[str]: ...
    def meta(self, name: str) -> dict[str, Any]:
        """{"name", "inputs", "outputs", "attributes", "arenas": [bytes], "operators": [name],
        "backends": [id], "instructions": count, "values": count, "containers": (input spec,
        output spec)}.

        An input or output is {"kind": "int" | "bool" | "float" | "str", "value"}, {"kind": "none"}
        or {"kind": "tensor", "dtype", "sizes", "dim_order", "dynamic", "planned", "constant",
        "nbytes"}. Attributes are such tensors, and have "name".
        """

    def memory_use(self, name: str) -> dict[str, int]:
        """{"arenas", "shared_arenas", "structures", "outputs", "scratch"}: bytes of one method."""

    def memory_in_use(self) -> int: ...
    def memory_resident(self) -> int:
        """Of what is in use, the bytes that have been touched."""

    def sizes(self) -> dict[str, int]:
        """{"file", "constants"}: bytes of the program."""

    def trace_events(self) -> tuple[str, list[tuple[int, str, str, int, int, str]]]:
        """The last run's method, and its (instruction, kind, name, ns, delegate or -1, the id
        that its backend gave a stretch inside it, or "")."""

    def trace_dump(self) -> tuple[bytes, bytes]:
        """An ETDump and its debug buffer."""

    def trace_dropped(self) -> tuple[int, int]:
        """Events and values that found no room."""

    def trace_clear(self) -> None: ...

def describe_array(object: Any) -> tuple[str, tuple[int, ...]] | str | None:
    """(dtype, sizes) of an array; text that says why it cannot be passed; None for no array."""

def array_bytes(array: Any, dim_order: list[int]) -> tuple[str, tuple[int, ...], bytes]:
    """(dtype, sizes, the elements in a dim order) of an array."""

def operator_names(own: bool = False) -> set[str]:
    """The operators that have a kernel; `own`: those alone that were registered."""

def kernels_in_delegates() -> set[str]:
    """The operators that have registered kernels, all of which may be called inside a delegate."""

def refused_kernel_libraries() -> list[str]:
    """Why kernels of libraries that the process has loaded are left out: a sentence for each."""

def register_kernel(
    name: str, signature: str, n_results: int, function: Any, in_delegates: bool
) -> None:
    """Add a function that computes an operator: its letters (cpp/kernel/kernel.h), of which the
    last `n_results` are results (or the last alone, a list of any length)."""

def register_kernel_library(path: bytes) -> tuple[int, list[str]]:
    """Add the kernels of a shared library; returns its number and the names of their operators."""

def unregister_kernel_library(number: int) -> None:
    """Take out what a library added; methods that are loaded keep it."""

def unregister_kernel(name: str) -> bool:
    """Take a registered kernel out; methods that are loaded keep it. False if there is none."""

def usable_cores() -> int:
    """The physical cores that this process may use: how many threads `load` takes by default."""

def measure_peaks(threads: int) -> tuple[float, float, float]:
    """Operations of float32, those of integers, and bytes per second: see
    `rushlight.runtime.peaks`. Takes 256 MiB meanwhile."""

def backend_names() -> list[str]: ...
def backend_is_available(id: str) -> bool: ...
def register_backend(id: str, backend: Any) -> None:
    """Add an object with `init` and `execute`; see `rushlight.runtime.Backend`."""

def register_backend_capsule(capsule: Any) -> str:
    """Add the backend of a PyCapsule "rl_backend_v1"; returns its id."""

def register_backend_library(path: bytes) -> list[str]:
    """Add the backends of a shared library; returns their ids."""

def unregister_backend(id: str) -> bool:
    """Take a backend out; methods that are loaded keep it. False if there is none of that id."""

class BackendContext:
    """See `rushlight.runtime.BackendContext`, which describes it."""

    method: str
    payload: memoryview
    compile_specs: dict[str, bytes]
    options: dict[str, bool | int | str]
    @property
    def is_traced(self) -> bool: ...
    def named_data(self, key: str) -> memoryview | None: ...
    def release_payload(self) -> None: ...
    def fail_at(self, id: int | str) -> None: ...
    def resize(self, index: int, shape: Sequence[int]) -> Any: ...
    def event(self, id: int | str, start_ns: int, stop_ns: int, metadata: bytes = b"") -> None: ...
    def wants_value(self, id: int | str) -> bool: ...
    def value(self, id: int | str, array: Any) -> None: ...

def run_kernel(
    name: str,
    args: list[Any],
    isa: str | None = None,
    scratch: int = ...,
    threads: int = 1,
    seed: int | None = ...,
) -> tuple[Any, list[tuple[int, ...] | None]]: ...
def time_kernel(
    name: str,
    args: list[Any],
    repeats: int,
    isa: str | None = None,
    scratch: int = ...,
    threads: int = 1,
) -> float: ...
def kernel_isas() -> list[str]: ...
def take_log() -> list[str]:
    """The lines of the runtime's log since the last call."""

def kernel_signatures() -> dict[str, str]: ...

class LlmOptions:
    """How texts are generated; `rushlight.llm.options` reads what callers write."""

    most_n: ClassVar[int]
    most_guesses: ClassVar[int]
    max_tokens: int
    stop: list[str]
    stop_tokens: list[int]
    ignore_eos: bool
    echo: bool
    special: bool
    n: int
    keep: int
    guesses: int
    shift: bool
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_range: int
    dry_breakers: list[int]
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    seed: int
    logprobs: int

    def __init__(self) -> None: ...
    def check(self, vocabulary: int) -> None: ...
    def copy(self) -> LlmOptions: ...
    def set_logit_bias(self, biases: list[tuple[int, float]]) -> None: ...
    def set_grammar(self, grammar: Grammar) -> None: ...
    def set_adapter(self, adapter: LlmAdapter) -> None: ...

def llm_sample(
    logits: bytes,
    options: LlmOptions,
    history: list[int],
    prompt: int,
    stream: int,
    index: int,
    mask: bytes | None,
) -> tuple[int, list[int], list[float]]:
    """A token, and the tokens and weights that it was drawn from."""

class LlmGeneration:
    """Texts while they are generated. What is left is cancelled when it goes."""

    def next(self) -> tuple[int, list[tuple[int, float, list[tuple[int, float]]]], str, str] | None:
        """(choice, tokens with log probabilities and alternatives, text, why it ended or "")."""

    def cancel(self) -> None: ...
    def statistics(self) -> dict[str, int]: ...
    def stopped_by(self, choice: int) -> str: ...

class LlmAdapter:
    """An adapter of a language model: what `rushlight.llm.Runner.load_adapter` returns. Those of
    one call are equal."""

    @property
    def rank(self) -> int:
        """The greatest rank of what it adds to a layer."""

class LlmSession:
    """A text that is kept."""

    def generate(self, prompt: list[int], options: LlmOptions) -> LlmGeneration: ...
    def generate_after(self, text: list[int], options: LlmOptions) -> LlmGeneration: ...
    def set_tokens(self, tokens: list[int]) -> None: ...
    def rewind(self, count: int) -> None: ...
    def fork(self) -> LlmSession: ...
    def save(self, path: bytes) -> None: ...
    def tokens(self) -> list[int]: ...
    def cached(self) -> int: ...
    def adapter(self) -> LlmAdapter | None: ...
    def set_adapter(self, adapter: LlmAdapter | None) -> None: ...

class LlmRunner:
    """A language model with its cache."""

    @staticmethod
    def open(
        path: bytes | None,
        data: bytes | None,
        threads: int,
        map: bool,
        guard: bool,
        cache: str,
        cache_limit: int,
        texts: int,
        prefill_rows: int,
        tokenizer: bytes | None,
        chat_template: str,
        failure_report: bytes,
        trace: tuple[int, int, int, list[str]],
        kernels: list[bytes],
    ) -> LlmRunner:
        """Counts of 0 stand for the default. `failure_report`: the path of a file that is written
        when the model fails; empty: none. `trace`: as for `Program.open`."""

    def trace_dump(self) -> tuple[bytes, bytes]:
        """An ETDump and its debug buffer."""

    def trace_dropped(self) -> tuple[int, int]:
        """Events and values that found no room."""

    def trace_clear(self) -> None: ...
    def generate(self, prompt: list[int], options: LlmOptions) -> LlmGeneration: ...
    def session(self) -> LlmSession: ...
    def load_adapter(self, path: bytes) -> LlmAdapter: ...
    def defaults(self) -> LlmOptions: ...
    def facts(self) -> dict[str, Any]: ...
    def encode(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]: ...
    def decode(self, tokens: list[int], skip_special: bool) -> str: ...
    def piece(self, token: int) -> bytes: ...
    def restore(self, path: bytes, adapter: LlmAdapter | None) -> LlmSession: ...
    def encode_chat(self, variables: bytes) -> list[int]: ...
    def tokens_with(self, text: bytes) -> list[int]: ...
    def score(
        self, tokens: list[int], alternatives: int, adapter: LlmAdapter | None
    ) -> list[tuple[int, float, list[tuple[int, float]]]]: ...
    def embed_texts(
        self, texts: list[bytes], normalize: bool, truncate: bool, adapter: LlmAdapter | None
    ) -> np.ndarray[Any, np.dtype[np.float32]]: ...
    def embed_tokens(
        self, texts: list[list[int]], normalize: bool, truncate: bool, adapter: LlmAdapter | None
    ) -> np.ndarray[Any, np.dtype[np.float32]]: ...
    def vocabulary(self) -> Vocabulary: ...
    def cache_bytes(self) -> int: ...

class Tokenizer:
    """See `rushlight.llm.tokenizer.Tokenizer`, which describes it."""

    def __init__(self, table: bytes) -> None: ...
    def encode(self, text: str, add_special: bool, parse_special: bool) -> list[int]: ...
    def encode_bytes(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]: ...
    def decode(self, tokens: list[int], skip_special: bool) -> str: ...
    def piece(self, token: int) -> bytes: ...
    def special(self, text: bytes) -> int: ...
    def is_special(self, token: int) -> bool: ...
    def vocabulary(self) -> int: ...

class TextStream:
    """Tokens of a `Tokenizer` to whole characters of UTF-8, one by one."""

    def __init__(self, tokenizer: Tokenizer, skip_special: bool) -> None: ...
    def push(self, token: int) -> bytes: ...
    def flush(self) -> bytes: ...

class Vocabulary:
    """The tokens of a model as bytes; see `rushlight.llm.grammar`."""

    def __init__(
        self, pieces: list[bytes], special: list[int], ends: list[int], encode: Any
    ) -> None: ...
    def __len__(self) -> int: ...

class Grammar:
    """An automaton over the tokens of a vocabulary."""

    def mask_words(self) -> int: ...
    def cache_bytes(self) -> int: ...
    def bytes(self) -> int: ...

def regex_grammar(pattern: str, vocabulary: Vocabulary, cache_bytes: int) -> Grammar: ...
def schema_grammar(
    schema: str, vocabulary: Vocabulary, white_space: str, reasoning: str, cache_bytes: int
) -> Grammar: ...
def tools_grammar(
    tools: str,
    choice: str,
    parallel: bool,
    format: str | tuple[str, str, str, bool, str, str],
    vocabulary: Vocabulary,
    white_space: str,
    reasoning: str,
    cache_bytes: int,
) -> Grammar:
    """`format`: the name of a family, or (begin, end, separator, is_list, name, arguments)."""

class GrammarState:
    """A reply that a grammar constrains."""

    def __init__(self, grammar: Grammar, history: int) -> None: ...
    def mask(self, words: Any) -> None:
        """Fill an array of `mask_words()` uint32, a bit for each token."""

    def accept(self, token: int) -> bool: ...
    def accept_text(self, text: bytes) -> bool: ...
    def forced(self) -> list[int]: ...
    def forced_text(self) -> bytes: ...
    def can_end(self) -> bool: ...
    def must_end(self) -> bool: ...
    def has_ended(self) -> bool: ...
    def rewind(self, tokens: int) -> bool: ...
    def fork(self) -> GrammarState: ...

class ChatTemplate:
    """See `rushlight.llm.template.ChatTemplate`, which describes it."""

    @staticmethod
    def parse(source: str) -> ChatTemplate: ...
    def render(
        self, variables: str, tokens: str, now: int
    ) -> tuple[bytes, list[tuple[int, int]]]: ...
    def uses(self, name: str) -> bool: ...

def rewrite_json(
    text: str,
    indent: str,
    has_lines: bool,
    item_separator: str,
    key_separator: str,
    ascii: bool,
    sorts_keys: bool,
) -> str:
    """JSON text, read and written again in a style."""

class ReplyParser:
    """See `rushlight.llm.template.ReplyParser`, which describes it."""

    def __init__(
        self, format: str, takes_calls: bool, takes_reasoning: bool, in_reasoning: bool
    ) -> None: ...
    def push(self, text: bytes) -> tuple[bytes, bytes, list[tuple[bytes, bytes, bytes]]]: ...
    def finish(self) -> tuple[bytes, bytes, list[tuple[bytes, bytes, bytes]]]: ...

def reply_format_of(source: str) -> str:
    """The name of the reply format that a chat template shows."""

def opens_reasoning(prompt: str) -> bool:
    """Whether a prompt ends within a block of reasoning."""
