"""The benchmarks of language models beside their peers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "llm"))

import engines  # noqa: E402
import environments  # noqa: E402
import forms  # noqa: E402
import llm_speed  # noqa: E402
import shapes  # noqa: E402

ENGINES = {**engines.OURS, **engines.PEERS}


def test_every_engine_has_a_form_and_an_environment() -> None:
    for engine in ENGINES.values():
        assert engine.form in forms._MAKERS
        assert engine.is_ours or engine.runtime in environments.ENVIRONMENTS


def test_a_peer_that_cannot_be_measured_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    model = forms.Forms(tmp_path, "135m", 1)
    monkeypatch.setattr(forms.Forms, "file", lambda self, form: tmp_path / form)
    missing: dict[str, str] = {}
    peers = {"executorch": engines.PEERS["executorch"]}
    with engines.opened(peers, model, 1, missing) as sides:
        assert not sides
    assert "make peer" in missing["ExecuTorch 8da4w"]


def test_a_file_that_is_gone_or_was_not_finished_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "135m-1-layers" / "source").mkdir(parents=True)
    (tmp_path / "135m-1-layers" / "source" / "tokenizer_config.json").touch()
    model = forms.Forms(tmp_path, "135m", 1)

    def call(self: forms.Forms, python: str, command: str, **options: object) -> dict[str, float]:
        Path(str(options["file"])).touch()
        return {"cpu": 1.0}

    def fail(self: forms.Forms, python: str, command: str, **options: object) -> dict[str, float]:
        Path(str(options["file"])).touch()
        raise forms.MissingError("it ended")

    monkeypatch.setattr(forms.Forms, "_call", call)
    model.file("8da4w.pte").unlink()
    assert model.file("8da4w.pte").exists()
    monkeypatch.setattr(forms.Forms, "_call", fail)
    assert model.file("8da4w.pte").exists()
    for remake in (model.make, model.file):
        with pytest.raises(forms.MissingError):
            remake("8da4w.pte")
    monkeypatch.setattr(forms.Forms, "_call", call)
    model.file("8da4w.pte")
    assert model.made() == {"8da4w.pte": {"cpu": 1.0}}


def test_shapes_have_the_sizes_of_their_models() -> None:
    assert shapes.parameters_of(shapes.SHAPES["135m"]) == pytest.approx(134.5e6, rel=1e-3)
    assert shapes.parameters_of(shapes.SHAPES["1b"]) == pytest.approx(1.2358e9, rel=1e-3)


def test_a_table_is_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    engines.table("Title", ["what", "ours"], [["a", "1.0"], ["longer", "22.0"]])
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[0] == "### Title"
    assert lines[2].split() == ["|", "what", "|", "ours", "|"]
    assert lines[3].split() == ["|", "------", "|", "----:", "|"]
    assert len({len(line) for line in lines[2:]}) == 1


def test_a_rate_is_of_the_median_turn() -> None:
    point = llm_speed.Point("prefill", 0, 128, 3, {"8da4w": [0.5, 2.0, 1.0]})
    assert point.rate("8da4w") == 128 and point.rate("llamacpp") is None


@pytest.mark.full
def test_our_side_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "llm_speed", "--models", "135m", "--layers", "1"]
    command += ["--threads", "1", "--peers", "", "--forms", "8da4w", "--repeat", "1"]
    command += ["--contexts", "0,64", "--lengths", "16", "--tokens", "4", "--work", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if " after " in line]
    assert len(rows) == 4 and all(float(row.split("|")[2]) > 0 for row in rows), done.stdout
