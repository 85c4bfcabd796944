"""`TextLLMRunner`: a text that is kept, and what a model writes after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.errors import Code, RunError
from rushlight.extension.llm.stats import GenerationConfig, Stats, time_in_ms
from rushlight.llm.loading import load
from rushlight.llm.reply import Stream
from rushlight.runtime import load as load_module

_TOP_P = 0.9
_MOST_ENDS = 127  # tokens that begin or end a prompt
_OF_TEXTS = {"num_bos": "get_bos_id", "num_eos": "get_eos_ids"}  # methods without inputs


class TextLLMRunner:
    """A language model with one text, to which prompts and what follows them are added.

    Args:
        model_path: a program that `rushlight.llm.export` made, or of the form for ExecuTorch's
            runner.
        tokenizer_path: what `rushlight.llm.tokenizer.compile` takes; "": the program's own.
        data_path: refused: weights are read from the program.

    Raises:
        LoadError: a file cannot be read, or is no language model.
        RunError: there is a `data_path`.
    """

    def __init__(self, model_path: str, tokenizer_path: str, data_path: str | None = None) -> None:
        if data_path is not None:
            raise RunError(
                f"data_path={data_path!r}: runners read weights from the program alone: export it "
                f"without external constants, and leave data_path out",
                code=Code.NOT_SUPPORTED,
            )
        self._stats = Stats(model_load_start_ms=time_in_ms())
        self._runner = load(model_path, tokenizer=tokenizer_path or None)
        self._session = self._runner.session()
        self._ends = _tokens_of(model_path)
        self._stats.model_load_end_ms = time_in_ms()
        self._stream: Stream | None = None

    def generate(
        self,
        prompt: str,
        config: GenerationConfig,
        token_callback: Callable[[str], object] | None = None,
        stats_callback: Callable[[Stats], object] | None = None,
    ) -> None:
        """Add a prompt to the text, and what the model writes after it, which is also printed
        unless `config.warming`.

        Args:
            prompt: a text.
            config: how.
            token_callback: called with the prompt, if it is echoed, and each piece of text.
            stats_callback: called at the end with the times.

        Raises:
            RunError: the prompt or an option is refused, or the model fails.
        """
        stats = self._stats
        stats.reset()
        stats.inference_start_ms = time_in_ms()
        tokens = self._encode(prompt, config)
        options = self._options(config, len(self._session.tokens) + len(tokens))
        stats.token_encode_end_ms = stats.model_execution_start_ms = time_in_ms()

        def give(text: str) -> None:
            if not config.warming:
                print(text, end="", flush=True)
            if token_callback is not None:
                token_callback(text)

        if config.echo:
            give(prompt)
        with self._session.stream(tokens, **options) as self._stream:
            for piece in self._stream:
                if piece.tokens and not stats.first_token_ms:
                    stats.first_token_ms = stats.prompt_eval_end_ms = time_in_ms()
                if piece.text:
                    give(piece.text)
            stats.num_generated_tokens = self._stream.statistics.output_tokens
        self._stream = None
        stats.model_execution_end_ms = stats.inference_end_ms = time_in_ms()
        stats.num_prompt_tokens = len(tokens)
        if not config.warming:
            print(f"\nPyTorchObserver {stats.to_json_string()}")
        if stats_callback is not None:
            stats_callback(stats)

    def prefill(self, prompt: str, config: GenerationConfig | None = None) -> None:
        """Add a prompt to the text without generating.

        Args:
            prompt: a text.
            config: how many tokens begin and end it.

        Raises:
            RunError: the prompt is refused.
        """
        tokens = self._encode(prompt, config or GenerationConfig())
        self._session.tokens = self._session.tokens + tokens

    def stop(self) -> None:
        """End the text at the next token; from any thread, and from a callback."""
        stream = self._stream
        if stream is not None:
            stream.cancel()

    def reset(self) -> None:
        """Begin a new text.

        Raises:
            RunError: a text is being generated.
        """
        self._session.tokens = []
        self._stats.reset()

    def get_vocab_size(self) -> int:
        """How many tokens there are."""
        return self._runner.vocabulary_size

    def __repr__(self) -> str:
        return f"<TextLLMRunner with {self._runner.vocabulary_size} tokens>"

    def _encode(self, prompt: str, config: GenerationConfig) -> list[int]:
        """The tokens of a prompt, with those that begin and end it."""
        begin, end = (self._repeated(config, name) for name in _OF_TEXTS)
        tokens = begin + self._runner.encode(prompt, add_special=False) + end
        if not tokens:
            raise _refuse("the prompt has no token: give a text")
        return tokens

    def _repeated(self, config: GenerationConfig, name: str) -> list[int]:
        count = getattr(config, name)
        if not 0 <= count <= _MOST_ENDS:
            raise _refuse(f"{name}={count}: give 0 to {_MOST_ENDS}")
        if count and not self._ends[name]:
            raise _refuse(f"{name}={count}: the program has no {_OF_TEXTS[name]}: give 0")
        repeated: list[int] = self._ends[name][:1] * count
        return repeated

    def _options(self, config: GenerationConfig, occupied: int) -> dict[str, Any]:
        """What a generation is told; `occupied`: the tokens of the text with the prompt."""
        most = config.resolve_max_new_tokens(self._runner.context, occupied)
        if most == 0:
            raise _refuse(
                f"no token can follow: the text has {occupied} tokens with the prompt, the context "
                f"{self._runner.context}, seq_len is {config.seq_len} and max_new_tokens "
                f"{config.max_new_tokens}: raise them, or reset()"
            )
        options = {"max_tokens": most, "temperature": config.temperature}
        return {**options, "top_p": _TOP_P} if config.temperature else options


def _refuse(message: str) -> RunError:
    return RunError(message, code=Code.INVALID_ARGUMENT)


def _tokens_of(path: str) -> dict[str, list[int]]:
    """The tokens that begin and end texts, as the methods of a program say."""
    module = load_module(path)
    found: dict[str, list[int]] = {}
    for name, method in _OF_TEXTS.items():
        value: Any = module[method]() if method in module.methods else []
        listed = value if isinstance(value, list | tuple) else [value]
        found[name] = [int(token) for token in listed]
    return found
