"""The code on the pages of docs/llm runs, on small models that have the names it reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from doc_pages import blocks_of

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted((ROOT / "docs" / "llm").glob("*.md"))
_HELPERS = ROOT / "tests" / "python" / "llm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models that the pages read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(_HELPERS), str(_HELPERS / "gguf")])
        import tiny_model
        from gguf_files import write_gguf
        from peft_folders import Folder
    folder = tmp_path_factory.mktemp("docs")
    model, tokenizer = tiny_model.make_model(), tiny_model.make_tokenizer()
    tiny_model.save(model, tokenizer, folder / "model.pte", adapters=8)
    Folder(folder / "sql-lora").write()
    smollm = folder / "SmolLM2-135M-Instruct"
    model.save_pretrained(smollm)
    about = {"eos_token": "<|end|>", "chat_template": tiny_model.TEMPLATE}
    (smollm / "tokenizer_config.json").write_text(json.dumps(about))
    for place in (smollm, folder / "folder"):
        place.mkdir(exist_ok=True)
        tokenizer.save(str(place / "tokenizer.json"))
    write_gguf(model, folder / "SmolLM2-135M-Instruct-Q4_0.gguf", "Q4_0")
    _write_minilm(folder / "all-MiniLM-L6-v2")
    return folder


def _write_minilm(folder: Path) -> None:
    """A folder of sentence-transformers with a small BERT."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import BertConfig, BertModel

    words = ["[PAD]", "[UNK]", "a", "lamp", "light", "quarter", "##ly", "earn", "##ings"]
    tokenizer = Tokenizer(models.WordPiece(dict(zip(words, range(9), strict=True))))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    sizes = {"hidden_size": 384, "num_hidden_layers": 1, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=9, max_position_embeddings=32, **sizes)).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    modules: Any = [{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1").mkdir()
    (folder / "1" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks_of(page, "python")], ids=lambda page: page.stem
)
def test_code_on_the_page_runs(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    exec("\n".join(blocks_of(page, "python")), {"__name__": page.stem})
