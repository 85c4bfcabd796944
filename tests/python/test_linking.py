"""The CMake package that Python names."""

from __future__ import annotations

from pathlib import Path

import pytest

import rushlight as rl
from rushlight import linking

ROOT = Path(__file__).resolve().parents[2]


def test_a_checkout_has_a_cmake_package() -> None:
    assert rl.cmake_dir() == ROOT / "cmake"


@pytest.mark.parametrize("folder", ["", "lib/cmake/rushlight"])
def test_an_installed_package_has_its_own(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lib" / "python3" / "rushlight"
    (package / folder).mkdir(parents=True)
    monkeypatch.setattr(linking, "__file__", str(package / "linking.py"))
    if not folder:
        with pytest.raises(rl.Error, match="installed without C") as failed:
            rl.cmake_dir()
        assert failed.value.code == rl.Code.NOT_FOUND
    else:
        (package / folder / "rushlight-config.cmake").touch()
        assert rl.cmake_dir() == package / folder
