"""Every public name of ExecuTorch is ours, or is listed with what to use instead."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from compat.public_names import public_names

ROOT = Path(__file__).resolve().parents[2]
ALIAS = ROOT / "compat" / "python"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
REAL = ROOT / ".venv-executorch" / "lib" / VERSION / "site-packages" / "executorch"
# Fewer would mean that names are refused rather than given.
LEAST_PRESENT = 1220


@pytest.fixture(scope="module")
def tables() -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """The names that are there, and the advice for others."""
    sys.path.insert(0, str(ALIAS))
    try:
        from executorch._names import ABSENT, MODULES, WHOLE
    finally:
        sys.path.remove(str(ALIAS))
    whole = {path: vars(importlib.import_module(ours)) for path, ours in WHOLE.items()}
    return {**MODULES, **whole}, ABSENT


@pytest.mark.interop
def test_every_public_name_is_ours_or_has_advice(
    tables: tuple[dict[str, dict[str, str]], dict[str, str]],
) -> None:
    modules, absent = tables
    names = public_names(REAL)
    assert sum(map(len, names.values())) > 1000, "the names of ExecuTorch were not found"
    present, missing = 0, []
    for module, listed in names.items():
        for name in listed:
            if name in modules.get(module, {}) or f"{module}.{name}" in modules:
                present += 1
            elif not _is_told_what_to_use(f"{module}.{name}", absent):
                missing.append(f"{module}.{name}")
    assert missing == []
    assert present >= LEAST_PRESENT


def _is_told_what_to_use(path: str, absent: dict[str, str]) -> bool:
    """Whether the error of an import has the advice of the table's nearest entry."""
    from executorch._finder import _advice

    parts = path.split(".")
    above = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    advice = next((absent[one] for one in above if one in absent), None)
    return advice is not None and advice in _advice(path)


def test_advice_is_of_names_that_do_not_exist(
    tables: tuple[dict[str, dict[str, str]], dict[str, str]],
) -> None:
    modules, absent = tables
    there = {f"{module}.{name}" for module, names in modules.items() for name in names}
    assert sorted(there & set(absent)) == []
    assert all(reason and not reason.endswith(".") for reason in absent.values())
