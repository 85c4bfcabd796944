"""`LLMEdgeManager`: the steps of scripts make programs that compute what eager computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import rushlight
from rushlight.errors import ExportError
from rushlight.extension.llm.builder import DType, LLMEdgeManager
from rushlight.extension.llm.partitioners import get_coreml_partitioner, get_xnnpack_partitioner
from rushlight.extension.llm.quantizers import (
    EmbeddingQuantOptions,
    get_coreml_quantizer,
    get_pt2e_quantization_params,
    get_pt2e_quantizers,
)

VOCABULARY = 256


class Small(torch.nn.Module):
    """Logits of each token by itself, or of the last alone."""

    def __init__(self, *, full: bool = True) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.table = torch.nn.Embedding(VOCABULARY, 32)
        self.hidden = torch.nn.Linear(32, 64)
        self.head = torch.nn.Linear(64, VOCABULARY)
        self.full = full
        self.seen: list[torch.Tensor] = []

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.head(torch.relu(self.hidden(self.table(tokens))))
        return logits if self.full else logits[:, -1]


def manager_of(model: torch.nn.Module, **options: Any) -> LLMEdgeManager:
    tokens = torch.tensor([[1, 2, 3, 4]])
    return LLMEdgeManager(model, "small", 16, False, (tokens,), **options)


def test_each_step_of_a_script_leads_to_a_file(tmp_path: Path) -> None:
    model = Small().eval()
    manager = manager_of(
        model, dtype=DType.fp32, enable_dynamic_shape=True, metadata={"get_bos_id": 5}
    )
    params = get_pt2e_quantization_params("xnnpack_dynamic, embedding")
    assert manager.get_saved_pte_filename() is None
    manager.set_output_dir(str(tmp_path)).to_dtype(DType.fp32).source_transform([lambda m: m])
    manager.export().run_canonical_optimizations()
    manager.pt2e_quantize(get_pt2e_quantizers(params)).export_to_edge()
    manager.to_backend([get_xnnpack_partitioner(), None]).to_executorch().save_to_pte("small")
    path = manager.get_saved_pte_filename()
    assert path == str(tmp_path / "small.pte")
    with pytest.raises(ExportError, match=r"save_to_pte\(3\): give a name"):
        manager.save_to_pte(3)  # type: ignore[arg-type]
    module = rushlight.load(path)
    assert (module.get_max_seq_len(), module.get_bos_id()) == (16, 5)
    tokens = torch.tensor([[0, 7, 3, 3, 2, 1]])
    wanted = model(tokens).detach()
    torch.testing.assert_close(
        module(tokens), wanted, atol=0.05 * float(wanted.std()) + 0.02, rtol=0
    )
    assert b"XnnpackBackend" in Path(path).read_bytes()


class Shifted(Small):
    """Reads the row of the next position, as decoders of transformers compute indices."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = self.head.weight[torch.arange(tokens.shape[1]) + 1, :32]
        return self.head(torch.relu(self.hidden(self.table(tokens) + places))) * 2.0


def test_scalars_of_indices_stay_integers_in_quantised_models(tmp_path: Path) -> None:
    model = Shifted().eval()
    manager = manager_of(model).export()
    manager.pt2e_quantize(
        get_pt2e_quantizers(get_pt2e_quantization_params("xnnpack_dynamic"))
    ).export_to_edge().to_executorch().save_to_pte(str(tmp_path / "shifted.pte"))
    tokens = torch.tensor([[4, 3, 2, 1]])
    wanted = model(tokens).detach()
    torch.testing.assert_close(
        rushlight.load(str(tmp_path / "shifted.pte"))(tokens),
        wanted,
        atol=0.05 * float(wanted.std()) + 0.02,
        rtol=0,
    )


def test_lowering_at_once_gives_the_same_numbers(tmp_path: Path) -> None:
    model = Small().eval()
    manager = manager_of(model).export()
    manager.to_edge_transform_and_lower([get_xnnpack_partitioner(False)]).to_executorch()
    manager.save_to_pte(str(tmp_path / "at_once.pte"))
    tokens = torch.tensor([[4, 3, 2, 1]])
    torch.testing.assert_close(rushlight.load(str(tmp_path / "at_once.pte"))(tokens), model(tokens))


@pytest.mark.parametrize(
    ("full", "dynamic"), [(True, False), (True, True), (False, True)], ids=["padded", "all", "last"]
)
def test_a_text_calibrates(tmp_path: Path, full: bool, dynamic: bool) -> None:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    model = Small(full=full).eval()
    manager = manager_of(model, enable_dynamic_shape=dynamic, generate_full_logits=full)
    seen: list[list[int]] = []

    def prepared(tokens: torch.Tensor) -> torch.Tensor:
        seen.append(tokens[0].tolist())
        return model(tokens)

    path: Any = str(tmp_path / "tokenizer.json")
    manager.pt2e_calibrate(prepared, None, None, 4, "ab", path)  # type: ignore[arg-type]
    text = tokenizer.encode("ab").ids
    for _ in range(2):
        text.append(int(Small().eval()(torch.tensor([text]))[0, -1].argmax()))
    padding = 0 if dynamic else 4
    assert seen == [text[:n] + [0] * max(0, padding - n) for n in (1, 2, 3, 4)]


def test_what_is_too_early_or_not_there_is_refused() -> None:
    manager = manager_of(Small())
    with pytest.raises(ExportError, match=r"call export\(\) before"):
        manager.run_canonical_optimizations()
    with pytest.raises(ExportError, match=r"call export_to_edge\(\) before"):
        manager.to_backend([get_xnnpack_partitioner()])
    with pytest.raises(ExportError, match=r"call to_executorch\(\) before"):
        manager.save_to_pte("m")
    quantizers = get_pt2e_quantizers(get_pt2e_quantization_params("xnnpack_dynamic_qc4"))
    tasks = manager_of(Small(), calibration_tasks=["wikitext"])
    with pytest.raises(ExportError, match="give the text"):
        tasks.pt2e_quantize(quantizers)
    with pytest.raises(ExportError, match="generate_full_logits"):
        manager.pt2e_calibrate(Small(), None, None, 4, "the", "none")
    [quantizer] = quantizers
    captured = manager_of(Small()).export()
    with pytest.raises(ExportError, match="give a list of quantizers"):
        captured.pt2e_quantize(quantizer)  # type: ignore[arg-type]
    with pytest.raises(ExportError, match="give a list of quantizers"):
        captured.pt2e_quantize(["xnnpack_dynamic"])  # type: ignore[list-item]
    with pytest.raises(ExportError, match="give a list of partitioners"):
        captured.to_backend(get_xnnpack_partitioner())  # type: ignore[arg-type]
    with pytest.raises(ExportError, match="give a list of partitioners"):
        captured.to_edge_transform_and_lower(["xnnpack"])  # type: ignore[list-item]
    with pytest.raises(ExportError, match="returned None: return the module"):
        manager.source_transform([lambda m: None])  # type: ignore[list-item]
    tokens = (torch.tensor([[1, 2]]),)
    with pytest.raises(ExportError, match="give 3 or more"):
        LLMEdgeManager(Small(), "small", 2, False, tokens, enable_dynamic_shape=True)
    with pytest.raises(AssertionError, match="a member of DType"):
        manager.to_dtype("fp32")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="float64"):
        DType.from_torch_dtype(torch.float64)


def test_texts_stand_for_quantisers() -> None:
    assert get_pt2e_quantization_params(None) is None
    assert get_pt2e_quantization_params("qnn_8a8w") is None
    params = get_pt2e_quantization_params("xnnpack_dynamic_qc4")
    assert params is not None and params.quantize_linear is not None
    assert params.quantize_linear.is_qc4 and params.quantize_embedding is None
    assert get_pt2e_quantizers(None) == []
    assert get_coreml_quantizer("coreml_baseline_8a_c8w") is not None
    with pytest.raises(ExportError, match="give one of them"):
        get_pt2e_quantization_params("xnnpack_dynamic,xnnpack_dynamic_qc4")
    with pytest.raises(ValueError, match="quantised once"):
        get_pt2e_quantization_params("xnnpack_dynamic", "8da4w")
    with pytest.raises(ExportError, match="for each row"):
        EmbeddingQuantOptions(group_size=32)
    with pytest.raises(ExportError, match="coreml_baseline_8a_c8w"):
        get_coreml_quantizer("coreml_c4w")
    with pytest.raises(ValueError, match="give 18 or more"):
        get_coreml_partitioner(ios=17, pt2e_quantize="coreml_8a_c4w")
