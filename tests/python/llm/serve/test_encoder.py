"""A program that only embeds."""

from __future__ import annotations

import json

import numpy as np
import transformers
from servers import CHAT, ask, refused, serving
from tokenizers import Tokenizer, models, pre_tokenizers

import rushlight.llm


def test_an_encoder_embeds_and_does_nothing_else() -> None:
    words = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "the", "lamp"])}
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    program = rushlight.llm.export(
        transformers.BertModel(config).eval(), tokenizer=tokenizer, verify=False
    )
    runner = rushlight.llm.load(program.buffer, threads=1)
    with serving(runner) as port:
        body = {"model": "tiny", "input": ["the lamp", "lamp"]}
        status, _, answer = ask(port, "/v1/embeddings", body)
        vectors = [data["embedding"] for data in json.loads(answer)["data"]]
        assert status == 200
        np.testing.assert_array_equal(np.array(vectors, np.float32), runner.embed(body["input"]))
        status, error = refused(ask(port, "/v1/chat/completions", CHAT))
        assert status == 400 and "template" in error["message"]
        status, error = refused(ask(port, "/v1/completions", {"model": "tiny", "prompt": "the"}))
        assert status == 400 and "encoder" in error["message"]
        for path in ("/metrics", "/health", "/v1/models"):
            assert ask(port, path)[0] == 200
