"""Damaged traces, values and records are refused by an error of ours, or shown."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import nn

import rushlight as rl
from attack.traces import TraceFiles, entries_of, mutant, read, record_of
from rushlight.errors import LoadError
from rushlight.inspect import Inspector, parse_etrecord
from rushlight.runtime import TraceOptions
from rushlight.schema import etdump


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TraceFiles:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    x, path = torch.randn(2, 4), tmp_path_factory.mktemp("record") / "m.etrecord"
    program = rl.export(model, (x,), backend="cpu", etrecord=path)
    record = parse_etrecord(path)
    bundle = rl.bundle(program, [(x,), (x * 2,)])
    record.update_representative_inputs(bundle)
    record.update_reference_outputs(bundle)
    record.save(path)
    module = rl.load(bundle.to_bytes(), trace=TraceOptions(values="all"))
    for index in range(2):
        module["forward"].verify(index)
    return TraceFiles(*module.trace.to_bytes(), path.read_bytes())


def attack(files: TraceFiles, first: int, last: int, *, programs: bool) -> Counter[str]:
    shown: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, last):
            way, one = mutant(files, number)
            try:
                shown[f"{way}: {'shown' if read(one, programs=programs) else 'refused'}"] += 1
            except Exception as error:
                raise AssertionError(f"mutant {number} ({way})") from error
    return shown


def test_the_files_are_whole(files: TraceFiles) -> None:
    assert read(files, programs=True)


def test_mutants_are_refused_or_shown(files: TraceFiles) -> None:
    shown = attack(files, 0, 150, programs=False)
    for way in ("dump bytes", "dump tables", "values", "record bytes", "record entry"):
        assert shown[f"{way}: refused"] > 2, shown
    assert shown["record entry: shown"] > 5 and shown["dump tables: shown"] > 2


@pytest.mark.full
def test_many_mutants_are_refused_or_shown(files: TraceFiles) -> None:
    attack(files, 150, 2_000, programs=True)


def test_a_trace_without_events_is_an_empty_table() -> None:
    content = etdump.pack(etdump.ETDump())
    inspector = Inspector(etdump_data=content)
    assert inspector.event_blocks == [] and len(inspector.to_dataframe()) == 0
    printed = io.StringIO()
    inspector.print_data_tabular(printed)
    assert "event_name" in printed.getvalue()


def test_bombs_are_refused(files: TraceFiles) -> None:
    entries = entries_of(files.record)
    name = "edge_dialect_exported_program/forward"
    for entry in (name, "debug_handle_map", "reference_outputs"):
        bomb = record_of({**entries, entry: b"[" * (40 << 20)}, compressed=True)
        assert len(bomb) < 1 << 20
        for use in (parse_etrecord, lambda record: shown(files, record.read())):
            with pytest.raises(LoadError, match=r"bytes in it are to become .*, which no record"):
                use(io.BytesIO(bomb))


def shown(files: TraceFiles, record: bytes) -> Inspector:
    return Inspector(etdump_data=files.dump, etrecord=io.BytesIO(record))


def test_names_that_leave_the_folder_write_nothing(
    files: TraceFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    entries = entries_of(files.record)
    record = record_of({**entries, "../../x": b"1", "/tmp/../x": b"1", "../y_state_dict": b"1"})
    assert shown(files, record).event_blocks
    parse_etrecord(io.BytesIO(record))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_entries_with_a_password_or_an_unknown_compression(files: TraceFiles) -> None:
    with zipfile.ZipFile(io.BytesIO(files.record)) as archive:
        start = archive.infolist()[0].header_offset
    assert start == 0
    content = bytearray(files.record)
    at = content.rindex(b"debug_handle_map") - 46
    assert content[at : at + 4] == b"PK\1\2"
    for offset, value in ((8, 1), (10, 99)):  # flags, method
        mutated = bytearray(content)
        mutated[at + offset] = value
        with pytest.raises(LoadError, match=r"'debug_handle_map' cannot be read"):
            shown(files, bytes(mutated))
